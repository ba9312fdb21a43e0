package bridge

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// TestLife is the whole life of a set: a store that is edited and answers badly, or a series
// of dumps of it, scans of every kind, files that come and go, a clock that is set back and
// forth, restarts with other settings, a state that is lost or put back. Followers that know
// nothing but the published documents hold after each step what the set holds, our own
// destination does whenever it says so, and what that is a plain reading of the store says.
// RSBRIDGE_HISTORIES is the number of lives, for campaigns.
func TestLife(t *testing.T) {
	steps := 30
	if testing.Short() {
		steps = 12
	}
	for seed := range teststores.Histories(1, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel() // a store that answers badly is waited for
			newLife(t, uint64(seed)).live(steps)
		})
	}
}

type life struct {
	t       *testing.T
	r       *rand.Rand
	now     time.Time
	store   *embedstore.Store
	repo    *repository  // of files that entities lead to
	answer  atomic.Int32 // how the store answers
	cfg     *Config
	b       *Bridge
	model   map[string]thing // by IRI
	orphans [4]int           // blank nodes that no IRI leads to; 0: there is none
	edited  []string         // since the last look at everything
	at      string           // base URL of what is published
	told    []string         // what was done, for who reads a failure

	followers []*follower
	wobbles   bool
	leads     bool         // entities lead to files
	looks     atomic.Int64 // at the clock
	archives  bool
	copy      *lifeCopy
	dumps     string // folder of the series of dumps that the set is made from; "": it is made from the store
	files     int    // of it, and of those the last that is whole
	whole     string
	begun     map[string]bool
	lines     []byte // of the store
	backup    string // a copy of the state; "": there is none
	gaps      bool   // the lists may have begun anew since the followers looked
	checker   *check.Checker
}

// How the store answers.
const (
	well   = iota
	never  // refuses
	cut    // breaks off
	short  // ends too early, as if it were whole
	answer = 4
)

// thing is an entity in the store.
type thing struct {
	value, class, nodes int
	modified            time.Time
	shared              int // a blank node that it shares with others of that number; 0: none
	next                int // an entity that it leads to
	depth               int // of a chain of blank nodes
}

func newLife(t *testing.T, seed uint64) *life {
	w := &life{t: t, r: rand.New(rand.NewPCG(seed, 11)), now: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), model: map[string]thing{}, archives: seed%2 == 0, wobbles: seed%3 == 2, leads: seed%5 < 2}
	var err error
	if w.store, err = embedstore.Open(t.TempDir(), embedstore.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	w.repo = newRepository(t)
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	w.cfg = small(t.TempDir())
	w.cfg.Stores["source"] = Store{Query: server.URL + "/query", GraphStore: server.URL + "/data", Concurrency: 1}
	clear(w.cfg.Destinations)
	set := w.cfg.Sets["data"]
	set.Schedule = ""
	set.Hints = Hints{Modified: []string{"http://purl.org/dc/terms/modified"}, Overlap: Duration(2 * time.Minute)}
	if seed%3 == 1 && seed%4 != 3 {
		set.Hints = Hints{Counts: []string{"class"}}
	}
	w.cfg.Sets["data"] = set
	if seed%4 == 3 {
		w.dumps = t.TempDir()
		set.Store, set.Hints, set.Dumps, set.DumpsSettle = "", Hints{}, []string{w.dumps + "/full*"}, 0
		if seed%8 == 7 {
			set.DumpsOrder = "time"
		}
		w.cfg.Sets["data"] = set
	}
	w.settings(true)
	w.open()
	t.Cleanup(func() {
		if err := w.b.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, line := range w.told {
				t.Log(line)
			}
		}
	})
	w.edit(10 + w.r.IntN(40))
	w.load()
	w.copy = newLifeCopy(w)
	return w
}

func (w *life) say(format string, a ...any) {
	w.told = append(w.told, w.now.Format("2006-01-02T15:04:05 ")+fmt.Sprintf(format, a...))
}

// serve is the store, answering as told. What is short has whole lines.
func (w *life) serve(rw http.ResponseWriter, r *http.Request) {
	how := w.answer.Load()
	if how == never {
		http.Error(rw, "no", http.StatusForbidden)
		return
	}
	rec := httptest.NewRecorder()
	w.store.Handler().ServeHTTP(rec, r)
	maps.Copy(rw.Header(), rec.Header())
	body := rec.Body.Bytes()
	if how != well && rec.Code == http.StatusOK && len(body) > 400 {
		rw.Header().Del("Content-Length")
		rw.WriteHeader(rec.Code)
		body = body[:len(body)*2/3]
		if i := bytes.LastIndexByte(body, '\n'); i > 0 {
			body = body[:i+1]
		}
		rw.Write(body)
		if how == cut {
			panic(http.ErrAbortHandler)
		}
		return
	}
	rw.WriteHeader(rec.Code)
	rw.Write(body)
}

func (w *life) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *life) open() {
	w.t.Helper()
	var err error
	w.b, err = Open(w.t.Context(), w.cfg, Options{Now: w.clock})
	w.must(err)
}

