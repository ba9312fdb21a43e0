// Package jsonld reads and writes JSON-LD 1.1.
//
// [Encode] writes one form: expanded, without a context, on one line, members
// sorted, spelled as in RFC 8785. A JSON Patch of any make restores its bytes.
// [Matches] compares a document in this form with a graph, faster than reading: by
// reading, the bench's scan-fuseki takes 14 per cent longer.
//
// [Decode] first takes a document as expanded or flattened JSON-LD and reads it in
// one pass (read.go, scan.go). At the first context it starts again: the document
// is parsed to a tape (tape.go), contexts are applied to it by the algorithms of
// "JSON-LD 1.1 Processing Algorithms and API" (context.go, term.go, expand.go,
// object.go), and the expanded text is read in the same pass.
package jsonld
