package changetrack

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

func everything(t *testing.T, r kv.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for p, err := range r.Scan(t.Context(), []byte{0}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[string(p.Key)] = string(p.Value)
	}
	return all
}

// TestFirstScan: a first scan that is loaded leaves the very records that one
// leaves which is staged and written in batches, and later scans go on from both.
func TestFirstScan(t *testing.T) {
	real, err := pebblekv.Open(t.Context(), t.TempDir(), pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	var want map[string]string
	for name, s := range map[string]kv.Store{
		"batches": &kvtest.Full{Store: memkv.New(), Left: 1 << 30}, "memory": teststores.Records(t), "disk": real,
	} {
		o := testOptions(t.TempDir(), newClock())
		o.stageBytes, o.batchBytes = 2000, 2000
		tr, l := mustOpen(t, s, o)
		src := many(300, 1)
		src["http://example.org/bad"] = []int{poison}
		src["http://example.org/other"] = []int{uncarried}
		jsonld := plain
		jsonld.Format = ""
		if res, err := l.Scan(t.Context(), src.all(), jsonld); err != nil || res.Created != 301 || res.Failed != 1 || res.First != 1 || res.Last != 301 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		mustCheck(t, l)
		for i := range 3 {
			if _, err := l.Scan(t.Context(), many(300-10*i, 1+i%2).all(), jsonld); err != nil {
				t.Fatal(err)
			}
		}
		mustCheck(t, l)
		got := everything(t, s)
		if want == nil {
			want = got
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %d records, otherwise %d, and they differ", name, len(got), len(want))
		}
		tr.Close()
	}
}

// TestFirstScanFails: a first scan that ends in an error, or that the store does
// not take, leaves nothing, and can be done again.
func TestFirstScanFails(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		s, dir := memkv.New(), t.TempDir()
		o := testOptions(dir, newClock())
		o.stageBytes = 2000
		tr, l := mustOpen(t, s, o)
		before := everything(t, s)
		broken := errors.New("the answer was cut")
		seq := many(300, 1).all()
		if refuse {
			s.FailCommits(func(bool) error { return broken })
		} else {
			seq = failing(seq, 290, broken)
		}
		if _, err := l.Scan(t.Context(), seq, plain); !errors.Is(err, broken) {
			t.Fatalf("Scan = %v", err)
		}
		s.FailCommits(nil)
		if got := everything(t, s); !maps.Equal(got, before) {
			t.Errorf("%d records are left, there were %d", len(got), len(before))
		}
		v := l.View(t.Context())
		if seq, _ := v.Head(); seq != 0 {
			t.Errorf("the head is %d", seq)
		}
		v.Close()
		mustScan(t, l, many(300, 1), plain)
		mustCheck(t, l)
		tr.Close()
	}
}

// TestFirstScanTwice: entities that come twice, or not in order, are told as ever.
func TestFirstScanTwice(t *testing.T) {
	o := testOptions(t.TempDir(), newClock())
	o.stageBytes = 100
	_, l := mustOpen(t, teststores.Records(t), o)
	twice := many(100, 1).all()
	seq := func(yield func(rdfres.Description, error) bool) {
		for d, err := range twice {
			for range 2 {
				if !yield(d, err) {
					return
				}
			}
		}
	}
	if _, err := l.Scan(t.Context(), seq, plain); err == nil {
		t.Error("entities that come twice were taken")
	}
	mustScan(t, l, many(100, 1), plain)
	mustCheck(t, l)
}

// firstChild makes a first scan of many entities into a fresh state.
func firstChild(dir string) error {
	l, err := childLog(dir, newClock())
	if err != nil {
		return err
	}
	if _, err := l.Scan(rootContext(), many(firstEntities, 1).all(), plain); err != nil {
		return err
	}
	fmt.Println("done")
	_, err = io.ReadAll(os.Stdin) // until it is killed
	return err
}

const firstEntities = 4000

// TestFirstScanKilled kills a process at a first scan: the log is empty or whole,
// and nothing else is left.
func TestFirstScanKilled(t *testing.T) {
	kills := 10
	if testing.Short() {
		kills = 3
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	empty, whole, tables := 0, 0, 0
	for kill := range kills {
		dir := t.TempDir()
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "CHANGETRACK_FIRST="+dir)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 5)
		if _, err := io.ReadFull(out, said); err != nil {
			t.Fatalf("the process said %q and ended", said)
		}
		confirmed := false
		wait := time.Duration(rand.IntN(100_000)) * time.Microsecond
		if kill == 0 { // after the scan
			_, err := io.ReadFull(out, said)
			confirmed, wait = err == nil, 0
		}
		time.AfterFunc(wait, func() { cmd.Process.Signal(syscall.SIGKILL) })
		rest, _ := io.ReadAll(out)
		confirmed = confirmed || len(rest) > 0
		cmd.Wait()
		if left, _ := filepath.Glob(filepath.Join(dir, "kv", "load", "*")); len(left) > 0 {
			tables++
		}
		s, err := pebblekv.Open(t.Context(), filepath.Join(dir, "kv"), pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr, l := mustOpen(t, s, testOptions(filepath.Join(dir, "stage"), newClock()))
		switch seq, _ := l.Head(); {
		case seq == firstEntities:
			whole++
		case seq == 0 && !confirmed:
			empty++
			if got := everything(t, kv.Prefix(s, setPrefix(l.id))); len(got) > 0 {
				t.Errorf("%d records of a scan that came to nothing", len(got))
			}
			mustScan(t, l, many(firstEntities, 1), plain)
		default:
			t.Errorf("the head is %d, confirmed: %t", seq, confirmed)
		}
		mustCheck(t, l)
		for _, folder := range []string{"stage", "kv/load"} {
			if left, _ := filepath.Glob(filepath.Join(dir, folder, "*")); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		}
		if err := errors.Join(tr.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d times empty, %d times whole, %d times in the middle of tables", empty, whole, tables)
}
