package chars

// Datatypes and namespaces of the syntaxes themselves.
const (
	XSD           = "http://www.w3.org/2001/XMLSchema#"
	XSDString     = XSD + "string"
	XSDBoolean    = XSD + "boolean"
	XSDInteger    = XSD + "integer"
	XSDDecimal    = XSD + "decimal"
	XSDDouble     = XSD + "double"
	RDF           = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	RDFLangString = RDF + "langString"
)

// AppendSuffix appends the part of a literal after its closing quote.
func AppendSuffix[B []byte | string](b []byte, lang, datatype B) []byte {
	switch {
	case len(lang) > 0:
		b = append(b, '@')
		b = append(b, lang...)
	case len(datatype) > 0 && string(datatype) != XSDString:
		b = append(b, '^', '^', '<')
		b = AppendIRI(b, datatype)
		b = append(b, '>')
	}
	return b
}