// clock is the time, for some lives set back and forth whenever somebody looks at it.
func (w *life) clock() time.Time {
	if !w.wobbles {
		return w.now
	}
	return w.now.Add(time.Duration(w.looks.Add(1)*7919%241-120) * time.Minute)
}

// settings are others, but for what has to be accepted unless all may change.
func (w *life) settings(all bool) {
	r, set := w.r, w.cfg.Sets["data"]
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	set.Publish = []string{"resourcelist", "changelist"}
	for _, c := range []string{"resourcedump", "changedump"} {
		if r.IntN(3) > 0 {
			set.Publish = append(set.Publish, c)
		}
	}
	if r.IntN(8) == 0 {
		set.Publish = slices.DeleteFunc(set.Publish, func(c string) bool { return c == "resourcelist" })
	}
	set.ResourceList = ResourceList{PartEntries: 3 + r.IntN(30), Schedule: pick("", "", "@yearly")}
	set.ChangeList = ChangeList{Rotate: Duration(time.Duration(1+r.IntN(100)) * time.Minute), Entries: 1 + r.IntN(20)}
	set.ChangeDump = ChangeDump{Schedule: pick("", "@yearly"), Patches: r.IntN(2) == 0}
	if w.archives {
		set.Archives = Archives{Schedule: pick("", "@yearly")}
	}
	set.Retention = Retention{Changes: Duration(time.Duration(1+r.IntN(50)) * time.Hour), Versions: Duration(time.Duration(1+r.IntN(50)) * time.Hour), Archives: Duration(time.Duration(1+r.IntN(500)) * time.Hour)}
	set.Inventory = r.IntN(2) == 0
	if set.Content = (Content{}); w.leads && r.IntN(4) > 0 {
		set.Content = Content{Every: 1, PerRun: 1000, Rate: 1e6, Concurrency: 2, MaxBytes: 1 << 20, Timeout: Duration(time.Second), Hash: r.IntN(2) == 0,
			DumpBytes: int64(r.IntN(3) * 40), Allow: []string{w.repo.URL}}
		set.Content.Properties = [][]string{{"http://e.example/p/file"}, {"http://e.example/p/page"}, {"http://e.example/p/file", "http://e.example/p/page"}}[r.IntN(3)]
	}
	if all {
		set.Format = pick("jsonld", "ntriples")
		set.Prefix = pick("", "http://e.example/")
		if !w.archives { // what is archived keeps the addresses that it was written with
			w.cfg.Public.BaseURL = pick("http://source.invalid", "http://other.invalid/sub")
		}
		set.Select = Select{}
		switch r.IntN(3) {
		case 0:
			set.Select.Prefixes = []string{"http://e.example/"}
		case 1:
			set.Select.Classes = []string{"http://e.example/C0", "http://e.example/C1"}
		}
		set.Describe = pick("cbd", "cbd", "scbd")
		if set.Strategy = pick("", "", "batches", "hash", "predicates"); w.dumps != "" {
			set.Strategy = ""
		}
	}
	w.cfg.Sets["data"] = set
}

// ---- the store

func (w *life) iri() string {
	n := w.r.IntN(60)
	switch w.r.IntN(8) {
	case 0:
		return fmt.Sprintf("http://other.example/%d.html", n)
	case 1:
		return fmt.Sprintf("urn:x:é:%d~41%%2F'%%", n)
	case 2:
		return fmt.Sprintf("http://e.example/a/../%d?x=1&y='2'#%d", n, n)
	}
	return fmt.Sprintf("http://e.example/%d", n)
}

func (w *life) edit(n int) {
	for range n {
		e := w.iri()
		old, there := w.model[e]
		if there && w.r.IntN(4) == 0 {
			delete(w.model, e)
			w.edited = append(w.edited, e)
			continue
		}
		x := thing{value: w.r.IntN(1000), class: w.r.IntN(3), nodes: w.r.IntN(4), modified: w.now, shared: max(0, w.r.IntN(8)-5), next: w.r.IntN(60), depth: max(0, w.r.IntN(16)-8)}
		if there && w.r.IntN(5) == 0 {
			x.modified = old.modified // told by nobody
		}
		if w.leads {
			path := fmt.Sprintf("/f%d", w.r.IntN(12))
			if w.repo.drop(path); w.r.IntN(5) > 0 {
				w.repo.put(path, repositoryFile{body: fmt.Sprint("file ", x.value), mediaType: "application/pdf", etag: fmt.Sprintf("\"%d\"", x.value)})
			}
		}
		w.model[e] = x
		w.edited = append(w.edited, e)
	}
	if w.r.IntN(3) == 0 {
		w.orphans[w.r.IntN(len(w.orphans))] = w.r.IntN(4)
	}
	w.say("edited %d", n)
}

