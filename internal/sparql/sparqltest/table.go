package sparqltest

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TableType is the media type of the binary results of RDF4J.
const TableType = "application/x-binary-rdf-results-table"

// Table writes them as RDF4J does: IRIs in two parts, and what is the same as in
// the row before in one byte.
type Table struct {
	bytes.Buffer
	namespaces map[string]uint32
	last       []rdfres.Term
}

// NewTable writes the head.
func NewTable(vars ...string) *Table {
	w := &Table{namespaces: map[string]uint32{}, last: make([]rdfres.Term, len(vars))}
	w.WriteString("BRTR")
	w.Number(4)
	w.Number(uint32(len(vars)))
	for _, v := range vars {
		w.Text(v)
	}
	return w
}

// Number writes four bytes, the highest first.
func (w *Table) Number(n uint32) { w.Write(binary.BigEndian.AppendUint32(nil, n)) }

// Text writes a string after its length.
func (w *Table) Text(s string) {
	w.Number(uint32(len(s)))
	w.WriteString(s)
}

func (w *Table) namespaceOf(iri string) (id uint32, local string) {
	at := strings.LastIndexAny(iri, "#/:") + 1
	id, known := w.namespaces[iri[:at]]
	if !known {
		id = uint32(len(w.namespaces))
		w.namespaces[iri[:at]] = id
		w.WriteByte(2)
		w.Number(id)
		w.Text(iri[:at])
	}
	return id, iri[at:]
}

func (w *Table) name(iri string) {
	id, local := w.namespaceOf(iri)
	w.WriteByte(3)
	w.Number(id)
	w.Text(local)
}

// Row writes a row; "" is unbound.
func (w *Table) Row(row ...rdfres.Term) {
	for i, t := range row {
		lexical, lang, datatype := t.Literal()
		switch {
		case t == "":
			w.WriteByte(0)
		case t == w.last[i]:
			w.WriteByte(1)
		case strings.HasPrefix(string(t), "<<"):
			w.WriteByte(10) // and what no reader of ours reads
		case t.Kind() == rdfres.KindIRI:
			w.name(t.IRI())
		case t.Kind() == rdfres.KindBlank:
			w.WriteByte(5)
			w.Text(strings.TrimPrefix(string(t), "_:"))
		case lang != "":
			w.WriteByte(7)
			w.Text(lexical)
			w.Text(lang)
		default:
			if datatype == "" {
				datatype = "http://www.w3.org/2001/XMLSchema#string"
			}
			w.namespaceOf(datatype)
			w.WriteByte(8)
			w.Text(lexical)
			w.name(datatype)
		}
	}
	w.last = append(w.last[:0], row...)
}

// End writes the end, and gives all of it.
func (w *Table) End() []byte {
	w.WriteByte(127)
	return w.Bytes()
}
