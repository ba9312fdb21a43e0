package changetrack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// act is one step of the scenario that is interrupted everywhere.
type act struct {
	name string
	run  func(t *testing.T, l *Log) error
	then func(m *model)
}

// scenario: a baseline, changes, a scan that is held, accepted, and retention.
func scenario(clk *clock) []act {
	o := ScanOptions{Finder: "scan", Format: rdfres.JSONLD, MaxDeleteRatio: 0.2, Fingerprint: "one"}
	src := source{}
	for i := range 30 {
		src[fmt.Sprintf("http://example.org/e%d", i)] = []int{i, i + 1}
	}
	two := src.clone()
	for i := range 8 {
		two[fmt.Sprintf("http://example.org/e%d", i)] = []int{i + 5}
		delete(two, fmt.Sprintf("http://example.org/e%d", i+20))
		two[fmt.Sprintf("http://example.org/n%d", i)] = []int{i}
	}
	three := source{"http://example.org/e1": {1}, "http://example.org/e9": {9}}
	scan := func(name string, s source, accept bool) act {
		return act{name, func(t *testing.T, l *Log) error {
			so := o
			if accept {
				v := l.View(t.Context())
				if h := v.Held(t.Context()); h != nil {
					so.Accept = h.ID
				}
				v.Close()
			}
			_, err := l.Scan(t.Context(), s.all(), so)
			return err
		}, func(m *model) {
			so := o
			if accept {
				so.Accept = m.heldID
			}
			if res, err := m.scan(s, nil, so, nil, clk.now()); err == nil && res.Held != nil {
				m.heldID = "held"
			}
		}}
	}
	return []act{
		scan("baseline", src, false),
		scan("changes", two, false),
		scan("too much", three, false),
		scan("accepted", three, true),
		scan("back", two, false),
		{"retention", func(t *testing.T, l *Log) error {
			_, err := l.Retain(t.Context(), clk.now().Add(time.Microsecond*50), clk.now().Add(time.Microsecond*60))
			return err
		}, func(m *model) {
			m.retain(clk.now().Add(time.Microsecond*50), clk.now().Add(time.Microsecond*60))
		}},
		scan("after retention", src, false),
	}
}

// TestCrashAtEveryCommit stops the store at its n-th commit, for every n, and
// loses any number of the commits that were not synced: the log is then whole
// before or whole after, and goes on.
// A store of several processes is opened by another one, with a folder of its own.
func TestCrashAtEveryCommit(t *testing.T) {
	for _, c := range []struct {
		size    int
		several bool
		commits int // at least
	}{{1 << 20, false, 8}, {1100, false, 35}, {1100, true, 40}} { // one batch, many
		t.Run(fmt.Sprint("batches of ", c.size, c.several), func(t *testing.T) {
			n := 1
			for crashAt(t, n, c.size, c.several) {
				n++
			}
			t.Logf("%d commits", n-1)
			if n < c.commits {
				t.Errorf("only %d commits: the scenario does not do what it should", n)
			}
		})
	}
}

// led is a store of several processes.
type led struct {
	*memkv.Store
	kv.Led
}

var errPower = errors.New("no space left on device")

