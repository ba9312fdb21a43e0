package sink

// Batch is one write. Writing it twice changes nothing.
type Batch struct {
	Remove        []Statement
	Add           []Statement
	DropGraphs    []string // per-entity graphs to remove, with their ownership
	OwnGraphs     []string // per-entity graphs, ours from now on
	FreeGraphs    []string // per-entity graphs, ours no more; they stay
	ClearSubjects []string // subjects to remove from the state graph
	Apart         bool     // to the sink, something added is the same as something removed
}

// Empty tells of a batch without changes of data.
func (b *Batch) Empty() bool {
	return len(b.Remove)+len(b.Add)+len(b.DropGraphs)+len(b.ClearSubjects) == 0
}
