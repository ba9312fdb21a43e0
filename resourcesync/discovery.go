package resourcesync

import (
	"io"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// This file reads links to the documents of a source (specification, section 6.3).

const maxLinks = 100 // read per page, per set of headers, per robots.txt

// HeaderLinks gives the targets of a relation in Link headers (RFC 8288), as they are
// written and in their order; at most 100. lines are the values of the headers.
func HeaderLinks(lines []string, rel string) (out []string) {
	for _, l := range TypedHeaderLinks(lines, rel) {
		out = append(out, l.Href)
	}
	return out
}

// TypedHeaderLinks is HeaderLinks with the media types. The links have Rel, Href and Type; an
// unknown type is "".
func TypedHeaderLinks(lines []string, rel string) (out []Link) {
	for _, rest := range lines {
		for len(out) < maxLinks {
			_, target, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			var params []string
			if target, rest, ok = strings.Cut(target, ">"); !ok {
				break
			}
			params, rest = splitParams(rest)
			l, is := Link{Rel: rel, Href: target, Length: -1}, false
			for _, p := range params {
				name, value, _ := strings.Cut(p, "=")
				value = strings.Trim(strings.TrimSpace(value), `"`)
				switch strings.ToLower(strings.TrimSpace(name)) {
				case "rel":
					is = is || isRel(value, rel)
				case "type":
					l.Type = value
				}
			}
			if is {
				out = append(out, l)
			}
		}
	}
	return out
}

// isRel tells whether a list of relations has one.
func isRel(list, rel string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(s string) bool { return strings.EqualFold(s, rel) })
}

// splitParams takes the parameters of one link value. rest begins after its closing comma. Commas
// and semicolons in quotes do not count.
func splitParams(s string) (params []string, rest string) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted:
			params = append(params, s[start:i])
			start = i + 1
		case c == ',' && !quoted:
			return append(params, s[start:i]), s[i+1:]
		}
	}
	return append(params, s[min(start, len(s)):]), ""
}

// PageLinks gives the addresses of <link rel="resourcesync" href> in the head of an
// HTML page at base, in their order; at most 100. It reads to the end of the head.
func PageLinks(page io.Reader, base *url.URL) (out []string) {
	headLinks(page, base, func(base *url.URL, attr map[string]string) {
		if u, err := base.Parse(strings.TrimSpace(attr["href"])); err == nil && attr["href"] != "" && len(out) < maxLinks && isRel(attr["rel"], RelResourceSync) {
			out = append(out, u.String())
		}
	})
	return out
}

// headLinks calls f with the attributes of each <link> in the head of a page, and the base address
// of the page.
func headLinks(page io.Reader, base *url.URL, f func(base *url.URL, attr map[string]string)) {
	z := html.NewTokenizer(page)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data == "body" {
				return
			}
			attr := map[string]string{}
			for _, a := range t.Attr {
				attr[a.Key] = a.Val
			}
			switch t.Data {
			case "base":
				if u, err := base.Parse(strings.TrimSpace(attr["href"])); err == nil && attr["href"] != "" {
					base = u
				}
			case "link":
				f(base, attr)
			}
		}
	}
}

// RobotsLinks gives the addresses of the Sitemap lines of a robots.txt at base, in
// their order; at most 100.
func RobotsLinks(text string, base *url.URL) (out []string) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line, _, _ = strings.Cut(line, "#") // a comment: RFC 9309 allows one behind any line
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if value == "" || !strings.EqualFold(strings.TrimSpace(name), "sitemap") || len(out) >= maxLinks {
			continue
		}
		if u, err := base.Parse(value); err == nil {
			out = append(out, u.String())
		}
	}
	return out
}

// TypedLinks gives the links of a response at base with a media type and one of the relations: its
// Link headers first, then the head of its page; at most 100.
func TypedLinks(lines []string, page io.Reader, base *url.URL, rels ...string) (out []Link) {
	add := func(base *url.URL, rel, href, mediaType string) {
		u, err := base.Parse(strings.TrimSpace(href))
		if err != nil || href == "" || mediaType == "" || len(out) >= maxLinks {
			return
		}
		for _, r := range rels {
			if isRel(rel, r) {
				out = append(out, Link{Rel: r, Href: u.String(), Type: mediaType, Length: -1})
				return
			}
		}
	}
	for _, rest := range lines {
		for len(out) < maxLinks {
			_, target, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			if target, rest, ok = strings.Cut(target, ">"); !ok {
				break
			}
			var params []string
			params, rest = splitParams(rest)
			rel, mediaType := "", ""
			for _, p := range params {
				name, value, _ := strings.Cut(p, "=")
				value = strings.Trim(strings.TrimSpace(value), `"`)
				switch strings.ToLower(strings.TrimSpace(name)) {
				case "rel":
					rel = value
				case "type":
					mediaType = value
				case "anchor": // a link of something else
					rel = ""
				}
			}
			add(base, rel, target, mediaType)
		}
	}
	headLinks(page, base, func(base *url.URL, attr map[string]string) { add(base, attr["rel"], attr["href"], attr["type"]) })
	return out
}
