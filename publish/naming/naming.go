// Package naming maps entities to names in addresses and back, and says how sets can be
// called.
package naming

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// maxName is the longest NAME in bytes, and maxSegment the most between two slashes: a
// file system can hold it with a suffix. A longer one ends in a hash.
const (
	maxName    = 1024
	maxSegment = 240
	hashedTail = 2 + 2*len(rdfres.Digest{})
)

// ErrHashed comes from Decode for a NAME with the hash of its entity at the end. Hashed
// gives the key, and the state knows the entity.
var ErrHashed = errors.New("the name ends in a hash that only the state can map back")

// ErrName comes from Decode for a text Encode never gives.
var ErrName = errors.New("no name of an entity")

// Suffixes of addresses. A dot before one of them at the end of a segment of a NAME is
// escaped: the format's suffix stays apart from the name, and no file takes the place of a
// folder.
var Suffixes = []string{".jsonld", ".nt", ".ttl", ".rdf", ".html", ".nq", ".xml", ".json", ".zip", ".trig", ".gz"}

const upperHex = "0123456789ABCDEF"

// Encode is NAME of an address: the entity IRI without
// prefix, with ~XX (upper-case hex) for every byte outside [A-Za-z0-9_/:,().-],
// and so are a dot before a known suffix at the end of a segment, the dots of
// the segments . and .., and slashes next to an empty segment.
//
// An entity outside prefix is written in full. A NAME with a scheme and a
// colon at the begin is a full IRI; if the rest after prefix looks like that, its
// colon is escaped (Category~3AFoo). An entity outside prefix without a scheme
// begins with ~~. Beyond 1,024 bytes, or 240 between two slashes, a NAME is cut and
// ends in ~- and the hex of rdfres.EntityKey.
func Encode(entity, prefix string) string {
	name := fullName(entity, prefix)
	cut := cutName(name)
	if cut == len(name) {
		return name
	}
	key := rdfres.EntityKey(entity)
	return name[:cut] + "~-" + hex.EncodeToString(key[:])
}

// fullName is a NAME of any length.
func fullName(entity, prefix string) string {
	rest, inside := strings.CutPrefix(entity, prefix)
	switch {
	case inside && rest != "" && prefix != "":
		return escapeName(rest, Scheme(rest))
	case Scheme(entity) > 0, prefix == "" && entity != "":
		return escapeName(entity, 0)
	}
	return "~~" + escapeName(entity, 0)
}

// cutName gives the length of a name before its hash: all of it if it needs none.
func cutName(name string) int {
	cut := len(name)
	if cut > maxName {
		cut = maxName - hashedTail
	}
	for from := 0; from < cut; {
		end := len(name)
		if i := strings.IndexByte(name[from:], '/'); i >= 0 {
			end = from + i
		}
		if most := from + maxSegment; end > most || cut < len(name) && end >= cut && cut > most-hashedTail {
			cut = min(cut, most-hashedTail)
		}
		from = end + 1
	}
	if cut == len(name) {
		return cut
	}
	for name[cut-1] == '~' || cut > 1 && name[cut-2] == '~' { // never through an escape
		cut--
	}
	return cut
}

// Scheme gives the place of the colon after an IRI scheme, or 0.
func Scheme(s string) int {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return i
		default:
			return 0
		}
	}
	return 0
}

// nameScheme is Scheme of a NAME: + is escaped there and dots may be.
func nameScheme(name string) bool {
	colon := strings.IndexByte(name, ':')
	if colon <= 0 {
		return false
	}
	s, err := unescapeName(name[:colon])
	return err == nil && Scheme(s+":") == len(s) && len(s) > 0
}

// plain are the bytes never escaped, whatever is around them.
var plain = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_,()-:") {
		t[c] = true
	}
	return t
}()

// escapeName escapes s; colon is the place of a colon to escape, or 0.
func escapeName(s string, colon int) string {
	if colon == 0 {
		i := 0
		for i < len(s) && plain[s[i]] {
			i++
		}
		if i == len(s) {
			return s
		}
	}
	b := make([]byte, 0, len(s)+16)
	esc := func(c byte) { b = append(b, '~', upperHex[c>>4], upperHex[c&15]) }
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == ',', c == '(', c == ')', c == '-':
			b = append(b, c)
		case c == ':':
			if colon > 0 && i == colon {
				esc(c)
			} else {
				b = append(b, c)
			}
		case c == '/':
			if i == 0 || i == len(s)-1 || s[i-1] == '/' {
				esc(c)
			} else {
				b = append(b, c)
			}
		case c == '.':
			if escapeDot(s, i) {
				esc(c)
			} else {
				b = append(b, c)
			}
		default:
			esc(c)
		}
	}
	return string(b)
}

