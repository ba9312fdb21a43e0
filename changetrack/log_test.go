package changetrack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

func rootContext() context.Context { return context.Background() }

func newTestLog(t *testing.T) (*Log, *clock) {
	t.Helper()
	clk := newClock()
	tr, l := mustOpen(t, teststores.Records(t), testOptions(t.TempDir(), clk))
	t.Cleanup(func() {
		mustCheck(t, l)
		tr.Close()
	})
	return l, clk
}

func many(n int, value int) source {
	s := source{}
	for i := range n {
		s[fmt.Sprintf("http://example.org/m%d", i)] = []int{value}
	}
	return s
}

var plain = ScanOptions{Format: rdfres.NTriples, MaxDeleteRatio: 0.2, Fingerprint: "one"}

func TestEmptyScanIsABaseline(t *testing.T) {
	l, clk := newTestLog(t)
	v := l.View(t.Context())
	if _, _, ok := v.BaselineEnd(); ok {
		t.Error("a baseline before the first scan")
	}
	if at, res := v.LastScan(t.Context()); res != nil || !at.IsZero() {
		t.Errorf("LastScan() = %v, %v before the first", at, res)
	}
	if seq, err := v.SequenceAt(t.Context(), clk.now()); seq != 0 || err != nil {
		t.Errorf("SequenceAt = %d, %v in an empty log", seq, err)
	}
	v.Close()
	mustScan(t, l, source{}, plain)
	v = l.View(t.Context())
	defer v.Close()
	if seq, at, ok := v.BaselineEnd(); !ok || seq != 0 || at.IsZero() {
		t.Errorf("BaselineEnd() = %d, %s, %v", seq, at, ok)
	}
	if seq, at := v.Head(); seq != 0 || !at.IsZero() {
		t.Errorf("Head() = %d, %s", seq, at)
	}
}

func TestOrderIsVerified(t *testing.T) {
	l, _ := newTestLog(t)
	s := many(5, 1)
	names := []string{}
	for d := range s.all() {
		names = append(names, d.Entity)
	}
	names[1], names[2] = names[2], names[1]
	if _, err := l.Scan(t.Context(), s.some(names), plain); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("Scan out of order = %v", err)
	}
	if _, err := l.Scan(t.Context(), s.some([]string{names[0], names[0]}), plain); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("Scan of a double = %v", err)
	}
	if seq, _ := l.Head(); seq != 0 {
		t.Errorf("a scan that failed left %d changes", seq)
	}
}

func TestPartialDoubles(t *testing.T) {
	l, _ := newTestLog(t)
	o := plain
	o.Partial = true
	a := description("http://example.org/a", []int{1})
	yield := func(ds ...rdfres.Description) func(func(rdfres.Description, error) bool) {
		return func(y func(rdfres.Description, error) bool) {
			for _, d := range ds {
				if !y(d, nil) {
					return
				}
			}
		}
	}
	if res, err := l.Scan(t.Context(), yield(a, a), o); err != nil || res.Created != 1 {
		t.Errorf("the same twice = %+v, %v", res, err)
	}
	if _, err := l.Scan(t.Context(), yield(a, description(a.Entity, []int{2})), o); err == nil {
		t.Error("two descriptions of one entity were taken")
	}
}

// Who knows that everything is as it was at a position of the log says so, and is believed as
// long as the log is there.
func TestScanOfTheSame(t *testing.T) {
	l, _ := newTestLog(t)
	seq := uint64(0)
	same := func() (ScanResult, error) {
		o := plain
		o.Same = &seq
		return l.Scan(t.Context(), nil, o)
	}
	if _, err := same(); !errors.Is(err, ErrMoved) {
		t.Errorf("before the first complete scan: %v", err)
	}
	first := mustScan(t, l, many(100, 1), plain)
	if _, err := same(); !errors.Is(err, ErrMoved) {
		t.Errorf("of another position: %v", err)
	}
	if res := mustScan(t, l, many(60, 1), plain); res.Held == nil {
		t.Fatalf("%+v", res)
	}
	seq = first.Last
	res, err := same()
	if err != nil || res.Unchanged != 100 || res.Resources != 100 || res.Triples != first.Triples || res.Created+res.Updated+res.Deleted != 0 || res.First != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	v := l.View(t.Context())
	defer v.Close()
	if at, last := v.LastScan(t.Context()); at.IsZero() || last.Unchanged != 100 || v.Held(t.Context()) != nil {
		t.Errorf("%v %+v, held %+v", at, last, v.Held(t.Context()))
	}
}

