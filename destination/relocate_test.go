package destination

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A store that has another address is refused, by both addresses, until the records are
// moved. Only a store at the last write is taken.
func TestRelocate(t *testing.T) {
	for _, layout := range []string{"single", "per-entity", "shared", "graph-store"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			fill(b.src, 12)
			if b.mir.noUpdate = layout == "graph-store"; layout == "per-entity" {
				b.perEntity()
			}
			b.sync()
			if layout == "shared" {
				b.cfg.Name = "other"
				b.sync()
				b.cfg.Name = "copy"
			}
			old, from := b.mir, b.mir.client()
			b.mir = newTestMirror(t)
			b.mir.noUpdate = old.noUpdate
			to := b.mir.client()
			b.remember(to.Endpoint())
			_, err := Open(ctx, b.store, sparqlsink.Of(to), b.cfg, keep.Options{})
			var moved *MovedError
			if !errors.As(err, &moved) || !strings.Contains(err.Error(), old.srv.URL) || !strings.Contains(err.Error(), b.mir.srv.URL) || !strings.Contains(err.Error(), "rsbridge move copy --to") {
				t.Fatal(err)
			}
			before := recordsLeft(t, b.store)
			refused := func(says string) {
				t.Helper()
				if _, err := Relocate(ctx, b.store, "copy", sparqlsink.Of(to), keep.Options{}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "nothing was changed") {
					t.Fatal(err)
				}
				if k, err := KeptAs(ctx, b.store, "copy"); err != nil || k.At() != sink.Shown(sparqlTarget(from.Endpoint().Update, from.Endpoint().GraphStore)) {
					t.Fatal(k, err)
				}
			}
			refused("has no checkpoint of this mirror")
			b.mir.restore(old.backup())
			b.src.put("e4.nt", nt("e4", "changed"))
			b.mir, old = old, b.mir
			b.sync()
			b.mir, old = old, b.mir
			refused("stands at write")
			b.mir.restore(old.backup())
			rep, err := Relocate(ctx, b.store, "copy", sparqlsink.Of(to), keep.Options{})
			if err != nil || !rep.Moved || rep.Resources != 12 || !strings.HasPrefix(rep.From, old.srv.URL) || !strings.HasPrefix(rep.To, b.mir.srv.URL) {
				t.Fatalf("%+v %v", rep, err)
			}
			if again, err := Relocate(ctx, b.store, "copy", sparqlsink.Of(to), keep.Options{}); err != nil || again.Moved {
				t.Fatalf("%+v %v", again, err)
			}
			b.src.remove("e5.nt")
			if rep := b.sync(); !rep.InSync || rep.Mode != "incremental" || !strings.Contains(rep.Why, "the mirror has another address") {
				t.Fatalf("%+v", rep)
			}
			switch layout {
			case "single", "graph-store":
				b.equal()
				if left := recordsLeft(t, b.store); layout == "single" && len(left) > len(before)+2 {
					t.Fatal(len(before), len(left))
				}
			case "per-entity":
				b.equalAll()
			case "shared": // the other one stays where it is, and goes by itself
				b.equal()
				b.mir, b.cfg.Name = old, "other"
				b.sync()
				b.equal()
			}
		})
	}
}

func sparqlTarget(update, graphStore string) string {
	if update != "" {
		return update
	}
	return graphStore
}

// A move that is interrupted has changed nothing, and may be done again.
func TestRelocateInterrupted(t *testing.T) {
	b := newBench(t)
	b.store = teststores.Records(b.t)
	fill(b.src, 12)
	b.sync()
	old := b.mir
	b.mir = newTestMirror(t)
	b.mir.restore(old.backup())
	to := b.mir.client()
	b.remember(to.Endpoint())
	k, err := KeptAs(t.Context(), b.store, "copy")
	if err != nil {
		t.Fatal(err)
	}
	cfg := k.Config()
	cfg.Relocate = true
	d, err := Open(context.Background(), b.store, sparqlsink.Of(to), cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.mem.Crash = crashAfter(0)
	if err := d.takePlace(context.Background(), k.space); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	b.mir = old // the old address still counts
	b.src.put("e4.nt", nt("e4", "changed"))
	b.sync()
	b.equal()
	b.mir, old = newTestMirror(t), b.mir
	b.mir.restore(old.backup())
	to = b.mir.client()
	b.remember(to.Endpoint())
	if rep, err := Relocate(context.Background(), b.store, "copy", sparqlsink.Of(to), keep.Options{}); err != nil || !rep.Moved {
		t.Fatalf("%+v %v", rep, err)
	}
	b.sync()
	b.equal()
}
