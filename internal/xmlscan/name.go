package xmlscan

import (
	"fmt"
	"unicode/utf8"
)

// scanName reads a name, with or without prefix, at w[i:]. It gives errMore when
// the name reaches the end of w.
func scanName(w []byte, i int, n *Name) (int, error) {
	start, colon := i, -1
	for i < len(w) {
		c := w[i]
		if nameByte[c] != 0 {
			i++
			continue
		}
		if c == ':' && colon < 0 {
			colon = i
			i++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		if !utf8.FullRune(w[i:]) {
			return 0, errMore
		}
		r, size := utf8.DecodeRune(w[i:])
		if !nameRune(r) {
			break
		}
		i += size
	}
	if i == len(w) {
		return 0, errMore
	}
	if w[i] == ':' {
		return 0, badName(w[start : i+1])
	}
	n.Prefix = nil
	n.Local = w[start:i:i]
	if colon >= 0 {
		n.Prefix, n.Local = w[start:colon:colon], w[colon+1:i:i]
		if !nameStart(n.Prefix) {
			return 0, badName(w[start:i])
		}
	}
	if !nameStart(n.Local) {
		return 0, badName(w[start:i])
	}
	return i, nil
}

func badName(w []byte) error {
	return fmt.Errorf("%q is no name of an element or attribute", Clip(string(w)))
}

// nameStart says whether a name is not empty and begins with a letter or _.
func nameStart(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	c := name[0]
	if c < utf8.RuneSelf {
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
	}
	r, _ := utf8.DecodeRune(name)
	return nameRune(r) && r != 0xB7 && !(r >= 0x300 && r <= 0x36F) && r != 0x203F && r != 0x2040
}

// nameByte marks the ASCII bytes of names, the colon not among them.
var nameByte = func() (t [256]uint8) {
	for c := range 0x80 {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' {
			t[c] = 1
		}
	}
	return t
}()

// nameRune is NameChar of XML 1.0 (fifth edition) beyond ASCII.
func nameRune(r rune) bool {
	switch {
	case r == 0xB7, r >= 0xC0 && r <= 0x37D && r != 0xD7 && r != 0xF7, r >= 0x37F && r <= 0x1FFF,
		r == 0x200C, r == 0x200D, r == 0x203F, r == 0x2040, r >= 0x2070 && r <= 0x218F,
		r >= 0x2C00 && r <= 0x2FEF, r >= 0x3001 && r <= 0xD7FF, r >= 0xF900 && r <= 0xFDCF,
		r >= 0xFDF0 && r <= 0xFFFD, r >= 0x10000 && r <= 0xEFFFF:
		return true
	}
	return false
}
