package rdfres

import (
	"io"
	"strings"
)

// valueSpaces makes spaces of the line ends and tabs that stand raw in values of attributes
// (XML 1.0, section 3.3.3), which encoding/xml leaves as they are; those that are written
// as references stay. It works on bytes, since in every encoding that is read the markup
// is ASCII.
type valueSpaces struct {
	r     io.Reader
	in    byte   // what is being read: see below
	quote byte   // that ends the value
	cr    bool   // the byte before was a carriage return in a value
	last  []byte // the bytes before, as many as are needed
	depth int    // of < in a DOCTYPE
}

const (
	inText = iota
	inTag
	inValue
	inComment
	inCDATA
	inInstruction
	inDoctype
	inDoctypeValue
	inDoctypeComment
)

func (v *valueSpaces) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	out := 0
	for _, c := range p[:n] {
		if v.in == inValue {
			again := v.cr && c == '\n' // the second byte of one line end
			if v.cr = c == '\r'; again {
				continue
			}
			if c == '\r' || c == '\n' || c == '\t' {
				c = ' '
			}
		}
		p[out] = c
		out++
		v.step(c)
	}
	return out, err
}

func (v *valueSpaces) step(c byte) {
	switch v.in {
	case inText:
		if c == '<' || len(v.last) > 0 {
			v.last = append(v.last, c)
			v.markup(string(v.last))
		}
	case inTag:
		switch c {
		case '"', '\'':
			v.in, v.quote = inValue, c
		case '>':
			v.in = inText
		}
	case inValue:
		if c == v.quote {
			v.in = inTag
		}
	case inComment:
		if v.ends(c, "-->") {
			v.in = inText
		}
	case inCDATA:
		if v.ends(c, "]]>") {
			v.in = inText
		}
	case inInstruction:
		if v.ends(c, "?>") {
			v.in = inText
		}
	case inDoctypeValue:
		if c == v.quote {
			v.in = inDoctype
		}
	case inDoctypeComment:
		if v.ends(c, "-->") {
			v.in, v.depth = inDoctype, v.depth-1
		}
	case inDoctype:
		v.doctype(c)
	}
}

// markup takes the beginning of what begins with <.
func (v *valueSpaces) markup(text string) {
	switch {
	case text == "<!--":
		v.in = inComment
	case text == "<![CDATA[":
		v.in = inCDATA
	case text == "<?":
		v.in = inInstruction
	case strings.HasPrefix("<!--", text), strings.HasPrefix("<![CDATA[", text):
		return
	case strings.HasPrefix(text, "<!"):
		v.in, v.depth = inDoctype, 1
	default:
		v.in = inTag
	}
	v.last = v.last[:0]
}

// doctype looks for the end of a DOCTYPE, whose declarations stand in < and >.
func (v *valueSpaces) doctype(c byte) {
	if opens := v.ends(c, "<!--"); opens {
		v.in = inDoctypeComment
		return
	}
	switch c {
	case '"', '\'':
		v.in, v.quote, v.last = inDoctypeValue, c, v.last[:0]
	case '<':
		v.depth++
	case '>':
		if v.depth--; v.depth == 0 {
			v.in, v.last = inText, v.last[:0]
		}
	}
}

// ends tells whether the bytes before and this one are the mark.
func (v *valueSpaces) ends(c byte, mark string) bool {
	if len(v.last) == len(mark) {
		v.last = v.last[:copy(v.last, v.last[1:])]
	}
	if v.last = append(v.last, c); string(v.last) != mark {
		return false
	}
	v.last = v.last[:0]
	return true
}
