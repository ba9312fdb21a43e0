package publish

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
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
	change  changetrack.Change
	patches []patch
	err     error
	done    chan struct{}
}

// patch is a patch of one kind that is offered.
type patch struct {
	kind *patchKind
	data []byte
}

// patchKind is a kind of patch.
type patchKind struct {
	record    byte // of its key
	suffix    string
	mediaType string
	graph     bool // its digests are of graphs, not of representations
}

var (
	jsonPatch = &patchKind{'x', ".json", "application/json-patch+json", false}
	rdfPatch  = &patchKind{'y', rdfres.RDFPatchSuffix, rdfres.RDFPatchType, true}
	// patchKinds are in the order in which links to them stand.
	patchKinds = []*patchKind{jsonPatch, rdfPatch}
)

// digests are what a patch of a change applies to, and what it makes.
func (k *patchKind) digests(c *changetrack.Change) (base, result rdfres.Digest) {
	if k.graph {
		return c.Before.Graph, c.After.Graph
	}
	return c.Before.Fixity.SHA256, c.After.Fixity.SHA256
}

func newPatcher(ctx context.Context, view *changetrack.View) *patcher {
	n := runtime.GOMAXPROCS(0)
	p := &patcher{ctx: ctx, view: view, work: make(chan *patchJob, 16*n), most: 16 * n}
	for range n {
		go func() {
			for j := range p.work {
				j.patches, j.err = makePatches(p.ctx, p.view, &j.change)
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

func (p *patcher) pop() (changetrack.Change, []patch, error) {
	j := p.queue[0]
	p.queue = p.queue[1:]
	<-j.done
	if j.err != nil {
		return j.change, nil, fmt.Errorf("patch of change %d of %s: %w", j.change.Sequence, clipText(j.change.Entity), j.err)
	}
	return j.change, j.patches, nil
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
	return c.Kind == changetrack.Updated && c.Before != nil && c.After != nil && c.Before.Format == c.After.Format &&
		c.Before.Fixity.Length <= largestPatched && c.After.Fixity.Length <= largestPatched
}

// makePatches gives the patches of an update: none when the version before is no
// longer kept, and none that is not smaller than the representation.
func makePatches(ctx context.Context, view *changetrack.View, c *changetrack.Change) (made []patch, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var data [2][]byte
	for i, v := range []*changetrack.Version{c.Before, c.After} {
		if data[i], err = versionBytes(view, c.Entity, v.Sequence); errors.Is(err, kv.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	for _, kind := range patchKinds {
		var p []byte
		switch {
		case kind == rdfPatch:
			p, err = makeRDFPatch(c, data[0], data[1])
		case c.After.Format == rdfres.JSONLD:
			p, err = jsonpatch.Diff(data[0], data[1])
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if int64(len(p)) < c.After.Fixity.Length {
			made = append(made, patch{kind, p})
		}
	}
	return made, nil
}

// makeRDFPatch gives the triples that go and come.
func makeRDFPatch(c *changetrack.Change, before, after []byte) ([]byte, error) {
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

// graphName names a graph by its digest (RFC 6920), so that the headers of a patch
// say which graph it makes, and which it applies to.
func graphName(d rdfres.Digest) rdfres.Term {
	return rdfres.NewIRI("ni:///sha-256;" + base64.RawURLEncoding.EncodeToString(d[:]))
}

// patches gives the patches of a change that are offered, from the records.
func (s *set) patches(r kv.Reader, sequence uint64) (ps []patch, err error) {
	for _, kind := range patchKinds {
		data, err := r.Get(keyOf(kind.record, sequence))
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ps = append(ps, patch{kind, data})
	}
	return ps, nil
}

func (s *set) patchAddress(sequence uint64, kind *patchKind) string {
	return s.url + "/patch/" + strconv.FormatUint(sequence, 10) + kind.suffix
}

func versionBytes(view *changetrack.View, entity string, sequence uint64) ([]byte, error) {
	blob, err := view.Representation(entity, sequence)
	if err != nil {
		return nil, err
	}
	return blob.Bytes()
}
