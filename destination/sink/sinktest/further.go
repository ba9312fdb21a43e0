package sinktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Queue is a sink of messages in a test: it gives the messages that its readers have.
type Queue interface {
	sink.Sink
	// Received gives all of them in order, each as "KIND LOCATION".
	Received() []string
}

// messages come for each change, in order and at least once, also for resources without triples.
func (s *suite) messages() {
	switch s.mirror.(type) {
	case sink.Reader, sink.Whole, sink.Files:
		s.t.Skip("it is no queue")
	}
	changes := []sink.Change{
		{Kind: "created", Location: Authority + "/1", Entity: "http://ex.org/1", New: s.statements("http://ex.org/1", "a")},
		{Kind: "created", Location: Authority + "/page.html"},
		{Kind: "updated", Location: Authority + "/2", Entity: "http://ex.org/2", Old: s.statements("http://ex.org/2", "b"), New: s.statements("http://ex.org/2", "c", "d")},
		{Kind: "deleted", Location: Authority + "/3", Entity: "http://ex.org/3", Old: s.statements("http://ex.org/3", "e")},
	}
	var b sink.Batch
	var want []string
	for _, c := range changes {
		b.Add, b.Remove = append(b.Add, c.New...), append(b.Remove, c.Old...)
		want = append(want, c.Kind+" "+c.Location)
	}
	s.apply(s.mirror, &b, checkpoint(1)) // a repair, without messages
	b.Changes = slices.Values(changes)
	s.apply(s.mirror, &b, checkpoint(2))
	q, ok := s.sink.(Queue)
	if !ok {
		s.t.Skip("it does not show its messages: make it a Queue for this test")
	}
	var first []string // of each message
	for _, m := range q.Received() {
		if !slices.Contains(first, m) {
			first = append(first, m)
		}
	}
	if !slices.Equal(first, want) {
		s.t.Errorf("messages %q, want %q", q.Received(), want)
	}
}

