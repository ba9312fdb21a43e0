package rdfres

import (
	"errors"
	"strconv"
	"strings"
)

// SyntaxError is a document with a fault in its format, and the place: Line and Column count from
// 1, Column in characters; 0 is unknown.
type SyntaxError struct {
	Name   string // of the document, from ReadOptions; may be ""
	Format Format
	Line   int
	Column int
	Reason string
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString("rdfres: read ")
	b.WriteString(string(e.Format))
	if e.Name != "" {
		b.WriteString(" " + e.Name)
	}
	if e.Line > 0 {
		b.WriteString(": line " + strconv.Itoa(e.Line))
	}
	if e.Column > 0 {
		b.WriteString(", column " + strconv.Itoa(e.Column))
	}
	b.WriteString(": " + e.Reason)
	return b.String()
}

var (
	// ErrTooLarge is a document beyond ReadOptions.MaxBytes, a nesting or a single line beyond the
	// bounds of this package, or a description beyond its bound (TooLargeError).
	ErrTooLarge = errors.New("too large")

	// ErrCannotCarry is a graph a format cannot express. The wrapping error names the term and the
	// reason. N-Triples carries every graph.
	ErrCannotCarry = errors.New("the format cannot carry this graph")

	// ErrRemoteContext is a JSON-LD document with a context from the web not given by
	// ReadOptions.Context. The wrapping error names the address.
	ErrRemoteContext = errors.New("the document needs a JSON-LD context from elsewhere")
)
