// Package embedstore is the embedded triple store: durable, queried with SPARQL
// 1.1, served over HTTP.
//
// A [Store] is one folder that one process holds. It keeps quads: triples in
// the default graph and in named graphs. Literals keep their lexical form. Their
// language tags get the case of RFC 5646 as they enter, in data and in queries: in
// RDF 1.2 tags are equal in any case. Every answer of the store calls a blank node
// by the same label; the labels of a document or an update mean nothing beyond it
// and are replaced by fresh ones.
//
// One request ([Store.Load], [Store.Update], one HTTP request) is one
// transaction, however large: when it was answered it is on disk, and when it
// failed or was cancelled nothing of it is seen. Readers see the state of the
// moment at which they began.
//
// Queries and updates are SPARQL 1.1, evaluated by pushing one row through
// joins over the indexes, so that what can be streamed is streamed and memory is
// taken only for what must be held: ORDER BY, GROUP BY, DISTINCT, sub-selects
// that group or cut. A [Budget] bounds that. The variable of GRAPH ?g is bound
// within its group, filters and OPTIONAL included, as in other stores.
//
// It is a default, not a server for the world: one process, one writer at a
// time, joins in nested loops with simple guesses of their size. Up to some tens
// of millions of triples it serves well; beyond, or for heavy analytical
// queries, take a store that is made for it.
//
// What the store does not do: it keeps no empty named graphs (a graph is there
// while it holds a triple), it does not reason, it fetches nothing from the web
// (LOAD and SERVICE are refused).
package embedstore
