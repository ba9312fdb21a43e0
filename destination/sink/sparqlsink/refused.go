package sparqlsink

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// TakeBack undoes the written part of a refused batch. A triple with a refused removal must
// not be there.
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

// lacks tells of a triple, after its refused removal, that the store does not have it. The
// store may refuse questions for it too, and for all of its subject and predicate.
func (m *Mirror) lacks(ctx context.Context, st *sink.Statement) bool {
	if m.Client.Endpoint().Query == "" {
		return true
	}
	there, err := m.reader.Has(ctx, st)
	if refusal(err) {
		there, err = m.reader.shows(ctx, st)
	}
	var e *sparql.Error
	return err == nil && !there || errors.As(err, &e) && e.Status/100 == 4 && refusal(err)
}

// writeCheckpoint sets the checkpoint alone.
func (m *Mirror) writeCheckpoint(ctx context.Context, cp *sink.Checkpoint) error {
	if cp == nil {
		return nil
	}
	return m.Client.Update(ctx, m.checkpointText(cp))
}
