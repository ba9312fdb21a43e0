package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// union computes a catalogue with a tool of its own: it parses every document of
// every source, sends those of a mapped source through the map, and writes one
// graph, blank nodes apart by document.
const unionScript = `
import json, sys, pyoxigraph as ox
formats = {"nt": ox.RdfFormat.N_TRIPLES, "ttl": ox.RdfFormat.TURTLE, "jsonld": ox.RdfFormat.JSON_LD}
out = set()
for n, d in enumerate(json.load(open(sys.argv[1]))):
    triples = [ox.Triple(q.subject, q.predicate, q.object) for q in ox.parse(d["body"].encode(), formats[d["suffix"]], base_iri=d["loc"], rename_blank_nodes=True)]
    if d["map"]:
        s = ox.Store()
        for t in triples: s.add(ox.Quad(t.subject, t.predicate, t.object))
        triples = list(s.query(d["map"].replace("?entity", "<" + d["entity"] + ">")))
    out.update(triples)
sys.stdout.buffer.write(ox.serialize(out, format=ox.RdfFormat.N_TRIPLES))
`

// A union catalogue of 20 sources of very different size and pace and dialect: two
// overlap in triples, one is mapped to another vocabulary, one ends, one deletes
// everything. After each round an independent tool finds the catalogue equal.
func TestUnionCatalogue(t *testing.T) {
	python := teststores.Python(t)
	if testing.Short() {
		t.Skip("the same with more sources than TestTwoDestinationsOneGraph and the random histories, where the race detector sees as much; it runs without -short")
	}
	hub := newBench(t) // its mirror and records are everybody's
	sizes := []int{300, 150, 90, 60, 60, 40, 30, 25, 20, 15, 10, 8, 6, 5, 4, 3, 2, 2, 1, 1}
	const overlapA, overlapB, mapped, ended = 3, 4, 5, 6
	var members []*bench
	gone := map[int]bool{}
	body := func(i, k, version int) (name, text string) {
		entity := fmt.Sprintf("http://ex.org/%d/%d", i, k)
		switch {
		case i == overlapA || i == overlapB: // the same entities, most triples in both
			return fmt.Sprintf("s%d.nt", k), fmt.Sprintf("<http://ex.org/s%d> <http://ex.org/v> \"shared\" .\n<http://ex.org/s%d> <http://ex.org/v> \"%d\" .\n<http://ex.org/s%d> <http://ex.org/of> \"%d\" .\n", k, k, version/2, k, i)
		case i == mapped:
			return fmt.Sprintf("m%d.nt", k), nt(fmt.Sprintf("m%d", k), fmt.Sprint(version), "b")
		case k%3 == 1:
			return fmt.Sprintf("%d.ttl", k), fmt.Sprintf("<%s> <http://ex.org/p> [ <http://ex.org/q> %d, [ <http://ex.org/r> \"x\"@en ] ], [ <http://ex.org/q> 1 ] .", entity, version)
		case k%3 == 2:
			return fmt.Sprintf("%d.jsonld", k), fmt.Sprintf(`[{"@id":"%s","http://ex.org/v":[{"@value":"%d"}],"http://ex.org/n":[{"http://ex.org/w":[{"@value":"w%d"}]}]}]`, entity, version, i)
		}
		return fmt.Sprintf("%d.nt", k), fmt.Sprintf("<%s> <http://ex.org/v> \"%d\" .\n", entity, version)
	}
	for i, n := range sizes {
		b := &bench{t: t, src: newTestSource(t), mir: hub.mir, store: hub.store, cfg: hub.cfg, clock: hub.clock, caps: hub.caps}
		b.cfg.Name, b.cfg.Source, b.cfg.MaxDeleteRatio = fmt.Sprintf("member%d", i), b.src.url("/.well-known/resourcesync"), 1
		s := b.src
		s.ours = i%3 == 0 && i != mapped
		switch i % 5 {
		case 1:
			s.changes = false
		case 2:
			s.list, s.changes, s.dump, s.changeDump = false, false, true, true
		case 3:
			s.dump = true
		}
		if i == mapped {
			b.cfg.Map = "CONSTRUCT { ?entity a <http://cat.example/Record> . ?entity <http://cat.example/value> ?v } WHERE { ?entity <http://ex.org/v> ?v }"
		}
		for k := range n {
			s.put(body(i, k, 0))
		}
		members = append(members, b)
	}
	expected := func() []byte {
		var docs []map[string]string
		for i, b := range members {
			for _, name := range slices.Sorted(maps.Keys(b.src.bodies)) {
				text := b.src.bodies[name]
				d := map[string]string{"body": string(text), "suffix": strings.TrimPrefix(filepath.Ext(name), "."), "loc": b.src.url(b.src.folder + name), "map": "", "entity": ""}
				if i == mapped {
					d["map"], d["entity"] = b.cfg.Map, "http://ex.org/"+strings.TrimSuffix(name, ".nt")
				}
				docs = append(docs, d)
			}
		}
		raw, err := json.Marshal(docs)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "documents.json")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", unionScript, file)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	syncAll := func() {
		t.Helper()
		for i, b := range members {
			rep, err := b.open().Sync(context.Background(), SyncOptions{})
			b.clock = b.clock.Add(time.Minute)
			if gone[i] {
				if err == nil {
					t.Fatalf("member %d has ended, and its sync tells nothing: %+v", i, rep)
				}
				continue
			}
			if err != nil || !rep.InSync {
				t.Fatalf("member %d: %+v %v", i, rep, err)
			}
		}
	}
	check := func(what string) {
		t.Helper()
		var mirror []byte
		hub.mir.mu.Lock()
		for tr := range hub.mir.graphs[graphA] {
			mirror = tr.AppendLine(mirror)
		}
		hub.mir.mu.Unlock()
		t.Log(what)
		teststores.Equal(t, expected(), mirror)
		for i, b := range members {
			if gone[i] {
				continue
			}
			if rep, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !rep.Equal {
				t.Fatalf("%s, member %d: %+v %v", what, i, rep, err)
			}
		}
	}
	syncAll()
	check("baseline")
	rnd := rand.New(rand.NewPCG(1, 20))
	for round := range 4 {
		for i, b := range members {
			if gone[i] {
				continue
			}
			for range (sizes[i]*(i%4) + 9) / 10 { // some never change, some much
				k := rnd.IntN(sizes[i] + 2)
				name, text := body(i, k, round+1)
				if rnd.IntN(4) == 0 {
					b.src.remove(name)
				} else {
					b.src.put(name, text)
				}
			}
		}
		if round == 2 {
			gone[ended] = true
			members[ended].src.hook = func(w http.ResponseWriter, r *http.Request) bool {
				http.Error(w, "this collection has ended", http.StatusGone)
				return true
			}
			// What it changed last was not told to anybody.
			members[ended].endedAt(t)
		}
		syncAll()
		check(fmt.Sprintf("round %d", round))
	}
	// One of the two that overlap deletes everything: what the other has stays.
	for name := range maps.Clone(members[overlapA].src.bodies) {
		members[overlapA].src.remove(name)
	}
	syncAll()
	check("one deletes everything")
	some := false
	for tr := range hub.mir.graphs[graphA] {
		some = some || tr.O == rdfres.NewLiteral("shared", "", "")
	}
	if !some {
		t.Fatal("the triples of the other went with it")
	}
}

// endedAt brings what the test expects of a source that has ended to what the
// mirror was last told of it.
func (b *bench) endedAt(t *testing.T) {
	t.Helper()
	d := b.open()
	clear(b.src.bodies)
	for _, rec := range d.mem.Ledger.Records(t.Context(), d.mem.Store) {
		if rec.Err != nil {
			t.Fatal(rec.Err)
		}
		name := strings.TrimPrefix(rec.Loc, b.src.url(b.src.folder))
		for _, l := range b.src.log {
			if l.name != name || l.body == nil {
				continue
			}
			if h := resourcesync.HashesOf(l.body, rec.Hashes); h.SHA256 == rec.Hashes.SHA256 {
				b.src.bodies[name] = l.body
			}
		}
	}
}
