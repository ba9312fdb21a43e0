package sparql

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	xmlType      = "application/sparql-results+xml"
	resultsSpace = "http://www.w3.org/2005/sparql-results#"
	xmlSpace     = "http://www.w3.org/XML/1998/namespace"
)

// isXML tells of a media type whether it may be query results in XML. Some stores
// call them plain XML.
func isXML(mediaType string) bool {
	return mediaType == xmlType || mediaType == "application/xml" || mediaType == "text/xml"
}

// xmlResults reads SPARQL Query Results XML (W3C Recommendation, second edition) as a
// stream, one result at a time. It serves stores without JSON.
type xmlResults struct {
	in    *xml.Decoder
	row   Row
	index map[string]int
	depth int // of triple terms
}

// newXML reads up to the results of a SELECT. For the answer to an ASK it reads the whole
// document, and isAsk is set.
func newXML(in io.Reader) (r *xmlResults, vars []string, isAsk, answer bool, err error) {
	r = &xmlResults{in: xml.NewDecoder(&xmlMarker{in: bufio.NewReaderSize(in, 64<<10)}), index: map[string]int{}}
	fail := func(err error) (*xmlResults, []string, bool, bool, error) { return nil, nil, false, false, err }
	root, err := r.start()
	if err != nil {
		return fail(err)
	}
	if root == nil || root.Name.Local != "sparql" {
		return fail(fmt.Errorf("XML results begin with another element than sparql"))
	}
	for {
		e, err := r.start()
		switch {
		case err != nil:
			return fail(err)
		case e == nil:
			return fail(fmt.Errorf("XML results have neither results nor a boolean"))
		case e.Name.Local == "head":
			if err := r.children(func(v xml.StartElement) error {
				if v.Name.Local == "variable" {
					name := attribute(v, "", "name")
					if _, twice := r.index[name]; twice {
						return fmt.Errorf("XML results name the variable %q twice", name)
					}
					r.index[name] = len(vars)
					vars = append(vars, name)
				}
				return r.skip()
			}); err != nil {
				return fail(err)
			}
		case e.Name.Local == "boolean":
			text, err := r.text()
			if err != nil {
				return fail(err)
			}
			if text = strings.TrimSpace(text); text != "true" && text != "false" {
				return fail(fmt.Errorf("XML results have the boolean %q", clip([]byte(text))))
			}
			if err := r.end(); err != io.EOF {
				return fail(err)
			}
			return r, nil, true, text == "true", nil
		case e.Name.Local == "results":
			r.row = make(Row, len(vars))
			return r, vars, false, false, nil
		default:
			if err := r.skip(); err != nil {
				return fail(err)
			}
		}
	}
}

// next reads a result; io.EOF after the last and the end of the document.
func (r *xmlResults) next() (Row, error) {
	e, err := r.start()
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, r.end()
	}
	if e.Name.Local != "result" {
		return nil, fmt.Errorf("XML results have the element %s among them", e.Name.Local)
	}
	clear(r.row)
	err = r.children(func(b xml.StartElement) error {
		name := attribute(b, "", "name")
		i, ok := r.index[name]
		if b.Name.Local != "binding" || !ok {
			return fmt.Errorf("XML results bind %q, which is not in their head", name)
		}
		t, err := r.only()
		r.row[i] = t
		return err
	})
	return r.row, err
}

// only reads the one term of the current element, to the end of the element.
func (r *xmlResults) only() (rdfres.Term, error) {
	var t rdfres.Term
	err := r.children(func(e xml.StartElement) (err error) {
		if t != "" {
			return fmt.Errorf("XML results have two terms in one place")
		}
		t, err = r.term(e)
		return err
	})
	if err == nil && t == "" {
		err = fmt.Errorf("XML results have a place without a term")
	}
	return t, err
}

func (r *xmlResults) term(e xml.StartElement) (rdfres.Term, error) {
	if e.Name.Local == "triple" {
		return r.triple()
	}
	text, err := r.text()
	if err != nil {
		return "", err
	}
	lang, datatype := attribute(e, xmlSpace, "lang"), attribute(e, "", "datatype")
	if strings.Contains(text+lang+datatype, xmlMark) {
		return rdfres.Unreadable(text, "a character that XML does not have"), nil
	}
	switch e.Name.Local {
	case "uri":
		return rdfres.NewIRI(text), nil
	case "bnode":
		return rdfres.NewBlank(text), nil
	case "literal":
		if lang != "" {
			datatype = ""
			for _, a := range e.Attr { // RDF 1.2
				if a.Name.Local == "dir" {
					lang += "--" + a.Value
				}
			}
		}
		return rdfres.NewLiteral(text, lang, datatype), nil
	}
	return "", fmt.Errorf("XML results have a term of the kind %q", e.Name.Local)
}

func (r *xmlResults) triple() (rdfres.Term, error) {
	if r.depth++; r.depth > 100 {
		return "", fmt.Errorf("XML results: triple terms nested more than 100 deep")
	}
	defer func() { r.depth-- }()
	part := map[string]rdfres.Term{}
	err := r.children(func(e xml.StartElement) (err error) {
		part[e.Name.Local], err = r.only()
		return err
	})
	return rdfres.TripleTerm(fmt.Sprintf("<<( %s %s %s )>>", part["subject"], part["predicate"], part["object"])), err
}

