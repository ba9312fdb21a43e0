package sink

import (
	"iter"
	"time"
)

// Batch is one write, in one of two views: statements and graphs for stores, changes by resource for
// queues. Writing it twice changes nothing. Nothing in it is kept after the call.
type Batch struct {
	Remove        []Statement // from the mirror: no resource has them any more
	Add           []Statement
	DropGraphs    []string // per-entity graphs to remove, with their ownership
	OwnGraphs     []string // per-entity graphs, ours from now on
	FreeGraphs    []string // per-entity graphs, ours no more; they stay
	Put           []Graph  // per-entity graphs, as they are now
	ClearSubjects []string // subjects to remove from the state graph
	// Changes are the same by resource, as they are applied, and also of resources without
	// triples. nil for a repair of the mirror: it is no news.
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

// Change is one resource of a batch. A baseline gives each of its resources as created.
type Change struct {
	Kind     string      // created, updated, deleted
	Location string      // its address at the source
	Entity   string      // the IRI behind it, "" for a page without triples
	Time     time.Time   // of the change at the source, zero for unknown
	Old, New []Statement // all of it, before and after; also statements shared with other resources
}