func (w *life) load() {
	var b strings.Builder
	const p = "<http://e.example/p/"
	for e, x := range w.model {
		fmt.Fprintf(&b, "<%s> %svalue> \"%d\" .\n<%s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e.example/C%d> .\n", e, p, x.value, e, x.class)
		fmt.Fprintf(&b, "<%s> <http://purl.org/dc/terms/modified> %s .\n", e, at(x.modified))
		fmt.Fprintf(&b, "<%s> %snext> <http://e.example/%d> .\n", e, p, x.next)
		if w.leads {
			fmt.Fprintf(&b, "<%s> %s%s> <%s/f%d> .\n", e, p, []string{"file", "page"}[x.value%2], w.repo.URL, x.value%12)
		}
		for i := range x.nodes {
			node := fmt.Sprintf("_:n%sx%d", hex.EncodeToString([]byte(e)), i)
			fmt.Fprintf(&b, "<%s> %snode> %s .\n%s %svalue> \"%d of %d\" .\n%s %sdeep> %sd .\n%sd %svalue> \"deep %d\"@en .\n", e, p, node, node, p, i, x.value, node, p, node, node, p, x.value%3)
		}
		for i, from := 0, "<"+e+">"; i < x.depth; i++ {
			to := fmt.Sprintf("_:c%sx%d", hex.EncodeToString([]byte(e)), i)
			fmt.Fprintf(&b, "%s %schain> %s .\n%s %svalue> \"%d\" .\n", from, p, to, to, p, i*x.value)
			from = to
		}
		if x.shared > 0 {
			fmt.Fprintf(&b, "<%s> %sshares> _:s%d .\n_:s%d %svalue> \"shared by %d\" .\n", e, p, x.shared, x.shared, p, len(w.model)%4)
		}
	}
	for i, v := range w.orphans {
		if v > 0 {
			fmt.Fprintf(&b, "_:o%d %svalue> \"orphan %d of %d\" .\n_:o%d %sdeep> _:o%dx .\n_:o%dx %svalue> \"%d\" .\n", i, p, i, v, i, p, i, i, p, i)
		}
	}
	_, err := w.store.Load(w.t.Context(), "", rdfres.NTriples, strings.NewReader(b.String()), embedstore.LoadOptions{Replace: true})
	w.must(err)
	if w.lines = []byte(b.String()); w.dumps != "" {
		w.dump(w.lines, false)
	}
}

// dump writes the next file of the series, or the beginning of one. By name it is the
// newest, or by its time; what the other says differs.
func (w *life) dump(data []byte, begun bool) {
	w.t.Helper()
	w.files++
	number, at := w.files, time.Date(2026, 3, 1, 0, 0, w.files, 0, time.UTC)
	if w.cfg.Sets["data"].DumpsOrder == "time" {
		number = w.r.IntN(1000)
	} else {
		at = at.Add(-time.Duration(w.r.IntN(3)) * time.Second)
	}
	suffix := []string{".nt", ".nt.gz", ".nt.zst"}[w.r.IntN(3)]
	path := filepath.Join(w.dumps, fmt.Sprintf("full-%d%s", number, suffix))
	if last := w.whole; !begun && last != "" && w.r.IntN(4) == 0 { // in the place of the last one
		path, suffix = last, last[strings.Index(last, ".nt"):]
		if w.cfg.Sets["data"].DumpsOrder != "time" {
			at = time.Date(2026, 2, 1, 0, 0, w.files, 0, time.UTC)
		}
	}
	packed := packed(w.t, suffix, data)
	if begun {
		packed = bytes.TrimRight(packed[:w.r.IntN(len(packed)-3)], ".\n") // or it is whole
	} else {
		w.whole = path
	}
	w.must(errors.Join(os.WriteFile(path+"~", packed, 0o600), os.Chtimes(path+"~", at, at), os.Rename(path+"~", path)))
	all, err := filepath.Glob(w.dumps + "/full*")
	w.must(err)
	for _, p := range all {
		if p != path && p != w.whole && (w.r.IntN(4) == 0 || !begun && w.begun[p]) { // one that was begun is made no more
			w.must(os.Remove(p))
		}
	}
	w.begun = map[string]bool{path: begun}
	w.say("wrote %s, begun only: %v, %v, of %d", path, begun, at, len(all))
}

