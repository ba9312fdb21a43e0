package jsonld

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

const rdfJSON = chars.RDF + "JSON"

// canonicalJSON is a JSON text as RFC 8785 spells it, for JSON-LD's literals of
// type rdf:JSON. why is "" when it has one.
func canonicalJSON(raw []byte) (text []byte, why string) {
	tape, err := readTape("", raw, 0)
	if err != nil {
		return nil, err.Error()
	}
	return appendCanonicalJSON(make([]byte, 0, len(raw)), tape.root(0))
}

func appendCanonicalJSON(dst []byte, v jsonNode) (_ []byte, why string) {
	switch v.kind() {
	case '"':
		return appendJSONString(dst, v.text()), ""
	case 't', 'f', 'n':
		return append(dst, v.raw()...), ""
	case '[':
		dst = append(dst, '[')
		_ = v.elements(func(v jsonNode) error { // why tells it
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			if dst, why = appendCanonicalJSON(dst, v); why != "" {
				return syntax.ErrStopped
			}
			return nil
		})
		return append(dst, ']'), why
	case '{':
		return appendCanonicalObject(dst, v)
	}
	f, err := strconv.ParseFloat(string(v.raw()), 64)
	if err != nil {
		return dst, "the number " + chars.Cut(string(v.raw())) + " is out of range"
	}
	return appendJSONNumber(dst, f), ""
}

func appendCanonicalObject(dst []byte, v jsonNode) (_ []byte, why string) {
	type member struct {
		name  string
		key   []uint16 // names are in the order of UTF-16
		value jsonNode
	}
	var members []member
	_ = v.members(func(name string, v jsonNode) error { // gives no error
		members = append(members, member{name, utf16.Encode([]rune(name)), v})
		return nil
	})
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, m.name), ':')
		if dst, why = appendCanonicalJSON(dst, m.value); why != "" {
			return dst, why
		}
	}
	return append(dst, '}'), ""
}

// appendJSONNumber spells a number as ECMAScript does.
func appendJSONNumber(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs == 0 {
		return append(dst, '0')
	} else if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return append(append(append(dst, mantissa...), 'e', exponent[0]), strings.TrimLeft(exponent[1:], "0")...)
}

// appendJSONString spells a string with the fewest escapes.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		if from = i + 1; c < ' ' {
			dst = appendJSONControl(dst, c)
		} else {
			dst = append(dst, '\\', c)
		}
	}
	return append(append(dst, s[from:]...), '"')
}
