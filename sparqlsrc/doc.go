// Package sparqlsrc enumerates the entities of a SPARQL endpoint and describes
// each of them.
//
// A full scan ([Source.Scan]) streams the whole graph once, by the fastest way
// that the store offers, and groups it by entity on our side, on disk and in
// bounded memory. What was received is held against the store's own count, taken
// beside it, and when they differ against one taken after: an answer that is too
// short is asked for again, then read in parts, and is an error in the end; it never looks like a deletion.
//
// An answer that is, triple by triple, the one of the last scan describes what that
// described, so that nothing of it is sorted, named or compared ([Source.ScanUnless]).
//
// The descriptions come in the order of rdfres.EntityKey, each sorted and
// without doubles, in wire form: blank nodes have the names that follow from
// their component, whatever the store called them today. A component that no
// IRI leads to, or the part of one, is a description of its own
// (rdfres.OrphanEntity), so that a scan without a selection covers every triple.
//
// [Source.Describe] describes named entities, by batches, with the same names.
//
// Memory: Config.MemoryBytes for sorting, four bytes for each blank node of the
// graph, and one description or blank-node component at a time, which
// Config.MaxDescriptionTriples bounds.
//
// The bookkeeping of rsbridge itself (sparql.IsOwnGraph) is never read; how much
// of it was left out is told (Stats.Own).
package sparqlsrc
