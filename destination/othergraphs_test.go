package destination

import (
	"strings"
	"testing"
)

// Of the graphs that somebody else adds to a store a mirror owns those of its template's form: they
// are extra, and a repair removes them. It counts the others.
func TestForeignGraphsBeside(t *testing.T) {
	for _, template := range []string{"http://mirror.example/{entity}", "{entity}/graph", "{entity}"} {
		b := newBench(t)
		b.cfg.Graph, b.cfg.GraphIRI = "per-entity", template
		fill(b.src, 3)
		b.sync()
		alien := strings.Replace(template, "{entity}", "http://ex.org/alien", 1)
		b.mir.exec("INSERT DATA { GRAPH <" + alien + "> {\n<http://ex.org/alien> <http://ex.org/v> \"1\" .\n} }")
		owned, others := int64(1), int64(0)
		if template == "{entity}" {
			owned, others = 0, 1
		}
		if a := b.audited("store"); a.Extra != owned || a.OtherGraphs != others || a.Equal != (owned == 0) {
			t.Errorf("%s: %+v", template, a)
		}
		a, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
		if err != nil || !a.Equal || a.Repaired != owned || a.OtherGraphs != others || int64(len(b.mir.lines(alien))) != others {
			t.Errorf("%s: %+v %v, left %v", template, a, err, b.mir.lines(alien))
		}
	}
}
