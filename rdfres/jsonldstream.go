package rdfres

import (
	"fmt"
	"io"
)

func readJSONLD(r io.Reader, o ReadOptions, yield func(Quad, error) bool) {
	if o.MaxBytes > 0 {
		r = io.LimitReader(r, o.MaxBytes+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		yield(Quad{}, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err))
		return
	}
	triples, named, err := decodeJSONLD(data, o)
	if err != nil {
		yield(Quad{}, err)
		return
	}
	all := func(yield func(Quad) bool) {
		for _, t := range triples {
			if !yield(Quad{Triple: t}) {
				return
			}
		}
		for _, q := range named {
			if !yield(q) {
				return
			}
		}
	}
	for q := range all {
		if o.CheckIRIs {
			if err := q.checkIRIs(); err != nil {
				yield(Quad{}, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: err.Error()})
				return
			}
		}
		if !yield(q, nil) {
			return
		}
	}
}