func TestHeldAndAccepted(t *testing.T) {
	l, _ := newTestLog(t)
	mustScan(t, l, many(100, 1), plain)
	res := mustScan(t, l, many(60, 1), plain)
	if res.Held == nil || res.Held.Deletions != 40 || res.Resources != 100 || res.Deleted != 40 || res.First != 0 {
		t.Fatalf("40 of 100 deleted = %+v", res)
	}
	id := res.Held.ID
	if again := mustScan(t, l, many(60, 1), plain); again.Held == nil || again.Held.ID != id || !again.Held.Time.Equal(res.Held.Time) {
		t.Errorf("the same deletions are held as %+v, want %+v", again.Held, res.Held)
	}
	// A scan that would delete beyond the candidate is held again.
	o := plain
	o.Accept = id
	if res := mustScan(t, l, many(20, 1), o); res.Held == nil || res.Held.ID == id || res.Held.Deletions != 80 {
		t.Fatalf("beyond the candidate = %+v", res)
	}
	if _, err := l.Scan(t.Context(), many(60, 1).all(), o); !errors.Is(err, ErrNoCandidate) {
		t.Errorf("accepting what is no longer held = %v", err)
	}
	res = mustScan(t, l, many(60, 1), plain)
	o.Accept = res.Held.ID
	// Five more have gone meanwhile: within the rule.
	if res := mustScan(t, l, many(55, 1), o); res.Held != nil || res.Deleted != 45 {
		t.Fatalf("accepted = %+v", res)
	}
	v := l.View(t.Context())
	defer v.Close()
	if v.Held(t.Context()) != nil || v.Resources() != 55 {
		t.Errorf("after accepting: held %v, %d resources", v.Held(t.Context()), v.Resources())
	}
}

func TestHoldRule(t *testing.T) {
	comp := func(i int) string { return fmt.Sprintf("%s%064x-0", componentPrefix, i) }
	for _, tt := range []struct {
		name       string
		before     source
		after      source
		held       bool
		everything bool
	}{
		{"ten of twenty are always allowed", many(20, 1), many(10, 1), false, false},
		{"eleven of twenty are not", many(20, 1), many(9, 1), true, false},
		{"a fifth", many(100, 1), many(80, 1), false, false},
		{"more than a fifth", many(100, 1), many(79, 1), true, false},
		{"all of three", many(3, 1), source{}, true, true},
		{"all of three, others come", many(3, 1), source{"http://example.org/new": {1}}, true, true},
		{"two of three", many(3, 1), many(1, 1), false, false},
		{"one of one", many(1, 1), source{}, true, true},
		{"nothing of nothing", source{}, source{}, false, false},
		{"components replaced", source{"http://example.org/a": {1}, comp(1): {1}, comp(2): {2}}, source{"http://example.org/a": {1}, comp(3): {1}, comp(4): {2}}, false, false},
		{"only components, replaced", source{comp(1): {1}, comp(2): {2}}, source{comp(3): {1}, comp(4): {2}}, false, false},
		{"only components, gone", source{comp(1): {1}, comp(2): {2}}, source{}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _ := newTestLog(t)
			mustScan(t, l, tt.before, plain)
			res := mustScan(t, l, tt.after, plain)
			if (res.Held != nil) != tt.held {
				t.Fatalf("held %+v, want %v", res.Held, tt.held)
			}
			if tt.held && strings.Contains(res.Held.Reason, "everything") != tt.everything {
				t.Errorf("reason %q, everything %v", res.Held.Reason, tt.everything)
			}
		})
	}
	t.Run("half of the triples in one entity", func(t *testing.T) {
		l, _ := newTestLog(t)
		s := many(200, 1)
		for i := range 200 {
			s["http://example.org/big"] = append(s["http://example.org/big"], i)
		}
		mustScan(t, l, s, plain)
		shrunk := s.clone()
		shrunk["http://example.org/big"] = []int{1}
		if res := mustScan(t, l, shrunk, plain); res.Held == nil || !strings.Contains(res.Held.Reason, "triples") {
			t.Errorf("shrunk: held %+v", res.Held)
		}
		delete(s, "http://example.org/big")
		res := mustScan(t, l, s, plain)
		if res.Held == nil || !strings.Contains(res.Held.Reason, "triples") {
			t.Fatalf("deleted: held %+v", res.Held)
		}
		o := plain
		o.Accept = res.Held.ID
		if res := mustScan(t, l, s, o); res.Held != nil || res.Deleted != 1 {
			t.Errorf("accepted: %+v", res)
		}
	})
	t.Run("off", func(t *testing.T) {
		l, _ := newTestLog(t)
		mustScan(t, l, many(50, 1), plain)
		o := plain
		o.MaxDeleteRatio = -1
		if res := mustScan(t, l, source{}, o); res.Held != nil || res.Deleted != 50 {
			t.Errorf("held %+v", res.Held)
		}
	})
}

