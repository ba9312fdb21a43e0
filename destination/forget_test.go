package destination

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// inStore is everything that a store holds, a line for each triple.
// With a graph it is what is in that, in those below it, and of the marks.
func inStore(t *testing.T, c *sparql.Client, graph string, marks map[string]bool) (lines []string) {
	t.Helper()
	others := func(line string) bool {
		for mark := range marks {
			if strings.Contains(line, strings.TrimPrefix(mark, sink.MarkPrefix)) {
				return false
			}
		}
		return strings.HasPrefix(line, "[<"+sink.StateGraph+">")
	}
	pattern := "{ ?s ?p ?o BIND(<urn:none> AS ?g) } UNION { GRAPH ?g { ?s ?p ?o } }"
	if graph != "" { // others use the store too
		pattern = fmt.Sprintf("GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), '%s') || ?g = <%s>)", graph, sink.StateGraph)
	}
	s, err := c.Select(context.Background(), "SELECT ?g ?s ?p ?o WHERE { "+pattern+" }")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range s.Rows {
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprint(row); graph == "" || !others(line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// recordsLeft are the records that tell of a destination or a space.
func recordsLeft(t *testing.T, store kv.Reader) (left []string) {
	t.Helper()
	for p, err := range store.Scan(t.Context(), []byte{0}, []byte{0xff}) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.ContainsRune("vNS", rune(p.Key[0])) {
			left = append(left, fmt.Sprintf("%q", p.Key))
		}
	}
	return left
}

var errCrash = errors.New("crash")

// crashAfter crashes the n-th time that it may.
func crashAfter(n int) func(string) error {
	return func(string) error {
		if n--; n < 0 {
			return errCrash
		}
		return nil
	}
}

// What a destination owns goes whole, whenever it is interrupted; what is of others stays.
func TestForget(t *testing.T) {
	kinds := []string{"single", "shared", "per-entity", "provenance", "files", "keep-data"}
	mirrors := map[string]string{"single oxigraph": "oxigraph", "provenance fuseki": "fuseki", "per-entity oxigraph": "oxigraph"}
	for _, k := range kinds {
		mirrors[k+" embedded"] = "embedded"
	}
	for name, real := range mirrors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, _, _ := strings.Cut(name, " ")
			b := newBench(t)
			fill(b.src, 12)
			b.src.put("page.html", "<html><body>no RDF</body></html>")
			e, graph := realMirrors[real](t)
			c, ctx := clientOf(t, e), context.Background()
			cfg := b.cfg
			cfg.GraphIRI, cfg.MemoryBytes = graph, 64<<10
			only, marks := "", map[string]bool{}
			if real != "embedded" {
				only = graph
			}
			switch kind {
			case "per-entity":
				cfg.Graph, cfg.GraphIRI = "per-entity", graph+"/{entity}"
			case "provenance":
				cfg.Provenance = true
			case "files":
				cfg.Files = filepath.Join(t.TempDir(), "files")
			}
			open := func(cfg keep.Config) *Destination {
				t.Helper()
				d, err := Open(ctx, b.store, sparqlsink.Of(c), cfg, keep.Options{})
				if err != nil {
					t.Fatal(err)
				}
				marks[d.mem.Meta.Mark] = true
				return d
			}
			sync := func(cfg keep.Config) {
				t.Helper()
				if rep, err := open(cfg).Sync(ctx, SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
			}
			other := cfg
			if other.Name = "other"; kind != "shared" {
				other.Graph, other.GraphIRI, other.Files = "single", graph+"/other", ""
			}
			sync(other)
			before := inStore(t, c, only, marks)
			sync(cfg)
			// Somebody writes into the graph.
			if kind != "per-entity" {
				foreign := "INSERT DATA { GRAPH <" + graph + "> { <http://ex.org/e3> <http://ex.org/v> \"foreign\" } }"
				if err := c.Update(ctx, foreign); err != nil {
					t.Fatal(err)
				}
				if kind != "keep-data" {
					before = append(before, fmt.Sprintf("[<%s> <http://ex.org/e3> <http://ex.org/v> \"foreign\"]", graph))
				}
			}
			slices.Sort(before)
			if kind == "keep-data" {
				before = slices.DeleteFunc(inStore(t, c, only, marks), func(l string) bool { return strings.Contains(l, open(cfg).mem.Meta.Mark) })
			}
			o := ForgetOptions{KeepData: kind == "keep-data"}
			k, err := KeptAs(ctx, b.store, "copy")
			if err != nil || k == nil || !k.Mirrored || k.Resources != 13 {
				t.Fatalf("%+v %v", k, err)
			}
			of := k.Config()
			of.TempDir, of.MemoryBytes = cfg.TempDir, cfg.MemoryBytes
			all, records := inStore(t, c, only, marks), len(recordsLeft(t, b.store))
			rep, err := open(of).Forget(ctx, ForgetOptions{DryRun: true, KeepData: o.KeepData})
			triples := map[string]int64{"keep-data": 0, "shared": 0}
			want, known := triples[kind]
			if !known {
				want = 24
			}
			if err != nil || rep.Triples != want || rep.Resources != 13 || rep.Lines < 7 || rep.Records < 40 {
				t.Fatalf("%+v %v", rep, err)
			}
			b.same(inStore(t, c, only, marks), all)
			if n := len(recordsLeft(t, b.store)); n != records {
				t.Fatal("a dry run changed the records")
			}
			for n := 0; ; n++ {
				d := open(of)
				d.mem.Crash = crashAfter(n % 7)
				if _, err = d.Forget(ctx, o); err == nil {
					break
				}
				if !errors.Is(err, errCrash) || n > 100 {
					t.Fatal(err)
				}
				if n == 1 && kind == "single" { // it comes back, and is forgotten again
					sync(cfg)
					if a, err := open(cfg).Audit(ctx, AuditOptions{}); err != nil || !a.Equal {
						t.Fatalf("%+v %v", a, err)
					}
				}
			}
			if kind == "single" { // a comparison has removed it
				before = slices.DeleteFunc(before, func(l string) bool { return strings.Contains(l, "foreign") })
			}
			b.same(inStore(t, c, only, marks), before)
			if kind == "files" {
				if list, err := os.ReadDir(cfg.Files); err != nil || len(list) > 0 {
					t.Fatal(list, err)
				}
			}
			if a, err := open(other).Audit(ctx, AuditOptions{}); err != nil || a.Missing > 0 || kind != "shared" && a.Different > 0 {
				t.Fatalf("%+v %v", a, err)
			}
			o.KeepData = false
			if _, err := open(other).Forget(ctx, o); err != nil {
				t.Fatal(err)
			}
			if left := recordsLeft(t, b.store); left != nil {
				t.Fatal(left)
			}
		})
	}
}

