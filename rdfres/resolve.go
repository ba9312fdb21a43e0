package rdfres

import (
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ResolveIRI resolves a reference against a base (RFC 3986, section 5.2,
// strict), on IRIs, without any normalization: an IRI with a scheme comes back
// as it is. ok is false for a relative reference without an absolute base.
func ResolveIRI(base, ref string) (iri string, ok bool) {
	if chars.HasScheme(ref) {
		return ref, true
	}
	if !chars.HasScheme(base) {
		return "", false
	}
	b, r := splitIRI(base), splitIRI(ref)
	t := iriParts{scheme: b.scheme, hasAuthority: b.hasAuthority, authority: b.authority, hasFragment: r.hasFragment, fragment: r.fragment}
	switch {
	case r.hasAuthority:
		t.hasAuthority, t.authority = true, r.authority
		t.path, t.hasQuery, t.query = removeDots(r.path), r.hasQuery, r.query
	case r.path == "":
		t.path, t.hasQuery, t.query = b.path, b.hasQuery, b.query
		if r.hasQuery {
			t.hasQuery, t.query = true, r.query
		}
	case r.path[0] == '/':
		t.path, t.hasQuery, t.query = removeDots(r.path), r.hasQuery, r.query
	default:
		t.path, t.hasQuery, t.query = removeDots(mergePath(b, r.path)), r.hasQuery, r.query
	}
	return t.String(), true
}

type iriParts struct {
	scheme, authority, path, query, fragment string
	hasAuthority, hasQuery, hasFragment      bool
}

func (p iriParts) String() string {
	var b strings.Builder
	b.WriteString(p.scheme)
	b.WriteByte(':')
	if p.hasAuthority {
		b.WriteString("//" + p.authority)
	}
	b.WriteString(p.path)
	if p.hasQuery {
		b.WriteString("?" + p.query)
	}
	if p.hasFragment {
		b.WriteString("#" + p.fragment)
	}
	return b.String()
}

func splitIRI(s string) (p iriParts) {
	s, p.fragment, p.hasFragment = strings.Cut(s, "#")
	s, p.query, p.hasQuery = strings.Cut(s, "?")
	if chars.HasScheme(s) {
		p.scheme, s, _ = strings.Cut(s, ":")
	}
	if strings.HasPrefix(s, "//") {
		p.hasAuthority = true
		s = s[2:]
		if i := strings.IndexByte(s, '/'); i >= 0 {
			p.authority, s = s[:i], s[i:]
		} else {
			p.authority, s = s, ""
		}
	}
	p.path = s
	return p
}

func mergePath(b iriParts, ref string) string {
	if b.hasAuthority && b.path == "" {
		return "/" + ref
	}
	return b.path[:strings.LastIndexByte(b.path, '/')+1] + ref
}

// removeDots is remove_dot_segments of RFC 3986, section 5.2.4.
func removeDots(path string) string {
	if !strings.Contains(path, ".") {
		return path
	}
	var out []byte
	for path != "" {
		switch {
		case strings.HasPrefix(path, "../"):
			path = path[3:]
		case strings.HasPrefix(path, "./"):
			path = path[2:]
		case strings.HasPrefix(path, "/./"):
			path = path[2:]
		case path == "/.":
			path = "/"
		case strings.HasPrefix(path, "/../"), path == "/..":
			if path = path[3:]; path == "" {
				path = "/"
			}
			out = out[:max(0, strings.LastIndexByte(string(out), '/'))]
		case path == "." || path == "..":
			path = ""
		default:
			n := strings.IndexByte(path[1:], '/') + 1
			if n == 0 {
				n = len(path)
			}
			out = append(out, path[:n]...)
			path = path[n:]
		}
	}
	return string(out)
}
