// Package rdfres is the RDF model of the house: terms, triples, descriptions, the names of blank
// nodes, and digests.
//
// # Terms and lines
//
// A [Term] is a string in canonical N-Triples syntax. Equal terms are equal strings, so a term is a
// map key, a sort key and bytes on disk. [NewIRI], [NewBlank] and [NewLiteral] make terms from
// parts and trust the parts. [ParseTerm] reads a term from text and checks it.
// Lexical forms and language tags are never changed: "01" and "1" are two terms here. A
// [NormalForm] describes the rewriting of a store, and [DetectNormalForm] finds it by
// [ProbeTriples].
//
// A [Triple] has three terms, a [Quad] a graph besides. [SortUnique] brings triples into the order
// of their lines. [Lines] and [LineScanner] read N-Triples and N-Quads as bytes, without an
// allocation for a line: for sorting, counting and loading. [ReadPatch], [ApplyPatch] and
// [AppendPatch] are for RDF Patch, a format of such lines.
//
// # Descriptions and blank nodes
//
// A [Description] is an entity with its triples. [Graph] cuts one out of a graph in memory: the
// concise bounded description, or the symmetric one. [NameBlanks] and [LabelComponent] give blank
// nodes their published and mirrored names. [Canonicalize] is RDFC-1.0. [Skolemize] turns a name
// into an IRI, for stores without lasting blank nodes.
//
// # Digests
//
// [GraphDigest] is the hash of a graph, in every format and every store the same, once its blank
// nodes have their names. [ComputeFixity] measures the bytes of a representation. [EntityKey] is
// the hash of an entity's IRI, and the order of all scans and lists. [Inventory] is one digest for
// a whole set.
//
// # Formats
//
// A [Format] is the name of a serialization. Documents are read and written in rdfres/codec.
// [ReadOptions], [SyntaxError] and the errors of this package belong to every reader.
//
// The package knows nothing of queries, HTTP, time or storage.
package rdfres
