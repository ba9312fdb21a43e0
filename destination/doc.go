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
// Sources are not trusted: only their own host and the configured ones are
// asked, and everything they send is bounded (limits.go).
package destination