func TestConfiguration(t *testing.T) {
	l, _ := newTestLog(t)
	s := many(20, 1)
	mustScan(t, l, s, plain)
	o := plain
	o.Fingerprint, o.Format = "two", rdfres.Turtle
	res := mustScan(t, l, s, o)
	if res.Held == nil || !res.Held.Configuration || !strings.Contains(res.Held.Reason, "configuration") || res.Updated != 20 {
		t.Fatalf("another format = %+v", res)
	}
	p := o
	p.Partial = true
	if _, err := l.Scan(t.Context(), s.some(sortedNames(s)), p); !errors.Is(err, ErrFingerprint) {
		t.Errorf("partial scan = %v, want ErrFingerprint", err)
	}
	o.Accept = res.Held.ID
	res = mustScan(t, l, s, o)
	if res.Held != nil || res.Updated != 20 || res.First != 21 || res.Last != 40 {
		t.Fatalf("accepted = %+v", res)
	}
	o.Accept = ""
	if res := mustScan(t, l, s, o); res.Unchanged != 20 || res.Held != nil {
		t.Errorf("once more = %+v", res)
	}
	if res := mustScan(t, l, s, plain); res.Held == nil || !res.Held.Configuration {
		t.Errorf("back again = %+v", res)
	}
	if res := mustScan(t, l, s, o); res.Held != nil {
		t.Errorf("as configured = %+v", res)
	}
	v := l.View(t.Context())
	defer v.Close()
	if v.Held(t.Context()) != nil {
		t.Errorf("a scan that passed left %+v held", v.Held(t.Context()))
	}
}

func TestFailuresAreNamed(t *testing.T) {
	l, _ := newTestLog(t)
	s := many(3, 1)
	s["http://example.org/bad"] = []int{poison}
	s["http://example.org/plain"] = []int{uncarried}
	o := plain
	o.Format = rdfres.JSONLD
	res := mustScan(t, l, s, o)
	if res.Created != 4 || res.Failed != 1 || res.Fallback != 1 || len(res.Failures) != 1 || res.Failures[0].Entity != "http://example.org/bad" {
		t.Fatalf("Scan = %+v", res)
	}
	if res := mustScan(t, l, s, o); res.Unchanged != 4 || res.Fallback != 0 {
		t.Errorf("second Scan = %+v", res)
	}
	v := l.View(t.Context())
	defer v.Close()
	st, err := v.Entity(t.Context(), "http://example.org/plain")
	if err != nil || st.Current.Format != rdfres.NTriples || st.Current.Wanted != rdfres.JSONLD {
		t.Errorf("Entity = %+v, %v", st.Current, err)
	}
}

// TestTimeAfterEmptyScan: who holds the state of an empty first scan asks for
// what is later than that; so the first change is, whatever the clock says.
func TestTimeAfterEmptyScan(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Hour, time.Minute} {
		l, clk := newTestLog(t)
		mustScan(t, l, source{}, plain)
		clk.t = clk.t.Add(step)
		mustScan(t, l, many(1, 1), plain)
		v := l.View(t.Context())
		_, base, _ := v.BaselineEnd()
		if c := collect(t, v.Changes(t.Context(), 0)); len(c) != 1 || !c[0].Time.After(base) {
			t.Errorf("clock %v later: changes %+v, the baseline ended at %v", step, c, base)
		}
		v.Close()
	}
}