func attribute(e xml.StartElement, space, name string) string {
	for _, a := range e.Attr {
		if a.Name.Space == space && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// start reads up to the next element inside the current one; nil at its end.
func (r *xmlResults) start() (*xml.StartElement, error) {
	for {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if t.Name.Space != resultsSpace && t.Name.Space != "" {
				if err := r.skip(); err != nil {
					return nil, err
				}
				continue
			}
			return &t, nil
		case xml.EndElement:
			return nil, nil
		case xml.CharData:
			if len(strings.TrimSpace(string(t))) > 0 {
				return nil, fmt.Errorf("XML results: unexpected %q", clip(t))
			}
		}
	}
}

// children calls f for each element inside the current one; f reads it to its end.
func (r *xmlResults) children(f func(xml.StartElement) error) error {
	for {
		e, err := r.start()
		if err != nil || e == nil {
			return err
		}
		if err := f(*e); err != nil {
			return err
		}
	}
}

// text reads the text of an element to its end.
func (r *xmlResults) text() (string, error) {
	var text strings.Builder
	for {
		t, err := r.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			return text.String(), nil
		case xml.StartElement:
			return "", fmt.Errorf("XML results have the element %s in a text", t.Name.Local)
		}
	}
}

func (r *xmlResults) skip() error {
	for depth := 1; depth > 0; {
		t, err := r.token()
		if err != nil {
			return err
		}
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// end reads the rest of the document; io.EOF if it is whole.
func (r *xmlResults) end() error {
	for {
		e, err := r.start()
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if err := r.skip(); err != nil {
			return err
		}
	}
	for {
		t, err := r.in.Token()
		if err != nil {
			return err
		}
		if d, text := t.(xml.CharData); !text || len(strings.TrimSpace(string(d))) > 0 {
			if _, comment := t.(xml.Comment); !comment {
				return fmt.Errorf("something follows the XML results")
			}
		}
	}
}

// token is the next one; the end of the answer is an error here.
func (r *xmlResults) token() (xml.Token, error) {
	t, err := r.in.Token()
	if syntax, is := err.(*xml.SyntaxError); err == io.EOF || is && strings.HasPrefix(syntax.Msg, "unexpected EOF") {
		return nil, fmt.Errorf("%w: the XML document is not closed", ErrTruncated)
	}
	return t, err
}

// xmlMark stands for a character not allowed in XML: noncharacters in an order no text has.
const xmlMark = "\ufdd0\ufdef\ufdd0"

// maxReference bounds the characters of a reference for xmlMarker.
const maxReference = 12

// xmlMarker writes xmlMark for each character forbidden in XML: raw, outside UTF-8, or as a numeric
// reference. Stores write them (U+0000, U+001F, half surrogates), and no XML reader goes on after
// one.
type xmlMarker struct {
	in   *bufio.Reader
	out  []byte
	from int
	tail [2]byte // the last two bytes
	data bool    // in a CDATA section
}

func (m *xmlMarker) Read(p []byte) (int, error) {
	for m.from == len(m.out) {
		m.out, m.from = m.out[:0], 0
		for len(m.out) < 32<<10 {
			if err := m.step(); err != nil {
				if len(m.out) > 0 {
					break
				}
				return 0, err
			}
		}
	}
	n := copy(p, m.out[m.from:])
	m.from += n
	return n, nil
}

const cdata = "<![CDATA["

func (m *xmlMarker) step() error {
	c, size, err := m.in.ReadRune()
	if err != nil {
		return err
	}
	switch {
	case c == utf8.RuneError && size == 1 || !xmlChar(c):
		m.out = append(m.out, xmlMark...)
	case c == '&' && !m.data:
		return m.reference()
	case c == '<' && !m.data:
		m.out = append(m.out, '<')
		if next, _ := m.in.Peek(len(cdata) - 1); string(next) == cdata[1:] {
			m.data = true
		}
	case c == '>' && m.tail == [2]byte{']', ']'}:
		m.out, m.data = append(m.out, '>'), false
	default:
		m.out = utf8.AppendRune(m.out, c)
	}
	m.tail = [2]byte{m.tail[1], byte(min(c, utf8.RuneSelf))}
	return nil
}

// reference takes the text after an ampersand. Longer ones are left to the reader.
func (m *xmlMarker) reference() error {
	next, _ := m.in.Peek(maxReference)
	name, _, ended := strings.Cut(string(next), ";")
	digits, number := strings.CutPrefix(name, "#")
	if ended && number {
		var c int64
		var err error
		if hex, is := strings.CutPrefix(digits, "x"); is {
			_, err = fmt.Sscanf(hex, "%x", &c)
		} else {
			_, err = fmt.Sscanf(digits, "%d", &c)
		}
		if err == nil && !xmlChar(rune(min(c, utf8.MaxRune+1))) {
			_, _ = m.in.Discard(len(name) + 1) // they are buffered
			m.out = append(m.out, xmlMark...)
			return nil
		}
	}
	m.out = append(m.out, '&')
	return nil
}

// xmlChar tells whether XML 1.0 has a character (section 2.2).
func xmlChar(c rune) bool {
	return c == '\t' || c == '\n' || c == '\r' || c >= 0x20 && c <= 0xd7ff || c >= 0xe000 && c <= 0xfffd || c >= 0x10000 && c <= utf8.MaxRune
}

// structured reads the head of an answer in JSON or XML.
func (c *Client) structured(res *response) (rows rowReader, vars []string, isAsk, answer bool, err error) {
	if isXML(res.mediaType) {
		x, vars, isAsk, answer, err := newXML(res.body)
		if err == nil {
			c.xml.Store(true)
		}
		return x, vars, isAsk, answer, err
	}
	j, vars, isAsk, answer, err := newJSON(res.body)
	if err == nil {
		j.numericBooleans = isVirtuoso(res.header)
	}
	return j, vars, isAsk, answer, err
}

// isStructured tells of a media type whether structured reads it.
func isStructured(mediaType string) bool {
	return mediaType == jsonType || mediaType == "application/json" || isXML(mediaType)
}
