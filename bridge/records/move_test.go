package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

var (
	here  = Place{Folder: "here"}
	there = Place{Folder: "there", Database: "postgres://bob:secret@db.example/state?password=secret"}
)

func fill(t *testing.T, s kv.Store, n int) {
	t.Helper()
	b := s.Batch()
	defer b.Close()
	for i := range n {
		b.Set(fmt.Appendf(nil, "r%05d", i), fmt.Appendf(nil, "value %d", i))
	}
	b.Set([]byte("state"), nil) // beside the marks, an empty value
	b.Set([]byte("state0"), []byte("x"))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s kv.Store) (n int) {
	t.Helper()
	for _, err := range others(s.Scan(t.Context(), nil, nil)) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func move(ctx context.Context, from, to Place, src, dst kv.Store) (Report, error) {
	m := mover{from: from.String(), to: to.String(), src: src, dst: dst, progress: func(int64) {}}
	return m.move(ctx, from, to)
}

// usable tells whether a bridge would take the records.
func usable(t *testing.T, s kv.Store, p Place) error {
	t.Helper()
	m, err := readMarks(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return m.usable(p)
}

// TestMoveAndBack: what is moved is there and proven, and the old place says where it went; it may come back.
func TestMoveAndBack(t *testing.T) {
	src, dst := memkv.New(), memkv.New()
	fill(t, src, 3000)
	first, err := move(t.Context(), here, there, src, dst)
	if err != nil || first.Records != 3002 || count(t, dst) != 3002 {
		t.Fatalf("%+v, %v, %d records there", first, err, count(t, dst))
	}
	if strings.Contains(fmt.Sprint(first), "secret") || first.To != "postgres://bob@db.example/state" {
		t.Errorf("the report tells a password: %v", first)
	}
	err = usable(t, src, here)
	var marked *MarkError
	if !errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), "bob@db.example") || strings.Contains(err.Error(), "secret") || !errors.As(err, &marked) || marked.Hint() == "" {
		t.Errorf("the old place: %v", err)
	}
	if _, err := move(t.Context(), here, there, src, dst); !errors.Is(err, ErrMoved) {
		t.Errorf("a second move: %v", err)
	}
	fill(t, dst, 5000)
	back, err := move(t.Context(), there, here, dst, src)
	if err != nil || back.Records != 5002 || count(t, src) != 5002 || usable(t, src, here) != nil || !errors.Is(usable(t, dst, there), ErrMoved) {
		t.Errorf("back: %+v, %v", back, err)
	}
	again, err := move(t.Context(), here, there, src, dst)
	if err != nil || again.SHA256 != back.SHA256 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// TestMoveRefused: a place with other records, also of an unfinished move from elsewhere, stays as it is.
func TestMoveRefused(t *testing.T) {
	src, dst := memkv.New(), memkv.New()
	fill(t, src, 10)
	fill(t, dst, 3)
	if _, err := move(t.Context(), here, there, src, dst); !errors.Is(err, ErrNotEmpty) || count(t, dst) != 5 || usable(t, dst, there) != nil {
		t.Errorf("a place with records: %v, %d there", err, count(t, dst))
	}
	other, half := memkv.New(), memkv.New()
	fill(t, other, 10)
	commits := 0
	half.FailCommits(func(bool) error {
		if commits++; commits > 1 {
			return errors.New("killed")
		}
		return nil
	})
	if _, err := move(t.Context(), Place{Folder: "other"}, there, other, half); err == nil {
		t.Fatal("it was not cut off")
	}
	half.FailCommits(nil)
	if _, err := move(t.Context(), here, there, src, half); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a place with an unfinished move of another: %v", err)
	}
	if err := usable(t, half, there); !errors.Is(err, ErrUnfinished) {
		t.Errorf("an unfinished place: %v", err)
	}
}

// TestMoveKilled: after a kill at any commit there is one place at most to be used, and the next run ends the move.
func TestMoveKilled(t *testing.T) {
	for commits := range 20 {
		src, dst := memkv.New(), memkv.New()
		fill(t, src, 100)
		left := commits
		killed := func(bool) error {
			if left--; left < 0 {
				return errors.New("killed")
			}
			return nil
		}
		src.FailCommits(killed)
		dst.FailCommits(killed)
		_, err := move(t.Context(), here, there, src, dst)
		if err == nil {
			if commits < 4 {
				t.Errorf("the move took %d commits", commits)
			}
			return
		}
		if there := usable(t, dst, there) == nil && count(t, dst) > 0; there {
			t.Errorf("after %d commits the new place can be used", commits)
		}
		if usable(t, src, here) != nil && count(t, dst) != 102 {
			t.Errorf("after %d commits the old place is given up, and %d records are there", commits, count(t, dst))
		}
		src.FailCommits(nil)
		dst.FailCommits(nil)
		if rep, err := move(t.Context(), here, there, src, dst); err != nil || rep.Records != 102 || usable(t, dst, there) != nil || !errors.Is(usable(t, src, here), ErrMoved) {
			t.Errorf("after %d commits the next run: %+v, %v", commits, rep, err)
		}
	}
	t.Error("the move never ended")
}

// TestMoveCompares: a copy with another value is no copy.
func TestMoveCompares(t *testing.T) {
	src := memkv.New()
	fill(t, src, 10)
	if _, err := move(t.Context(), here, there, src, &forger{Store: memkv.New()}); err == nil || !strings.Contains(err.Error(), "compare the copy") {
		t.Errorf("a forged copy: %v", err)
	}
	if err := usable(t, src, here); err != nil {
		t.Errorf("the original cannot be used: %v", err)
	}
}

// forger changes a byte of what it is given.
type forger struct{ kv.Store }

func (f *forger) Batch() kv.Batch { return forgery{f.Store.Batch()} }

type forgery struct{ kv.Batch }

func (f forgery) Set(key, value []byte) {
	if string(key) == "r00007" {
		value = []byte("value 8")
	}
	f.Batch.Set(key, value)
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ state, want string }{
		{"/srv/state", "/srv/state"},
		{"postgres://bob:secret@db.example:5433/state?sslmode=disable&password=secret", "postgres://bob@db.example:5433/state"},
		{"PostgreSQL:///state?host=/run/postgresql", "postgresql:///state"},
		{"postgres://bob:%zz secret@/state", "the PostgreSQL database"},
		{`C:\state`, `C:\state`},
	} {
		if got := At(c.state, "beside").String(); got != c.want {
			t.Errorf("%s is called %s, want %s", c.state, got, c.want)
		}
	}
	if got := FolderOf("/etc/rsbridge/one.yaml"); got != "one.state" {
		t.Errorf("the folder of one.yaml is %s", got)
	}
}
