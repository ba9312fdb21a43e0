package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// ErrNotRead comes for a mirror without queries: a dump, or files.
var ErrNotRead = errors.New("single descriptions cannot be read in it")

// ReadMirror asks the store of a mirror for the triples of an entity as subject, whoever wrote them.
// DescribeMirror tells what was written by the mirror.
func ReadMirror(ctx context.Context, b *Bridge, name, entity string) ([]rdfres.Triple, error) {
	m := b.dests[name]
	if m == nil {
		return nil, fmt.Errorf("destination %s: %w", name, ErrUnknown)
	}
	s := b.stores[m.cfg.Store]
	if s == nil || s.client == nil {
		return nil, fmt.Errorf("destination %s: %w", name, ErrNotRead)
	}
	return sparqlsink.Subject(ctx, s.client, m.cfg.Graph == "per-entity", m.cfg.GraphIRI, entity)
}
