package resourcesync

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// Kinds of errors about a document, for errors.Is.
var (
	// ErrSyntax: not well-formed XML, or not in UTF-8, or cut short.
	ErrSyntax = xmlscan.ErrSyntax
	// ErrNotResourceSync: well-formed, but no ResourceSync document or Sitemap.
	ErrNotResourceSync = errors.New("no ResourceSync document")
	// ErrDialect: an unsupported form of ResourceSync (0.1, 0.2, Atom).
	ErrDialect = errors.New("form of ResourceSync that is not read")
	// ErrInvalid: a document with content that would be lost, or, in strict reading, one not
	// allowed by 1.1.
	ErrInvalid = errors.New("invalid document")
	// ErrLimit: a bound of ReaderOptions or PackageOptions was passed.
	ErrLimit = xmlscan.ErrLimit
	// ErrPackage: a broken or dangerous package.
	ErrPackage = errors.New("unusable package")
)

// DocumentError is a fault of a document, with its place.
type DocumentError struct {
	Location string // address of the document, if known
	Line     int    // from 1; 0 if unknown
	Kind     error  // one of the Err values above, or the error of the underlying reader
	Message  string // the fault, and the right form
}

// Error gives "resourcesync: ADDRESS, line N: the fault".
func (e *DocumentError) Error() string {
	var b strings.Builder
	b.WriteString("resourcesync: ")
	if e.Location != "" {
		b.WriteString(clip(e.Location))
	} else {
		b.WriteString("document")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap gives the kind.
func (e *DocumentError) Unwrap() error { return e.Kind }
