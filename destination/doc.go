// Package destination follows a ResourceSync source, verifies its resources, keeps a target store equal to
// it, and proves it.
//
// A Destination is opened over the records of a state (a kv.Store) and a client of the mirror. Sync finds
// the source's set from any address,
// loads a baseline from a Resource Dump or a Resource List, follows Change Lists
// from then on, and closes gaps by comparing with the list. Audit proves that
// mirror, records and source agree, and repairs differences.
//
// The order of writes is the point of the package:
//
//	fetch, verify length and hashes, parse, name blank nodes    (obtain)
//	intent: the batch, durable in our records                   (apply)
//	mirror: DELETE DATA, INSERT DATA, checkpoint in one request (sink)
//	records, ownership and cursor, in one commit                (apply)
//
// A crash anywhere between leaves an intent, and the next run redoes it; redoing changes nothing done
// before. A triple of several resources belongs to all of them and goes with the last. A resource not
// fetched is a durable fault with growing pauses, and never stops the others.
//
// The log of a source is followed while it stays the same: every poll looks for the last applied change
// (feed/newest.go). If another one stands in its place, as after a restored backup, everything is compared.
// A missing list is never passed, unless it lies before the cursor (feed/missing.go). An entity with
// another location has moved, and this is no deletion (moves.go).
//
// In a single graph an audit proves the whole graph. With a graph for each entity it proves the owned
// graphs, and those with a name in the form of the template. The bare template {entity} has any name: then
// other graphs of the store are foreign, and never looked at or touched.
//
// Stores rewrite some literals and IRIs. A probe finds their forms (probe.go, iriforms.go), and probes
// again if the store has another name or version, or if an audit finds an unknown form.
//
// Sources are not trusted: only their own host and the configured ones are
// asked, and everything they send is bounded (limits.go).
package destination
