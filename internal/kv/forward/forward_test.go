package forward_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/forward"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
)

const many = 1500 // records of 10 kB: several batches a step

var fill = bytes.Repeat([]byte("x"), 10_000)

// steps lead from "1 N" below old/ to "2 N" below new/, and on to "3 2N". tell hears of each record.
func steps(tell func()) []forward.Step {
	value := func(p kv.Pair, version string) (n int, ok bool) {
		head, _, _ := bytes.Cut(p.Value, []byte("\n"))
		v, text, _ := strings.Cut(string(head), " ")
		n, err := strconv.Atoi(text)
		return n, v == version && err == nil
	}
	made := func(version string, n int) []byte { return append(fmt.Appendf(nil, "%s %d\n", version, n), fill...) }
	return []forward.Step{
		func(p kv.Pair, b kv.Batch) error {
			tell()
			n, ok := value(p, "1")
			if !ok {
				return nil // it was written by this step
			}
			b.Delete(p.Key)
			b.Set(append([]byte("new/"), bytes.TrimPrefix(p.Key, []byte("old/"))...), made("2", n))
			return nil
		},
		func(p kv.Pair, b kv.Batch) error {
			tell()
			n, ok := value(p, "2")
			if !ok {
				return errors.New("it is not of version 2")
			}
			b.Set(p.Key, made("3", 2*n))
			return nil
		},
	}
}

func spaces(steps []forward.Step) []forward.Space {
	return []forward.Space{{Name: "first", Prefix: "first/"}, {Name: "things", Prefix: "things/", Steps: steps}}
}

func open(t *testing.T, dir string) kv.Store {
	t.Helper()
	s, err := pebblekv.Open(t.Context(), dir, pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKilled: an older state is brought forward by processes killed in the midst of it. The last one goes on to
// the end, and each record has gone through each step once. A program of before refuses the state from the first
// change on.
func TestKilled(t *testing.T) {
	const dirKey, atKey = "FORWARD_DIR", "FORWARD_KILLED_AT"
	log := slog.New(slog.DiscardHandler)
	if dir := os.Getenv(dirKey); dir != "" {
		at, _ := strconv.Atoi(os.Getenv(atKey))
		err := forward.Run(t.Context(), open(t, dir), spaces(steps(func() {
			if at--; at == 0 {
				self, _ := os.FindProcess(os.Getpid())
				_ = self.Kill()
				select {}
			}
		})), log)
		t.Fatal("it was not killed", err)
	}
	dir := t.TempDir()
	s := open(t, dir)
	b := s.Batch()
	for i := range many {
		b.Set(fmt.Appendf(nil, "things/old/%05d", i), append(fmt.Appendf(nil, "1 %d\n", i), fill...))
	}
	b.Set([]byte("others/1"), []byte("stays"))
	if err := errors.Join(b.Commit(t.Context(), true), b.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, 700, 900, many, 200} { // in both steps, before and after commits
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), dirKey+"="+dir, atKey+"="+strconv.Itoa(at))
		if out, err := child.CombinedOutput(); err == nil || bytes.Contains(out, []byte("FAIL")) {
			t.Fatalf("killed at %d: %v\n%s", at, err, out)
		}
		s := open(t, dir)
		due, err := forward.Check(t.Context(), s, spaces(steps(nil)))
		if err != nil || len(due) != 1 {
			t.Errorf("killed at %d: due %q, %v", at, due, err)
		}
		if err := forward.Run(t.Context(), s, spaces(nil), log); (at > 1) != errors.Is(err, kv.ErrNewer) {
			t.Errorf("killed at %d: a program of before says %v", at, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	defer s.Close()
	if err := forward.Run(t.Context(), s, spaces(steps(func() {})), log); err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, err := range kv.Prefix(s, []byte("things/")).Scan(t.Context(), nil, nil) {
		if want := fmt.Sprintf("new/%05d: 3 %d\n", n, 2*n); err != nil || !strings.HasPrefix(string(p.Key)+": "+string(p.Value), want) {
			t.Fatalf("%q: %.20q, %v, want %q", p.Key, p.Value, err, want)
		}
		n++
	}
	if n != many {
		t.Errorf("%d records", n)
	}
	if v, err := s.Get(t.Context(), []byte("others/1")); string(v) != "stays" {
		t.Errorf("a record of others: %q, %v", v, err)
	}
	if due, err := forward.Check(t.Context(), s, spaces(steps(nil))); err != nil || len(due) > 0 {
		t.Errorf("due at the end: %q, %v", due, err)
	}
	if err := forward.Run(t.Context(), s, spaces(steps(func() { t.Error("a record is brought forward twice") })), log); err != nil {
		t.Error(err)
	}
}

// TestVersions: a new state has the present versions; later and damaged versions are refused, and nothing is
// written then.
func TestVersions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	all := func(s kv.Store) (out []string) {
		for p, err := range s.Scan(context.Background(), nil, nil) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(p.Key)+" "+string(p.Value))
		}
		return out
	}
	for _, c := range []struct {
		name, key, value string
		want             []string
		newer, fails     bool
	}{
		{name: "new", want: []string{`format/first {"version":1}`, `format/things {"version":3}`}},
		{name: "later", key: "format/first", value: `{"version":2}`, newer: true},
		{name: "unknown", key: "format/fourth", value: `{"version":1}`, newer: true},
		{name: "damaged", key: "format/things", value: `{`, fails: true},
		{name: "damaged step", key: "format/things", value: `{"version":1,"under_way":true}`, fails: true},
		{name: "none", key: "format/things", value: `{"version":0}`, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memkv.New()
			if c.key != "" {
				b := s.Batch()
				b.Set([]byte(c.key), []byte(c.value))
				if err := b.Commit(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				c.want = []string{c.key + " " + c.value}
			}
			err := forward.Run(t.Context(), s, spaces(steps(func() {})), log)
			if (err != nil) != (c.newer || c.fails) || errors.Is(err, kv.ErrNewer) != c.newer {
				t.Error(err)
			}
			if got := all(s); !slices.Equal(got, c.want) {
				t.Errorf("the state is %q, want %q", got, c.want)
			}
		})
	}
}
