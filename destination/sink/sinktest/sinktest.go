// Package sinktest holds sinks to the promises of the interface Sink, and of the further
// interfaces they have.
package sinktest

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Authority is the one of all skolem IRIs here.
const Authority = "http://source.example"

// Run tests a sink in a layout; open gives an empty one.
func Run(t *testing.T, layout sink.Layout, open func(t *testing.T) sink.Sink) {
	layout.Authority = Authority
	in := func(f func(*suite)) func(*testing.T) {
		return func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			f(&suite{t: t, sink: s, layout: layout, mirror: place(t, s, layout, "a")})
		}
	}
	t.Run("named", in((*suite).named))
	t.Run("checkpoints", in((*suite).checkpoints))
	t.Run("batches", in((*suite).batches))
	t.Run("whole", in((*suite).whole))
	t.Run("files", in((*suite).files))
	t.Run("messages", in((*suite).messages))
	t.Run("learned", in((*suite).learned))
	t.Run("kept", in((*suite).kept))
	t.Run("uploaded", in((*suite).uploaded))
	t.Run("owned", in((*suite).owned))
}

type suite struct {
	t      *testing.T
	sink   sink.Sink
	layout sink.Layout
	mirror sink.Mirror
}

func mark(name string) string { return sink.MarkPrefix + name }

