// Package sink says how a mirror is kept: statements and their names, their place (Layout),
// one write (Batch), and the state of a mirror (Checkpoint).
package sink
