package syntax

import (
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// Terms of the syntaxes themselves.
const (
	Type  rdfres.Term = "<" + chars.RDF + "type>"
	First rdfres.Term = "<" + chars.RDF + "first>"
	Rest  rdfres.Term = "<" + chars.RDF + "rest>"
	Nil   rdfres.Term = "<" + chars.RDF + "nil>"
)
