package rdfres

// The datatypes and the namespace that the syntaxes themselves know.
const (
	xsdNS         = "http://www.w3.org/2001/XMLSchema#"
	xsdString     = xsdNS + "string"
	xsdBoolean    = xsdNS + "boolean"
	xsdInteger    = xsdNS + "integer"
	xsdDecimal    = xsdNS + "decimal"
	xsdDouble     = xsdNS + "double"
	rdfNS         = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	rdfLangString = rdfNS + "langString"
)

// appendSuffix appends what follows the closing quote.
func appendSuffix[B []byte | string](b []byte, lang, datatype B) []byte {
	switch {
	case len(lang) > 0:
		b = append(b, '@')
		b = append(b, lang...)
	case len(datatype) > 0 && string(datatype) != xsdString:
		b = append(b, '^', '^', '<')
		b = appendIRI(b, datatype)
		b = append(b, '>')
	}
	return b
}
