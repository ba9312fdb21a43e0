package embedstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// crashSize is how many triples write n makes: small ones, and some that go
// the way of large ones.
func crashSize(n int) int {
	if n%4 == 3 {
		return 3000
	}
	return 1 + n%7*5
}

// TestMain runs the writer of TestKill when it is asked to.
func TestMain(m *testing.M) {
	if dir := os.Getenv("EMBEDSTORE_CRASH_DIR"); dir != "" {
		first, _ := strconv.Atoi(os.Getenv("EMBEDSTORE_CRASH_FIRST"))
		if err := crashWriter(dir, first); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// crashWriter writes until it is killed. Write n puts n into every one of its
// triples, alternately by Load, by Update and by replacing the graph "put".
func crashWriter(dir string, n int) error {
	s, err := Open(dir, Options{CacheBytes: 4 << 20})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for ; ; n++ {
		s.forced.bulk = n%4 == 3
		s.forced.spill = n%8 == 5
		fmt.Println("begin", n)
		var b strings.Builder
		for i := range crashSize(n) {
			fmt.Fprintf(&b, "<http://x/w%d> <http://x/p%d> \"%d of %d\" .\n", n, i, i, n)
		}
		switch n % 3 {
		case 0:
			_, err = s.Load(ctx, "http://x/g", rdfres.NTriples, strings.NewReader(b.String()), LoadOptions{})
		case 1:
			err = s.Update(ctx, "INSERT DATA { GRAPH <http://x/g> { "+b.String()+" } }")
		case 2:
			_, err = s.Load(ctx, "http://x/put", rdfres.NTriples, strings.NewReader(b.String()), LoadOptions{Replace: true})
		}
		if err != nil {
			return err
		}
		fmt.Println("done", n)
	}
}

// TestKill kills a writing process at random moments. What was answered is
// there whole; of what was not, all or nothing.
func TestKill(t *testing.T) {
	teststores.Sequential(t)
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(kills), 3))
	written := map[int]bool{} // writes that are known to be there
	next, put := 0, -1        // put: the newest replacement that is known
	for kill := range kills {
		cmd := osexec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "EMBEDSTORE_CRASH_DIR="+dir, "EMBEDSTORE_CRASH_FIRST="+strconv.Itoa(next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun, open := -1, false
		lines := bufio.NewScanner(out)
		after := 1 + r.IntN(20)
		for seen := 0; lines.Scan(); {
			word, num, _ := strings.Cut(lines.Text(), " ")
			n, _ := strconv.Atoi(num)
			switch word {
			case "begin":
				begun, open = n, true
			case "done":
				open = false
				if n%3 == 2 {
					put = n
				} else {
					written[n] = true
				}
			default:
				t.Fatal(lines.Text())
			}
			if seen++; seen == after {
				time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, func() { cmd.Process.Kill() })
			}
		}
		cmd.Wait()
		next = begun + 1

		s, err := Open(dir, Options{CacheBytes: 4 << 20})
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		checkStore(t, s)
		checkDictionary(t, s)
		got := map[int]int{}
		for _, row := range ask(t, s, "SELECT ?s (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?s") {
			subj, count, _ := strings.Cut(row, "|")
			n, _ := strconv.Atoi(strings.Trim(subj, "<>htp:/xw"))
			c, _ := strconv.Atoi(strings.Split(count, `"`)[1])
			got[n] = c
		}
		if open && got[begun] == crashSize(begun) {
			if begun%3 == 2 {
				put = begun
			} else {
				written[begun] = true
			}
		}
		want := map[int]int{}
		for n := range written {
			want[n] = crashSize(n)
		}
		if put >= 0 {
			want[put] = crashSize(put)
		}
		for n, c := range want {
			if got[n] != c {
				t.Errorf("kill %d at write %d: write %d has %d triples, want %d", kill, begun, n, got[n], c)
			}
		}
		for n, c := range got {
			if want[n] == 0 {
				t.Errorf("kill %d at write %d: write %d left %d triples", kill, begun, n, c)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d writes", kills, next)
}

// TestKilledAtFirst: a process is killed at each write of the first start. The next one opens the
// folder, which is no foreign one.
func TestKilledAtFirst(t *testing.T) {
	for at, done := 0, false; !done; at++ {
		dir, killed := t.TempDir(), ""
		var left atomic.Int64
		left.Store(int64(at))
		var once sync.Once
		s, err := Open(dir, Options{CacheBytes: 1 << 20, fs: errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && left.Add(-1) < 0 {
				once.Do(func() {
					for err := os.ErrNotExist; errors.Is(err, os.ErrNotExist); { // a file removed meanwhile
						killed = t.TempDir()
						err = os.CopyFS(killed, os.DirFS(dir))
					}
				})
			}
			return nil
		}))})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if done = killed == ""; done {
			t.Logf("%d writes", at)
			break
		}
		if err := Try(killed); err != nil {
			t.Errorf("killed at write %d: Try gives %v", at, err)
		}
		s, err = Open(killed, Options{CacheBytes: 1 << 20})
		if err != nil {
			t.Errorf("killed at write %d: %v", at, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkDictionary sees that no term of an unfinished write is left.
func checkDictionary(t testing.TB, s *Store) {
	t.Helper()
	for _, space := range [...]byte{spaceTerm, spaceIRI} {
		err := eachTermFrom(pebbleView{s.db}, space, 0, func(i id, term []byte) error {
			if uint64(i>>2) >= s.next {
				t.Fatalf("term %s has the id %d, and the next is %d", term, i, s.next)
			}
			if back, err := lookup(pebbleView{s.db}, string(term)); err != nil || back != i {
				t.Fatalf("term %s has the ids %d and %d", term, back, i)
			}
			if termSpace(i) != space || kindOf(string(term)) != i.kind() {
				t.Fatalf("term %s with the id %d stands in space %d", term, i, space)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
