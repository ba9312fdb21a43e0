// Package rdfres models an RDF resource as the unit of synchronization: its
// description, its representations and its fixity.
//
// # Terms
//
// A [Term] is a string: an RDF term in canonical N-Triples syntax. Equal terms
// are equal strings, so terms are map keys, sort keys and bytes on disk without
// another encoding. [NewIRI], [NewBlank] and [NewLiteral] make them from parts
// and take the parts on trust; [ParseTerm] and [ParseTSVTerm] make them from
// text and do not. Lexical forms and language tags are never changed: "01" and
// "1" are two integers here, and what a store makes of them is a matter of its
// [NormalForm]. [Term.RDF] and [FromRDF] lead to the terms of knakk/rdf and back.
//
// A [Triple] is three terms, a [Quad] has a graph besides. [SortUnique] brings
// triples into the order of their lines, and [GraphDigest] is the hash of those
// lines: the same for the same graph, whatever format or store it came from,
// once its blank nodes have their wire names ([NameBlanks]).
//
// # Reading
//
// [Read] streams the statements of a document in any [Format]; [Decode] gives a
// whole one, sorted. Both are strict: a document that breaks its grammar is a
// [SyntaxError] with line and column, and nothing is repaired in silence.
// Nesting and the length of a term are bounded, [ReadOptions.MaxBytes] bounds
// the document and what it expands to. Nothing is fetched here: a JSON-LD document that wants a context
// from the web gets it from [ReadOptions.Context], or is [ErrRemoteContext].
//
// N-Triples and N-Quads run on bytes. Who sorts, counts or indexes lines rather
// than terms takes [Lines] or, for single lines, a [LineScanner]: slices of the
// line, checked and canonical, without an allocation.
//
// Three liberties are taken, all so that what stores hold is not lost: an IRI
// may contain any character that is escaped in the text (Turtle's test suite
// would refuse \u0020 in one); an absolute IRI is not normalized, so its dot
// segments stay; a byte order mark at the begin of a document is passed over.
// One is refused that JSON-LD gives: without a context a name that is no IRI is
// an error, since dropping it would make a description look empty.
//
// # Writing
//
// [Encode] writes the deterministic representation of a description: the same
// graph gives the same bytes, in whatever order the triples come. JSON-LD is the
// default format: the expanded form without a context, one line, members sorted,
// spelled as RFC 8785 spells JSON, so that a JSON Patch of any make gives back
// the very bytes. Blank nodes always carry their name as @id; those that one
// triple leads to are nested, to a bounded depth. N-Triples carries every
// graph. Turtle is for people. RDF/XML is for old tools and cannot carry every
// graph: [ErrCannotCarry]. [EncodeChecked] decodes what it wrote and compares.
//
// # Fixity
//
// [ComputeFixity] measures the bytes of a representation; [EntityKey] is the
// hash by which entities are ordered everywhere.
//
// # Descriptions and blank nodes
//
// [Graph] answers closures over triples in memory, the concise bounded
// description among them. [NameBlanks] and [LabelComponent] give blank nodes
// the names under which they are published and mirrored, [Canonicalize] is
// RDFC-1.0, [Skolemize] turns a name into an IRI for stores that cannot keep
// blank nodes.
//
// The package knows nothing of queries, HTTP, time or storage.
package rdfres
