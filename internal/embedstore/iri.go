package embedstore

import "strings"

// resolveIRI resolves a reference against a base, RFC 3986 section 5.2, and
// changes nothing else of it.
func resolveIRI(base, ref string) string {
	b, r := splitIRI(base), splitIRI(ref)
	switch {
	case r.scheme != "":
		r.path = removeDots(r.path)
	case r.hasAuth:
		r.scheme = b.scheme
		r.path = removeDots(r.path)
	default:
		switch {
		case r.path == "":
			r.path = b.path
			if !r.hasQuery {
				r.query, r.hasQuery = b.query, b.hasQuery
			}
		case r.path[0] == '/':
			r.path = removeDots(r.path)
		default:
			merged := "/" + r.path
			if !b.hasAuth || b.path != "" {
				merged = b.path[:strings.LastIndexByte(b.path, '/')+1] + r.path
			}
			r.path = removeDots(merged)
		}
		r.scheme, r.auth, r.hasAuth = b.scheme, b.auth, b.hasAuth
	}
	var s strings.Builder
	if r.scheme != "" {
		s.WriteString(r.scheme + ":")
	}
	if r.hasAuth {
		s.WriteString("//" + r.auth)
	}
	s.WriteString(r.path)
	if r.hasQuery {
		s.WriteString("?" + r.query)
	}
	if r.hasFrag {
		s.WriteString("#" + r.frag)
	}
	return s.String()
}

type iriParts struct {
	scheme, auth, path, query, frag string
	hasAuth, hasQuery, hasFrag      bool
}

func splitIRI(s string) (p iriParts) {
	s, p.frag, p.hasFrag = strings.Cut(s, "#")
	s, p.query, p.hasQuery = strings.Cut(s, "?")
	if hasScheme(s) {
		p.scheme, s, _ = strings.Cut(s, ":")
	}
	if strings.HasPrefix(s, "//") {
		p.hasAuth = true
		s = s[2:]
		n := strings.IndexByte(s, '/')
		if n < 0 {
			n = len(s)
		}
		p.auth, s = s[:n], s[n:]
	}
	p.path = s
	return p
}

func removeDots(path string) string {
	var out []string
	segs := strings.Split(path, "/")
	for i, seg := range segs {
		last := i == len(segs)-1
		switch seg {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) > 1 || len(out) == 1 && out[0] != "" {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, seg)
		}
	}
	return strings.Join(out, "/")
}
