// Package patch computes the patches from one version of an entity to the next: an RFC 6902
// JSON Patch between JSON-LD representations, an RDF Patch between graphs. A [Queue] does so
// on all processors and keeps the order of the changes.
package patch

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"sync"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// largest bounds the representations to be patched, in bytes.
const largest = 8 << 20

// Queue computes the patches of changes on all processors and gives the changes back in their
// order. It belongs to one goroutine and reads its view only between Push and Pop.
type Queue struct {
	ctx   context.Context
	view  *changetrack.View
	work  chan *job
	queue []*job
	most  int
	done  sync.WaitGroup // of the workers
}

type job struct {
	change  changetrack.Change
	patches []Patch
	err     error
	done    chan struct{}
}

// Patch is a patch of one kind.
type Patch struct {
	Kind *Kind
	Data []byte
}

// Kind is a kind of patch.
type Kind struct {
	ID        byte   // of the kind, for keys of records
	Suffix    string // of its address
	MediaType string
	graph     bool // its digests are of graphs, not of representations
}

// The kinds of patches.
var (
	JSON = &Kind{'x', ".json", "application/json-patch+json", false}
	RDF  = &Kind{'y', rdfres.RDFPatchSuffix, rdfres.RDFPatchType, true}
	// Kinds has all of them, in the order of links.
	Kinds = []*Kind{JSON, RDF}
)

// Digests gives the digest before a patch of a change and the one after it.
func (k *Kind) Digests(c *changetrack.Change) (base, result rdfres.Digest) {
	if k.graph {
		return c.Before.Graph, c.After.Graph
	}
	return c.Before.Fixity.SHA256, c.After.Fixity.SHA256
}

// NewQueue starts the workers of a queue; Stop ends them.
func NewQueue(ctx context.Context, view *changetrack.View) *Queue {
	n := runtime.GOMAXPROCS(0)
	p := &Queue{ctx: ctx, view: view, work: make(chan *job, waiting*n), most: waiting * n}
	for range n {
		p.done.Go(func() {
			for j := range p.work {
				p.compute(j, len(p.work)/n)
			}
		})
	}
	return p
}

// waiting is how many changes wait for each worker.
const waiting = 64

// readBytes bounds the representations read at once; one change may have more.
const readBytes = 4 << 20

// compute does a job, and up to so many others: their representations are read at once.
func (p *Queue) compute(j *job, others int) {
	jobs, size := []*job{j}, j.change.Before.Fixity.Length+j.change.After.Fixity.Length
	for ; others > 0 && size < readBytes; others-- {
		select {
		case other, ok := <-p.work:
			if !ok {
				others = 0
				break
			}
			jobs, size = append(jobs, other), size+other.change.Before.Fixity.Length+other.change.After.Fixity.Length
		default:
			others = 0
		}
	}
	var refs []changetrack.Ref
	for _, j := range jobs {
		refs = append(refs, changetrack.Ref{Entity: j.change.Entity, Sequence: j.change.Before.Sequence}, changetrack.Ref{Entity: j.change.Entity, Sequence: j.change.After.Sequence})
	}
	blobs, err := p.view.Representations(p.ctx, refs)
	for i, j := range jobs {
		if j.err = err; err == nil {
			j.patches, j.err = compute(p.ctx, &j.change, blobs[2*i], blobs[2*i+1])
		}
		close(j.done)
	}
}

var noPatch = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Push adds a change behind all others.
func (p *Queue) Push(c changetrack.Change) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	j := &job{change: c, done: noPatch}
	if patchable(&c) {
		j.done = make(chan struct{})
		p.work <- j
	}
	p.queue = append(p.queue, j)
	return nil
}

// Full asks for a Pop before the next Push; Any tells whether a change is waiting.
func (p *Queue) Full() bool { return len(p.queue) >= p.most }
func (p *Queue) Any() bool  { return len(p.queue) > 0 }

// Pop waits for the patches of the first change in the queue.
func (p *Queue) Pop() (changetrack.Change, []Patch, error) {
	j := p.queue[0]
	p.queue = p.queue[1:]
	<-j.done
	if j.err != nil {
		return j.change, nil, fmt.Errorf("patch of change %d of %s: %w", j.change.Sequence, clip.Middle(j.change.Entity), j.err)
	}
	return j.change, j.patches, nil
}

// Stop waits for the workers: the view can be closed then.
func (p *Queue) Stop() {
	close(p.work)
	p.done.Wait()
	p.queue = nil
}

func patchable(c *changetrack.Change) bool {
	return c.Kind == changetrack.Updated && c.Before != nil && c.After != nil && c.Before.Format == c.After.Format &&
		c.Before.Fixity.Length <= largest && c.After.Fixity.Length <= largest
}

// compute gives the patches of an update, each smaller than the representation: none without
// the version before, dropped by retention perhaps.
func compute(ctx context.Context, c *changetrack.Change, before, after changetrack.Blob) (made []Patch, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var data [2][]byte
	for i, blob := range []changetrack.Blob{before, after} {
		if !blob.IsKept() {
			return nil, nil
		}
		if data[i], err = blob.Bytes(); err != nil {
			return nil, err
		}
	}
	for _, kind := range Kinds {
		var p []byte
		switch {
		case kind == RDF:
			p, err = rdfPatch(c, data[0], data[1])
		case c.After.Format == rdfres.JSONLD:
			p, err = jsonpatch.Diff(data[0], data[1])
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if int64(len(p)) < c.After.Fixity.Length {
			made = append(made, Patch{kind, p})
		}
	}
	return made, nil
}

// rdfPatch gives the deleted and the added triples.
func rdfPatch(c *changetrack.Change, before, after []byte) ([]byte, error) {
	a, err := codec.Decode(c.Before.Format, before, rdfres.ReadOptions{Name: c.Entity})
	if err != nil {
		return nil, err
	}
	b, err := codec.Decode(c.After.Format, after, rdfres.ReadOptions{Name: c.Entity})
	if err != nil {
		return nil, err
	}
	deleted, added := rdfres.DiffTriples(a, b)
	return rdfres.AppendPatch(nil, []rdfres.PatchHeader{
		{Name: "id", Value: graphName(c.After.Graph)}, {Name: "prev", Value: graphName(c.Before.Graph)},
	}, deleted, added), nil
}

// graphName names a graph by its digest (RFC 6920), for the headers of a patch.
func graphName(d rdfres.Digest) rdfres.Term {
	return rdfres.NewIRI("ni:///sha-256;" + base64.RawURLEncoding.EncodeToString(d[:]))
}
