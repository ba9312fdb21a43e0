// Package sink says how a mirror is kept: statements and their names, their place (Layout),
// one write (Batch), and the state of a mirror (Checkpoint).
// docs/extending.md tells how to add a sink, a message queue for example.
package sink
