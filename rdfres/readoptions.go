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
	Charset string // of the text, as a Content-Type tells it; "": UTF-8, or what an XML document says

	// MaxBytes bounds the document, and what it expands to: its statements as N-Quads, and
	// the prefixes, bases, entities and contexts that they are made with. Exceeding it is
	// ErrTooLarge. 0 is no bound for the document; it may expand to 256 MiB, or to 64 times
	// its length where that is more.
	MaxBytes int64

	// Lax accepts in N-Triples and N-Quads what the grammar refuses but common
	// stores emit: raw spaces, braces and the like in IRIs; relative IRIs, which
	// stay as they are; language tags such as en_US; blank node labels such as
	// nodeID://b1; a character escaped as two surrogates; triple terms of RDF 1.2
	// (TripleTerm). CheckTerm finds those that nobody else takes. The terms are
	// canonical all the same, so nothing of it goes further except the odd tags
	// and relative IRIs themselves. Other formats are always read strictly.
	Lax bool

	// OneGraph makes Decode take a document whose statements all stand in one graph with
	// a name for that graph.
	OneGraph bool

	// CheckIRIs refuses IRIs with a character that no IRI may have (IRIError),
	// which the escapes of N-Triples, N-Quads and Turtle, and any text of RDF/XML
	// and JSON-LD, let through: for a store, which would have to give them back
	// in formats and queries that cannot write them.
	CheckIRIs bool

	// Context gives a JSON-LD context that is not in the document, and the address that
	// it is at after redirects; its errors tell the address. Without it, and where it
	// fails, the document is refused (ErrRemoteContext).
	Context func(address string) (doc []byte, at string, err error)

	// LinkedContext is the address of the context that a Link header tells for JSON
	// (JSON-LD 1.1, section 6.1).
	LinkedContext string
}

// ExpandsTo is how much a document of a length may expand to.
func (o *ReadOptions) ExpandsTo(length int64) int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return max(maxUnbounded, 64*length)
}

// maxUnbounded is what any document may expand to where no bound is given.
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
