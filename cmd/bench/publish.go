package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Resources of the two sets; both publish the same number of changes.
const (
	smallSet = 100_000
	largeSet = 1_000_000
	changed  = 100
	// publications of each set in a run; the run's figure is the median.
	publications = 15
)

// publishing measures the cost of publishing changes in a large set and in a small one, without the
// scans.
func publishing(ctx context.Context, e *env) (large, small time.Duration, err error) {
	var sets [2]*publisher
	for i, n := range []int{largeSet, smallSet} {
		if sets[i], err = e.publisher(ctx, n); err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, sets[i].close()) }()
	}
	var took [2][]time.Duration
	for range publications + 2 { // the first ones warm up
		for i, p := range sets {
			d, err := p.change(ctx, changed)
			if err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], d)
		}
	}
	for i := range took {
		took[i] = took[i][2:]
		slices.Sort(took[i])
	}
	return took[0][publications/2], took[1][publications/2], nil
}

// publisher is a published set of simple descriptions.
type publisher struct {
	n     int
	store kv.Store
	track *changetrack.Tracker
	log   *changetrack.Log
	pub   *publish.Publisher
	rand  *rand.Rand
	files string // folder of published files
}

// folder is the size of the published files.
func (p *publisher) folder() (size int64, err error) {
	err = filepath.WalkDir(p.files, func(_ string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		info, err := f.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// publisher opens the set with n resources; the first call makes it.
func (e *env) publisher(ctx context.Context, n int) (*publisher, error) {
	return e.publisherOf(ctx, n, "published-"+strconv.Itoa(n), func(s kv.Store) kv.Store { return s })
}

// publisherOf opens one in a folder, and publishes over what is made of its store.
func (e *env) publisherOf(ctx context.Context, n int, name string, over func(kv.Store) kv.Store) (_ *publisher, err error) {
	dir := filepath.Join(e.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &publisher{n: n, files: filepath.Join(dir, "files"), rand: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(n)))}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.store, err = pebblekv.Open(ctx, filepath.Join(dir, "kv"), pebblekv.Options{}); err != nil {
		return nil, err
	}
	if p.track, err = changetrack.Open(ctx, kv.Prefix(p.store, []byte("log/")), changetrack.Options{Dir: filepath.Join(dir, "stage")}); err != nil {
		return nil, err
	}
	if p.log, err = p.track.Log(ctx, "data"); err != nil {
		return nil, err
	}
	if head, _ := p.log.Head(); head == 0 {
		if err := p.fill(ctx); err != nil {
			return nil, err
		}
	}
	p.pub, err = publish.Open(ctx, kv.Prefix(over(p.store), []byte("pub/")), []publish.SetConfig{{Name: "data", Log: p.log, Prefix: "http://bench.example/e/"}},
		publish.Options{BaseURL: benchBase, Dir: p.files})
	return p, err
}

func (p *publisher) close() error {
	var errs []error
	if p.pub != nil {
		errs = append(errs, p.pub.Close())
	}
	if p.track != nil {
		errs = append(errs, p.track.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}

func (p *publisher) fill(ctx context.Context) error {
	keys := make([]rdfres.Digest, p.n)
	order := make([]int32, p.n)
	for i := range keys {
		keys[i], order[i] = rdfres.EntityKey(entityOf(i)), int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	_, err := p.log.Scan(ctx, func(yield func(rdfres.Description, error) bool) {
		for _, i := range order {
			if !yield(describe(int(i), 0), nil) {
				return
			}
		}
	}, changetrack.ScanOptions{Format: rdfres.JSONLD})
	return err
}

// change changes so many resources, and tells how long their publishing takes.
func (p *publisher) change(ctx context.Context, changed int) (time.Duration, error) {
	res, err := p.log.Scan(ctx, func(yield func(rdfres.Description, error) bool) {
		seen := map[int]bool{}
		for len(seen) < changed {
			i := p.rand.IntN(p.n)
			if seen[i] {
				continue
			}
			seen[i] = true
			if !yield(describe(i, p.rand.Uint32()), nil) {
				return
			}
		}
	}, changetrack.ScanOptions{Format: rdfres.JSONLD, Partial: true})
	if err != nil || res.Updated != int64(changed) {
		return 0, fmt.Errorf("%d of %d changes: %w", res.Updated, changed, err)
	}
	began := time.Now()
	g, err := p.pub.Publish(ctx, "data")
	took := time.Since(began)
	if head, _ := p.log.Head(); err == nil && g.Sequence != head {
		err = fmt.Errorf("published up to %d of %d", g.Sequence, head)
	}
	return took, err
}

func entityOf(i int) string { return "http://bench.example/e/Entity_" + strconv.Itoa(i) }

func describe(i int, version uint32) rdfres.Description {
	entity := entityOf(i)
	s := rdfres.NewIRI(entity)
	ts := []rdfres.Triple{
		{S: s, P: rdfres.NewIRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), O: rdfres.NewIRI("http://bench.example/Place")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral("Entity number "+strconv.Itoa(i), "en", "")},
		{S: s, P: rdfres.NewIRI("http://bench.example/version"), O: rdfres.NewLiteral(strconv.FormatUint(uint64(version), 10), "", "")},
	}
	for k := range 6 {
		ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI(fmt.Sprintf("http://bench.example/property%d", k)),
			O: rdfres.NewLiteral(fmt.Sprintf("value %d of %d, some words", i*k, i), "", "")})
	}
	return rdfres.Description{Entity: entity, Triples: rdfres.SortUnique(ts)}
}
