package destination

import (
	"context"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
)

// A mirror that has lost its checkpoint is compared. What holds something else instead is
// another store at its address, and is left as it is.
func TestAnotherStore(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			b := newBench(t)
			graph := graphA
			if layout == "per-entity" {
				b.perEntity()
				graph = "http://ex.org/theirs"
			}
			fill(b.src, 12)
			b.sync()
			b.mir.exec("DROP SILENT GRAPH <" + sink.StateGraph + ">")
			b.src.put("e4.nt", nt("e4", "changed"))
			b.sync()
			b.equalAll()

			clear(b.mir.graphs)
			b.mir.exec("INSERT DATA { GRAPH <" + graph + "> {\n<http://ex.org/theirs> <http://ex.org/p> \"of theirs\" .\n} }")
			before := b.mir.lines(graph)
			for range 2 {
				if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "already holds something") {
					t.Fatal(err)
				}
				b.same(b.mir.lines(graph), before)
			}
			if _, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err == nil || !strings.Contains(err.Error(), "already holds something") {
				t.Fatal(err)
			}
			b.same(b.mir.lines(graph), before)
			clear(b.mir.graphs) // an empty one is filled again
			b.sync()
			b.equalAll()
		})
	}
}