// packed packs a file as its name says.
func packed(t *testing.T, suffix string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch suffix {
	case ".nt.gz":
		z := gzip.NewWriter(&b)
		_, err = z.Write(data)
		err = errors.Join(err, z.Close())
	case ".nt.zst":
		z, _ := zstd.NewWriter(&b)
		_, err = z.Write(data)
		err = errors.Join(err, z.Close())
	default:
		return data
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plain writes a description without the names of its blank nodes, which form trees;
// symmetric with what leads to the entity.
func plain(entity string, ts []rdfres.Triple, symmetric bool) string {
	by := map[rdfres.Term][]rdfres.Triple{}
	var in []string
	for _, t := range ts {
		by[t.S] = append(by[t.S], t)
		if symmetric && t.O == rdfres.NewIRI(entity) && t.S != t.O {
			in = append(in, string(t.S)+" "+string(t.P))
		}
	}
	slices.Sort(in)
	var write func(s rdfres.Term) string
	write = func(s rdfres.Term) string {
		var lines []string
		for _, t := range by[s] {
			o := string(t.O)
			if strings.HasPrefix(o, "_:") {
				o = "[" + write(t.O) + "]"
			}
			lines = append(lines, string(t.P)+" "+o)
		}
		slices.Sort(lines)
		return strings.Join(lines, "; ")
	}
	if !isOrphan(entity) {
		return strings.Join(append(in, write(rdfres.NewIRI(entity))), "\n")
	}
	for root := range by {
		if !slices.ContainsFunc(ts, func(t rdfres.Triple) bool { return t.O == root }) {
			return write(root)
		}
	}
	return "an orphan without a root"
}

func isOrphan(entity string) bool { return strings.HasPrefix(entity, "urn:rsbridge:component:") }

// known is how an entity is called here: a component of blank nodes by what it says.
func known(entity, text string) string {
	if isOrphan(entity) {
		return "orphan " + text
	}
	return entity
}

// wanted is what the set is to hold.
func (w *life) wanted() map[string]string {
	w.t.Helper()
	var b bytes.Buffer
	w.must(w.store.Dump(w.t.Context(), &b, rdfres.NTriples, embedstore.DumpOptions{}))
	ts, err := codec.Decode(rdfres.NTriples, b.Bytes(), rdfres.ReadOptions{})
	w.must(err)
	sel := w.cfg.Sets["data"].Select
	out := map[string]string{}
	for e, x := range w.model {
		if len(sel.Prefixes) > 0 && !strings.HasPrefix(e, sel.Prefixes[0]) || len(sel.Classes) > 0 && x.class > 1 {
			continue
		}
		out[e] = plain(e, ts, w.cfg.Sets["data"].Describe == "scbd")
	}
	for i, v := range w.orphans {
		if v > 0 && len(sel.Prefixes)+len(sel.Classes) == 0 {
			text := fmt.Sprintf("<http://e.example/p/deep> [<http://e.example/p/value> \"%d\"]; <http://e.example/p/value> \"orphan %d of %d\"", i, i, v)
			out["orphan "+text] = text
		}
	}
	return out
}

// holds is what the log says that the set holds.
func (w *life) holds() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for e, text := range w.each() {
		out[known(e, text)] = text
	}
	return out
}

// each is every entity with its description.
func (w *life) each() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	view := w.b.Log("data").View(w.t.Context())
	defer view.Close()
	for st, err := range view.Current(w.t.Context(), rdfres.Digest{}, rdfres.Digest{}) {
		w.must(err)
		out[st.Entity] = plain(st.Entity, w.description(st.Entity), true)
	}
	return out
}

// description is that of an entity, in wire form.
func (w *life) description(entity string) []rdfres.Triple {
	w.t.Helper()
	data, _, err := w.b.Describe(w.t.Context(), "data", entity, time.Time{}, rdfres.NTriples)
	w.must(err)
	ts, err := codec.Decode(rdfres.NTriples, data, rdfres.ReadOptions{})
	w.must(err)
	return ts
}

// ---- steps

// run runs a job to its end.
func (w *life) run(job string, args any) (rep ScanReport, err error) {
	w.t.Helper()
	run, _, err := w.b.runner.Start(job, "test", args)
	w.must(err)
	return w.ended(run)
}

func (w *life) ended(run jobs.Run) (rep ScanReport, err error) {
	w.t.Helper()
	run, err = w.b.runner.Wait(w.t.Context(), run.ID)
	w.must(err)
	if run.State != jobs.Done {
		err = errors.New(run.Error)
	} else if len(run.Result) > 0 {
		w.must(json.Unmarshal(run.Result, &rep))
	}
	w.say("%s: %v, %d created, %d updated, %d deleted, held %v, failed %d, way %s", run.Job, err, rep.Created, rep.Updated, rep.Deleted, rep.Held != nil, rep.Failed, rep.Way)
	return rep, err
}

// look runs a full scan that succeeds, and accepts what is held.
func (w *life) look() {
	w.t.Helper()
	rep, err := w.run("scan:data", nil)
	w.must(err)
	for i := 0; rep.Held != nil && i < 3; i++ {
		w.gaps = w.gaps || rep.Held.Configuration || rep.Held.Addresses
		run, _, err := w.b.Begin(w.t.Context(), "accept", "data", "test", nil)
		w.must(err)
		rep, err = w.ended(run)
		w.must(err)
	}
	if rep.Held != nil {
		w.t.Fatalf("held: %+v", rep.Held)
	}
	w.edited = nil
	w.equal("after a full scan the set", w.holds(), w.wanted())
}

func (w *life) equal(what string, got, want map[string]string) {
	w.t.Helper()
	for e := range maps.Keys(want) {
		if got[e] != want[e] {
			w.t.Fatalf("%s has of %s\n%q, want\n%q", what, e, got[e], want[e])
		}
	}
	for e := range got {
		if _, ok := want[e]; !ok {
			w.t.Fatalf("%s has %s, which should not be there", what, e)
		}
	}
}