func TestFixityOnRequest(t *testing.T) {
	l, _ := newTestLog(t)
	o := plain
	o.MD5, o.SHA1 = true, true
	mustScan(t, l, many(1, 1), o)
	v := l.View(t.Context())
	defer v.Close()
	st, err := v.Entity(t.Context(), "http://example.org/m0")
	if err != nil || len(st.Current.Fixity.MD5) != 16 || len(st.Current.Fixity.SHA1) != 20 {
		t.Errorf("Fixity = %+v, %v", st.Current.Fixity, err)
	}
}

func TestTimes(t *testing.T) {
	clk := newClock()
	var said strings.Builder
	o := testOptions(t.TempDir(), clk)
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	_, l := mustOpen(t, teststores.Records(t), o)
	mustScan(t, l, many(3, 1), plain)
	first := clk.now().Truncate(time.Microsecond)
	clk.t = clk.t.Add(-time.Hour)
	mustScan(t, l, many(3, 2), plain)
	if !strings.Contains(said.String(), "clock is behind") {
		t.Errorf("no warning: %s", said.String())
	}
	clk.t = clk.t.Add(2 * time.Hour)
	mustScan(t, l, many(3, 3), plain)
	v := l.View(t.Context())
	defer v.Close()
	for i, c := range collect(t, v.Changes(t.Context(), 0)) {
		want := first.Add(time.Duration(i) * time.Microsecond)
		if i >= 6 {
			want = clk.now().Truncate(time.Microsecond).Add(time.Duration(i-6) * time.Microsecond)
		}
		if !c.Time.Equal(want) || c.Time.Location() != time.UTC {
			t.Errorf("change %d is of %s, want %s", c.Sequence, c.Time, want)
		}
		for d, seq := range map[time.Duration]uint64{-1: c.Sequence - 1, 0: c.Sequence, 999: c.Sequence} {
			if got, err := v.SequenceAt(t.Context(), c.Time.Add(d)); err != nil || got != seq {
				t.Errorf("SequenceAt(change %d + %d ns) = %d, %v, want %d", c.Sequence, d, got, err, seq)
			}
		}
	}
	if _, err := l.Retain(t.Context(), clk.now(), clk.now()); err != nil {
		t.Fatal(err)
	}
	w := l.View(t.Context())
	defer w.Close()
	if _, err := w.SequenceAt(t.Context(), first); !errors.Is(err, ErrBeyondRetention) {
		t.Errorf("SequenceAt before the tail = %v", err)
	}
	if got, err := w.SequenceAt(t.Context(), clk.now()); err != nil || got != 7 {
		t.Errorf("SequenceAt(now) = %d, %v, want 7", got, err)
	}
	mustCheck(t, l)
}

func TestWait(t *testing.T) {
	l, _ := newTestLog(t)
	done := make(chan error)
	go func() { done <- l.Wait(t.Context(), 2) }()
	mustScan(t, l, many(2, 1), plain)
	mustScan(t, l, many(3, 1), plain)
	if err := <-done; err != nil {
		t.Errorf("Wait = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Wait(ctx, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v, want context.Canceled", err)
	}
	go func() { done <- l.Wait(t.Context(), 100) }()
	l.t.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Wait = %v, want ErrClosed", err)
	}
	if _, err := l.Scan(t.Context(), source{}.all(), plain); !errors.Is(err, ErrClosed) {
		t.Errorf("Scan after Close = %v, want ErrClosed", err)
	}
}

func TestCancelledScanChangesNothing(t *testing.T) {
	l, _ := newTestLog(t)
	for _, n := range []int{0, 1, 500, 999} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("told to stop")
		seq := func(yield func(rdfres.Description, error) bool) {
			for d, err := range many(1000, 1).all() {
				if n--; n < 0 {
					cancel(stop)
				}
				if !yield(d, err) {
					return
				}
			}
		}
		if _, err := l.Scan(ctx, seq, plain); !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Errorf("Scan = %v", err)
		}
	}
	if seq, _ := l.Head(); seq != 0 {
		t.Errorf("%d changes of scans that were cancelled", seq)
	}
}

