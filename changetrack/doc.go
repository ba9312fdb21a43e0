// Package changetrack compares successive scans of a source and keeps the ordered, durable log of
// its created, updated and deleted entities.
//
// A [Tracker] holds one [Log] for each set. [Log.Scan] takes the descriptions of a scan of the
// store, in the order of rdfres.EntityKey, and works in these steps:
//
//  1. Compare. The descriptions are merged with the known states, stored in the
//     same order. Unchanged is decided by the graph digest and costs nothing
//     else. New and different descriptions are encoded, measured and packed by
//     all processors and staged in order; missing entities are set aside.
//     Nothing in memory grows with the number of entities.
//  2. Confirm. The store is asked for missing entities a second time, by name.
//     Only those missing again are staged as deletions.
//  3. Hold. A scan with too many deletions, or with another configuration than
//     the one in force, is not logged: it becomes a candidate with an id and
//     waits for a person (see [Held]).
//  4. Commit. The staged changes get their sequence numbers and times, are made
//     durable, then written, and become visible at once. A crash at any moment
//     leaves all of a scan or nothing of it; Open finishes a committed one.
//
// A [View] is one consistent state: the log up to its head, the state of each entity, and the bytes
// of every version current or within retention. [Log.Retain] drops older ones. [Log.Check] verifies
// all promises.
//
// The package knows neither the origin of descriptions nor the documents made of the log. Its
// records are described byte by byte in docs/reference/state-log.md, section "State: changetrack".
package changetrack