func place(t *testing.T, s sink.Sink, l sink.Layout, name string) sink.Mirror {
	t.Helper()
	m, err := s.Open(&sink.Place{Layout: l, Mark: mark(name), Source: Authority + "/.well-known/resourcesync", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *suite) apply(m sink.Mirror, b *sink.Batch, cp *sink.Checkpoint) {
	s.t.Helper()
	for range 2 { // the second time changes nothing
		if err := m.Apply(context.Background(), b, cp); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *suite) named() {
	name, address := s.sink.Name(), s.sink.Address()
	if name == "" || address == "" || name != s.sink.Name() || address != s.sink.Address() {
		s.t.Errorf("name %q, then %q; address %q, then %q", name, s.sink.Name(), address, s.sink.Address())
	}
}

func checkpoint(generation int) *sink.Checkpoint {
	return &sink.Checkpoint{Generation: fmt.Sprint(generation), Writer: "w", Phase: "current", Graph: "default", Name: "a", Source: "http://source.example/", Time: "2026-01-02T03:04:05Z"}
}

// checkpoints are the last ones written, of each mark its own, until they are
// forgotten.
func (s *suite) checkpoints() {
	ctx := context.Background()
	other := place(s.t, s.sink, s.layout, "b")
	s.apply(s.mirror, &sink.Batch{}, checkpoint(1))
	s.apply(other, &sink.Batch{}, checkpoint(5))
	s.apply(s.mirror, &sink.Batch{}, checkpoint(2))
	marked, ok := s.mirror.(sink.Marked)
	if !ok {
		s.t.Skip("it gives no checkpoints back")
	}
	is := func(m sink.Mirror, want *sink.Checkpoint) {
		s.t.Helper()
		if got, err := m.(sink.Marked).Checkpoint(ctx); err != nil || !reflect.DeepEqual(got, want) {
			s.t.Errorf("checkpoint %+v, want %+v: %v", got, want, err)
		}
	}
	is(s.mirror, checkpoint(2))
	is(other, checkpoint(5))
	is(place(s.t, s.sink, s.layout, "c"), nil)
	others, err := marked.Others(ctx, "default")
	if err != nil || others[mark("a")] != nil {
		s.t.Errorf("others: %v %v", others, err)
	}
	if cp := others[mark("b")]; cp != nil && !reflect.DeepEqual(cp, checkpoint(5)) {
		s.t.Errorf("other: %+v", cp)
	}
	if n, err := marked.Lines(ctx); err != nil || n != 7 {
		s.t.Errorf("%d lines: %v", n, err)
	}
	s.freshness(ctx, marked)
	if err := marked.Forget(ctx, false); err != nil {
		s.t.Fatal(err)
	}
	is(s.mirror, nil)
	if n, err := marked.Lines(ctx); err != nil || n != 0 {
		s.t.Errorf("%d lines are left: %v", n, err)
	}
	is(other, checkpoint(5))
}

func (s *suite) statements(entity string, values ...string) []sink.Statement {
	s.t.Helper()
	var ts []rdfres.Triple
	for _, v := range values {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(entity), P: rdfres.NewIRI("http://ex.org/p"), O: rdfres.NewLiteral(v, "", "")})
	}
	sts, err := s.layout.Statements(entity, ts)
	if err != nil {
		s.t.Fatal(err)
	}
	return sts
}

// holds reads the mirror back.
func (s *suite) holds(want ...sink.Statement) {
	s.t.Helper()
	r, ok := s.mirror.(sink.Reader)
	if !ok {
		return
	}
	got, lines := map[string]bool{}, map[string]bool{}
	for i := range want {
		lines[want[i].Graph+" "+string(want[i].Triple.AppendLine(nil))] = true
	}
	var n int64
	add := func(graph string, t rdfres.Triple) error {
		n++
		got[graph+" "+string(t.AppendLine(nil))] = true
		return nil
	}
	var err error
	switch ctx := context.Background(); {
	case !s.layout.PerEntity:
		err = r.ReadSingle(ctx, &n, func(t rdfres.Triple) error { return add("", t) })
	case r.Asks():
		err = r.ReadGraphs(ctx, func(graph string) (bool, error) { return !strings.HasPrefix(graph, sink.StateGraph), nil }, add)
	default:
		return
	}
	if err != nil || !reflect.DeepEqual(got, lines) {
		s.t.Errorf("it holds %v, not %v: %v", got, lines, err)
	}
	if !s.layout.PerEntity && r.Countable() {
		if n, err := r.Count(context.Background()); err != nil || n != int64(len(want)) {
			s.t.Errorf("%d triples, not %d: %v", n, len(want), err)
		}
	}
	if !r.Asks() {
		return
	}
	for i := range want {
		if there, err := r.Has(context.Background(), &want[i]); err != nil || !there {
			s.t.Errorf("%s is not there: %v", want[i].Triple.AppendLine(nil), err)
		}
	}
}

// empty asks whether the mirror holds anything.
func (s *suite) empty(want bool) {
	s.t.Helper()
	if m, ok := s.mirror.(sink.Marked); ok {
		if is, err := m.IsEmpty(context.Background(), iter.Seq[string](func(func(string) bool) {})); err != nil || is != want {
			s.t.Errorf("empty: %t, want %t: %v", is, want, err)
		}
	}
}

// graphs are those of entities with some statements each, none in a single graph.
func (s *suite) graphs(all ...[]sink.Statement) (gs []sink.Graph) {
	for _, sts := range all {
		if s.layout.PerEntity {
			gs = append(gs, sink.Graph{IRI: sts[0].Graph, Statements: sts})
		}
	}
	return gs
}

// batches add, remove and replace, and mean the same when they come again.
func (s *suite) batches() {
	if _, ok := s.mirror.(sink.Whole); ok {
		s.t.Skip("it is replaced as a whole")
	}
	if _, ok := s.mirror.(sink.Files); ok {
		s.t.Skip("it keeps representations")
	}
	one, two := s.statements("http://ex.org/1", "a", "b\"\\\n\u00e9"), s.statements("http://ex.org/2", "c")
	s.empty(true)
	s.apply(s.mirror, &sink.Batch{Add: slices.Concat(one, two), Put: s.graphs(one, two)}, checkpoint(1))
	s.holds(slices.Concat(one, two)...)
	s.empty(false)
	three := s.statements("http://ex.org/2", "d")
	b := &sink.Batch{Remove: two, Add: three, Put: s.graphs(three)}
	s.apply(s.mirror, b, checkpoint(2))
	s.holds(slices.Concat(one, three)...)
	b = &sink.Batch{Remove: one}
	if s.layout.PerEntity {
		b = &sink.Batch{DropGraphs: []string{one[0].Graph}}
	}
	s.apply(s.mirror, b, checkpoint(3))
	s.holds(three...)
}

// whole mirrors hold their last replacement.
func (s *suite) whole() {
	w, ok := s.mirror.(sink.Whole)
	if !ok {
		s.t.Skip("it follows batches")
	}
	for _, sts := range [][]sink.Statement{s.statements("http://ex.org/1", "a", "b"), s.statements("http://ex.org/2", "c"), nil} {
		for range 2 {
			err := w.Replace(context.Background(), []string{Authority}, func(put sink.PutPart) error {
				var lines []byte
				for i := range sts {
					lines = sts[i].Triple.AppendLine(lines)
				}
				return put(Authority, lines)
			})
			if err != nil {
				s.t.Fatal(err)
			}
		}
		s.holds(sts...)
		s.empty(len(sts) == 0)
		if foreign, err := w.Foreign(); err != nil || foreign {
			s.t.Errorf("what was written is foreign: %t %v", foreign, err)
		}
	}
	if w.Absent() {
		s.t.Error("it is absent")
	}
}
