// Package embedstore is the embedded triple store: durable, queried with SPARQL 1.1, served over
// HTTP.
//
// A [Store] is one folder held by one process. It keeps quads: triples in the default graph and in
// named graphs. Literals keep their lexical form. Their language tags get the case of RFC 5646 as
// they enter, in data and in queries: in RDF 1.2 tags are equal in any case. Every answer of the
// store calls a blank node by the same label; the labels of a document or an update mean nothing
// beyond it and are replaced by fresh ones.
//
// One request ([Store.Load], [Store.Update], one HTTP request) is one transaction, however large:
// an answered request is on disk, and a failed or cancelled one leaves nothing visible. Readers see
// the state at their beginning.
//
// Queries and updates are SPARQL 1.1, evaluated by pushing one row through joins over the indexes.
// So results stream if they can, and memory is taken only for rows that must be held: ORDER BY,
// GROUP BY, DISTINCT, sub-selects with groups or a limit. A [Budget] bounds that memory. The
// variable of GRAPH ?g is bound within its group, filters and OPTIONAL included, as in other
// stores.
//
// It is a default, not a server for the world: one process, one writer at a time, joins in nested
// loops with simple guesses of their size. It serves up to some tens of millions of triples well;
// beyond, or for heavy analytical queries, take a specialized store.
//
// The store keeps no empty named graphs (a graph is there while it holds a triple), it does not
// reason, and it fetches nothing from the web (LOAD and SERVICE are refused).
package embedstore
