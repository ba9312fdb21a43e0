package naming

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Describable tells whether an entity can be the target of a describes link: an absolute IRI of
// allowed characters. Nobody knows a component of blank nodes by its IRI. Stores also keep invalid IRIs.
func Describable(entity string) bool {
	n := Scheme(entity)
	if n == 0 || IsComponent(entity) || !XMLText(entity) {
		return false
	}
	for i := 0; i < len(entity); i++ {
		switch c := entity[i]; {
		case c <= ' ' || c == 0x7f || strings.IndexByte("<>\"{}|\\^`", c) >= 0:
			return false
		case c == '%':
			if i+2 >= len(entity) || !isHex(entity[i+1]) || !isHex(entity[i+2]) {
				return false
			}
		}
	}
	if strings.EqualFold(entity[:n], "http") || strings.EqualFold(entity[:n], "https") {
		rest, ok := strings.CutPrefix(entity[n+1:], "//")
		return ok && rest != "" && rest[0] != '/'
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// XMLText tells whether XML can hold a text.
func XMLText(s string) bool {
	for i, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// ComponentPrefix begins the name of a component of blank nodes.
const ComponentPrefix = "urn:rsbridge:component:"

// IsComponent tells a component of blank nodes from an entity with an IRI.
func IsComponent(entity string) bool {
	return len(entity) > len(ComponentPrefix) && entity[:len(ComponentPrefix)] == ComponentPrefix
}

// HeaderSafe makes text one header line.
func HeaderSafe(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '_'
		}
		return r
	}, s)
}

// Absolute tells whether an IRI can be a link on a page.
func Absolute(iri string) bool {
	u, err := url.Parse(iri)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "mailto" || u.Scheme == "ftp") && (u.Host != "" || u.Scheme == "mailto")
}