func (w *life) live(steps int) {
	w.look()
	w.follow()
	for range steps {
		w.now = w.now.Add(time.Duration(w.r.IntN(40)) * time.Minute)
		switch k := w.r.IntN(26); {
		case k == 24:
			w.save()
		case k == 25:
			if w.backup != "" {
				w.restore()
			}
		case k < 9:
			w.edit(1 + w.r.IntN(12))
			w.load()
		case k < 12:
			w.faulty()
		case k < 15:
			if w.dumps != "" {
				w.look()
			} else if w.r.IntN(2) == 0 {
				rep, err := w.run("hint:data", nil)
				w.must(err)
				if rep.Finder == "scan" && rep.Candidate == nil {
					w.equal("the set", w.holds(), w.wanted())
				}
			} else {
				w.named()
			}
		case k < 17:
			w.turnClock()
		case k < 18:
			w.must(w.b.Close())
			w.settings(w.r.IntN(2) == 0)
			w.say("opened with %+v %s", w.cfg.Sets["data"], w.cfg.Public.BaseURL)
			w.open()
			w.gaps = true // what is offered may begin later
		case k < 19:
			w.must(w.b.Close())
			w.say("opened again")
			w.open()
		case k < 22:
			for _, j := range w.b.jobs(w.t.Context()) {
				if kind, _, _ := strings.Cut(j.Name, ":"); slices.Contains([]string{"dump", "changedump", "list", "archive"}, kind) && w.r.IntN(2) == 0 {
					_, err := w.run(j.Name, nil)
					w.must(err)
				}
			}
		case k < 23:
			_, err := w.run("retain:data", nil)
			w.must(err)
			w.gaps = true
		default:
			w.look()
		}
		w.follow()
		if w.r.IntN(2) == 0 {
			w.copy.follow(false)
		}
	}
	if set := w.cfg.Sets["data"]; !slices.Contains(set.Publish, "resourcelist") { // for who has missed something
		w.must(w.b.Close())
		set.Publish = append(set.Publish, "resourcelist")
		w.cfg.Sets["data"] = set
		w.open()
	}
	for range 3 { // a file is gone when that is said again
		w.look()
		w.now = w.now.Add(5 * time.Hour)
	}
	w.follow()
	w.copy.follow(false)
	w.copy.follow(true)
}

// faulty is a look at a store that answers badly: it changes nothing, or nothing but
// what is true.
func (w *life) faulty() {
	w.t.Helper()
	before := w.holds()
	if w.dumps != "" {
		w.dump(w.lines, true)
	}
	w.answer.Store(1 + w.r.Int32N(answer-1))
	defer w.answer.Store(well)
	w.say("the store answers badly: %d", w.answer.Load())
	job := []string{"scan:data", "hint:data"}[w.r.IntN(2)]
	if w.dumps != "" {
		job = "scan:data"
	}
	rep, err := w.run(job, nil)
	after := w.holds()
	if err != nil || rep.Candidate != nil {
		w.equal("after a scan that failed the set", after, before)
	} else if rep.Finder == "scan" {
		w.equal("after a full scan the set", after, w.wanted())
		w.edited = nil
	} else if w.answer.Load() != short { // nothing is held against the few rows of a hint
		w.between(before, after)
	}
}

// between: each entity is what it was, or what it is.
func (w *life) between(before, after map[string]string) {
	w.t.Helper()
	want := w.wanted()
	for e := range w.model {
		if after[e] != before[e] && after[e] != want[e] {
			w.t.Fatalf("%s is %q, it was %q and is to be %q", e, after[e], before[e], want[e])
		}
	}
	for e := range after {
		if after[e] != before[e] && after[e] != want[e] {
			w.t.Fatalf("%s is %q, it was %q and is to be %q", e, after[e], before[e], want[e])
		}
	}
}

// named looks at what was edited, by name.
func (w *life) named() {
	w.t.Helper()
	names := slices.Compact(slices.Sorted(slices.Values(w.edited)))
	w.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = append(names[:min(len(names), 1+w.r.IntN(20))], "http://e.example/never")
	before := w.holds()
	run, _, err := w.b.Begin(w.t.Context(), "scan", "data", "test", ScanArgs{Entities: names})
	w.must(err)
	rep, err := w.ended(run)
	w.must(err)
	after, want := w.holds(), w.wanted()
	if rep.Candidate != nil {
		w.equal("after a scan that is held the set", after, before)
		return
	}
	w.between(before, after)
	for _, e := range names {
		if after[e] != want[e] {
			w.t.Fatalf("%s was named; it is %q, want %q", e, after[e], want[e])
		}
	}
}

func (w *life) turnClock() {
	d := []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 100 * 24 * time.Hour, 10000 * time.Hour * 24}[w.r.IntN(5)]
	if w.r.IntN(2) == 0 {
		d = -d
	}
	if y := w.now.Add(d).Year(); y < 1990 || y > 2200 {
		return
	}
	w.now = w.now.Add(d)
	w.say("the clock was set by %v", d)
}

// ---- what others see

