package destination

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sinktest"
)

// queue is a sink of messages: it sends each change to a channel, at least once. It offers
// nothing beside.
type queue chan sink.Change

func (queue) Name() string                              { return "queue" }
func (queue) Address() string                           { return "queue:changes" }
func (queue) Close() error                              { return nil }
func (q queue) Open(p *sink.Place) (sink.Mirror, error) { return q, nil }

func (q queue) Apply(ctx context.Context, b *sink.Batch, _ *sink.Checkpoint) error {
	if b.Changes == nil {
		return nil
	}
	for c := range b.Changes {
		select {
		case q <- c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// A queue gets what happens at the source. Audits of it hold the records against the source alone, and say so by
// their depth.
func TestQueue(t *testing.T) {
	b := newBench(t)
	q := make(queue, 1000)
	b.sink = q
	told := func() (all []string) {
		for len(q) > 0 {
			c := <-q
			all = append(all, fmt.Sprintf("%s %s %d %d", c.Kind, cmp.Or(c.Entity, c.Location), len(c.Old), len(c.New)))
		}
		slices.Sort(all)
		return all
	}
	step := func(want ...string) {
		t.Helper()
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		if got := told(); !slices.Equal(got, want) {
			t.Fatalf("%q, not %q", got, want)
		}
		if a, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Depth != "inventory" {
			t.Fatalf("%+v %v", a, err)
		}
	}
	b.src.put("a.nt", nt("a", "1"))
	b.src.put("b.nt", nt("b", "1", "2"))
	step("created http://ex.org/a 0 1", "created http://ex.org/b 0 2")
	step()
	b.src.put("b.nt", nt("b", "2", "3", "4"))
	b.src.remove("a.nt")
	step("deleted http://ex.org/a 1 0", "updated http://ex.org/b 2 3")
	page := b.src.url("/set/r/page.html") // without triples
	b.src.types["page.html"] = "text/html"
	b.src.put("page.html", "one")
	step("created " + page + " 0 0")
	b.src.put("page.html", "two")
	step("updated " + page + " 0 0")
	b.src.remove("page.html")
	step("deleted " + page + " 0 0")
	b.cfg.Select.Prefixes = []string{"http://ex.org/b"}
	b.src.put("c.nt", nt("c", "1"))
	step()
}

func TestQueueConforms(t *testing.T) {
	sinktest.Run(t, sink.Layout{}, func(*testing.T) sink.Sink { return make(queue, 100) })
}

// Received makes it a sinktest.Queue.
func (q queue) Received() (all []string) {
	for len(q) > 0 {
		c := <-q
		all = append(all, c.Kind+" "+c.Location)
	}
	return all
}
