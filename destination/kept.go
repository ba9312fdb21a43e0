package destination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Kept is a destination that the records know, configured or not.
type Kept struct {
	Name     string
	Source   string
	Set      string
	Graph    string // single or per-entity
	GraphIRI string
	Target   string // address of the mirror, without an access token
	Files    string // folder of its non-RDF resources, "" for none

	Mirrored  bool // a baseline was begun: the mirror may hold something
	Resources int64
	LastSync  time.Time

	dest, space ledger.ID
	mark        string
}

// KeptIn lists the destinations in the records of a state, by name.
func KeptIn(ctx context.Context, store kv.Reader) (out []Kept, err error) {
	spaces, err := ledger.Spaces(ctx, store)
	if err != nil {
		return nil, err
	}
	for n, err := range ledger.Named(ctx, store) {
		if err != nil {
			return nil, err
		}
		k := Kept{Name: n.Name, dest: n.Dest}
		kept, err := ledger.MetaOf(ctx, store, k.dest)
		if err != nil {
			return nil, fmt.Errorf("record of destination %s: %w", k.Name, err)
		}
		m, err := keep.OpenMeta(kept)
		if err != nil {
			return nil, fmt.Errorf("record of destination %s: %w", k.Name, err)
		}
		k.Source, k.Set, k.Files, k.Resources, k.LastSync = m.Source, m.Set, m.Files, m.Resources, m.LastSync
		k.Mirrored, k.space, k.mark = m.Stage != ledger.None, m.Space, m.Mark
		k.Graph, k.GraphIRI, _ = strings.Cut(m.Graph, " ")
		k.Target = spaces[k.space].Target
		out = append(out, k)
	}
	return out, nil
}

// KeptAs finds one destination by its name, nil for none.
func KeptAs(ctx context.Context, store kv.Reader, name string) (*Kept, error) {
	all, err := KeptIn(ctx, store)
	i := slices.IndexFunc(all, func(k Kept) bool { return k.Name == name })
	if err != nil || i < 0 {
		return nil, err
	}
	return &all[i], nil
}

// At is the address of the mirror as it may be printed.
func (k *Kept) At() string { return sink.Shown(k.Target) }

// GraphName names the graph for people.
func (k *Kept) GraphName() string {
	switch {
	case k.Graph == "per-entity":
		return "per-entity " + k.GraphIRI
	case k.GraphIRI == "":
		return "the default graph"
	}
	return k.GraphIRI
}

// Config opens the destination by its records alone. It is enough for Forget and Relocate:
// nothing that concerns the source is known.
func (k *Kept) Config() keep.Config {
	return keep.Config{Name: k.Name, Source: k.Source, Set: k.Set, Graph: k.Graph, GraphIRI: k.GraphIRI, Files: k.Files, Keep: "current"}
}
