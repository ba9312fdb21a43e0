package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/knakk/rdf"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// decoded is how much of the data the decoders read: knakk/rdf takes a second or
// more for it.
const decoded = 32 << 20

// ntriples reads the same lines with our reader and with knakk/rdf's decoder.
func ntriples(terms bool) func(context.Context, *env) (time.Duration, time.Duration, error) {
	return func(ctx context.Context, e *env) (thing, base time.Duration, err error) {
		f, err := os.Open(e.triples)
		if err != nil {
			return 0, 0, err
		}
		defer f.Close()
		doc, err := io.ReadAll(io.LimitReader(f, decoded))
		if err != nil {
			return 0, 0, err
		}
		doc = doc[:bytes.LastIndexByte(doc, '\n')+1]
		want := bytes.Count(doc, []byte{'\n'})
		began, n := time.Now(), 0
		if terms {
			for _, err := range codec.Read(bytes.NewReader(doc), rdfres.NTriples, rdfres.ReadOptions{}) {
				if err != nil {
					return 0, 0, err
				}
				n++
			}
		} else {
			in := rdfres.NewLines(bytes.NewReader(doc), rdfres.NTriples, rdfres.ReadOptions{})
			for in.Next() {
				n++
			}
			if err := in.Err(); err != nil {
				return 0, 0, err
			}
		}
		thing = time.Since(began)
		if n != want {
			return 0, 0, fmt.Errorf("our reader found %d triples of %d", n, want)
		}
		began, n = time.Now(), 0
		for dec := rdf.NewTripleDecoder(bytes.NewReader(doc), rdf.NTriples); ; n++ {
			if _, err := dec.Decode(); err == io.EOF {
				break
			} else if err != nil {
				return 0, 0, fmt.Errorf("knakk/rdf: %w", err)
			}
		}
		if n != want {
			return 0, 0, fmt.Errorf("knakk/rdf found %d triples of %d", n, want)
		}
		return thing, time.Since(began), ctx.Err()
	}
}
