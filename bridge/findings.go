package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// findings keep the probed capabilities of a set's store in the state.
type findings struct{ s *set }

// findingsRecord is the record of findings.
type findingsRecord struct {
	Version      int                 `json:"version"`
	Query        string              `json:"query"` // address of the probed store
	GraphStore   string              `json:"graph_store"`
	Graphs       []string            `json:"graphs"`
	At           time.Time           `json:"at"`
	Capabilities sparql.Capabilities `json:"capabilities"`
}

func findingsKey(set string) []byte { return []byte("probe/" + set) }

// maxFindings is how long a probe serves: a store may have been configured anew
// without saying so.
const maxFindings = 24 * time.Hour

func (f findings) record() findingsRecord {
	e := f.s.bridge.stores[f.s.cfg.Store].client.Endpoint()
	return findingsRecord{Version: 1, Query: e.Query, GraphStore: e.GraphStore, Graphs: f.s.cfg.Graphs, At: f.s.bridge.now().UTC()}
}

// Load gives the findings of the same store and graphs, at most a day old.
func (f findings) Load(ctx context.Context) (sparql.Capabilities, bool) {
	raw, err := f.s.bridge.records.Get(ctx, findingsKey(f.s.name))
	var was findingsRecord
	if err != nil || json.Unmarshal(raw, &was) != nil {
		return sparql.Capabilities{}, false // probed again
	}
	is := f.record()
	age := is.At.Sub(was.At)
	same := was.Query == is.Query && was.GraphStore == is.GraphStore && slices.Equal(was.Graphs, is.Graphs)
	return was.Capabilities, same && age >= 0 && age < maxFindings
}

// Save keeps new findings.
func (f findings) Save(ctx context.Context, caps sparql.Capabilities) error {
	rec := f.record()
	rec.Capabilities = caps
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	b := f.s.bridge.records.Batch()
	defer b.Close()
	b.Set(findingsKey(f.s.name), raw)
	return b.Commit(ctx, false)
}
