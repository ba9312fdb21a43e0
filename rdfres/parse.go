package rdfres

import (
	"fmt"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ParseLine reads one N-Triples or N-Quads line (without the newline) into canonical terms. ok is
// false for blank and comment lines. It is strict and for single lines: Read shares repeated terms,
// Lines and LineScanner make no terms at all.
func ParseLine(line []byte) (q Quad, ok bool, err error) {
	var sc LineScanner
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if ok, err = sc.Scan(line); err != nil || !ok {
		return Quad{}, false, err
	}
	return Quad{Triple: sc.Triple(), G: Term(sc.G)}, true, nil
}

// ParseTerm reads one term in N-Triples syntax, strictly, into its canonical
// form.
func ParseTerm(text []byte) (Term, error) {
	var sc LineScanner
	t, why := sc.single(text)
	if why != "" {
		return "", fmt.Errorf("rdfres: read the term %q: column %d: %s", chars.Cut(string(text)), chars.Column(text, sc.at), why)
	}
	return t, nil
}
