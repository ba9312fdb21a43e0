package sparql

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

// jsonReader reads SPARQL 1.1 Query Results JSON as a stream, one binding at a
// time, with a token reader of its own: memory does not grow with the answer,
// and an answer without its closing braces is an error.
type jsonReader struct {
	in    *bufio.Reader
	str   []byte
	row   Row
	index map[string]int
	key   []byte
	cols  []jsonColumn
	first bool
	depth int    // of triple terms
	bad   string // the fault of the last string, "" for none

	numericBooleans bool // 1 and 0 of xsd:boolean are true and false (Virtuoso, only in JSON)
}

type jsonColumn struct{ terms }

// newJSON reads up to the bindings of a SELECT. When the answer is one of an
// ASK, isAsk is set instead and the whole document is read.
func newJSON(in io.Reader) (r *jsonReader, vars []string, isAsk, answer bool, err error) {
	r = &jsonReader{in: bufio.NewReaderSize(in, 64<<10), first: true}
	if err := r.expect('{'); err != nil {
		return nil, nil, false, false, err
	}
	head := false
	for n := 0; ; n++ {
		c, err := r.token()
		if err != nil {
			return nil, nil, false, false, err
		}
		if c == '}' {
			if !isAsk {
				return nil, nil, false, false, fmt.Errorf("JSON results have neither bindings nor a boolean")
			}
			return r, nil, true, answer, r.trailer()
		}
		if c == ',' && n > 0 {
			if c, err = r.token(); err != nil {
				return nil, nil, false, false, err
			}
		}
		if c != '"' {
			return nil, nil, false, false, r.unexpected(c)
		}
		name, err := r.name()
		if err != nil {
			return nil, nil, false, false, err
		}
		switch name {
		case "head":
			if vars, err = r.readHead(); err != nil {
				return nil, nil, false, false, err
			}
			head = true
		case "boolean":
			c, err := r.token()
			if err == nil && c != 't' && c != 'f' {
				err = r.unexpected(c)
			}
			if err == nil {
				err = r.literal(c)
			}
			if err != nil {
				return nil, nil, false, false, err
			}
			isAsk, answer = true, c == 't'
		case "results":
			if !head {
				return nil, nil, false, false, fmt.Errorf("JSON results come before their head, so they cannot be streamed")
			}
			found, err := r.openBindings()
			if err != nil {
				return nil, nil, false, false, err
			}
			if found {
				r.row = make(Row, len(vars))
				r.cols = make([]jsonColumn, len(vars))
				r.index = make(map[string]int, len(vars))
				for i, v := range vars {
					r.index[v] = i
				}
				return r, vars, false, false, nil
			}
		default:
			if err := r.skip(); err != nil {
				return nil, nil, false, false, err
			}
		}
	}
}

func (r *jsonReader) readHead() ([]string, error) {
	vars := []string{}
	if err := r.expect('{'); err != nil {
		return nil, err
	}
	err := r.members(func(name string) error {
		if name != "vars" {
			return r.skip()
		}
		return r.elements(func(c byte) error {
			if c != '"' {
				return r.unexpected(c)
			}
			if err := r.string(); err != nil {
				return err
			}
			vars = append(vars, string(r.str))
			return nil
		})
	})
	return vars, err
}

// openBindings reads "results" up to the first binding.
func (r *jsonReader) openBindings() (bool, error) {
	if err := r.expect('{'); err != nil {
		return false, err
	}
	for {
		c, err := r.token()
		if err != nil {
			return false, err
		}
		if c == ',' {
			continue
		}
		if c == '}' {
			return false, nil
		}
		if c != '"' {
			return false, r.unexpected(c)
		}
		name, err := r.name()
		if err != nil {
			return false, err
		}
		if name == "bindings" {
			return true, r.expect('[')
		}
		if err := r.skip(); err != nil {
			return false, err
		}
	}
}

