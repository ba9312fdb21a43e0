package embedstore

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// rowFormat is a format of solutions and booleans.
type rowFormat string

const (
	rowsJSON rowFormat = "application/sparql-results+json"
	rowsXML  rowFormat = "application/sparql-results+xml"
	rowsCSV  rowFormat = "text/csv"
	rowsTSV  rowFormat = "text/tab-separated-values"
)

// contentType is the media type with its parameters.
func (f rowFormat) contentType() string {
	if f == rowsCSV || f == rowsTSV {
		return string(f) + "; charset=utf-8"
	}
	return string(f)
}

// WriteRows writes the solutions or the boolean of r in a format of the SPARQL
// 1.1 recommendations, by its media type.
func (r *Result) WriteRows(w io.Writer, mediaType string) error {
	return r.writeRows(w, rowFormat(mediaType))
}

func (r *Result) writeRows(w io.Writer, f rowFormat) error {
	bw := bufio.NewWriterSize(w, 64<<10)
	var err error
	if r.Kind == Boolean {
		writeBoolean(bw, f, r.Bool)
	} else {
		err = r.writeSolutions(bw, f)
	}
	if err != nil {
		return err
	}
	return bw.Flush()
}

func writeBoolean(w *bufio.Writer, f rowFormat, b bool) {
	text := "false"
	if b {
		text = "true"
	}
	switch f {
	case rowsJSON:
		w.WriteString(`{"head":{},"boolean":` + text + "}\n")
	case rowsXML:
		w.WriteString(xmlHead + "<head/>\n<boolean>" + text + "</boolean>\n</sparql>\n")
	default:
		w.WriteString(text + "\n")
	}
}

const xmlHead = `<?xml version="1.0"?>` + "\n" + `<sparql xmlns="http://www.w3.org/2005/sparql-results#">` + "\n"

func (r *Result) writeSolutions(w *bufio.Writer, f rowFormat) error {
	vars := r.Vars
	buf := make([]byte, 0, 64<<10)
	first := true
	var row func(cells []string)
	switch f {
	case rowsTSV:
		for i, v := range vars {
			if i > 0 {
				buf = append(buf, '\t')
			}
			buf = append(append(buf, '?'), v...)
		}
		buf = append(buf, '\n')
		row = func(cells []string) {
			for i, c := range cells {
				if i > 0 {
					buf = append(buf, '\t')
				}
				buf = append(buf, c...)
			}
			buf = append(buf, '\n')
		}
	case rowsCSV:
		for i, v := range vars {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, v...)
		}
		buf = append(buf, '\r', '\n')
		row = func(cells []string) {
			for i, c := range cells {
				if i > 0 {
					buf = append(buf, ',')
				}
				buf = appendCSV(buf, c)
			}
			buf = append(buf, '\r', '\n')
		}
	case rowsXML:
		buf = append(buf, xmlHead+"<head>"...)
		for _, v := range vars {
			buf = append(buf, `<variable name="`+v+`"/>`...)
		}
		buf = append(buf, "</head>\n<results>\n"...)
		row = func(cells []string) {
			buf = append(buf, "<result>"...)
			for i, c := range cells {
				if c != "" {
					buf = append(buf, `<binding name="`+vars[i]+`">`...)
					buf = appendXML(buf, c)
					buf = append(buf, "</binding>"...)
				}
			}
			buf = append(buf, "</result>\n"...)
		}
	default:
		buf = append(buf, `{"head":{"vars":[`...)
		for i, v := range vars {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, `"`+v+`"`...)
		}
		buf = append(buf, `]},"results":{"bindings":[`...)
		row = func(cells []string) {
			if !first {
				buf = append(buf, ',')
			}
			first = false
			buf = append(buf, "\n{"...)
			some := false
			for i, c := range cells {
				if c == "" {
					continue
				}
				if some {
					buf = append(buf, ',')
				}
				some = true
				buf = append(append(append(buf, '"'), vars[i]...), `":`...)
				buf = appendJSON(buf, c)
			}
			buf = append(buf, '}')
		}
	}
	err := r.rows(func(terms []string) error {
		if f == rowsXML {
			for _, t := range terms {
				if !xmlCan(t) {
					return fmt.Errorf("write XML: %.200s holds a character that XML cannot: ask for another format", t)
				}
			}
		}
		if len(vars) == 0 {
			row(nil)
		} else {
			for i := 0; i < len(terms); i += len(vars) {
				if row(terms[i : i+len(vars)]); len(buf) > 64<<10 { // a term may come in every row
					if _, err := w.Write(buf); err != nil {
						return err
					}
					buf = buf[:0]
				}
			}
		}
		_, err := w.Write(buf)
		buf = buf[:0]
		return err
	})
	if err != nil {
		return err
	}
	switch f {
	case rowsXML:
		buf = append(buf, "</results>\n</sparql>\n"...)
	case rowsJSON:
		buf = append(buf, "\n]}}\n"...)
	}
	_, err = w.Write(buf)
	return err
}

// appendJSON writes a term in the form of JSON results. The escapes of canonical N-Triples are
// valid in JSON too.
func appendJSON(dst []byte, term string) []byte {
	switch kindOf(term) {
	case idIRI:
		dst = append(dst, `{"type":"uri","value":"`...)
		dst = appendJSONString(dst, rdfres.Term(term).IRI())
		return append(dst, `"}`...)
	case idBlank:
		dst = append(dst, `{"type":"bnode","value":"`...)
		return append(append(dst, term[2:]...), `"}`...)
	}
	n := strings.LastIndexByte(term, '"')
	dst = append(dst, `{"type":"literal","value":"`...)
	dst = append(dst, term[1:n]...)
	rest := term[n+1:]
	switch {
	case rest == "":
		return append(dst, `"}`...)
	case rest[0] == '@':
		dst = append(append(dst, `","xml:lang":"`...), rest[1:]...)
		return append(dst, `"}`...)
	}
	dst = append(dst, `","datatype":"`...)
	dst = appendJSONString(dst, rdfres.Term(rest[2:]).IRI())
	return append(dst, `"}`...)
}

const hexDigits = "0123456789ABCDEF"

func appendJSONString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendXML(dst []byte, term string) []byte {
	switch kindOf(term) {
	case idIRI:
		dst = appendXMLText(append(dst, "<uri>"...), rdfres.Term(term).IRI())
		return append(dst, "</uri>"...)
	case idBlank:
		return append(append(append(dst, "<bnode>"...), term[2:]...), "</bnode>"...)
	}
	lex, lang, dt := splitLiteral(term)
	dst = append(dst, "<literal"...)
	switch {
	case lang != "":
		dst = append(append(append(dst, ` xml:lang="`...), lang...), '"')
	case dt != xsdNS+"string":
		dst = append(appendXMLText(append(dst, ` datatype="`...), dt), '"')
	}
	dst = append(dst, '>')
	dst = appendXMLText(dst, lex)
	return append(dst, "</literal>"...)
}

// appendXMLText escapes characters allowed in XML (see xmlCan).
func appendXMLText(dst []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || c >= 0xED {
			plain = false
			break
		}
	}
	if plain {
		return append(dst, s...)
	}
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return append(dst, b.String()...)
}

func appendCSV(dst []byte, term string) []byte {
	var s string
	switch kindOf(term) {
	case 0:
		return dst
	case idIRI:
		s = rdfres.Term(term).IRI()
	case idBlank:
		s = term
	default:
		s, _, _ = splitLiteral(term)
	}
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}
