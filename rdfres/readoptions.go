package rdfres

import (
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ReadOptions bound and place a reading. Zero values mean sensible defaults.
type ReadOptions struct {
	Base    string // base IRI for relative references; "" refuses them
	Name    string // document name for error messages
	Charset string // of the text, from a Content-Type; "": UTF-8, or the declaration of an XML document

	// MaxBytes bounds the document, and its expansion: its statements as N-Quads, and the prefixes,
	// bases, entities and contexts behind them. Exceeding it is ErrTooLarge. 0 is no bound for the
	// document; its expansion may have 256 MiB, or 64 times its length if this is more.
	MaxBytes int64

	// Lax accepts in N-Triples and N-Quads usual faults of common stores: raw spaces, braces and
	// the like in IRIs; relative IRIs, unchanged; language tags such as en_US; blank node labels
	// such as nodeID://b1; a character escaped as two surrogates; triple terms of RDF 1.2
	// (TripleTerm). CheckTerm finds those refused everywhere else. The terms are canonical all the
	// same: only the odd tags and relative IRIs themselves go further. Other formats are always
	// read strictly.
	Lax bool

	// OneGraph makes Decode accept one graph name, if all statements of the document stand in that
	// graph.
	OneGraph bool

	// CheckIRIs refuses IRIs with a forbidden character (IRIError). Escapes of N-Triples, N-Quads
	// and Turtle, and any text of RDF/XML and JSON-LD, let them through. A store would have to give
	// them back in formats and queries without a way to write them.
	CheckIRIs bool

	// Context gives a JSON-LD context from outside the document, and its address after redirects;
	// its errors tell the address. Without it, and if it fails, the document is refused
	// (ErrRemoteContext).
	Context func(address string) (doc []byte, at string, err error)

	// LinkedContext is the address of the context in a Link header for JSON (JSON-LD 1.1, section
	// 6.1).
	LinkedContext string
}

// ExpandsTo is how much a document of a length may expand to.
func (o *ReadOptions) ExpandsTo(length int64) int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return max(maxUnbounded, 64*length)
}

// maxUnbounded bounds the expansion of a document without a bound.
const maxUnbounded = 256 << 20

// TooLarge is the error of a document longer than MaxBytes.
func (o *ReadOptions) TooLarge(f Format) error {
	return fmt.Errorf("rdfres: read %s %s: more than %d bytes: %w", f, o.Name, o.MaxBytes, ErrTooLarge)
}

// ReadError is an error met while reading after a line: a fault of the text is a
// SyntaxError there.
func (o *ReadOptions) ReadError(f Format, line int, err error) error {
	var bad chars.Error
	if errors.As(err, &bad) {
		return &SyntaxError{Name: o.Name, Format: f, Line: max(1, line), Reason: string(bad)}
	}
	var already *SyntaxError
	if errors.As(err, &already) || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("rdfres: read %s %s after line %d: %w", f, o.Name, line, err)
}
