// Package changetrack compares successive scans of a source and keeps the
// ordered, durable log of what was created, updated and deleted.
//
// A [Tracker] holds one [Log] for each set. [Log.Scan] takes the descriptions
// that a scan of the store yields, in the order of rdfres.EntityKey, and works in
// these steps:
//
//  1. Compare. The descriptions are merged with the states that are known, which
//     are kept in the same order. Unchanged is decided by the graph digest and
//     costs nothing else. What is new or different is encoded, measured and
//     packed by all processors and staged in order; what was not found is set
//     aside. Nothing is kept in memory that grows with the number of entities.
//  2. Confirm. What was not found is asked for a second time by name. Only what
//     is missing again is staged as a deletion.
//  3. Hold. A scan that would delete too much, or whose configuration is not the
//     one that is in force, is not logged: it becomes a candidate with an id that
//     waits for a person (see [Held]).
//  4. Commit. The staged changes get their sequence numbers and times, are made
//     durable, then written, and become visible at once. A crash at any moment
//     leaves all of a scan or nothing of it; Open finishes what was committed.
//
// A [View] is one consistent state: the log up to its head, what is known of each
// entity, and the bytes of every version that is current or within retention.
// [Log.Retain] drops what is older. [Log.Check] verifies all that is promised.
//
// The package does not know where descriptions come from, nor what documents are
// made of the log. Its records are described byte by byte in docs/reference/state-log.md,
// section "State: changetrack".
package changetrack
