package resourcesync

import (
	"io"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// This file reads what leads to the documents of a source (specification, section 6.3).

const maxLinks = 100 // that are read of a page, of its headers or of a robots.txt

// HeaderLinks gives the targets of a relation in Link headers (RFC 8288), as they are
// written and in their order; at most 100. lines are the values of the headers.
func HeaderLinks(lines []string, rel string) (out []string) {
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
			for _, p := range params {
				name, value, _ := strings.Cut(p, "=")
				if strings.EqualFold(strings.TrimSpace(name), "rel") && isRel(strings.Trim(strings.TrimSpace(value), `"`), rel) {
					out = append(out, target)
					break
				}
			}
		}
	}
	return out
}

// isRel tells whether a list of relations has one.
func isRel(list, rel string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(s string) bool { return strings.EqualFold(s, rel) })
}

// splitParams takes the parameters of one link value; rest begins after the
// comma that ends it. Commas and semicolons in quotes do not count.
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
	z := html.NewTokenizer(page)
	for len(out) < maxLinks {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data == "body" {
				return out
			}
			if t.Data != "base" && t.Data != "link" {
				continue
			}
			attr := map[string]string{}
			for _, a := range t.Attr {
				attr[a.Key] = a.Val
			}
			u, err := base.Parse(strings.TrimSpace(attr["href"]))
			switch {
			case err != nil || attr["href"] == "":
			case t.Data == "base":
				base = u
			case isRel(attr["rel"], RelResourceSync):
				out = append(out, u.String())
			}
		}
	}
	return out
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
