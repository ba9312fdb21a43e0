// Package destination follows a ResourceSync source, verifies what it fetches,
// keeps a target store equal to it, and proves it.
//
// A Destination is opened over the records of a state (a kv.Store) and a client
// of the mirror. Sync finds the source's set from whatever address it was given,
// loads a baseline from a Resource Dump or a Resource List, follows Change Lists
// from then on, and closes gaps by comparing with the list. Audit proves that
// mirror, records and source agree, and repairs what does not.
//
// What is written where, and in which order, is the point of the package:
//
//	fetch, verify length and hashes, parse, name blank nodes    (represent.go)
//	intent: the batch, durable in our records                   (apply.go)
//	mirror: DELETE DATA, INSERT DATA, checkpoint in one request (mirror.go)
//	records, ownership and cursor, in one commit                (apply.go)
//
// A crash anywhere between leaves an intent, which the next run redoes; redoing
// changes nothing that already stands. A triple that several resources have
// belongs to all of them and goes with the last. A resource that cannot be had
// is a durable fault with growing pauses, and never stops the others.
//
// The log of a source is followed only while it is the one that was followed: the
// last applied change is looked for in every poll (feed/newest.go), and when another
// stands in its place, as after restoring a backup, everything is compared. A list
// that is named and not there is never gone past, unless it lies before the cursor
// (feed/missing.go). An entity that gets another location has moved and is no deletion
// (moves.go).
//
// In a single graph an audit proves the whole graph. With a graph for each entity
// it proves the graphs that are owned, and those whose name has the form of the
// template: with the bare template {entity} that is any name, so other graphs of
// the store are somebody else's, are not looked at and never touched.
//
// Stores keep some literals and IRIs otherwise than they were given. What they do
// is probed (probe.go, iriforms.go), and probed again when the store names itself
// otherwise or an audit sees what the probe did not.
//
// Sources are not trusted: only their own host and the configured ones are
// asked, and everything they send is bounded (limits.go).
package destination
