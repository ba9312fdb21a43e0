package rdfres

import "strings"

// genid is the path of skolem IRIs (RDF 1.1 Concepts, section 3.5).
const genid = "/.well-known/genid/"

// Skolemize turns a blank node into the IRI authority + "/.well-known/genid/" +
// label; other terms are returned as they are. authority is scheme://host
// without a path; a slash at its end does not matter.
func Skolemize(t Term, authority string) Term {
	if t.Kind() != KindBlank {
		return t
	}
	return NewIRI(strings.TrimSuffix(authority, "/") + genid + t.Label())
}

// Unskolemize turns an IRI of our own skolem form (any authority) back into its blank node.
// Everything else, foreign genid IRIs too, is returned as it is. It allocates only for skolem IRIs.
// The authority is lost: a reader of IRIs of more than one authority tells their nodes apart with
// CutSkolem.
func Unskolemize(t Term) Term {
	if _, label, ok := CutSkolem(t); ok {
		return Term("_:" + label)
	}
	return t
}

// CutSkolem takes an IRI of our own skolem form apart: scheme://host, and the label of the blank
// node. Two authorities with one label are two nodes of two sources. ok is false for every other
// term. It allocates nothing.
func CutSkolem(t Term) (authority, label string, ok bool) {
	if len(t) < len("<a://b"+genid+">") || t[0] != '<' || t[len(t)-1] != '>' {
		return "", "", false
	}
	iri := string(t[1 : len(t)-1])
	slash := strings.LastIndexByte(iri, '/')
	label = iri[slash+1:]
	if !strings.HasPrefix(label, wirePrefix) || !strings.HasSuffix(iri[:slash+1], genid) || !IsWireName(label) {
		return "", "", false
	}
	authority = iri[:slash+1-len(genid)]
	scheme, host, ok := strings.Cut(authority, "://")
	if !ok || scheme == "" || host == "" || strings.ContainsAny(host, "/?#") || !isScheme(scheme) {
		return "", "", false
	}
	return authority, label, true
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return true
}

// wirePrefix begins every wire name; 40 hexadecimal digits follow.
const wirePrefix = "rsb"

// IsWireName tells whether a blank label has the form of ComponentNames.Name: rsb, 40 lower-case
// hexadecimal digits, n and a position, and perhaps d and an ordinal that is not 0; both decimal
// without leading zeros.
func IsWireName(label string) bool {
	rest, ok := strings.CutPrefix(label, wirePrefix)
	if !ok || len(rest) < 42 {
		return false
	}
	for i := range 40 {
		if c := rest[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	rest, ok = strings.CutPrefix(rest[40:], "n")
	position, ordinal, more := strings.Cut(rest, "d")
	return ok && plainNumber(position) && (!more || ordinal != "0" && plainNumber(ordinal))
}

func plainNumber(s string) bool {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