// escapeDot tells whether the dot at i is in a dot segment, or begins a known
// suffix that ends its segment.
func escapeDot(s string, i int) bool {
	end := strings.IndexByte(s[i:], '/')
	if end < 0 {
		end = len(s)
	} else {
		end += i
	}
	if tail := s[i:end]; len(tail) <= 7 {
		for _, x := range Suffixes {
			if tail == x {
				return true
			}
		}
	}
	segment := s[strings.LastIndexByte(s[:i], '/')+1 : end]
	return segment == "." || segment == ".."
}

func unescapeName(name string) (string, error) {
	if strings.IndexByte(name, '~') < 0 {
		return name, nil
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '~' {
			b = append(b, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", fmt.Errorf("%w: %q ends within an escape", ErrName, name)
		}
		hi, lo := strings.IndexByte(upperHex, name[i+1]), strings.IndexByte(upperHex, name[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("%w: %q is no escape", ErrName, name[i:i+3])
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}

// Decode is the inverse of Encode. It accepts exactly what Encode
// gives, so each entity has one NAME and each NAME one entity. ErrHashed
// when the state must map it back (Hashed), otherwise errors wrap ErrName.
func Decode(name, prefix string) (entity string, err error) {
	if _, ok := Hashed(name); ok {
		return "", ErrHashed
	}
	entity, err = decodeFull(name, prefix)
	if err == nil && cutName(name) < len(name) {
		return "", notAName(name)
	}
	return entity, err
}

func notAName(name string) error {
	return fmt.Errorf("%w: %q is not written as the names here are", ErrName, clip(name))
}

// decodeFull is the inverse of fullName.
func decodeFull(name, prefix string) (entity string, err error) {
	full, marked := strings.CutPrefix(name, "~~")
	s, err := unescapeName(full)
	if err != nil {
		return "", err
	}
	if marked || prefix == "" || nameScheme(name) {
		entity = s
	} else {
		entity = prefix + s
	}
	if fullName(entity, prefix) != name {
		return "", notAName(name)
	}
	return entity, nil
}

// Hashed gives the rdfres.EntityKey at the end of a long NAME.
func Hashed(name string) (key rdfres.Digest, ok bool) {
	i := len(name) - hashedTail
	if i <= 0 || len(name) > maxName || name[i:i+2] != "~-" {
		return key, false
	}
	for _, c := range []byte(name[i+2:]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return key, false
		}
	}
	hex.Decode(key[:], []byte(name[i+2:]))
	return key, true
}

// reserved names would collide with addresses of the site or of the bridge.
var reserved = map[string]bool{
	"about": true, "api": true, "assets": true, "favicon.ico": true, "healthz": true, "metrics": true, "openapi.json": true,
	"readyz": true, "robots.txt": true, "sitemap.xml": true, "static": true, "stores": true, "index.html": true,
	"resourcesync": true, "ldes": true, "oai": true, "iiif": true, "hub": true,
}

// devices are no names for folders of an export on Windows.
var devices = map[string]bool{"con": true, "nul": true, "prn": true, "aux": true}

// CheckSet refuses names of routes, and all but 1 to 100
// of [A-Za-z0-9._-] beginning with a letter or digit.
func CheckSet(name string) error {
	if name == "" || len(name) > 100 {
		return fmt.Errorf("set name %q: want 1 to 100 characters", clip(name))
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '_' && c != '.') {
			return fmt.Errorf("set name %q: want letters, digits, '-', '_' and '.', a letter or digit first", name)
		}
	}
	switch {
	case reserved[strings.ToLower(name)]:
		return fmt.Errorf("set name %q is an address of the site itself: choose another name", name)
	case devices[strings.ToLower(name)]:
		return fmt.Errorf("set name %q is reserved on Windows, where no folder can be called so: choose another name", name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("set name %q ends in a dot, which Windows leaves out of the name of a folder: choose another name", name)
	}
	for _, x := range Suffixes {
		if strings.HasSuffix(strings.ToLower(name), x) {
			return fmt.Errorf("set name %q ends in %s, as documents do: choose another name", name, x)
		}
	}
	return nil
}

// HeaderIRI makes an IRI fit for a header: characters forbidden in URIs are percent-escaped.
func HeaderIRI(iri string) string {
	forbidden := func(c byte) bool { return c <= ' ' || c >= 0x7f || strings.IndexByte(`<>"\^{|}`+"`", c) >= 0 }
	var b []byte // nil while all is allowed
	for i := range len(iri) {
		switch c := iri[i]; {
		case forbidden(c):
			if b == nil {
				b = append(b, iri[:i]...)
			}
			b = fmt.Appendf(b, "%%%02X", c)
		case b != nil:
			b = append(b, c)
		}
	}
	if b == nil {
		return iri
	}
	return string(b)
}

// clip shortens quotations in messages.
func clip(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "..."
	}
	return s
}
