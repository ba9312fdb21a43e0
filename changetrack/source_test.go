package changetrack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/rdfxml"
)

// source is a store as a test sees it: entity to the objects of its triples.
type source map[string][]int

const (
	uncarried = 900 // an object that JSON-LD "cannot carry" in these tests
	poison    = 901 // an object that nothing can
)

func description(entity string, objects []int) rdfres.Description {
	d := rdfres.Description{Entity: entity}
	for _, o := range objects {
		d.Triples = append(d.Triples, rdfres.Triple{
			S: rdfres.NewIRI(entity),
			P: rdfres.NewIRI("http://example.org/p"),
			O: rdfres.NewLiteral(fmt.Sprintf("%04d", o), "", "http://www.w3.org/2001/XMLSchema#string"),
		})
	}
	d.Triples = rdfres.SortUnique(d.Triples)
	return d
}

// all yields every description in the order of the entity keys.
func (s source) all() iter.Seq2[rdfres.Description, error] {
	names := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return bytes.Compare(x[:], y[:])
	})
	return s.some(names)
}

// some yields the named ones, without triples where they are not there.
func (s source) some(names []string) iter.Seq2[rdfres.Description, error] {
	return func(yield func(rdfres.Description, error) bool) {
		for _, e := range names {
			if !yield(description(e, s[e]), nil) {
				return
			}
		}
	}
}

func (s source) confirm(_ context.Context, names []string) (out []rdfres.Description, err error) {
	for _, e := range names {
		if len(s[e]) > 0 {
			out = append(out, description(e, s[e]))
		}
	}
	return out, nil
}

func (s source) clone() source {
	out := source{}
	for k, v := range s {
		out[k] = slices.Clone(v)
	}
	return out
}

func failing(seq iter.Seq2[rdfres.Description, error], after int, err error) iter.Seq2[rdfres.Description, error] {
	return func(yield func(rdfres.Description, error) bool) {
		for d, e := range seq {
			if after--; after < 0 {
				yield(rdfres.Description{}, err)
				return
			}
			if !yield(d, e) {
				return
			}
		}
	}
}

// testEncode stands in for codec.Encode: the tracker does not care what the bytes
// are, and the tests want to say what cannot be carried.
func testEncode(f rdfres.Format, entity string, ts []rdfres.Triple) ([]byte, error) {
	out := []byte(string(f) + " " + entity + "\n")
	for _, t := range ts {
		lexical, _, _ := t.O.Literal()
		if lexical == fmt.Sprint("0", poison) {
			panic("poison")
		}
		if lexical == fmt.Sprint("0", uncarried) && f == rdfres.JSONLD {
			return nil, fmt.Errorf("%s: %w", entity, rdfres.ErrCannotCarry)
		}
		out = t.AppendLine(out)
	}
	return out, nil
}

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)} }

func testOptions(dir string, c *clock) Options {
	return Options{Dir: dir, Now: c.now, encode: testEncode, decode: testDecode}
}

func testDecode(_ rdfres.Format, data []byte, o rdfres.ReadOptions) ([]rdfres.Triple, error) {
	_, lines, _ := bytes.Cut(data, []byte("\n"))
	return codec.Decode(rdfres.NTriples, lines, o)
}