// Mirrors that are put whole, and files.
func TestForgetWhole(t *testing.T) {
	for _, kind := range []string{"graph-store", "dump", "folder"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			fill(b.src, 12)
			dir := filepath.Join(t.TempDir(), "mirror")
			ctx, open := context.Background(), b.open
			switch kind {
			case "graph-store":
				b.mir.noUpdate = true
			case "dump":
				s, err := dumpsink.Open(filepath.Join(dir, "all.nt"))
				if err != nil {
					t.Fatal(err)
				}
				b.cfg.GraphIRI = ""
				open = func() *Destination { return b.openSink(s) }
			case "folder":
				open = b.intoFolder(dir)
			}
			sync := func() {
				t.Helper()
				if rep, err := open().Sync(ctx, SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
			}
			sync()
			if kind == "dump" { // a second one shares it
				b.cfg.Name = "other"
				sync()
				b.cfg.Name = "copy"
			}
			for n := 0; ; n++ {
				d := open()
				d.mem.Crash = crashAfter(n)
				if _, err := d.Forget(ctx, ForgetOptions{}); err == nil {
					break
				} else if !errors.Is(err, errCrash) || n > 100 {
					t.Fatal(err)
				}
			}
			if kind == "dump" {
				b.cfg.Name = "other"
				if a, err := open().Audit(ctx, AuditOptions{}); err != nil || !a.Equal {
					t.Fatalf("%+v %v", a, err)
				}
				if _, err := open().Forget(ctx, ForgetOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if left := recordsLeft(t, b.store); left != nil {
				t.Fatal(left)
			}
			if kind != "graph-store" {
				if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
					t.Fatal(list, err)
				}
			} else if len(b.mir.lines(graphA)) > 0 {
				t.Fatal(b.mir.lines(graphA))
			}
		})
	}
}
