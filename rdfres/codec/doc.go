// Package codec reads and writes RDF documents in all formats of the house.
//
// # Reading
//
// [Read] streams the statements of a document, [Decode] gives a whole graph,
// sorted. Both are strict: a document against its grammar is a
// rdfres.SyntaxError with line and column. Nesting, the length of a term, and
// the expansion of a document have bounds (rdfres.ReadOptions). Nothing is
// fetched: ReadOptions.Context gives the JSON-LD contexts of the web, and
// without it they are rdfres.ErrRemoteContext. [SniffFormat] guesses the format
// of a body without a usable media type.
//
// Readers differ from the specifications in four points, so that nothing in a
// store is lost:
//
//   - An IRI may contain any character, if the text escapes it.
//   - An absolute IRI is not normalized: its dot segments stay.
//   - A byte order mark at the start of a document is skipped.
//   - JSON-LD drops names without an IRI. Here they are an error, because the
//     description would look empty.
//
// # Writing
//
// [Encode] writes the deterministic representation of a description: the same
// graph gives the same bytes, for any order of its triples. JSON-LD is the
// default format. N-Triples carries every graph. Turtle is for people. RDF/XML
// is for old tools and cannot carry every graph (rdfres.ErrCannotCarry).
// [EncodeChecked] decodes its own output and compares.
//
// Turtle and TriG are in this package. JSON-LD is in rdfres/jsonld, RDF/XML in
// rdfres/rdfxml, and N-Triples and N-Quads are lines of rdfres.
package codec
