package sparqlsrc

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// lengths remembers the lengths of answers, whole and cut, and judges new ones by them.
type lengths struct {
	client *sparql.Client // its own limits count too

	mu    sync.Mutex
	limit int64 // rows of the last answer with fewer rows than its count
	whole int64 // rows of the longest answer with as many rows as its count
	short int64 // rows of the last batch, if it had fewer than its count
}

// noteShort remembers the length of a cut answer: others of this length are counted.
func (l *lengths) noteShort(rows int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = rows
}

// noteWhole remembers the length of an answer in agreement with its count: shorter ones are
// not counted.
func (l *lengths) noteWhole(rows int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = max(l.whole, rows)
}

func (l *lengths) lastShort() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// onLimit tells whether a number of rows is a known limit of the store.
func (l *lengths) onLimit(rows int64, caps sparql.Capabilities) bool {
	return rows > 0 && (rows == l.lastShort() || rows == l.client.MaxRows() || rows == caps.RowLimit || rows == l.client.Endpoint().MaxRows)
}

// mayBeCut tells whether an unproven answer to a SELECT has to be counted: it ends on a
// limit, or is longer than all known whole ones.
func (l *lengths) mayBeCut(rows int64, caps sparql.Capabilities) bool {
	whole := caps.Sample
	if !slices.ContainsFunc(caps.Readings, sparql.Reading.Selects) { // it came in another way, or not at all
		whole = 0
	}
	for _, limit := range []int64{caps.RowLimit, l.lastShort()} { // perhaps the limit of another form of query
		if limit > 0 {
			whole = min(whole, limit-1)
		}
	}
	l.mu.Lock()
	whole = max(l.whole, whole)
	l.mu.Unlock()
	return rows > whole || l.onLimit(rows, caps)
}

// judge holds the received rows against the counts taken before and after.
func (l *lengths) judge(rows, before, after int64, caps sparql.Capabilities) (verdict, error) {
	least, most := min(before, after), max(before, after)
	if l.onLimit(rows, caps) && (rows < least || rows != l.lastShort()) {
		return cut, fmt.Errorf("%w: %d triples came, which is a row limit of the store, or one that it was seen to have; it counts %d", ErrShort, rows, before)
	}
	if rows < least {
		l.noteShort(rows)
	}
	switch {
	case rows >= least && rows <= most:
		return fine, nil
	case rows == 0:
		return refused, fmt.Errorf("%w: nothing came; it counts %d triples", ErrShort, before)
	case rows < least && isRound(rows):
		return cut, fmt.Errorf("%w: %d triples came, a round number that looks like a limit; it counts %d before and %d after", ErrShort, rows, before, after)
	}
	return short, fmt.Errorf("%w: %d triples came; it counts %d before and %d after", ErrShort, rows, before, after)
}

// confirmRows counts again if an answer may have been cut. Two short answers, the second of
// them longer, were not cut: somebody writes to the store.
func (l *lengths) confirmRows(ctx context.Context, caps sparql.Capabilities, rows int64, count func() (int64, error)) error {
	likely := isRound(rows) || l.onLimit(rows, caps)
	if !likely && !l.mayBeCut(rows, caps) {
		return nil
	}
	n, err := count()
	if err != nil {
		return fmt.Errorf("count the rows of an answer that may have been cut: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.short; n != rows && (likely || before == 0 || rows <= before) {
		l.short = rows
		return fmt.Errorf("%w: %d rows came of %d", ErrShort, rows, n)
	}
	l.short = 0
	if n == rows {
		l.whole = max(l.whole, rows)
	}
	return nil
}

// forget is for another store at the same address.
func (l *lengths) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit, l.whole = 0, 0
}

// batchSize is the number of entities for one query. It follows the store.
type batchSize struct {
	mu   sync.Mutex
	size int
	most int // the largest size to become; 0: not known
}

// begin starts anew with a size.
func (b *batchSize) begin(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = size
}

// bound sets the largest size accepted in a probe, 0 if none was found.
func (b *batchSize) bound(most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most = most; most > 0 {
		b.size = min(b.size, most)
	}
}

// get is how many entities to ask for at once.
func (b *batchSize) get() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// shrink makes batches smaller after one of n entities was refused.
func (b *batchSize) shrink(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = max(1, min(b.size, n/2))
	b.most = b.size
}

// quickBatch is how fast an answer must be for a larger batch to be tried.
const quickBatch = time.Second

// grow makes batches larger after a quick answer to n entities, up to the limit found by
// the probe, and never to a refused size.
func (b *batchSize) grow(n int, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took < quickBatch && n == b.size && b.size < b.most {
		b.size = min(b.size*2, b.most)
	}
}