func crashAt(t *testing.T, n, size int, several bool) (crashed bool) {
	clk := newClock()
	dir := t.TempDir()
	opts := testOptions(dir, clk)
	opts.stageBytes, opts.batchBytes = size, size
	s := memkv.New()
	s.FailCommits(func(bool) error {
		if n--; n <= 0 {
			return errPower
		}
		return nil
	})
	m := newModel()
	acts := scenario(clk)
	of := func(s *memkv.Store) kv.Store {
		if several {
			return led{Store: s}
		}
		return s
	}
	tr, err := Open(t.Context(), of(s), opts)
	var l *Log
	if err == nil {
		l, err = tr.Log(t.Context(), "books")
	}
	if err != nil {
		if !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		acts = acts[:1]
	}
	for i, a := range acts {
		if l == nil {
			err = errPower
		} else {
			err = a.run(t, l)
		}
		after := m.clone()
		a.then(after)
		if err == nil {
			m = after
			continue
		}
		if !errors.Is(err, errPower) {
			t.Fatalf("%s: %v", a.name, err)
		}
		keeps := []int{0, s.Unsynced() / 2, s.Unsynced()}
		for _, keep := range slices.Compact(keeps) {
			again := opts
			again.Dir = t.TempDir()
			if !several {
				if err := os.CopyFS(again.Dir, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
			}
			finishAfterCrash(t, of(s.Crash(keep)), again, acts[i], m, after)
		}
		// The same process goes on when there is space again.
		if l != nil {
			s.FailCommits(nil)
			l.lock(t.Context()) // the next writer finishes what was begun
			l.unlock()
			afterwards(t, l, a, m, after)
		}
		return true
	}
	return false
}

func finishAfterCrash(t *testing.T, s kv.Store, o Options, a act, before, after *model) {
	t.Helper()
	tr, l := mustOpen(t, s, o)
	afterwards(t, l, a, before, after)
	for p, err := range s.Scan(t.Context(), append(setPrefix(l.id), kindStage), append(setPrefix(l.id), kindStage+1)) {
		t.Errorf("%s: staged changes are left: %q, %v", a.name, p.Key, err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dir, "*")); len(left) > 0 {
		t.Errorf("%s: files are left: %v", a.name, left)
	}
	tr.Close()
}

// afterwards: the log is as before the act or as after it, and the act can be
// done again.
func afterwards(t *testing.T, l *Log, a act, before, after *model) {
	t.Helper()
	mustCheck(t, l)
	head, _ := l.Head()
	v := l.View(t.Context())
	held := v.Held(t.Context())
	v.Close()
	switch {
	case a.name == "retention": // any part of it
	case int(head) == len(after.changes) && (held != nil) == (after.held != nil):
		before = after
		fallthrough
	default:
		v := l.View(t.Context())
		before.compare(t, v)
		v.Close()
	}
	if before == after {
		return
	}
	if err := a.run(t, l); err != nil {
		t.Fatalf("%s again: %v", a.name, err)
	}
	mustCheck(t, l)
	v = l.View(t.Context())
	after.compare(t, v)
	v.Close()
}

// ---- kill -9 of a real process with the real store

func killedSource(step int) source {
	r := rand.New(rand.NewPCG(uint64(step), 1))
	s := source{}
	for i := range 250 {
		if r.IntN(4) > 0 {
			s[fmt.Sprintf("http://example.org/e%d", i)] = []int{r.IntN(4)}
		}
	}
	return s
}

func killedOptions(step int) ScanOptions {
	return ScanOptions{
		Finder: "scan", Format: rdfres.JSONLD, MaxDeleteRatio: -1, Fingerprint: "one",
		Extra: func() json.RawMessage { return fmt.Appendf(nil, "%d", step) },
	}
}

func killedClock(step int) *clock {
	return &clock{newClock().t.Add(time.Duration(step) * time.Second)}
}

func lastStep(l *Log) int {
	v := l.View(context.Background())
	defer v.Close()
	_, res := v.LastScan(context.Background())
	if res == nil {
		return -1
	}
	n := -1
	json.Unmarshal(res.Extra, &n)
	return n
}

// TestMain plays the process that is killed.
func TestMain(m *testing.M) {
	dir, first := os.Getenv("CHANGETRACK_CHILD"), os.Getenv("CHANGETRACK_FIRST")
	if dir == "" && first == "" {
		os.Exit(m.Run())
	}
	play := func() error { return child(dir) }
	if first != "" {
		play = func() error { return firstChild(first) }
	}
	if err := play(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// childLog opens the log of a process that is going to be killed.
func childLog(dir string, clk *clock) (*Log, error) {
	s, err := pebblekv.Open(context.Background(), filepath.Join(dir, "kv"), pebblekv.Options{})
	if err != nil {
		return nil, err
	}
	o := testOptions(filepath.Join(dir, "stage"), clk)
	o.stageBytes, o.batchBytes = 5000, 5000
	tr, err := Open(rootContext(), s, o)
	if err != nil {
		return nil, err
	}
	l, err := tr.Log(context.Background(), "books")
	if err == nil {
		fmt.Println("open")
	}
	return l, err
}

func child(dir string) error {
	clk := killedClock(0)
	l, err := childLog(dir, clk)
	if err != nil {
		return err
	}
	for step := lastStep(l) + 1; ; step++ {
		clk.t = killedClock(step).t
		if _, err := l.Scan(rootContext(), killedSource(step).all(), killedOptions(step)); err != nil {
			return err
		}
		fmt.Println("step", step)
	}
}

func TestKilled(t *testing.T) {
	kills := 8
	if testing.Short() {
		kills = 2
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, replayed, interrupted := newModel(), -1, 0
	for kill := range kills {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "CHANGETRACK_CHILD="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := &strings.Builder{}
		buf := make([]byte, 4096)
		for !strings.Contains(said.String(), "step") { // it has begun to work
			n, err := out.Read(buf)
			said.Write(buf[:n])
			if err != nil {
				t.Fatalf("the process said %q and ended", said)
			}
		}
		time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { cmd.Process.Signal(syscall.SIGKILL) })
		for {
			n, err := out.Read(buf)
			said.Write(buf[:n])
			if err != nil {
				break
			}
		}
		cmd.Wait()
		confirmed := -1
		for line := range strings.Lines(said.String()) {
			fmt.Sscanf(line, "step %d\n", &confirmed)
		}

		s, err := pebblekv.Open(t.Context(), filepath.Join(dir, "kv"), pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "stage", "*")); len(left) > 0 {
			interrupted++
		}
		tr, l := mustOpen(t, s, testOptions(filepath.Join(dir, "stage"), killedClock(0)))
		last := lastStep(l)
		if last < confirmed {
			t.Fatalf("kill %d: step %d was confirmed, the log ends with %d", kill, confirmed, last)
		}
		for ; replayed < last; replayed++ {
			step := replayed + 1
			if _, err := m.scan(killedSource(step), nil, killedOptions(step), nil, killedClock(step).now()); err != nil {
				t.Fatal(err)
			}
		}
		mustCheck(t, l)
		v := l.View(t.Context())
		m.compare(t, v)
		v.Close()
		tr.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d of them with a staged file, %d steps, %d changes", kills, interrupted, replayed+1, len(m.changes))
}
