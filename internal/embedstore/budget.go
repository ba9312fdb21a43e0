package embedstore

import (
	"fmt"
	"time"
)

// Budget bounds the resources of one query or update; exceeding it is a *BudgetError. Zero fields
// mean the default. Streaming needs none of it (a large answer is read some million rows ahead, in
// at most 100 MB): rows and memory are counted only if held at once (sorting, grouping, distinct
// sets, joins that cannot follow an index).
type Budget struct {
	Rows        int64         // rows held at once; default 20 million
	MemoryBytes int64         // default 256 MiB
	Time        time.Duration // of evaluation, waiting for a slow reader not counted; default 10 minutes
}

func (b Budget) withDefaults() Budget {
	return b.or(Budget{Rows: 20_000_000, MemoryBytes: 256 << 20, Time: 10 * time.Minute})
}

// SetBudget bounds later queries without a budget of their own.
func (s *Store) SetBudget(b Budget) {
	b = b.withDefaults()
	s.budget.Store(&b)
}

// or fills the zero fields from d.
func (b Budget) or(d Budget) Budget {
	if b.Rows <= 0 {
		b.Rows = d.Rows
	}
	if b.MemoryBytes <= 0 {
		b.MemoryBytes = d.MemoryBytes
	}
	if b.Time <= 0 {
		b.Time = d.Time
	}
	return b
}

// BudgetError names the exceeded bound of the Budget, by the setting of a store in a configuration;
// the commands of rsbridge store have flags of these names.
type BudgetError struct {
	What  string // "rows", "memory" or "time"
	Limit string // the bound, as a person reads it
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the request exceeds query_%s of the store (%s): ask for less at once, or raise it", e.What, e.Limit)
}
