package sink

import (
	"iter"
	"time"
)

// Batch is one write. Writing it twice changes nothing.
type Batch struct {
	Remove        []Statement
	Add           []Statement
	DropGraphs    []string // per-entity graphs to remove, with their ownership
	OwnGraphs     []string // per-entity graphs, ours from now on
	FreeGraphs    []string // per-entity graphs, ours no more; they stay
	Put           []Graph  // per-entity graphs, as they are now
	ClearSubjects []string // subjects to remove from the state graph
	// Changes are the same by resource, for sinks of messages: also of resources without
	// triples. nil for repairs.
	Changes iter.Seq[Change]
	Apart   bool // to the sink, something added is the same as something removed
}

// Empty tells of a batch without changes of data.
func (b *Batch) Empty() bool {
	return len(b.Remove)+len(b.Add)+len(b.DropGraphs)+len(b.ClearSubjects) == 0
}

// Nothing tells of a batch for the checkpoint alone.
func (b *Batch) Nothing() bool {
	return b.Empty() && len(b.OwnGraphs)+len(b.FreeGraphs)+len(b.Put) == 0
}

// Graph is a per-entity graph with all its statements.
type Graph struct {
	IRI        string
	Statements []Statement
}

// Change is one resource of a batch.
type Change struct {
	Kind     string // created, updated, deleted
	Location string
	Entity   string
	Time     time.Time // of the change at the source, zero for unknown
	Old, New []Statement
}
