package destination

import (
	"context"
	"strings"
	"testing"
)

// A destination that gets another name goes on with its records: what it owns is not kept
// for a name that nobody has.
func TestRenamed(t *testing.T) {
	b := newBench(t)
	fill(b.src, 12)
	b.cfg.Names = []string{"copy"}
	b.sync()
	b.cfg.Name, b.cfg.Names = "other", []string{"other"}
	b.src.remove("e3.nt")
	b.src.put("e4.nt", nt("e4", "changed"))
	if rep := b.sync(); !rep.InSync || rep.Mode != "incremental" {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	b.cfg.Name, b.cfg.Names = "copy", []string{"copy"}
	b.src.remove("e5.nt")
	b.sync()
	b.equal()

	// Of another source it is not the same, and nobody else keeps the graph.
	before := b.mir.lines(graphA)
	b.cfg.Name, b.cfg.Names, b.cfg.Source = "third", []string{"third"}, b.src.url("/set/capabilitylist.xml")
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), `kept by the destination "copy"`) {
		t.Fatal(err)
	}
	b.same(b.mir.lines(graphA), before)
	b.cfg.Name = "copy"
	b.sync()
	b.equal()

	// In a catalogue others may come beside those that are there, and some may go.
	b.cfg.Name, b.cfg.Names = "beside", []string{"beside", "copy"}
	b.sync()
	b.cfg.Name, b.cfg.Names, b.cfg.Source = "third", []string{"beside", "third"}, b.src.url("/set/resourcelist.xml")
	b.sync()
	b.equal()
}
