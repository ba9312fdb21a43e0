package sparql

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"net/http"

	"github.com/rsbridge/rsbridge/rdfres"
)

// binaryType is RDF4J's binary form of RDF. It costs the store a sixth less than N-Triples. Its
// description is BinaryRDFConstants in the sources of RDF4J.
const binaryType = "application/x-binary-rdf"

// The records of binary RDF, and the values in them, each after its byte. NUMBER is a
// varint; STRING a NUMBER, the length in bytes, and as many bytes.
const (
	binaryStatement = 1   // four values: subject, predicate, object, no graph
	binaryDeclare   = 3   // NUMBER, a value: the meaning of the number from here on
	binaryEnd       = 127 // required at the end

	binaryNone  = 0
	binaryIRI   = 1 // STRING
	binaryPlain = 3 // STRING
	binaryLang  = 4 // STRING, STRING the language tag
	binaryTyped = 5 // STRING, STRING the datatype
	binaryKnown = 6 // NUMBER of a declared value
)

// Upload is triples as they will be sent.
type Upload struct {
	graph  string
	ts     iter.Seq[rdfres.Triple]
	binary []byte // or else
	lines  []byte
}

// NewUpload makes triples without blank nodes ready to be added to a graph, "" the
// default graph: in binary RDF for an RDF4J. ts may be asked again by Post.
func (c *Client) NewUpload(graph string, ts iter.Seq[rdfres.Triple]) *Upload {
	u := &Upload{graph: graph, ts: ts}
	if c.LikeRDF4J() && !c.noBinary.Load() {
		u.binary = appendBinary(nil, ts)
	} else {
		u.lines = u.appendLines(nil)
	}
	return u
}

func (u *Upload) appendLines(b []byte) []byte {
	for t := range u.ts {
		b = t.AppendLine(b)
	}
	return b
}

// Post adds the triples of a repeatable upload. A store only similar to RDF4J, or too old for its
// binary form, refuses it, and gets N-Triples from then on.
func (c *Client) Post(ctx context.Context, u *Upload) error {
	var refused error
	if u.binary != nil && !c.noBinary.Load() {
		err := c.sendGraph(ctx, "add to graph", http.MethodPost, u.graph, binaryType, Body(u.binary))
		if err == nil {
			c.takesBinary.Store(true)
			return nil
		}
		if ctx.Err() != nil || !notUnderstood(err) && (c.takesBinary.Load() || busy(err)) {
			return err
		}
		refused = err
	}
	lines := u.lines
	if u.binary != nil {
		lines = u.appendLines(nil)
	}
	err := c.PostGraph(ctx, u.graph, rdfres.NTriples, Body(lines))
	if err == nil && refused != nil {
		c.noBinary.Store(true)
		c.conn.log.Info("the store takes no binary RDF; N-Triples are sent", "err", refused)
	}
	return err
}

// notUnderstood tells an answer another form of the same triples may avoid.
func notUnderstood(err error) bool {
	return hasStatus(err, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented)
}

// busy tells an answer independent of the sent body. Other answers may also be a connection closed
// before the body was read, or a proxy's answer.
func busy(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // of ours
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// appendBinary appends triples without blank nodes as binary RDF, version 2.
func appendBinary(b []byte, ts iter.Seq[rdfres.Triple]) []byte {
	b = append(b, "BRDF\x00\x00\x00\x02"...)
	b = appendBinaryString(b, "UTF-8")
	known := map[rdfres.Term]uint64{}
	declare := func(t rdfres.Term) {
		if _, ok := known[t]; ok {
			return
		}
		n := uint64(len(known))
		known[t] = n
		b = binary.AppendUvarint(append(b, binaryDeclare), n)
		b = appendBinaryValue(b, t)
	}
	value := func(t rdfres.Term) {
		if n, ok := known[t]; ok {
			b = binary.AppendUvarint(append(b, binaryKnown), n)
			return
		}
		b = appendBinaryValue(b, t)
	}
	for t := range ts {
		declare(t.S)
		declare(t.P)
		b = append(b, binaryStatement)
		value(t.S)
		value(t.P)
		value(t.O)
		b = append(b, binaryNone)
	}
	return append(b, binaryEnd)
}

func appendBinaryValue(b []byte, t rdfres.Term) []byte {
	if t.Kind() == rdfres.KindIRI {
		return appendBinaryString(append(b, binaryIRI), t.IRI())
	}
	lexical, lang, datatype := t.Literal()
	switch {
	case lang != "":
		return appendBinaryString(appendBinaryString(append(b, binaryLang), lexical), lang)
	case datatype == xsd+"string":
		return appendBinaryString(append(b, binaryPlain), lexical)
	}
	return appendBinaryString(appendBinaryString(append(b, binaryTyped), lexical), datatype)
}

func appendBinaryString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
