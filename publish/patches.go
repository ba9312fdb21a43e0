package publish

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
)

// largestPatched bounds the representations that patches are computed for.
const largestPatched = 8 << 20

// patcher computes the patches of changes on all processors and gives the
// changes back in their order. It works only between push and pop.
type patcher struct {
	ctx   context.Context
	view  *changetrack.View
	work  chan *patchJob
	queue []*patchJob
	most  int
}

type patchJob struct {
	change changetrack.Change
	patch  []byte
	err    error
	done   chan struct{}
}

func newPatcher(ctx context.Context, view *changetrack.View) *patcher {
	n := runtime.GOMAXPROCS(0)
	p := &patcher{ctx: ctx, view: view, work: make(chan *patchJob, 16*n), most: 16 * n}
	for range n {
		go func() {
			for j := range p.work {
				j.patch, j.err = makePatch(p.ctx, p.view, &j.change)
				close(j.done)
			}
		}()
	}
	return p
}

var noPatch = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (p *patcher) push(c changetrack.Change) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	j := &patchJob{change: c, done: noPatch}
	if patchable(&c) {
		j.done = make(chan struct{})
		p.work <- j
	}
	p.queue = append(p.queue, j)
	return nil
}

func (p *patcher) full() bool { return len(p.queue) >= p.most }
func (p *patcher) any() bool  { return len(p.queue) > 0 }

func (p *patcher) pop() (changetrack.Change, []byte, error) {
	j := p.queue[0]
	p.queue = p.queue[1:]
	<-j.done
	if j.err != nil {
		return j.change, nil, fmt.Errorf("patch of change %d of %s: %w", j.change.Sequence, clipText(j.change.Entity), j.err)
	}
	return j.change, j.patch, nil
}

// stop waits for the workers, so that the view can be closed.
func (p *patcher) stop() {
	close(p.work)
	for _, j := range p.queue {
		<-j.done
	}
	p.queue = nil
}

func patchable(c *changetrack.Change) bool {
	return c.Kind == changetrack.Updated && c.Before != nil && c.After != nil &&
		c.Before.Format == rdfres.JSONLD && c.After.Format == rdfres.JSONLD &&
		c.Before.Fixity.Length <= largestPatched && c.After.Fixity.Length <= largestPatched
}

// makePatch gives the JSON Patch of an update, nil when the version before is no
// longer kept or the patch is not smaller than the representation.
func makePatch(ctx context.Context, view *changetrack.View, c *changetrack.Change) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	before, err := versionBytes(view, c.Entity, c.Before.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	after, err := versionBytes(view, c.Entity, c.After.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.Diff(before, after)
	if err != nil {
		return nil, err
	}
	if int64(len(patch)) >= c.After.Fixity.Length {
		return nil, nil
	}
	return patch, nil
}

func versionBytes(view *changetrack.View, entity string, sequence uint64) ([]byte, error) {
	blob, err := view.Representation(entity, sequence)
	if err != nil {
		return nil, err
	}
	return blob.Bytes()
}