type (
	xmlDoc struct {
		XMLName xml.Name
		MD      xmlMeta    `xml:"http://www.openarchives.org/rs/terms/ md"`
		LN      []xmlLink  `xml:"http://www.openarchives.org/rs/terms/ ln"`
		URL     []xmlEntry `xml:"url"`
		Sitemap []xmlEntry `xml:"sitemap"`
	}
	xmlEntry struct {
		Loc     string    `xml:"loc"`
		LastMod string    `xml:"lastmod"`
		MD      xmlMeta   `xml:"http://www.openarchives.org/rs/terms/ md"`
		LN      []xmlLink `xml:"http://www.openarchives.org/rs/terms/ ln"`
	}
	xmlMeta struct {
		Capability string `xml:"capability,attr"`
		At         string `xml:"at,attr"`
		Completed  string `xml:"completed,attr"`
		From       string `xml:"from,attr"`
		Until      string `xml:"until,attr"`
		Datetime   string `xml:"datetime,attr"`
		Change     string `xml:"change,attr"`
		Hash       string `xml:"hash,attr"`
		Length     int64  `xml:"length,attr"`
		Path       string `xml:"path,attr"`
		Kind       string `xml:"urn:rsbridge:terms kind,attr"`
		Entity     string `xml:"urn:rsbridge:terms entity,attr"`
		Sequence   string `xml:"urn:rsbridge:terms sequence,attr"`
	}
	xmlLink struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
)

func (e *xmlEntry) link(rel string) string {
	for _, l := range e.LN {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// entity is what it is about, written as it is where no link can say that.
func (e *xmlEntry) entity() string { return cmp.Or(e.MD.Entity, e.link("describes")) }

func (d *xmlDoc) link(rel string) string { return (&xmlEntry{LN: d.LN}).link(rel) }

func (w *life) get(address string) (int, []byte) {
	rec := httptest.NewRecorder()
	w.b.PublicHandler().ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, address, nil))
	return rec.Code, rec.Body.Bytes()
}

func (w *life) body(address string) []byte {
	w.t.Helper()
	code, body := w.get(address)
	if code != http.StatusOK {
		w.t.Fatalf("%s: %d %.300s", address, code, body)
	}
	return body
}

func (w *life) time(what, s string) time.Time {
	w.t.Helper()
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	return t
}

func (w *life) parse(address, capability string, data []byte) *xmlDoc {
	w.t.Helper()
	d := new(xmlDoc)
	if err := xml.Unmarshal(data, d); err != nil {
		w.t.Fatalf("%s: %v", address, err)
	}
	if d.MD.Capability != capability || len(d.URL)+len(d.Sitemap) > 50000 {
		w.t.Fatalf("%s is a %s, not a %s", address, d.MD.Capability, capability)
	}
	for _, m := range append([]xmlEntry{{MD: d.MD}}, append(d.URL, d.Sitemap...)...) {
		from, until := w.time(address, m.MD.From), w.time(address, m.MD.Until)
		made, completed := w.time(address, m.MD.At), w.time(address, m.MD.Completed)
		if !until.IsZero() && from.After(until) || !completed.IsZero() && made.After(completed) {
			w.t.Fatalf("%s: %s: from %v until %v, at %v completed %v", address, m.Loc, from, until, made, completed)
		}
	}
	return d
}

func (w *life) doc(address, capability string) *xmlDoc {
	w.t.Helper()
	return w.parse(address, capability, w.body(address))
}

// pages are the document, or those that its index leads to.
func (w *life) pages(address, capability string) (head *xmlDoc, out []*xmlDoc) {
	w.t.Helper()
	head = w.doc(address, capability)
	if head.XMLName.Local != "sitemapindex" {
		return head, []*xmlDoc{head}
	}
	for _, e := range head.Sitemap {
		d := w.doc(e.Loc, capability)
		if d.link("index") != address || d.XMLName.Local != "urlset" || d.MD.From != e.MD.From && e.MD.From != "" || d.MD.Until != e.MD.Until {
			w.t.Fatalf("%s is no part of %s: %+v %+v", e.Loc, address, d.MD, e.MD)
		}
		out = append(out, d)
	}
	return head, out
}

// offers are what the Capability List names: capability to address.
func (w *life) offers() map[string]string {
	w.t.Helper()
	source := w.doc(w.at+"/.well-known/resourcesync", "description")
	out := map[string]string{}
	for _, e := range w.doc(source.URL[0].Loc, "capabilitylist").URL {
		out[e.MD.Capability] = e.Loc
	}
	return out
}

// follow lets all followers look, and new ones begin.
func (w *life) follow() {
	w.t.Helper()
	base, _, err := w.b.pub.Addresses("data")
	w.must(err)
	w.at = base.Base
	if w.checker == nil || w.gaps {
		w.checker = check.NewChecker(check.CheckerOptions{Fetch: w.fetch, Now: time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), Sample: 5, TempDir: w.t.TempDir()})
	}
	reports, err := w.checker.Check(w.t.Context(), w.at+"/.well-known/resourcesync")
	w.must(err)
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity != check.SeverityInfo && !strings.Contains(f.Message, w.repo.URL) { // files come and go
				w.t.Fatalf("%s: %s", r.Location, f)
			}
		}
	}
	offered, holds := w.offers(), w.holds()
	for _, f := range w.followers {
		f.follow(offered)
		w.equal("the follower of "+f.kind, f.holds(), holds)
	}
	if len(w.followers) < 6 && w.r.IntN(3) == 0 || len(w.followers) == 0 {
		f := &follower{w: w, kind: []string{"lists", "dumps"}[w.r.IntN(2)]}
		f.baseline(offered)
		f.follow(offered)
		w.equal("the new follower of "+f.kind, f.holds(), holds)
		w.followers = append(w.followers, f)
	}
	w.gaps = false
}

