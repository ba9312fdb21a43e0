package destination

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// silences are the ways in which a source cannot be asked, each with what is told of it.
var silences = map[string]struct {
	fall func(s *testSource)
	says string
}{
	"ended":      {func(s *testSource) { s.hook = answers(http.StatusGone, "") }, "410"},
	"down":       {func(s *testSource) { s.hook = answers(http.StatusServiceUnavailable, "") }, "503"},
	"not there":  {func(s *testSource) { s.srv.Close() }, "refused"},
	"list ended": {func(s *testSource) { s.hook = answers(http.StatusGone, listXML) }, "410"},
	"no changes": {func(s *testSource) { s.hook = answers(http.StatusGone, "/set/changelist.xml") }, "410"},
	"other":      {func(s *testSource) { s.hook = page }, "no ResourceSync document"},
}

// answers makes a path, or every one, answer with a status.
func answers(status int, path string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if path != "" && r.URL.Path != path {
			return false
		}
		http.Error(w, "this collection has ended", status)
		return true
	}
}

func page(w http.ResponseWriter, _ *http.Request) bool {
	fmt.Fprint(w, "<!DOCTYPE html><title>moved</title>")
	return true
}

func (b *bench) alone(repair bool, says string) keep.AuditReport {
	b.t.Helper()
	rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: repair})
	if err != nil || rep.Equal || !strings.Contains(rep.SourceError, says) {
		b.t.Fatalf("%+v %v", rep, err)
	}
	return rep
}

// Without its source a mirror is compared with what is recorded, and put right from that;
// it is not called equal.
func TestAuditWithoutSource(t *testing.T) {
	for name, silence := range silences {
		for _, whole := range []bool{false, true} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprint(name, whole), func(t *testing.T) {
				b := newBench(t)
				b.mir.noUpdate = whole // the graph is put whole then
				b.src.list = name != "no changes"
				fill(b.src, 6)
				b.sync()
				b.equal()
				good := b.mir.lines(graphA)
				silence.fall(b.src)
				if rep := b.alone(false, silence.says); rep.Missing+rep.Extra+rep.Different != 0 || rep.Resources != 6 {
					t.Fatalf("%+v", rep)
				}
				st, err := b.d.Status(context.Background())
				if err != nil || st.LastAudit == nil || st.LastAudit.Equal || st.LastAudit.SourceError == "" {
					t.Fatalf("%+v %v", st, err)
				}

				b.mir.lose("e1", "e2")
				b.mir.graphs[graphA][rdfres.Triple{S: rdfres.NewIRI("http://ex.org/stranger"), P: rdfres.NewIRI("http://ex.org/v"), O: rdfres.NewLiteral("x", "", "")}] = true
				if rep := b.alone(false, silence.says); rep.Missing != 2 || rep.Extra != 1 {
					t.Fatalf("%+v", rep)
				}
				if rep := b.alone(true, silence.says); rep.Missing+rep.Extra+rep.Different != 0 || rep.Repaired != 3 {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), good)
				for _, depth := range []string{"inventory", "origin"} { // have nothing to compare with
					rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
					if err == nil || rep.Equal || !strings.Contains(err.Error(), silence.says) {
						t.Fatalf("%s: %+v %v", depth, rep, err)
					}
				}
			})
		}
	}
}

// What only the source can give again stays told, with the reason, until it is there.
func TestRepairThatNeedsItsSource(t *testing.T) {
	for _, whole := range []bool{false, true} {
		b := newBench(t)
		b.mir.noUpdate = whole
		fill(b.src, 6)
		b.sync()
		loc := b.src.url("/set/r/e2.nt")
		batch := b.store.Batch()
		batch.Set(ledger.Key(ledger.KindBody, b.d.mem.Dest, ledger.HashOf(loc)), ledger.Pack([]byte(nt("e2", "damaged"))))
		if err := batch.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		batch.Close()
		b.mir.lose("e1", "e2")
		b.src.hook = answers(http.StatusGone, "")
		for range 2 {
			rep := b.alone(true, "410")
			left := 1
			if whole { // and of what is not proven nothing is put
				left = 2
			}
			i := slices.IndexFunc(rep.Named, func(d keep.Difference) bool { return d.Location == loc })
			if rep.Missing+rep.Different != int64(left) || i < 0 || !strings.Contains(rep.Named[i].Detail, "only the source can give it again") {
				t.Fatalf("%+v", rep)
			}
		}
		if slices.ContainsFunc(b.mir.lines(graphA), func(l string) bool { return strings.Contains(l, "damaged") }) {
			t.Fatal("what is not proven was written")
		}
		b.src.hook = nil
		clear(b.src.requests)
		rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true})
		if err != nil || !rep.Equal || rep.SourceError != "" || !slices.Equal(b.fetched(), []string{"e2"}) {
			t.Fatalf("%+v %v", rep, err)
		}
		b.equal()
	}
}

// The files of a folder are not kept elsewhere: without the source a file that was lost
// stays told, and counts again when it is put back by hand.
func TestFolderWithoutSource(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	open := b.intoFolder(dir)
	fill(b.src, 3)
	if rep, err := open().Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	b.src.hook = answers(http.StatusGone, "")
	file := filepath.Join(dir, "set", "r", "e1.nt")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(file)
	for range 2 {
		rep, err := open().Audit(context.Background(), AuditOptions{Repair: true})
		if err != nil || rep.Equal || rep.Missing != 1 || rep.SourceError == "" || !strings.Contains(rep.Named[0].Detail, "only the source can give it again") {
			t.Fatalf("%+v %v", rep, err)
		}
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := open().Audit(context.Background(), AuditOptions{})
	if err != nil || rep.Equal || rep.Missing+rep.Extra+rep.Different != 0 {
		t.Fatalf("%+v %v", rep, err)
	}
}

// Who ends an audit hears that, and not that the source is silent.
func TestAuditThatIsEnded(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.sync()
	ctx, cancel := context.WithCancel(context.Background())
	b.src.hook = func(http.ResponseWriter, *http.Request) bool {
		cancel()
		return false
	}
	if rep, err := b.open().Audit(ctx, AuditOptions{}); err == nil || rep.SourceError != "" {
		t.Fatalf("%+v %v", rep, err)
	}
}

// lose takes everything of some entities out of the mirror.
func (m *testMirror) lose(entities ...string) {
	for tr := range maps.Clone(m.graphs[graphA]) {
		for _, e := range entities {
			if strings.HasSuffix(string(tr.S), "/"+e+">") {
				delete(m.graphs[graphA], tr)
			}
		}
	}
}
