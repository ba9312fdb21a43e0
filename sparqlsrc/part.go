package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Hands read parts of a scan in other processes, from any of the servers.
type Hands interface {
	// Read gives parts away. took gets the outcome of each part once, one at a time, and its run. In place of a
	// process that is silent, own reads a part here. It returns when all parts are read, and false at once when
	// there is nobody to take them. An error that wraps ErrPart is about a part that nobody could read.
	Read(ctx context.Context, parts []Part, took func(i int, o PartOutcome, run io.Reader) error, own func(ctx context.Context, i int) error) (bool, error)
}

// ErrPart is about a part that nobody could read, after several attempts.
var ErrPart = errors.New("a part of the scan cannot be read")

// Part is a part of a scan: the triples of some predicates without blank nodes. It is kept as JSON.
type Part struct {
	All        string              `json:"all"`                  // pattern of the scan
	Predicates []string            `json:"predicates,omitempty"` // escaped
	Counts     []int64             `json:"counts,omitempty"`     // of triples, by predicate
	Filter     string              `json:"filter,omitempty"`     // instead of predicates
	Piece      string              `json:"piece,omitempty"`      // filter for a piece of one predicate
	Triples    int64               `json:"triples"`              // counted, or estimated for a piece
	Construct  bool                `json:"construct,omitempty"`
	Servers    []int               `json:"servers"` // that hold it: 0 is the store, the others are its replicas, from 1 on
	Store      sparql.Capabilities `json:"store"`
}

func (p *Part) String() string {
	if p.Filter != "" {
		return p.Filter + p.Piece
	}
	what := fmt.Sprintf("the predicate %s ", p.Predicates[0])
	if n := len(p.Predicates); n > 1 {
		what = fmt.Sprintf("%d predicates from %s on ", n, p.Predicates[0])
	}
	return what + p.Piece
}

func (p *Part) bunch() *bunch {
	return &bunch{predicates: p.Predicates, counts: p.Counts, total: p.Triples, filter: p.Filter, piece: p.Piece}
}

// PartOutcome is what came of a part.
type PartOutcome struct {
	Rows    int64             `json:"rows"`               // triples that came
	InVain  int64             `json:"in_vain,omitempty"`  // of them, because they came again
	Records int64             `json:"records"`            // in its run
	Failed  map[string]string `json:"failed,omitempty"`   // entities with triples that no other store takes, with the reasons
	NotHere bool              `json:"not_here,omitempty"` // it can be read by the process of the scan alone
}

// maxPartFailed is how many failed entities an outcome has.
const maxPartFailed = 100

// ReadPart reads a part from a server into a new file, as the run that Hands give back.
func ReadPart(ctx context.Context, s *Source, from *sparql.Client, p Part, file string) (o PartOutcome, err error) {
	cfg := s.cfg
	cfg.MemoryBytes /= 4 // the scan itself may go on beside it
	g, err := newGrouper(&cfg, s.scbd)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r := &predicateReader{s: s, caps: p.Store, all: p.All, construct: p.Construct, g: g, read: func() {}}
	if _, err := r.bunch(ctx, from, p.bunch(), p.Construct); err != nil {
		return o, fmt.Errorf("read %s: %w", &p, err)
	}
	if g.blankRows > 0 || g.failed.count() > maxPartFailed { // names of blank nodes are of a whole scan
		return PartOutcome{NotHere: true}, nil
	}
	o = PartOutcome{Rows: g.rows, InVain: r.again, Failed: map[string]string{}}
	for entity, why := range g.failed.why {
		o.Failed[entity] = why.Error()
	}
	if err := g.endRun(); err != nil {
		return o, err
	}
	o.Records = g.entities.Len()
	return o, g.entities.Export(file)
}

// byHands reads bunches by other processes; false: there are none.
func (r *predicateReader) byHands(ctx context.Context, bunches []bunch) (bool, error) {
	if r.s.cfg.Hands == nil {
		return false, nil
	}
	servers := []int{0}
	for i, c := range r.s.cfg.Replicas {
		if slices.Contains(r.replicas, c) {
			servers = append(servers, i+1)
		}
	}
	parts := make([]Part, len(bunches))
	for i, b := range bunches {
		parts[i] = Part{All: r.all, Predicates: b.predicates, Counts: b.counts, Filter: b.filter, Piece: b.piece, Triples: b.total, Construct: r.construct, Servers: servers, Store: r.caps}
	}
	own := func(ctx context.Context, i int) error {
		_, err := r.bunch(ctx, r.s.client, &bunches[i], r.construct)
		return err
	}
	return r.s.cfg.Hands.Read(ctx, parts, r.tookPart, own)
}

// tookPart takes what another process has read.
func (r *predicateReader) tookPart(_ int, o PartOutcome, run io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.g.entities.Import(run, len(rdfres.Digest{}), o.Records); err != nil {
		return err
	}
	r.g.rows += o.Rows
	r.again += o.InVain
	for entity, why := range o.Failed {
		r.g.failed.add(entity, errors.New(why))
	}
	r.read()
	return nil
}
