// Package rdfxml reads and writes RDF/XML 1.1.
//
// [Read] has three layers. The lexer (text.go, lex.go, doctype.go) reads XML 1.0 as
// a processor without validation: all encodings, internal entities, and defaults of
// attributes. encoding/xml has none of them, and accepts documents with errors. The
// second layer resolves namespaces, xml:base and xml:lang (namespaces.go). The
// third is the grammar of RDF/XML (read.go, literal.go).
//
// [Encode] writes one element for each triple. [Carries] tells beforehand if a
// graph fits: some IRIs, characters and labels have no form in XML.
package rdfxml
