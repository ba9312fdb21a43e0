package records

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// leading answers as a database with a past does.
type leading struct {
	kv.Led
	past []kv.Point // the last is the newest
}

func (l leading) Newest(_ context.Context, was kv.Point) (newest kv.Point, has bool, err error) {
	has = was.Lead == ""
	for _, p := range l.past {
		newest, has = p, has || p.Lead == was.Lead && p.Commit >= was.Commit
	}
	return newest, has, nil
}

// TestNewest: a database without the commit that its folder has noted is told, with the way on. Whoever reads notes
// what it sees.
func TestNewest(t *testing.T) {
	p := Place{Folder: t.TempDir(), Database: there.Database}
	a := func(n int64) kv.Point { return kv.Point{Lead: "a", Commit: n} }
	b := func(n int64) kv.Point { return kv.Point{Lead: "b", Commit: n} }
	for i, step := range []struct {
		past []kv.Point
		lost bool
	}{
		{past: nil}, // nothing is durable yet
		{past: []kv.Point{a(10)}},
		{past: []kv.Point{a(10)}},
		{past: []kv.Point{a(12), b(13)}},
		{past: []kv.Point{a(12)}, lost: true},
		{past: []kv.Point{a(12), b(12)}, lost: true},
		{past: []kv.Point{a(12), {Lead: "c", Commit: 99}}, lost: true}, // it went on without them
		{past: nil, lost: true},
		{past: []kv.Point{a(12), b(13), {Lead: "c", Commit: 13}}},
	} {
		err := (&Watch{led: leading{past: step.past}, place: p}).Note(t.Context())
		if errors.Is(err, kv.ErrLost) != step.lost || !step.lost && err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		var lost *LostError
		if errors.As(err, &lost) && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), NewestFile) || !strings.Contains(lost.Hint(), "accept --lost-commits")) {
			t.Errorf("step %d: %v; %s", i, err, lost.Hint())
		}
		if was, err := p.noted(); err == nil && !step.lost && len(step.past) > 0 && was != step.past[len(step.past)-1] {
			t.Errorf("step %d: %v is noted", i, was)
		}
	}
	if info, err := os.Stat(filepath.Join(p.Folder, NewestFile)); err != nil || info.Size() != noteBytes {
		t.Errorf("the note has %d bytes, %v", info.Size(), err)
	}
	for _, damaged := range []string{"{", "", "{}"} {
		if err := os.WriteFile(filepath.Join(p.Folder, NewestFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (&Watch{led: leading{}, place: p}).Note(t.Context()); err == nil || errors.Is(err, kv.ErrLost) || !strings.Contains(err.Error(), NewestFile) {
			t.Errorf("beside a damaged note: %v", err)
		}
		if raw, err := os.ReadFile(filepath.Join(p.Folder, NewestFile)); err != nil || string(raw) != damaged {
			t.Errorf("the damaged note: %q %v", raw, err)
		}
	}
}