func mustOpen(t testing.TB, s kv.Store, o Options) (*Tracker, *Log) {
	t.Helper()
	tr, err := Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tr.Log(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	return tr, l
}

func mustScan(t testing.TB, l *Log, s source, o ScanOptions) ScanResult {
	t.Helper()
	res, err := l.Scan(t.Context(), s.all(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func mustCheck(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Check(rootContext()); err != nil { // also in a cleanup
		t.Fatal(err)
	}
}

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) (out []T) {
	t.Helper()
	for x, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// ---- the model: a tracker that keeps everything in plain slices

type model struct {
	changes     []Change // all that ever were
	blobs       map[string][]byte
	current     map[string]*Version
	count       map[string]int
	first       map[string]time.Time
	tail        int             // of changes, dropped from the log
	gone        map[string]bool // "entity sequence" of versions that were dropped
	fingerprint string
	held        map[string]bool // deletions of the candidate; nil: nothing is held
	heldLost    int64
	heldConfig  string
	heldID      string
	baseline    bool
}

func newModel() *model {
	return &model{blobs: map[string][]byte{}, current: map[string]*Version{}, count: map[string]int{}, first: map[string]time.Time{}, gone: map[string]bool{}}
}

func blobKey(entity string, seq uint64) string { return fmt.Sprint(entity, " ", seq) }

func (m *model) triples() (n int64) {
	for _, v := range m.current {
		n += int64(v.Triples)
	}
	return n
}

// scan says what a scan must do; o.Failed and the source decide. names nil: full.
func (m *model) scan(s source, names []string, o ScanOptions, failed map[string]bool, now time.Time) (want ScanResult, err error) {
	type step struct {
		kind   Kind
		entity string
		after  *Version
		data   []byte
	}
	var steps, deletions []step
	config := m.fingerprint != "" && m.fingerprint != o.Fingerprint
	if o.Accept != "" && (m.held == nil || m.heldID != o.Accept) {
		return want, ErrNoCandidate
	}
	dry := config && (o.Accept == "" || m.heldConfig != o.Fingerprint)
	if dry && names != nil {
		return want, ErrFingerprint
	}
	pool := map[string]bool{}
	if names == nil {
		for e := range m.current {
			pool[e] = true
		}
		for e := range s {
			pool[e] = true
		}
	} else {
		for _, e := range names {
			pool[e] = true
		}
	}
	order := names
	if names == nil {
		order = slices.SortedFunc(maps.Keys(pool), func(a, b string) int {
			x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
			return bytes.Compare(x[:], y[:])
		})
	}
	var lost int64
	for _, e := range order {
		cur := m.current[e]
		d := description(e, s[e])
		if len(d.Triples) == 0 || names == nil && failed[e] {
			switch {
			case cur == nil:
			case failed[e]: // the source tells it
			default:
				deletions = append(deletions, step{Deleted, e, nil, nil})
			}
			continue
		}
		g := rdfres.GraphDigest(d.Triples)
		if cur != nil && cur.Graph == g && (cur.Format == o.Format || cur.Wanted == o.Format) {
			want.Unchanged++
			continue
		}
		f := o.Format
		if slices.Contains(s[e], poison) && !dry {
			want.Failed++
			continue
		}
		if slices.Contains(s[e], uncarried) && f == rdfres.JSONLD {
			f = rdfres.NTriples
			if !dry {
				want.Fallback++
			}
		}
		var data []byte
		if !dry {
			data, _ = testEncode(f, e, d.Triples)
		}
		v := &Version{Graph: g, Format: f, Wanted: o.Format, Fixity: rdfres.ComputeFixity(data, false, false), Triples: len(d.Triples), RDFXML: rdfxml.Carries(d.Triples)}
		if cur == nil {
			want.Created++
			steps = append(steps, step{Created, e, v, data})
		} else {
			want.Updated++
			lost += max(0, int64(cur.Triples-v.Triples))
			steps = append(steps, step{Updated, e, v, data})
		}
	}
	want.Deleted = int64(len(deletions))
	steps = append(steps, deletions...)

	// The hold rule, naively.
	var counted, countedTriples, compGone, compGain, compLost, compGot, allowed, comps int64
	for e := range m.current {
		if isComponent(e) {
			comps++
		}
	}
	for _, st := range steps {
		comp := isComponent(st.entity)
		switch st.kind {
		case Created:
			if comp {
				compGain++
				compGot += int64(st.after.Triples)
			}
		case Deleted:
			n := int64(m.current[st.entity].Triples)
			switch {
			case o.Accept != "" && m.held[st.entity]:
				if !comp {
					allowed++
				}
			case comp:
				compGone++
				compLost += n
			default:
				counted++
				countedTriples += n
			}
		}
	}
	shrunk := lost
	if o.Accept != "" {
		shrunk = max(0, shrunk-m.heldLost)
	}
	base := int64(len(m.current)) - allowed
	countedTriples += shrunk
	if compGone > compGain {
		counted += compGone - compGain
		countedTriples += max(0, compLost-compGot)
	} else {
		base -= comps
	}
	total, triples := float64(len(m.current)), float64(m.triples())
	hold := dry
	if o.MaxDeleteRatio < 0 {
		// nothing is held for what it deletes
	} else if counted > 0 && counted >= base ||
		float64(counted) > max(o.MaxDeleteRatio*total, 10) ||
		total > 0 && float64(countedTriples) > max(o.MaxDeleteRatio*triples, 10*triples/total) {
		hold = true
	}
	if hold {
		want.Held = &Held{Deletions: want.Deleted, Configuration: dry}
		m.held, m.heldLost, m.heldConfig = map[string]bool{}, lost, o.Fingerprint
		for _, st := range deletions {
			m.held[st.entity] = true
		}
		want.Resources, want.Triples = int64(len(m.current)), m.triples()
		return want, nil
	}
	for _, st := range deletions {
		if o.Accept != "" && m.held[st.entity] {
			want.Accepted++
		}
	}
	if names == nil || o.Accept != "" {
		m.held = nil
	}
	if names == nil {
		m.fingerprint, m.baseline = o.Fingerprint, true
	}
	at := now.Truncate(time.Microsecond)
	if n := len(m.changes); n > 0 && !at.After(m.changes[n-1].Time) {
		at = m.changes[n-1].Time.Add(time.Microsecond)
	}
	for i, st := range steps {
		c := Change{Sequence: uint64(len(m.changes) + 1), Time: at, Kind: st.kind, Entity: st.entity, Before: m.current[st.entity], After: st.after, Finder: o.Finder}
		if i == 0 {
			want.First = c.Sequence
		}
		want.Last = c.Sequence
		if m.count[st.entity] == 0 {
			m.first[st.entity] = at
		}
		m.count[st.entity]++
		if st.after != nil {
			st.after.Sequence, st.after.Time = c.Sequence, at
			m.current[st.entity] = st.after
			m.blobs[blobKey(st.entity, c.Sequence)] = st.data
		} else {
			delete(m.current, st.entity)
		}
		m.changes = append(m.changes, c)
		at = at.Add(time.Microsecond)
	}
	want.Resources, want.Triples = int64(len(m.current)), m.triples()
	return want, nil
}

// retain drops as Log.Retain does.
// rebase is Log.Rebase.
func (m *model) rebase(note string, now time.Time) {
	at := now.UTC().Truncate(time.Microsecond)
	if n := len(m.changes); n > 0 && !at.After(m.changes[n-1].Time) {
		at = m.changes[n-1].Time.Add(time.Microsecond)
	}
	m.changes = append(m.changes, Change{Sequence: uint64(len(m.changes) + 1), Time: at, Kind: Rebased, Finder: "rebase", Note: note})
}

func (m *model) retain(changes, versions time.Time) {
	for _, c := range m.changes {
		if c.Before != nil && c.Time.Before(versions) {
			m.gone[blobKey(c.Entity, c.Before.Sequence)] = true
		}
	}
	for m.tail < len(m.changes) && m.changes[m.tail].Time.Before(changes) {
		m.tail++
	}
	// Entities whose end has left the log and whose last version has gone begin
	// anew when they return.
	for e := range m.count {
		if m.forgotten(e) {
			delete(m.count, e)
			delete(m.first, e)
		}
	}
}

func (m *model) last(e string) *Change {
	for i := len(m.changes) - 1; i >= 0; i-- {
		if m.changes[i].Entity == e {
			return &m.changes[i]
		}
	}
	return nil
}

func (m *model) forgotten(e string) bool {
	c := m.last(e)
	return c != nil && c.Kind == Deleted && c.Sequence <= uint64(m.tail) && m.gone[blobKey(e, c.Before.Sequence)]
}

// kept tells whether a change belongs to the history of its entity.
func (m *model) kept(c *Change) bool {
	if c.Sequence > uint64(m.tail) {
		return true
	}
	if c.After != nil {
		return !m.gone[blobKey(c.Entity, c.Sequence)]
	}
	return !m.gone[blobKey(c.Entity, c.Before.Sequence)]
}

// compare looks at everything that a view tells.
func (m *model) compare(t testing.TB, v *View) {
	t.Helper()
	if v.Err() != nil {
		t.Fatal(v.Err())
	}
	seq, at := v.Head()
	if seq != uint64(len(m.changes)) || seq > 0 && !at.Equal(m.changes[seq-1].Time) {
		t.Fatalf("Head() = %d %s, want %d", seq, at, len(m.changes))
	}
	if tail, _ := v.Tail(); tail != uint64(m.tail) {
		t.Fatalf("Tail() = %d, want %d", tail, m.tail)
	}
	if got := v.Resources(); got != int64(len(m.current)) {
		t.Fatalf("Resources() = %d, want %d", got, len(m.current))
	}
	if got := v.Triples(); got != m.triples() {
		t.Fatalf("Triples() = %d, want %d", got, m.triples())
	}
	if got := v.Held(t.Context()); (got != nil) != (m.held != nil) {
		t.Fatalf("Held() = %v, want %v", got, m.held)
	}
	if _, _, ok := v.BaselineEnd(); ok != m.baseline {
		t.Fatalf("BaselineEnd() = %v, want %v", ok, m.baseline)
	}
	equalChanges(t, "Changes", collect(t, v.Changes(t.Context(), 0)), m.changes[m.tail:])
	entities := map[string]bool{}
	histories := map[string][]Change{}
	for _, c := range m.changes {
		if c.Kind == Rebased {
			continue
		}
		entities[c.Entity] = true
		if m.kept(&c) {
			histories[c.Entity] = append(histories[c.Entity], c)
		}
		if c.After != nil {
			m.compareBlob(t, v, &c)
		}
	}
	for e := range entities {
		equalChanges(t, "History of "+e, collect(t, v.History(t.Context(), e)), histories[e])
		st, err := v.Entity(t.Context(), e)
		if m.forgotten(e) {
			if !errors.Is(err, kv.ErrNotFound) {
				t.Fatalf("Entity(%s) = %v, %v, want ErrNotFound", e, st, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("Entity(%s): %v", e, err)
		}
		last := m.last(e)
		if st.Entity != e || st.Changes != m.count[e] || !st.First.Equal(m.first[e]) || fmt.Sprint(st.Current) != fmt.Sprint(m.current[e]) {
			t.Fatalf("Entity(%s) = %+v, want %d changes since %s, %v", e, st, m.count[e], m.first[e], m.current[e])
		}
		if (st.Deleted != nil) != (last.Kind == Deleted) || st.Deleted != nil && st.Deleted.Sequence != last.Sequence {
			t.Fatalf("Entity(%s).Deleted = %v, last change is %v", e, st.Deleted, last)
		}
	}
	var names []string
	for _, st := range collect(t, v.Current(t.Context(), rdfres.Digest{}, rdfres.Digest{})) {
		names = append(names, st.Entity)
	}
	want := slices.SortedFunc(maps.Keys(m.current), func(a, b string) int {
		x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return bytes.Compare(x[:], y[:])
	})
	if !slices.Equal(names, want) {
		t.Fatalf("Current() = %v, want %v", names, want)
	}
	for _, at := range []int{m.tail, (m.tail + len(m.changes)) / 2, len(m.changes)} {
		m.compareGraphs(t, v, at)
	}
}

// compareGraphs compares the state of all entities at a position of the log.
func (m *model) compareGraphs(t testing.TB, v *View, at int) {
	t.Helper()
	want, got := map[rdfres.Digest]rdfres.Digest{}, map[rdfres.Digest]rdfres.Digest{}
	for _, c := range m.changes[:at] {
		switch key := rdfres.EntityKey(c.Entity); {
		case c.After != nil:
			want[key] = c.After.Graph
		case c.Kind == Deleted:
			delete(want, key)
		}
	}
	for _, e := range collect(t, v.Graphs(t.Context(), rdfres.Digest{}, rdfres.Digest{}, uint64(at))) {
		if !e.Graph.IsZero() {
			got[e.Key] = e.Graph
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("Graphs(%d) = %v, want %v", at, got, want)
	}
}

func (m *model) compareBlob(t testing.TB, v *View, c *Change) {
	t.Helper()
	blob, err := v.Representation(t.Context(), c.Entity, c.Sequence)
	if m.gone[blobKey(c.Entity, c.Sequence)] {
		if !errors.Is(err, kv.ErrNotFound) {
			t.Fatalf("Representation(%s, %d) = %v, want ErrNotFound", c.Entity, c.Sequence, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Representation(%s, %d): %v", c.Entity, c.Sequence, err)
	}
	data, err := blob.Bytes()
	if err != nil || !bytes.Equal(data, m.blobs[blobKey(c.Entity, c.Sequence)]) {
		t.Fatalf("Representation(%s, %d) = %q, %v", c.Entity, c.Sequence, data, err)
	}
}

func show(c Change) string {
	s := fmt.Sprintf("%d %s %s %s %s %s", c.Sequence, c.Time.Format(time.RFC3339Nano), c.Kind, c.Entity, c.Finder, c.Note)
	if c.Before != nil {
		s += fmt.Sprintf(" before %+v", *c.Before)
	}
	if c.After != nil {
		s += fmt.Sprintf(" after %+v", *c.After)
	}
	return s
}

func equalChanges(t testing.TB, what string, got, want []Change) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if a, b := show(got[i]), show(want[i]); a != b {
			t.Fatalf("%s[%d] =\n%s, want\n%s", what, i, a, b)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d changes, want %d", what, len(got), len(want))
	}
}

// mutate changes the source at random.
func mutate(r *rand.Rand, s source) {
	name := func() string {
		if r.IntN(5) == 0 {
			return fmt.Sprintf("%s%064x-0", componentPrefix, r.IntN(12))
		}
		return fmt.Sprintf("http://example.org/e%d", r.IntN(40))
	}
	objects := func() (out []int) {
		for range 1 + r.IntN(6) {
			out = append(out, r.IntN(50))
		}
		switch r.IntN(25) {
		case 0:
			out = append(out, uncarried)
		case 1:
			out = append(out, poison)
		}
		return out
	}
	switch r.IntN(40) {
	case 0: // a disaster
		for e := range s {
			if r.IntN(4) > 0 {
				delete(s, e)
			}
		}
	case 1:
		clear(s)
	}
	for range r.IntN(6) {
		e := name()
		if r.IntN(3) == 0 {
			delete(s, e)
		} else {
			s[e] = objects()
		}
	}
}

func sortedNames(s source) []string { return slices.SortedFunc(maps.Keys(s), cmp.Compare[string]) }
