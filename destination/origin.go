package destination

import (
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Origin is the address of the representation at the source that an entity of the
// mirror came from, "" when the mirror has no such entity. It is found by the
// triples about the entity, so an entity without any has none.
func (d *Destination) Origin(entity string) (string, error) {
	graph := ""
	if d.mirror.lay.perEntity {
		g, err := d.mirror.lay.graphOf(entity)
		if err != nil {
			return "", nil // it can have no graph, so it is not here
		}
		graph = g
	}
	prefix := key(kindOwned, d.space, subjectHash(graph, rdfres.NewIRI(entity)))
	for pair, err := range d.store.Scan(prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return "", fmt.Errorf("origin of %s: %w", shorten(entity), err)
		}
		_, o, ok := splitOwned(pair.Key)
		if !ok || o.dest != d.dest {
			continue
		}
		rec, err := d.record(o.loc)
		if err != nil {
			return "", fmt.Errorf("origin of %s: %w", shorten(entity), err)
		}
		if rec != nil && rec.Entity == entity && !rec.has(flagKept) {
			return rec.Loc, nil
		}
	}
	return "", nil
}