// next reads a binding; io.EOF after the last and the end of the document.
func (r *jsonReader) next() (Row, error) {
	c, err := r.token()
	if err != nil {
		return nil, err
	}
	if c == ']' {
		return nil, r.end()
	}
	if !r.first {
		if c != ',' {
			return nil, r.unexpected(c)
		}
		if c, err = r.token(); err != nil {
			return nil, err
		}
	}
	r.first = false
	if c != '{' {
		return nil, r.unexpected(c)
	}
	clear(r.row)
	err = r.members(func(name string) error {
		i, ok := r.index[name]
		if !ok {
			return fmt.Errorf("JSON results bind %q, which is not in their head", name)
		}
		t, err := r.term(&r.cols[i])
		r.row[i] = t
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.row, nil
}

// end reads the rest after the bindings; io.EOF when the document is whole.
func (r *jsonReader) end() error {
	for depth := 2; depth > 0; {
		c, err := r.token()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			depth--
		case ',':
		case '"':
			if _, err := r.name(); err != nil {
				return err
			}
			if err := r.skip(); err != nil {
				return err
			}
		default:
			return r.unexpected(c)
		}
	}
	if err := r.trailer(); err != nil {
		return err
	}
	return io.EOF
}

// trailer checks for the end of the document.
func (r *jsonReader) trailer() error {
	for {
		c, err := r.in.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !isSpace(c) {
			return fmt.Errorf("JSON results are followed by %q", c)
		}
	}
}

// term reads a binding's value into a canonical term.
func (r *jsonReader) term(col *jsonColumn) (rdfres.Term, error) {
	if err := r.expect('{'); err != nil {
		return "", err
	}
	var kind, lang, dir, datatype, bad string
	var triple [3]rdfres.Term // of a triple term
	r.key = r.key[:0]
	err := r.members(func(name string) error {
		if name != "type" && name != "value" && name != "xml:lang" && name != "datatype" && name != "its:dir" {
			return r.skip()
		}
		c, err := r.token()
		if err != nil {
			return err
		}
		if name == "value" && c == '{' {
			if r.depth++; r.depth > 100 {
				return fmt.Errorf("JSON results: triple terms nested more than 100 deep")
			}
			defer func() { r.depth-- }()
			return r.members(func(part string) error {
				at := strings.Index("spo", part[:min(1, len(part))])
				if at < 0 || part == "" {
					return r.skip()
				}
				var err error
				triple[at], err = r.term(new(jsonColumn))
				return err
			})
		}
		if c != '"' {
			return r.unexpected(c)
		}
		if err := r.text(); err != nil {
			return err
		}
		bad = cmp.Or(bad, r.bad)
		switch name {
		case "type":
			kind = internKind(r.str)
		case "value":
			r.key = append(r.key, r.str...)
		case "xml:lang":
			lang = string(r.str)
		case "its:dir": // RDF 1.2
			dir = "--" + string(r.str)
		case "datatype":
			datatype = internDatatype(r.str)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if bad != "" {
		return rdfres.Unreadable(r.key, bad), nil
	}
	switch kind {
	case "uri":
		return col.get(r.key, func(b []byte) (rdfres.Term, error) { return rdfres.NewIRI(string(b)), nil })
	case "bnode":
		return rdfres.NewBlank(string(r.key)), nil
	case "literal", "typed-literal":
		if lang != "" {
			datatype, lang = "", lang+dir
		}
		if r.numericBooleans && datatype == xsd+"boolean" {
			switch string(r.key) {
			case "1":
				r.key = append(r.key[:0], "true"...)
			case "0":
				r.key = append(r.key[:0], "false"...)
			}
		}
		return rdfres.NewLiteral(string(r.key), lang, datatype), nil
	case "triple":
		return rdfres.TripleTerm(fmt.Sprintf("<<( %s %s %s )>>", triple[0], triple[1], triple[2])), nil
	}
	return "", fmt.Errorf("JSON results have a term of the type %q", kind)
}

func internKind(b []byte) string {
	switch string(b) {
	case "uri":
		return "uri"
	case "literal":
		return "literal"
	case "bnode":
		return "bnode"
	}
	return string(b)
}

func internDatatype(b []byte) string {
	switch string(b) {
	case xsd + "integer":
		return xsd + "integer"
	case xsd + "string":
		return xsd + "string"
	}
	return string(b)
}

// members reads an object after its '{': for each name, value must read the value.
func (r *jsonReader) members(value func(name string) error) error {
	for n := 0; ; n++ {
		c, err := r.token()
		if err != nil {
			return err
		}
		if c == '}' {
			return nil
		}
		if n > 0 {
			if c != ',' {
				return r.unexpected(c)
			}
			if c, err = r.token(); err != nil {
				return err
			}
		}
		if c != '"' {
			return r.unexpected(c)
		}
		name, err := r.name()
		if err != nil {
			return err
		}
		if err := value(name); err != nil {
			return err
		}
	}
}

// elements reads an array with its '['; value gets each element's first byte.
func (r *jsonReader) elements(value func(c byte) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		c, err := r.token()
		if err != nil {
			return err
		}
		if c == ']' {
			return nil
		}
		if n > 0 {
			if c != ',' {
				return r.unexpected(c)
			}
			if c, err = r.token(); err != nil {
				return err
			}
		}
		if err := value(c); err != nil {
			return err
		}
	}
}

// name reads the rest of a member's name and the colon.
func (r *jsonReader) name() (string, error) {
	if err := r.string(); err != nil {
		return "", err
	}
	var name string
	switch string(r.str) { // without allocating for the usual names
	case "type":
		name = "type"
	case "value":
		name = "value"
	case "s":
		name = "s"
	case "p":
		name = "p"
	case "o":
		name = "o"
	case "datatype":
		name = "datatype"
	case "xml:lang":
		name = "xml:lang"
	default:
		name = string(r.str)
	}
	return name, r.expect(':')
}

func (r *jsonReader) unexpected(c byte) error {
	return fmt.Errorf("JSON results: unexpected %q", c)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// byte reads one byte; the end is an error here.
func (r *jsonReader) byte() (byte, error) {
	c, err := r.in.ReadByte()
	if err == io.EOF {
		return 0, fmt.Errorf("%w: the JSON document is not closed", ErrTruncated)
	}
	return c, err
}

// token reads the first byte of the next token.
func (r *jsonReader) token() (byte, error) {
	for {
		c, err := r.byte()
		if err != nil || !isSpace(c) {
			return c, err
		}
	}
}

func (r *jsonReader) expect(want byte) error {
	c, err := r.token()
	if err != nil {
		return err
	}
	if c != want {
		return fmt.Errorf("JSON results: unexpected %q, wanted %q", c, want)
	}
	return nil
}

// string reads the rest of a string into r.str; it must be one of JSON.
func (r *jsonReader) string() error {
	if err := r.text(); err != nil {
		return err
	}
	if r.bad != "" {
		return fmt.Errorf("JSON results: %s in %q", r.bad, clip(r.str))
	}
	return nil
}

// text is string for the text of a term. Its end is known even after a wrong escape or bytes
// outside UTF-8: r.bad names the fault, and the term alone is lost. Control characters are taken as
// they are, since they can mean nothing else.
func (r *jsonReader) text() error {
	r.str, r.bad = r.str[:0], ""
	for {
		// Most strings lie whole in the buffer and have no escapes.
		if n := r.in.Buffered(); n > 0 {
			b, _ := r.in.Peek(n)
			i := 0
			for i < len(b) && b[i] != '"' && b[i] != '\\' {
				i++
			}
			r.str = append(r.str, b[:i]...)
			_, _ = r.in.Discard(i) // they are buffered
		}
		c, err := r.byte()
		if err != nil {
			return err
		}
		switch c {
		case '"':
			if !utf8.Valid(r.str) {
				r.bad = cmp.Or(r.bad, "bytes outside UTF-8")
			}
			return nil
		case '\\':
			if err := r.escape(); err != nil {
				return err
			}
		default:
			r.str = append(r.str, c)
		}
	}
}

func (r *jsonReader) escape() error {
	c, err := r.byte()
	if err != nil {
		return err
	}
	switch c {
	case '"', '\\', '/':
		r.str = append(r.str, c)
	case 'b':
		r.str = append(r.str, '\b')
	case 'f':
		r.str = append(r.str, '\f')
	case 'n':
		r.str = append(r.str, '\n')
	case 'r':
		r.str = append(r.str, '\r')
	case 't':
		r.str = append(r.str, '\t')
	case 'u':
		v, ok := r.hex(4)
		if low := rune(0); ok && utf16.IsSurrogate(v) {
			if next, _ := r.in.Peek(2); string(next) == `\u` {
				_, _ = r.in.Discard(2) // they are buffered
				low, _ = r.hex(4)
			}
			v = utf16.DecodeRune(v, low)
			ok = v != utf8.RuneError
		}
		r.rune('u', v, ok)
	case 'U': // of Turtle: Virtuoso writes it beyond U+FFFF
		v, ok := r.hex(8)
		r.rune('U', v, ok)
	default:
		r.str = append(r.str, '\\', c)
		r.bad = fmt.Sprintf("the unknown escape \\%c", c)
	}
	return nil
}

// rune adds the character of an escape.
func (r *jsonReader) rune(escape byte, v rune, ok bool) {
	if !ok || !utf8.ValidRune(v) {
		r.bad = fmt.Sprintf("an escape \\%c of no character", escape)
		v = utf8.RuneError
	}
	r.str = utf8.AppendRune(r.str, v)
}

// hex reads n hexadecimal digits, or nothing if there are fewer.
func (r *jsonReader) hex(n int) (rune, bool) {
	h, _ := r.in.Peek(n)
	v, err := strconv.ParseUint(string(h), 16, 32)
	if len(h) < n || err != nil || v > utf8.MaxRune {
		return 0, false
	}
	_, _ = r.in.Discard(n) // they are buffered
	return rune(v), true
}

// literal reads the rest of true, false or null.
func (r *jsonReader) literal(first byte) error {
	word := map[byte]string{'t': "rue", 'f': "alse", 'n': "ull"}[first]
	if word == "" {
		return r.unexpected(first)
	}
	for i := range len(word) {
		c, err := r.byte()
		if err != nil {
			return err
		}
		if c != word[i] {
			return r.unexpected(c)
		}
	}
	return nil
}

// skip reads a value of no interest, of any depth.
func (r *jsonReader) skip() error {
	depth := 0
	for {
		c, err := r.token()
		if err != nil {
			return err
		}
		switch {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == '"':
			if err := r.string(); err != nil {
				return err
			}
		case c == ',' || c == ':':
			continue
		case c == 't' || c == 'f' || c == 'n':
			if err := r.literal(c); err != nil {
				return err
			}
		case c == '-' || (c >= '0' && c <= '9'):
			if err := r.number(); err != nil {
				return err
			}
		default:
			return r.unexpected(c)
		}
		if depth == 0 {
			return nil
		}
		if depth < 0 {
			return r.unexpected(c)
		}
	}
}

func (r *jsonReader) number() error {
	for {
		c, err := r.byte()
		if err != nil {
			return err
		}
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return r.in.UnreadByte()
		}
	}
}