func (w *life) fetch(ctx context.Context, url string) (*check.Fetched, error) {
	rec := httptest.NewRecorder()
	w.b.PublicHandler().ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	h := rec.Header()
	return &check.Fetched{URL: h.Get("Location"), Status: rec.Code, ContentType: h.Get("Content-Type"), ContentLength: int64(rec.Body.Len()),
		LastModified: h.Get("Last-Modified"), Links: h.Values("Link"), Body: io.NopCloser(rec.Body)}, nil
}

// follower keeps a copy by the documents alone.
type follower struct {
	w      *life
	kind   string // lists, dumps
	cursor time.Time
	copies map[string]held // by address

	sequence string // of the change that was read last
}

type held struct{ entity, text string }

func (f *follower) holds() map[string]string {
	out := map[string]string{}
	for loc, c := range f.copies {
		name := known(c.entity, c.text)
		if _, twice := out[name]; twice {
			f.w.t.Fatalf("%s is there twice, also as %s", name, loc)
		}
		out[name] = c.text
	}
	return out
}

// take keeps the bytes that an entry promises.
func (f *follower) take(e *xmlEntry, data []byte) {
	f.w.t.Helper()
	sum := sha256.Sum256(data)
	if !slices.Contains(strings.Fields(e.MD.Hash), "sha-256:"+hex.EncodeToString(sum[:])) || e.MD.Length != int64(len(data)) {
		f.w.t.Fatalf("%s: %d bytes of %x, promised %+v", e.Loc, len(data), sum, e.MD)
	}
	format := rdfres.JSONLD
	if strings.HasSuffix(e.Loc, ".nt") {
		format = rdfres.NTriples
	}
	ts, err := codec.Decode(format, data, rdfres.ReadOptions{})
	f.w.must(err)
	entity := e.entity()
	f.copies[e.Loc] = held{entity, plain(entity, ts, true)}
}

func (f *follower) baseline(offered map[string]string) {
	w := f.w
	w.t.Helper()
	f.copies = map[string]held{}
	if address := offered["resourcedump"]; address != "" && (f.kind == "dumps" || offered["resourcelist"] == "") {
		head, pages := w.pages(address, "resourcedump")
		f.cursor = w.time(address, head.MD.At)
		for _, page := range pages {
			for _, p := range page.URL {
				f.unpack(&p, "resourcedump-manifest", func(m *xmlDoc, e *xmlEntry, data []byte) {
					if m.MD.At != head.MD.At || f.copies[e.Loc].entity != "" {
						w.t.Fatalf("%s: %s is twice, or of another time: %s, %s", p.Loc, e.Loc, m.MD.At, head.MD.At)
					}
					f.take(e, data)
				})
			}
		}
		w.say("baseline of %d by dump, at %v", len(f.copies), f.cursor)
		return
	}
	address := offered["resourcelist"]
	if address == "" {
		for e, text := range w.each() { // told by others, as of now
			loc, err := w.b.Location(context.Background(), "data", e)
			w.must(err)
			f.copies[loc] = held{e, text}
		}
		_, f.cursor = w.b.Log("data").Head()
		return
	}
	head, pages := w.pages(address, "resourcelist")
	f.cursor = w.time(address, head.MD.At)
	for _, page := range pages {
		for i := range page.URL {
			e := &page.URL[i]
			if e.MD.Kind == "file" {
				continue
			}
			if f.copies[e.Loc].entity != "" {
				w.t.Fatalf("%s is listed twice", e.Loc)
			}
			f.copies[e.Loc] = held{e.entity(), ""}
			if memento := e.link("memento"); memento != "" {
				if code, data := w.get(memento); code == http.StatusOK {
					f.take(e, data)
				}
			}
		}
	}
	w.say("baseline of %d by list, at %v", len(f.copies), f.cursor)
}

