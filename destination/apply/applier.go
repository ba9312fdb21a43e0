// Package apply works batches of resources out against the records, and writes them: the mirror first,
// then records, ownership and position in one commit. An intent on disk ends a batch after a crash.
package apply

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Applier writes batches, the mirror first and then the records, and ends those of a crash.
type Applier struct {
	*keep.Standing
	planner *planner
	content content // form of resources in the mirror
	twins   twins   // of the run under way

	unfinished atomic.Bool // a batch of this run could not be written
}

// planner works batches out against the records.
type planner struct {
	*keep.Standing
	faults *faults
	lim    *Limits
}

// faults remembers resources that fail, and when they are tried again.
type faults struct {
	*keep.Standing
	lim *Limits
	run func() int64
}

// Putter puts mirrors whole, and counts what they should hold.
type Putter struct{ *keep.Standing }

// Limits are those of batches and tries.
type Limits struct {
	RetryFirst time.Duration // before a pending resource is tried again; doubles
	RetryMax   time.Duration
	FailAfter  int // tries after which pending becomes failed
	Few        int // triples that go by an update, with the checkpoint, and not by a Graph Store POST
}

// New makes an applier; run is the number of the run under way. It is opened when the mirror is known.
func New(stand *keep.Standing, run func() int64, lim *Limits) *Applier {
	return &Applier{Standing: stand, planner: &planner{Standing: stand, faults: &faults{stand, lim, run}, lim: lim}}
}

// Open takes the mirror's form.
func (ap *Applier) Open() (err error) {
	if ap.Mirror.Files == nil {
		ap.content = descriptions{ap}
		return nil
	}
	ap.content, err = newRepresentations(ap)
	return err
}

// EndRun forgets the answers of a run.
func (ap *Applier) EndRun() { ap.twins = nil }

// IsBroken tells of a batch of this run that could not be written: nothing else may be written.
func (ap *Applier) IsBroken() bool { return ap.unfinished.Load() }

// CountFiles counts the files of the destination.
func (ap *Applier) CountFiles(e *ledger.Extent) int64 { return ap.content.countFiles(e) }

// Doubtful is the fault of a resource with an answer of the digest came, not taken yet.
func (ap *Applier) Doubtful(ctx context.Context, it *item.Item, loc ledger.Hash, why string, came rdfres.Digest) *ledger.Fault {
	return ap.planner.faults.newFault(ctx, it, loc, &doubtfulError{why, came})
}
