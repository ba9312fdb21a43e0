// Package ledger is the memory of destinations: a record for each resource, the
// ownership of triples, former versions, and the intent of a batch under way.
//
// All destinations of a state share one key space, since a triple of one graph may
// belong to several of them. docs/reference/state-destination.md describes the keys and
// the forms byte by byte.
package ledger