// learned findings are the same the next time, and nothing stays of the questions.
func (s *suite) learned() {
	m, ok := s.mirror.(sink.Learner)
	if !ok {
		s.t.Skip("it keeps statements as they are")
	}
	ctx := context.Background()
	found, err := m.Learn(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	again, err := m.Learn(ctx)
	if err != nil || !reflect.DeepEqual(found.NormalForm, again.NormalForm) {
		s.t.Errorf("normal form %v, then %v: %v", found.NormalForm, again.NormalForm, err)
	}
	if err := m.Take(found); err != nil {
		s.t.Fatal(err)
	}
	s.empty(true)
}

// kept are all statements that are not refused, however hard they are.
func (s *suite) kept() {
	m, ok := s.mirror.(sink.Keeper)
	if _, whole := s.mirror.(sink.Whole); !ok || whole {
		s.t.Skip("it refuses nothing, or is replaced as a whole")
	}
	if l, ok := s.mirror.(sink.Learner); ok {
		if found, err := l.Learn(context.Background()); err != nil || l.Take(found) != nil {
			s.t.Fatal(err)
		}
	}
	hard := s.statements("http://ex.org/1", "", " a\tb\r\n", `\u0041 \\ "`, "\u0000\u007f", "\U0001F600 e\u0301 \u00e9", strings.Repeat("long ", 20_000))
	long, err := s.layout.Statements("http://ex.org/1", []rdfres.Triple{{S: rdfres.NewIRI("http://ex.org/1"), P: rdfres.NewIRI("http://ex.org/p"), O: rdfres.NewIRI("http://ex.org/" + strings.Repeat("long", 500))}})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, st := range append(hard, long...) {
		one := []sink.Statement{st}
		err := m.Keeps(&st)
		if all := m.KeepsAll(one); (all == nil) != (err == nil) {
			s.t.Errorf("%.40s: one is refused by %v, all by %v", st.Triple.O, err, all)
		}
		if err != nil {
			if !errors.Is(err, sink.ErrUnusable) {
				s.t.Errorf("%.40s: %v is no ErrUnusable", st.Triple.O, err)
			}
			continue
		}
		s.apply(s.mirror, &sink.Batch{Add: one, Put: s.graphs(one)}, checkpoint(1))
		s.holds(st)
		b := &sink.Batch{Remove: one}
		if s.layout.PerEntity {
			b = &sink.Batch{DropGraphs: []string{st.Graph}}
		}
		s.apply(s.mirror, b, checkpoint(2))
	}
	a, b := rdfres.NewLiteral("a", "", ""), rdfres.NewLiteral("b", "", "")
	if !m.SameValue(a, a) || m.SameValue(a, b) {
		s.t.Error("a literal is another one, or not itself")
	}
}

// uploaded statements are there as those of a batch.
func (s *suite) uploaded() {
	m, ok := s.mirror.(sink.Loader)
	if !ok || !m.CanBulk() {
		s.t.Skip("it takes no uploads")
	}
	if m.Limit() < 1 || m.BulkTriples() < 1 {
		s.t.Errorf("%d statements in a batch, %d in an upload", m.Limit(), m.BulkTriples())
	}
	sts := s.statements("http://ex.org/1", "a", "b\"\\\n\u00e9")
	if !m.Postable(sts) {
		s.t.Skip("it takes no upload of plain literals")
	}
	for _, ready := range []any{nil, m.Uploads(sts)} {
		if err := m.Bulk(context.Background(), sts, ready); err != nil {
			s.t.Fatal(err)
		}
		s.holds(sts...)
	}
}

// freshness replaces its former triples, and leaves the checkpoint. Forget is to remove it.
func (s *suite) freshness(ctx context.Context, marked sink.Marked) {
	m, ok := s.mirror.(sink.StateKeeper)
	if !ok || !m.Tells() {
		return
	}
	before, err := marked.Lines(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	of := func(n int) (out []rdfres.Triple) {
		for i := range n {
			out = append(out, rdfres.Triple{S: rdfres.NewIRI(sink.FreshnessOf(mark("a"))), P: rdfres.NewIRI("urn:rsbridge:terms#freshnessOf"), O: rdfres.NewLiteral(fmt.Sprint(i, n), "", "")})
		}
		return out
	}
	for _, n := range []int{3, 2, 0, 2} {
		if err := m.Freshen(ctx, of(n)); err != nil {
			s.t.Fatal(err)
		}
		if lines, err := marked.Lines(ctx); err != nil || lines != before+int64(n) {
			s.t.Errorf("%d lines with a freshness of %d, and %d without one: %v", lines, n, before, err)
		}
	}
	if cp, err := marked.Checkpoint(ctx); err != nil || cp == nil {
		s.t.Errorf("beside it the checkpoint is %+v, %v", cp, err)
	}
}

// owned graphs are told with their mark until they are free.
func (s *suite) owned() {
	m, ok := s.mirror.(sink.StateKeeper)
	if !ok || !m.Owns() {
		s.t.Skip("it names no graphs of its own")
	}
	sts := s.statements("http://ex.org/1", "a")
	graph := sts[0].Graph
	if !m.CanOwn(graph) {
		s.t.Fatalf("it cannot own %s", graph)
	}
	own := func(want bool) {
		s.t.Helper()
		var is bool
		err := m.EachOwned(context.Background(), func(g, of string) error {
			is = is || g == graph && of == mark("a")
			return nil
		})
		if err != nil || is != want {
			s.t.Errorf("graph %s is owned: %t, want %t: %v", graph, is, want, err)
		}
	}
	own(false)
	s.apply(s.mirror, &sink.Batch{Add: sts, OwnGraphs: []string{graph}, Put: s.graphs(sts)}, checkpoint(1))
	own(true)
	s.apply(s.mirror, &sink.Batch{FreeGraphs: []string{graph}}, checkpoint(2))
	own(false)
	s.holds(sts...)
	s.apply(s.mirror, &sink.Batch{OwnGraphs: []string{graph}}, checkpoint(3))
	s.apply(s.mirror, &sink.Batch{DropGraphs: []string{graph}}, checkpoint(4))
	own(false)
}
