package rdfres

// Terms that the syntaxes themselves know.
const (
	termType  Term = "<" + rdfNS + "type>"
	termFirst Term = "<" + rdfNS + "first>"
	termRest  Term = "<" + rdfNS + "rest>"
	termNil   Term = "<" + rdfNS + "nil>"
)
