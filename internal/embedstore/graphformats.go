package embedstore

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

// graphWriter writes statements one after the other. Terms are canonical
// N-Triples; g is "" for the default graph and for formats of triples.
type graphWriter interface {
	write(s, p, o, g string) error
	end() error
}

// newGraphWriter makes the writer of a format; an unknown format is an error.
func newGraphWriter(w *bufio.Writer, f rdfres.Format) (graphWriter, error) {
	switch f {
	case rdfres.NTriples, rdfres.NQuads:
		return &lineWriter{w: w}, nil
	case rdfres.Turtle, rdfres.TriG:
		return &turtleWriter{w: w}, nil
	case rdfres.RDFXML:
		return &rdfxmlWriter{w: w}, nil
	case rdfres.JSONLD:
		return &jsonldWriter{w: w}, nil
	}
	return nil, fmt.Errorf("write a graph as %q: no such format", f)
}

// WriteGraph writes the triples of a CONSTRUCT or DESCRIBE.
func (r *Result) WriteGraph(w io.Writer, f rdfres.Format) error {
	bw := bufio.NewWriterSize(w, 64<<10)
	gw, err := newGraphWriter(bw, f)
	if err != nil {
		return err
	}
	err = r.triples(func(terms []string) error {
		for i := 0; i < len(terms); i += 3 {
			if err := gw.write(terms[i], terms[i+1], terms[i+2], ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = gw.end()
	}
	if err != nil {
		return err
	}
	return bw.Flush()
}

// lineWriter writes N-Triples and N-Quads.
type lineWriter struct{ w *bufio.Writer }

func (l *lineWriter) write(s, p, o, g string) error {
	w := l.w
	w.WriteString(s)
	w.WriteByte(' ')
	w.WriteString(p)
	w.WriteByte(' ')
	w.WriteString(o)
	if g != "" {
		w.WriteByte(' ')
		w.WriteString(g)
	}
	_, err := w.WriteString(" .\n")
	return err
}

func (l *lineWriter) end() error { return nil }

// turtleWriter writes Turtle and TriG, with neighbours of one subject joined.
type turtleWriter struct {
	w       *bufio.Writer
	s, p, g string
	open    bool
}

func (t *turtleWriter) write(s, p, o, g string) error {
	w := t.w
	if t.open && g != t.g {
		t.finish()
	}
	switch {
	case t.open && s == t.s && p == t.p:
		w.WriteString(" , ")
	case t.open && s == t.s:
		w.WriteString(" ;\n    ")
		w.WriteString(p)
		w.WriteByte(' ')
		t.p = strings.Clone(p)
	default:
		if t.open {
			w.WriteString(" .\n")
		} else if g != "" {
			w.WriteString(g)
			w.WriteString(" {\n")
		}
		w.WriteString(s)
		w.WriteByte(' ')
		w.WriteString(p)
		w.WriteByte(' ')
		t.s, t.p, t.g, t.open = strings.Clone(s), strings.Clone(p), strings.Clone(g), true
	}
	_, err := w.WriteString(o)
	return err
}

func (t *turtleWriter) finish() {
	if !t.open {
		return
	}
	t.w.WriteString(" .\n")
	if t.g != "" {
		t.w.WriteString("}\n")
	}
	t.open = false
}

func (t *turtleWriter) end() error {
	t.finish()
	return nil
}

// rdfxmlWriter writes RDF/XML, one property element after the other.
type rdfxmlWriter struct {
	w     *bufio.Writer
	s     string
	begun bool
	buf   []byte
}

func (r *rdfxmlWriter) begin() {
	if !r.begun {
		r.begun = true
		r.w.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<rdf:RDF xmlns:rdf="` + rdfNS + `">` + "\n")
	}
}

func (r *rdfxmlWriter) write(s, p, o, _ string) error {
	r.begin()
	pred := rdfres.Term(p).IRI()
	ns, local := splitName(pred)
	if local == "" {
		return fmt.Errorf("write RDF/XML: the predicate %s has no part that can be the name of an element: ask for another format", p)
	}
	for _, t := range []string{s, p, o} {
		if !xmlCan(t) {
			return fmt.Errorf("write RDF/XML: %s %s holds a character that XML cannot: ask for another format", s, p)
		}
	}
	if s != r.s {
		if r.s != "" {
			r.w.WriteString("</rdf:Description>\n")
		}
		r.s = strings.Clone(s)
		r.w.WriteString("<rdf:Description ")
		r.resource("about", s)
		r.w.WriteString(">\n")
	}
	name := "p:" + local
	b := append(r.buf[:0], "  <"...)
	b = append(append(b, name...), ` xmlns:p="`...)
	b = append(appendXMLText(b, ns), '"')
	if ns == rdfNS {
		name = "rdf:" + local
		b = append(append(r.buf[:0], "  <"...), name...)
	}
	r.w.Write(b)
	switch kindOf(o) {
	case idLiteral:
		lex, lang, dt := splitLiteral(o)
		b = b[:0]
		switch {
		case lang != "":
			b = append(append(append(b, ` xml:lang="`...), lang...), '"')
		case dt != xsdNS+"string":
			b = append(appendXMLText(append(b, ` rdf:datatype="`...), dt), '"')
		}
		b = appendXMLText(append(b, '>'), lex)
		b = append(append(append(b, "</"...), name...), ">\n"...)
		r.w.Write(b)
	default:
		r.w.WriteByte(' ')
		r.resource("resource", o)
		r.w.WriteString("/>\n")
	}
	r.buf = b[:0]
	return nil
}

func (r *rdfxmlWriter) resource(attr, t string) {
	if kindOf(t) == idBlank {
		r.w.WriteString(`rdf:nodeID="` + t[2:] + `"`)
		return
	}
	r.w.WriteString("rdf:" + attr + `="`)
	r.w.Write(appendXMLText(nil, rdfres.Term(t).IRI()))
	r.w.WriteByte('"')
}

func (r *rdfxmlWriter) end() error {
	r.begin()
	if r.s != "" {
		r.w.WriteString("</rdf:Description>\n")
	}
	r.w.WriteString("</rdf:RDF>\n")
	return nil
}

// splitName cuts an IRI before the longest XML name at its end.
func splitName(iri string) (ns, local string) {
	i := len(iri)
	start := i
	for i > 0 {
		c, n := utf8.DecodeLastRuneInString(iri[:i])
		if !(unicode.IsLetter(c) || unicode.IsDigit(c) && c < 0x80 || c == '_' || c == '-' || c == '.') || c == utf8.RuneError {
			break
		}
		i -= n
		if unicode.IsLetter(c) || c == '_' {
			start = i
		}
	}
	if start == 0 || !utf8.ValidString(iri) {
		return iri, ""
	}
	return iri[:start], iri[start:]
}

// xmlCan tells whether XML 1.0 can hold the characters of a term; as canonical
// N-Triples it has the worst of them escaped.
func xmlCan(term string) bool {
	for i := 0; i < len(term); i++ {
		if term[i] == '\\' && i+1 < len(term) {
			switch term[i+1] {
			case 'b', 'f':
				return false
			case 'u', 'U':
				if kindOf(term) == idIRI {
					continue
				}
				lex, _, _ := splitLiteral(term)
				for _, r := range lex {
					if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
						return false
					}
				}
			}
			i++
		}
	}
	return !strings.ContainsAny(term, "\uFFFE\uFFFF")
}

// jsonldWriter writes JSON-LD in expanded form; successive triples of a subject are one node
// object.
type jsonldWriter struct {
	w     *bufio.Writer
	s, g  string
	props []jsonldProperty
	index map[string]int
	n     int
	begun bool
}

type jsonldProperty struct {
	p      string
	values [][]byte
}

// maxObject is how many values one node object gets before the next one.
const maxObject = 10_000

func (j *jsonldWriter) write(s, p, o, g string) error {
	if j.n > 0 && (s != j.s || g != j.g || j.n >= maxObject) {
		j.flush()
	}
	if j.n == 0 {
		j.s, j.g, j.index = strings.Clone(s), strings.Clone(g), map[string]int{}
	}
	k, ok := j.index[p]
	if !ok {
		own := strings.Clone(p)
		k = len(j.props)
		j.index[own] = k
		j.props = append(j.props, jsonldProperty{p: own})
	}
	v := appendJSONLDValue(nil, o)
	if !slices.ContainsFunc(j.props[k].values, func(b []byte) bool { return string(b) == string(v) }) || len(j.props[k].values) > 100 {
		j.props[k].values = append(j.props[k].values, v)
	}
	j.n++
	return nil
}

func (j *jsonldWriter) flush() {
	if j.begun {
		j.w.WriteString(",\n")
	} else {
		j.w.WriteString("[\n")
		j.begun = true
	}
	if j.g != "" {
		j.w.Write(append(appendJSONString([]byte(`{"@id":"`), nodeName(j.g)), `","@graph":[`...))
	}
	b := appendJSONString([]byte(`{"@id":"`), nodeName(j.s))
	b = append(b, '"')
	for _, p := range j.props {
		b = append(appendJSONString(append(b, `,"`...), nodeName(p.p)), `":[`...)
		for i, v := range p.values {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, v...)
		}
		b = append(b, ']')
	}
	b = append(b, '}')
	j.w.Write(b)
	if j.g != "" {
		j.w.WriteString("]}")
	}
	j.props, j.n = j.props[:0], 0
}

// nodeName is an IRI or a blank node as JSON-LD names it.
func nodeName(t string) string {
	if kindOf(t) == idBlank {
		return t
	}
	return rdfres.Term(t).IRI()
}

func appendJSONLDValue(dst []byte, t string) []byte {
	if kindOf(t) != idLiteral {
		return append(appendJSONString(append(dst, `{"@id":"`...), nodeName(t)), `"}`...)
	}
	n := strings.LastIndexByte(t, '"')
	dst = append(append(dst, `{"@value":"`...), t[1:n]...)
	rest := t[n+1:]
	switch {
	case rest == "":
	case rest[0] == '@':
		dst = append(append(dst, `","@language":"`...), rest[1:]...)
	default:
		dst = appendJSONString(append(dst, `","@type":"`...), rdfres.Term(rest[2:]).IRI())
	}
	return append(dst, `"}`...)
}

func (j *jsonldWriter) end() error {
	if j.n > 0 {
		j.flush()
	}
	if !j.begun {
		j.w.WriteString("[")
	}
	j.w.WriteString("\n]\n")
	return nil
}
