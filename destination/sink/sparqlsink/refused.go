package sparqlsink

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// TakeBack undoes what a refused batch may have written in part. A triple that the store
// refuses to remove must not be there.
func (m *Mirror) TakeBack(ctx context.Context, back *sink.Batch) error {
	for _, st := range back.Remove {
		err := m.one(ctx, updateOp{'d', &st})
		if err != nil && !((errors.Is(err, sink.ErrRefused) || refusal(err)) && m.lacks(ctx, &st)) {
			return err
		}
	}
	for i := range back.Add {
		if err := m.one(ctx, updateOp{'i', &back.Add[i]}); err != nil {
			return err
		}
	}
	return nil
}

// lacks tells of a triple that the store refuses to remove that it does not have it, as
// far as it can be asked: it may refuse to be asked for it too, and then for all that
// stands in its place.
func (m *Mirror) lacks(ctx context.Context, st *sink.Statement) bool {
	if m.Client.Endpoint().Query == "" {
		return true
	}
	there, err := m.Has(ctx, st)
	if refusal(err) {
		there, err = m.shows(ctx, st)
	}
	var e *sparql.Error
	return err == nil && !there || errors.As(err, &e) && e.Status/100 == 4 && refusal(err)
}

// Has asks for a triple.
func (m *Mirror) Has(ctx context.Context, st *sink.Statement) (bool, error) {
	pattern := string(appendSPARQL([]byte("{\n"), st.Triple)) + "}"
	if g := m.graphFor(st); g != "" {
		pattern = "{ GRAPH <" + g + "> " + pattern + " }"
	}
	return m.Client.Ask(ctx, "ASK "+pattern)
}

// shows looks for a triple among all that have its subject and predicate.
func (m *Mirror) shows(ctx context.Context, st *sink.Statement) (there bool, err error) {
	pattern := string(st.Triple.S) + " " + string(st.Triple.P) + " ?o . "
	if g := m.graphFor(st); g != "" {
		pattern = "GRAPH <" + g + "> { " + pattern + "} "
	}
	n, err := m.oneAnswer(ctx, pattern, []string{"?o"}, func(r sparql.Row) error {
		there = there || m.Layout.NormalForm.Term(r[0]) == m.Layout.NormalForm.Term(st.Triple.O)
		return nil
	})
	if err == nil && m.cuts(n) {
		err = errShort
	}
	return there, err
}

// writeCheckpoint sets the checkpoint alone.
func (m *Mirror) writeCheckpoint(ctx context.Context, cp *sink.Checkpoint) error {
	if cp == nil {
		return nil
	}
	if m.PutsGraphs() {
		return m.putCheckpoint(ctx, cp)
	}
	return m.Client.Update(ctx, m.checkpointText(cp))
}
