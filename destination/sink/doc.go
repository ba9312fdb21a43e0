// Package sink says how a mirror is kept: statements and their names, their place (Layout),
// one write (Batch), and the state of a mirror (Checkpoint).
//
// To add a sink, for example a message queue:
//   - Give it a package below this one, with types for Sink and Mirror. A queue reads
//     Batch.Changes. Further interfaces of this package are for sinks with more to offer.
//   - Hold it to its promises by sinktest.Run.
//   - Name the package in floors_test.go (twice) and in the picture of docs/design.md.
//   - Give its kind a key in bridge.Store, and a line in the table sinkKinds of bridge.
package sink
