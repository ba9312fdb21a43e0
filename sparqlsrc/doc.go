// Package sparqlsrc enumerates the entities of a SPARQL endpoint and describes
// each of them.
//
// A full scan ([Source.Scan]) streams the whole graph once, in the store's fastest way,
// and groups it by entity on our side, on disk and in bounded memory. The number of
// triples is held against the store's own count, taken beside it; after a difference,
// against a second count. A short answer is asked for again, then read in parts, and is an
// error in the end; it never looks like a deletion.
//
// The same answer as that of the last scan, triple by triple, has the same descriptions.
// Nothing of it is sorted, named or compared ([Source.ScanUnless]).
//
// The descriptions come in the order of rdfres.EntityKey, each sorted and without doubles,
// in wire form: the names of blank nodes follow from their component, not from the
// store's labels. An orphan component, out of reach of any IRI, is a description of its own
// (rdfres.OrphanEntity): a scan without a selection covers every triple.
//
// [Source.Describe] describes named entities, by batches, with the same names.
//
// Memory: Config.MemoryBytes for sorting, four bytes for each blank node of the graph, and
// one description or blank-node component at a time, bounded by
// Config.MaxDescriptionTriples.
//
// The bookkeeping of rsbridge itself (sparql.IsOwnGraph) is never read; Stats.Own counts
// the triples left out.
package sparqlsrc
