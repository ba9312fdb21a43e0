package check

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/html"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Forms of lists that are no documents of the framework, by the beginnings of bodies.

// isTable tells the types of tables: their cells may be addresses.
func isTable(mediaType string) bool {
	return mediaType == "text/csv" || mediaType == "text/tab-separated-values"
}

// isArrayOfAddresses tells JSON whose only strings outside of keys are addresses in one array, or in the
// objects of one. JSON-LD says nothing of its resources then but their names. The end may be missing.
func isArrayOfAddresses(head []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))))
	n, arrays := 0, 0
	var inObject []bool  // of each open object or array
	key := false         // the next string of an object is one
	var named, told bool // by @id, and with something else
	for {
		tok, err := dec.Token()
		if err != nil {
			return n > 1 && arrays == 1
		}
		top := len(inObject) - 1
		if s, ok := tok.(string); ok && top >= 0 && inObject[top] && key {
			key = false
			switch s {
			case "@id":
				named = true
			case "@graph":
			default:
				told = true
			}
			if named && told || told && strings.HasPrefix(s, "@") { // JSON-LD: a resource
				return false
			}
			continue
		}
		switch t := tok.(type) {
		case json.Delim:
			switch t {
			case '[', '{':
				inObject = append(inObject, t == '{')
				if t == '[' {
					arrays++
				}
			default:
				inObject = inObject[:top]
			}
		case string:
			if len(inObject) == 0 || !isAddress(t) {
				return false
			}
			n++
		default:
			return false
		}
		key = true
	}
}

func isAddress(s string) bool {
	return resourcesync.IsTextList([]byte(s)) && !strings.Contains(s, "\n")
}

// mostBeside bounds the text beside each link of a page of links.
const mostBeside = 40

// isPageOfLinks tells HTML with at least two links to elsewhere, and little text beside them.
func isPageOfLinks(head []byte) bool {
	switch strings.ToLower(resourcesync.RootName(head)) {
	case "html", "head", "body", "title", "ul", "ol", "a", "p", "div", "h1", "pre", "table":
	default:
		return false
	}
	z := html.NewTokenizer(bytes.NewReader(head))
	links, beside, inLink, hidden := 0, 0, false, ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return links > 1 && beside <= mostBeside*links
		case html.StartTagToken:
			name, more := z.TagName()
			switch tag := string(name); tag {
			case "title", "script", "style", "h1":
				hidden = tag
			case "a":
				for more {
					var k, v []byte
					if k, v, more = z.TagAttr(); string(k) == "href" && len(v) > 0 && v[0] != '#' {
						links++
						inLink = true
					}
				}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			switch tag := string(name); tag {
			case "a":
				inLink = false
			case hidden:
				hidden = ""
			}
		case html.TextToken:
			if !inLink && hidden == "" {
				beside += len(bytes.Join(bytes.Fields(z.Text()), []byte(" ")))
			}
		}
	}
}
