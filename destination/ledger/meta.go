package ledger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Meta is the record of a destination.
type Meta struct {
	Identity `json:"identity"`
	State    `json:"state"`
	Written  `json:"written"`
	Counts   `json:"counts"`

	Position json.RawMessage `json:"position,omitempty"` // how far the source was read; the feed's own
	History  json.RawMessage `json:"history,omitempty"`  // how the last runs ended; the engine's own
}

// Identity is what a destination is of, and where.
type Identity struct {
	Name       string `json:"name"`
	Mark       string `json:"mark"` // subject of the checkpoint in the mirror
	Source     string `json:"source"`
	Fields     string `json:"fields,omitempty"` // digest of the secrets in the query of the source
	Set        string `json:"set,omitempty"`
	Graph      string `json:"graph"` // layout and graph, never changed
	Space      ID     `json:"space"`
	Authority  string `json:"authority,omitempty"`  // of skolem IRIs, never changed
	Files      string `json:"files,omitempty"`      // folder of the non-RDF resources
	Provenance string `json:"provenance,omitempty"` // source named by the provenance in the mirror; "": there is none
	Freshness  bool   `json:"freshness,omitempty"`  // the mirror may tell its freshness
	Map        string `json:"map,omitempty"`        // SHA-256 of the map of the mirror
	Part       string `json:"part,omitempty"`       // names the selection, and whether deleted resources are kept
}

// Written is how far the mirror was written.
type Written struct {
	Generation uint64 `json:"generation"`       // last write confirmed by the mirror
	Writer     string `json:"writer,omitempty"` // the process of that write
	Ahead      bool   `json:"ahead,omitempty"`  // records are ahead of a mirror that is replaced as a whole
}

// Counts are kept with the records.
type Counts struct {
	Resources  int64  `json:"resources"`
	NotRDF     int64  `json:"not_rdf,omitempty"`    // of them
	Unselected int64  `json:"unselected,omitempty"` // of them
	Unmapped   int64  `json:"unmapped,omitempty"`   // of them, those without a result of map
	Versions   uint64 `json:"versions,omitempty"`   // number of the last former version
}

// Selected is how many resources of the source are in the mirrored part.
func (c *Counts) Selected() int64 { return c.Resources - c.Unselected }

// Known is the record of a destination, with its number.
type Known struct {
	Dest ID
	Meta
}

// All yields the records of all destinations of a state, by number. The sequence ends after
// the first error.
func All(ctx context.Context, r kv.Reader) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		for pair, err := range r.Scan(ctx, []byte{KindMeta}, []byte{KindMeta + 1}) {
			var k Known
			if err == nil && len(pair.Key) != 5 {
				err = fmt.Errorf("%w: meta", ErrDamaged)
			}
			if err == nil {
				k.Dest = ID(binary.BigEndian.Uint32(pair.Key[1:]))
				k.Meta, err = decodeMeta(pair.Value)
			}
			if !yield(k, err) || err != nil {
				return
			}
		}
	}
}

// MetaOf reads the record of a destination, or kv.ErrNotFound.
func MetaOf(ctx context.Context, r kv.Reader, dest ID) (Meta, error) {
	raw, err := r.Get(ctx, Key(KindMeta, dest))
	if err != nil {
		return Meta{}, err
	}
	return decodeMeta(raw)
}

func decodeMeta(raw []byte) (m Meta, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: meta: %w", ErrDamaged, err)
	}
	return m, nil
}

func (m *Meta) encode() []byte {
	raw, err := json.Marshal(m)
	if err != nil {
		panic("ledger: meta cannot be written: " + err.Error()) // plain fields only
	}
	return raw
}

// Load reads the record of the destination; found is false for a new one.
func (l *Ledger) Load(ctx context.Context) (m Meta, found bool, err error) {
	m, err = MetaOf(ctx, l.store, l.dest)
	if errors.Is(err, kv.ErrNotFound) {
		return m, false, nil
	}
	if err == nil {
		l.state = m.State
	}
	return m, err == nil, err
}

// Put adds the record of the destination to a batch that makes it, or gives it another name
// or place. Its state stays.
func (l *Ledger) Put(b kv.Batch, m *Meta) { b.Set(Key(KindMeta, l.dest), m.encode()) }

// Commit makes a batch of records durable together with the record of the destination, all
// or nothing. A step that the table of stages does not have is refused.
func (l *Ledger) Commit(ctx context.Context, b kv.Batch, m *Meta) error {
	if err := step(&l.state, &m.State); err != nil {
		return err
	}
	l.Put(b, m)
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("write the records: %w", err)
	}
	l.state = m.State
	return nil
}
