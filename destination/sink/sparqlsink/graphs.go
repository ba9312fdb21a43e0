package sparqlsink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// graphs is a mirror in a store with the Graph Store Protocol alone: each changed graph is
// put whole, and the checkpoint is a graph of its own.
type graphs struct{ m *Mirror }

// Apply puts and deletes graphs. A single graph is put at the end of a run.
func (g *graphs) Apply(ctx context.Context, p *sink.Batch, cp *sink.Checkpoint) error {
	if p.Nothing() {
		return g.putCheckpoint(ctx, cp)
	}
	if err := g.m.inject("before"); err != nil {
		return err
	}
	for _, graph := range p.DropGraphs {
		if err := g.m.Client.DeleteGraph(ctx, graph); err != nil {
			return err
		}
	}
	for i := range p.Put {
		var text []byte
		for j := range p.Put[i].Statements {
			text = p.Put[i].Statements[j].Triple.AppendLine(text)
		}
		if err := g.m.Client.PutGraph(ctx, p.Put[i].IRI, rdfres.NTriples, sparql.Body(text)); err != nil {
			return err
		}
	}
	if err := g.putCheckpoint(ctx, cp); err != nil {
		return err
	}
	return g.m.inject("after")
}

func (g *graphs) state() string {
	return sink.StateGraph + ":" + strings.TrimPrefix(g.m.Mark, sink.MarkPrefix)
}

func (g *graphs) putCheckpoint(ctx context.Context, cp *sink.Checkpoint) error {
	if cp == nil {
		return nil
	}
	var text []byte
	for _, t := range cp.Triples(g.m.Mark) {
		text = t.AppendLine(text)
	}
	return g.m.Client.PutGraph(ctx, g.state(), rdfres.NTriples, sparql.Body(text))
}

func (g *graphs) read(ctx context.Context, graph string) (all checkpoints, err error) {
	for t, err := range g.m.Client.GetGraph(ctx, graph) {
		if err != nil {
			return nil, err
		}
		all.add(t.S, t.P, t.O)
	}
	return all, nil
}

// Checkpoint reads the graph of the mirror's checkpoint.
func (g *graphs) Checkpoint(ctx context.Context) (*sink.Checkpoint, error) {
	all, err := g.read(ctx, g.state())
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
	}
	return all[g.m.Mark], nil
}

// Others are those of mirrors with updates: each of the others has a graph of its own, and
// there is no list of graphs.
func (g *graphs) Others(ctx context.Context, _ string) (map[string]*sink.Checkpoint, error) {
	all, err := g.read(ctx, sink.StateGraph)
	delete(all, g.m.Mark)
	return all, err
}

// IsEmpty asks as for any store.
func (g *graphs) IsEmpty(ctx context.Context, besides iter.Seq[string]) (bool, error) {
	return g.m.IsEmpty(ctx, besides)
}

// Lines counts those of the checkpoint.
func (g *graphs) Lines(ctx context.Context) (int64, error) {
	cp, err := g.Checkpoint(ctx)
	if cp == nil {
		return 0, err
	}
	return int64(len(cp.Triples(g.m.Mark))), err
}

// Forget deletes the graph of the checkpoint.
func (g *graphs) Forget(ctx context.Context, _ bool) error {
	return g.m.Client.DeleteGraph(ctx, g.state())
}

// There is no state graph in such a store.

func (*graphs) Owns() bool         { return false }
func (*graphs) CanOwn(string) bool { return false }
func (*graphs) Tells() bool        { return false }
func (*graphs) PutsGraphs() bool   { return true }

func (*graphs) Freshen(context.Context, []rdfres.Triple) error { return errors.ErrUnsupported }

func (*graphs) EachOwned(context.Context, func(graph, mark string) error) error { return nil }

func (*graphs) EachTold(context.Context, func(rdfres.Triple) error) error { return nil }