func TestConfirmFails(t *testing.T) {
	l, _ := newTestLog(t)
	mustScan(t, l, many(30, 1), plain)
	o := plain
	down := errors.New("endpoint is down")
	o.Confirm = func(context.Context, []string) ([]rdfres.Description, error) { return nil, down }
	if _, err := l.Scan(t.Context(), many(28, 2).all(), o); !errors.Is(err, down) {
		t.Errorf("Scan = %v", err)
	}
	if seq, _ := l.Head(); seq != 30 {
		t.Errorf("head is %d, want 30", seq)
	}
}

func TestConfirmInBatches(t *testing.T) {
	l, _ := newTestLog(t)
	mustScan(t, l, many(1300, 1), plain)
	o := plain
	o.MaxDeleteRatio = -1
	var asked []int
	o.Confirm = func(_ context.Context, names []string) ([]rdfres.Description, error) {
		asked = append(asked, len(names))
		// One is still there as it was, one is there and different.
		return []rdfres.Description{description(names[0], []int{1}), description(names[1], []int{7})}, nil
	}
	res, err := l.Scan(t.Context(), source{}.all(), o)
	if err != nil || fmt.Sprint(asked) != "[500 500 300]" || res.Deleted != 1294 || res.Updated != 3 || res.Unchanged != 3 {
		t.Errorf("Scan = %+v, %v; asked %v", res, err, asked)
	}
}

// TestStagingFolderIsGone: a staging folder that was removed is made again; one whose
// place is gone is not.
func TestStagingFolderIsGone(t *testing.T) {
	clk := newClock()
	state := filepath.Join(t.TempDir(), "state")
	o := testOptions(filepath.Join(state, "stage"), clk)
	o.stageBytes = 100
	_, l := mustOpen(t, teststores.Records(t), o)
	mustScan(t, l, many(20, 1), plain)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Scan(t.Context(), many(20, 2).all(), plain); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Scan = %v", err)
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	mustScan(t, l, many(20, 2), plain)
	mustCheck(t, l)
}

func TestSetsAreApart(t *testing.T) {
	clk := newClock()
	s := teststores.Records(t)
	tr, a := mustOpen(t, s, testOptions(t.TempDir(), clk))
	b, err := tr.Log(t.Context(), "films")
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := tr.Log(t.Context(), "films"); same != b {
		t.Error("another Log for the same name")
	}
	mustScan(t, a, many(3, 1), plain)
	mustScan(t, b, many(5, 2), plain)
	tr.Close()
	tr, a = mustOpen(t, s, testOptions(t.TempDir(), clk))
	if got := fmt.Sprint(tr.Sets()); got != "[books films]" {
		t.Errorf("Sets() = %s", got)
	}
	b, _ = tr.Log(t.Context(), "films")
	for l, want := range map[*Log]uint64{a: 3, b: 5} {
		if seq, _ := l.Head(); seq != want {
			t.Errorf("set %s: head %d, want %d", l.Set(), seq, want)
		}
		mustCheck(t, l)
	}
	if _, err := tr.Log(t.Context(), ""); err == nil {
		t.Error("a set without a name")
	}
}

func TestNewerRecords(t *testing.T) {
	s := teststores.Records(t)
	b := s.Batch()
	b.Set(markerKey, []byte{recordVersion + 1})
	b.Commit(t.Context(), true)
	if _, err := Open(t.Context(), s, testOptions(t.TempDir(), newClock())); !errors.Is(err, ErrNewer) {
		t.Errorf("Open = %v, want ErrNewer", err)
	}
	n := 0
	for range s.Scan(t.Context(), nil, nil) {
		n++
	}
	if n != 1 {
		t.Errorf("the store was touched")
	}
}

func TestExtraIsKept(t *testing.T) {
	l, clk := newTestLog(t)
	o := plain
	o.Extra = func() json.RawMessage { return json.RawMessage(`{"covered":7}`) }
	mustScan(t, l, many(3, 1), o)
	v := l.View(t.Context())
	defer v.Close()
	at, res := v.LastScan(t.Context())
	if res == nil || string(res.Extra) != `{"covered":7}` || res.Created != 3 || !at.Equal(clk.now().UTC().Truncate(time.Microsecond)) {
		t.Errorf("LastScan() = %s, %+v", at, res)
	}
}

