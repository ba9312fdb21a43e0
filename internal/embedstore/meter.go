package embedstore

import (
	"context"
	"fmt"
	"time"
)

// meter holds one query to its budget and its context.
type meter struct {
	ctx     context.Context
	budget  Budget
	started time.Time
	waited  time.Duration // in the hands of the reader
	steps   int
	rows    int64 // held now
	bytes   int64 // held now, without local
	local   *localTerms
}

// tick is called in every loop; it looks at the context and the clock now and then.
func (m *meter) tick() error {
	if m.steps++; m.steps&1023 != 0 {
		return nil
	}
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	if time.Since(m.started)-m.waited > m.budget.Time {
		return &BudgetError{"time", m.budget.Time.String()}
	}
	return nil
}

// hold counts held rows and bytes.
func (m *meter) hold(rows, bytes int64) error {
	m.rows += rows
	m.bytes += bytes
	if m.rows > m.budget.Rows {
		return &BudgetError{"rows", fmt.Sprintf("%d rows held at once", m.budget.Rows)}
	}
	if m.bytes+m.local.bytes > m.budget.MemoryBytes {
		return &BudgetError{"memory", fmt.Sprintf("%d MiB", m.budget.MemoryBytes>>20)}
	}
	return nil
}