// unpack reads a package.
func (f *follower) unpack(p *xmlEntry, capability string, take func(m *xmlDoc, e *xmlEntry, data []byte)) {
	w := f.w
	w.t.Helper()
	data := w.body(p.Loc)
	sum := sha256.Sum256(data)
	if p.MD.Length != int64(len(data)) || p.MD.Hash != "sha-256:"+hex.EncodeToString(sum[:]) {
		w.t.Fatalf("%s: %d bytes of %x, promised %+v", p.Loc, len(data), sum, p.MD)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	w.must(err)
	read := func(name string) []byte {
		file, err := z.Open(strings.TrimPrefix(name, "/"))
		w.must(err)
		data, err := io.ReadAll(file)
		w.must(err)
		return data
	}
	manifest := read("manifest.xml")
	if contents := p.link("contents"); contents == "" || !bytes.Equal(w.body(contents), manifest) {
		w.t.Fatalf("%s: the copy of its manifest is another", p.Loc)
	}
	m := w.parse(p.Loc, capability, manifest)
	if m.MD.From != p.MD.From || m.MD.Until != p.MD.Until {
		w.t.Fatalf("%s: %+v, its manifest has %+v", p.Loc, p.MD, m.MD)
	}
	for i := range m.URL {
		e := &m.URL[i]
		if e.MD.Kind == "file" {
			continue
		} else if e.MD.Path == "" {
			take(m, e, nil)
		} else {
			take(m, e, read(e.MD.Path))
		}
	}
}

// follow applies what came after the cursor.
func (f *follower) follow(offered map[string]string) {
	w := f.w
	w.t.Helper()
	if address := offered["changedump"]; address != "" && f.kind == "dumps" {
		head, pages := w.pages(address, "changedump")
		if !w.time(address, head.MD.From).After(f.cursor) {
			last := head.MD.From
			for _, page := range pages {
				for _, p := range page.URL {
					if p.MD.From != last {
						w.t.Fatalf("%s begins at %s, what was before ends at %s", p.Loc, p.MD.From, last)
					}
					last = p.MD.Until
					if !w.time(p.Loc, last).After(f.cursor) {
						continue
					}
					var before time.Time
					f.unpack(&p, "changedump-manifest", func(m *xmlDoc, e *xmlEntry, data []byte) {
						before = f.apply(m, e, before, func() { f.take(e, data) })
					})
					f.cursor = w.time(p.Loc, last)
				}
			}
		}
	}
	address := offered["changelist"]
	head, pages := w.pages(address, "changelist")
	if from := w.time(address, head.MD.From); from.After(f.cursor) {
		if !w.gaps {
			w.t.Fatalf("the Change Lists begin at %v, the follower of %s stands at %v", from, f.kind, f.cursor)
		}
		w.say("a gap: the lists begin at %v, the follower of %s stands at %v", from, f.kind, f.cursor)
		f.baseline(offered)
		if from.After(f.cursor) {
			w.t.Fatalf("the Change Lists begin at %v, what is offered to begin with is of %v", from, f.cursor)
		}
	}
	var before time.Time
	last := map[string]*xmlEntry{}
	until := head.MD.From
	for i, page := range pages {
		if page.MD.From != until || (i < len(pages)-1) != (page.MD.Until != "") {
			w.t.Fatalf("Change List %d has %s to %s, the one before ends at %s", i, page.MD.From, page.MD.Until, until)
		}
		until = page.MD.Until
		for j := range page.URL {
			e := &page.URL[j]
			before = f.apply(page, e, before, func() {})
			if before.After(f.cursor) && e.MD.Kind == "" {
				last[e.Loc] = e
			}
		}
	}
	if before.After(f.cursor) {
		f.cursor = before
	}
	there := map[string]bool{}
	for _, c := range f.copies {
		there[c.entity] = true
	}
	for loc, e := range last {
		code, data := w.get(loc)
		if e.MD.Change == "deleted" {
			if there[e.entity()] {
				continue // in another format, of which this one is offered too
			}
			if code != http.StatusNotFound && code != http.StatusGone {
				w.t.Fatalf("%s was deleted, and answers %d", loc, code)
			}
			continue
		}
		if code != http.StatusOK {
			w.t.Fatalf("%s: %d %.300s", loc, code, data)
		}
		f.take(e, data)
	}
	for loc, c := range f.copies { // of versions that were not kept
		if c.text == "" && last[loc] == nil {
			w.t.Fatalf("%s: its version is not kept, and no change tells another", loc)
		}
	}
}

// apply takes one change, and gives its time.
func (f *follower) apply(d *xmlDoc, e *xmlEntry, before time.Time, take func()) time.Time {
	w := f.w
	w.t.Helper()
	at := w.time(e.Loc, e.MD.Datetime)
	from, until := w.time(e.Loc, d.MD.From), w.time(e.Loc, d.MD.Until)
	// A change that moves an entity to another address has two entries.
	same := at.Equal(before) && e.MD.Sequence == f.sequence
	f.sequence = e.MD.Sequence
	if !at.After(before) && !same || at.Before(from) || !until.IsZero() && at.After(until) || e.LastMod != e.MD.Datetime {
		w.t.Fatalf("%s: changed at %v, lastmod %s, the change before at %v, of a list from %v until %v", e.Loc, at, e.LastMod, before, from, until)
	}
	if !at.After(f.cursor) {
		return at
	}
	if e.MD.Kind == "file" { // it is elsewhere
		return at
	}
	_, there := f.copies[e.Loc]
	switch e.MD.Change {
	case "deleted":
		if !there {
			w.t.Fatalf("%s is deleted and was not there", e.Loc)
		}
		delete(f.copies, e.Loc)
	case "created", "updated":
		if there != (e.MD.Change == "updated") {
			w.t.Fatalf("%s is %s, it was there: %v", e.Loc, e.MD.Change, there)
		}
		f.copies[e.Loc] = held{e.entity(), ""}
		take()
	default:
		w.t.Fatalf("%s: change %q", e.Loc, e.MD.Change)
	}
	return at
}