// TestViewsDuringScans: readers that come at any moment of a commit in many
// batches see the state before it or after it.
func TestViewsDuringScans(t *testing.T) {
	clk := newClock()
	o := testOptions(t.TempDir(), clk)
	o.stageBytes, o.batchBytes = 1000, 1000
	tr, l := mustOpen(t, teststores.Records(t), o)
	defer tr.Close()
	const entities, scans = 100, 15
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := l.View(t.Context())
				if err := oneValue(v, entities); err != nil {
					t.Error(err)
					v.Close()
					return
				}
				v.Close()
			}
		})
	}
	for i := range scans {
		mustScan(t, l, many(entities, i), plain)
		if i%5 == 4 {
			if _, err := l.Retain(t.Context(), clk.now().Add(-time.Second), clk.now()); err != nil {
				t.Fatal(err)
			}
		}
		clk.t = clk.t.Add(time.Second)
	}
	close(stop)
	wg.Wait()
	mustCheck(t, l)
}

// oneValue: all entities are of the same scan.
func oneValue(v *View, entities int) error {
	seq, _ := v.Head()
	if seq%uint64(entities) != 0 || v.Err() != nil {
		return fmt.Errorf("head %d in the middle of a scan, %v", seq, v.Err())
	}
	n := 0
	for st, err := range v.Current(context.Background(), rdfres.Digest{}, rdfres.Digest{}) {
		if err != nil {
			return err
		}
		if st.Current.Sequence <= seq-uint64(entities) || st.Current.Sequence > seq {
			return fmt.Errorf("%s is of %d, head is %d", st.Entity, st.Current.Sequence, seq)
		}
		if _, err := v.Representation(context.Background(), st.Entity, st.Current.Sequence); err != nil {
			return fmt.Errorf("%s of %d: %w", st.Entity, st.Current.Sequence, err)
		}
		n++
	}
	if n != 0 && n != entities || int64(n) != v.Resources() {
		return fmt.Errorf("%d entities, Resources() = %d", n, v.Resources())
	}
	tail, _ := v.Tail()
	for c, err := range v.Changes(context.Background(), 0) {
		if err != nil {
			return err
		}
		tail = c.Sequence
	}
	if tail != seq {
		return fmt.Errorf("log ends with %d, head is %d", tail, seq)
	}
	return nil
}

// TestCheckFindsDamage: every kind of record, lost or changed, is noticed.
func TestCheckFindsDamage(t *testing.T) {
	clk := newClock()
	s := memkv.New()
	tr, l := mustOpen(t, s, testOptions(t.TempDir(), clk))
	mustScan(t, l, many(12, 1), plain)
	clk.t = clk.t.Add(time.Minute)
	mustScan(t, l, many(9, 2), plain)
	if _, err := l.Retain(t.Context(), clk.now(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, l)
	tr.Close()
	var keys, values [][]byte
	for p, err := range s.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, append([]byte{}, p.Key...))
		values = append(values, append([]byte{}, p.Value...))
	}
	damage := func(what string, key []byte, f func(kv.Batch)) {
		t.Helper()
		again := s.Crash(1 << 20)
		b := again.Batch()
		f(b)
		b.Commit(t.Context(), true)
		tr, err := Open(t.Context(), again, testOptions(t.TempDir(), clk))
		if err == nil {
			var l *Log
			if l, err = tr.Log(t.Context(), "books"); err == nil {
				err = l.Check(t.Context())
			}
		}
		if err == nil {
			t.Errorf("%s of %q was not noticed", what, key)
		}
	}
	for i, key := range keys {
		if key[0] != 's' || string(key[5:]) == string(lastScanKey) {
			continue
		}
		damage("loss", key, func(b kv.Batch) { b.Delete(key) })
		if n := len(values[i]); n > 0 {
			bad := append([]byte{}, values[i]...)
			at := n - 1
			if key[5] == kindBlob || string(key[5:]) == string(headKey) {
				at = n / 2 // the last bits of deflate are padding; the last byte of the head is a counter
			}
			bad[at] ^= 0x10
			damage("change", key, func(b kv.Batch) { b.Set(key, bad) })
			damage("cut", key, func(b kv.Batch) { b.Set(key, values[i][:n/2]) })
		}
	}
}
