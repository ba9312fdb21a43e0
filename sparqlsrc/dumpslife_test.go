package sparqlsrc

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// TestDumpsLife is the life of a series of dumps: files come whole, cut, empty or damaged,
// in any order, are replaced, taken away, linked to, and changed while they are read. Each
// scan must give what the newest complete file says, or nothing, or an error, as a model
// of the series has it. RSBRIDGE_HISTORIES is the number of lives, for campaigns.
func TestDumpsLife(t *testing.T) {
	for seed := range teststores.Histories(3, 15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newSeries(t, uint64(seed)).live(25) })
	}
}

// series are the files, and what a set holds of them.
type series struct {
	t       *testing.T
	r       *rand.Rand
	dir     string
	cfg     Config
	d       *Dumps
	files   map[string]*dumped // by path
	touched map[string]bool    // by path, while a scan runs
	at      time.Time
	last    dumpfile.File
	state   *dumped
	told    []string // what was done, for who reads a failure
}

// dumped is a file of the series.
type dumped struct {
	path   string
	number int // in its name
	at     time.Time
	fate   string // "whole", "cut", "bad", "empty"
	quads  map[string][]rdfres.Triple
}

func newSeries(t *testing.T, seed uint64) *series {
	r := rand.New(rand.NewPCG(seed, 21))
	s := &series{t: t, r: r, dir: t.TempDir(), files: map[string]*dumped{}, touched: map[string]bool{}, at: time.Now().Add(-24 * time.Hour).Truncate(time.Second)}
	s.cfg = Config{Graphs: [][]string{nil, {"*"}, {"http://g.example/1"}, {"http://g.example/1", "http://g.example/2"}}[r.IntN(4)], TempDir: t.TempDir()}
	s.cfg.Describe = []string{"cbd", "cbd", "graph"}[r.IntN(3)]
	s.cfg.Progress = func(stage string, _, total int64) {
		if stage == "read" && total == 0 { // in the middle of a long one
			s.change()
		}
	}
	s.d = dumps(t, s.cfg, DumpOptions{Series: dumpfile.Series{Patterns: []string{s.dir + "/full*"}, ByTime: r.IntN(3) == 0}, Settle: 1})
	return s
}

func (s *series) say(format string, a ...any) { s.told = append(s.told, fmt.Sprintf(format, a...)) }

func (s *series) live(steps int) {
	s.say("graphs %q, describe %s, by time %v", s.cfg.Graphs, s.cfg.Describe, s.d.o.ByTime)
	for range steps {
		for range 1 + s.r.IntN(2) {
			s.change()
		}
		if s.scan(); s.t.Failed() {
			s.t.Fatal(strings.Join(s.told, "\n"))
		}
	}
}

// change writes a file or takes one away.
func (s *series) change() {
	s.t.Helper()
	if paths := slices.Sorted(maps.Keys(s.files)); len(paths) > 0 && s.r.IntN(4) == 0 {
		gone := paths[s.r.IntN(len(paths))]
		s.say("remove %s", gone)
		delete(s.files, gone)
		s.touched[gone] = true
		if err := os.Remove(gone); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.write(s.draw())
}

// draw draws a file: not always a new one, nor always newer than the others.
func (s *series) draw() *dumped {
	r := s.r
	f := &dumped{number: r.IntN(25), quads: map[string][]rdfres.Triple{}}
	s.at = s.at.Add(time.Duration(r.IntN(20)) * time.Second)
	if f.at = s.at; r.IntN(4) == 0 { // its time was kept from elsewhere
		f.at = f.at.Add(-time.Duration(r.IntN(300)) * time.Second)
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	name := fmt.Sprintf(pick("full-%d", "full-%03d"), f.number) + pick(".nt", ".nq", ".nq", ".ttl", "") + pick("", ".gz", ".zst")
	f.path = s.dir + "/" + name
	graphs := []string{""}
	if strings.Contains(name, ".nq") {
		graphs = append(graphs, "http://g.example/1", "http://g.example/2", "urn:rsbridge:state")
	}
	for _, g := range graphs {
		if n := r.IntN(30); n > 0 {
			f.quads[g] = randomGraph(r, n)
		}
	}
	if f.fate = pick("whole", "whole", "whole", "cut", "bad", "empty"); len(f.quads) == 0 {
		f.fate = "empty"
	}
	return f
}

// write puts a file into its place, by a link now and then.
func (s *series) write(f *dumped) {
	r, t := s.r, s.t
	var lines []string
	for _, g := range slices.Sorted(maps.Keys(f.quads)) {
		end := " ."
		if g != "" {
			end = " <" + g + "> ."
		}
		for _, x := range f.quads[g] {
			lines = append(lines, fmt.Sprint(x.S, " ", x.P, " ", x.O, end))
		}
	}
	if len(lines) > 0 && r.IntN(5) == 0 { // long enough to be changed while it is read
		for lines = slices.Clone(lines); len(lines) <= 1<<14; {
			lines = append(lines, lines...)
		}
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if f.fate == "bad" {
		lines = slices.Insert(lines, r.IntN(len(lines)), "<http://e.example/> no RDF .")
	}
	text := strings.Join(lines, "\n")
	packing := map[bool]string{strings.HasSuffix(f.path, ".gz"): "gzip", strings.HasSuffix(f.path, ".zst"): "zstd"}[true]
	switch {
	case f.fate == "empty":
		text = ""
	case f.fate == "cut" && packing == "":
		text = text[:len(text)-1-r.IntN(len(lines[len(lines)-1])-1)]
	case r.IntN(3) > 0:
		text += "\n"
	}
	data := pack(t, packing, []byte(text))
	if f.fate == "cut" && packing != "" {
		data = data[:1+r.IntN(len(data)-1)]
	}
	to := f.path
	if r.IntN(6) == 0 {
		to = fmt.Sprintf("%s/target%d", s.dir, len(s.told))
		_ = os.Remove(f.path)
		if err := os.Symlink(to, f.path); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(to+"~", data, 0o600), os.Chtimes(to+"~", f.at, f.at), os.Rename(to+"~", to)); err != nil {
		t.Fatal(err)
	}
	s.files[f.path] = f
	s.touched[f.path] = true
	s.say("write %s, %s, at %s, %d lines, %d bytes", f.path, f.fate, f.at.Format(time.TimeOnly), len(lines), len(data))
}

// after tells whether a is of a later place in the series than b.
func (s *series) after(a, b *dumped) bool {
	number, at := cmp.Compare(a.number, b.number), a.at.Compare(b.at)
	if s.d.o.ByTime {
		number, at = at, number
	}
	return cmp.Or(number, at, strings.Compare(a.path, b.path)) > 0
}

// scan looks for the newest complete file.
func (s *series) scan() {
	t := s.t
	before := maps.Clone(s.files)
	s.touched = map[string]bool{}
	again := s.r.IntN(6) == 0
	got, err := s.d.Scan(t.Context(), s.last, again)
	touched := maps.Clone(s.touched)
	s.say("scan, again %v: read %v, %v", again, got.Scan != nil, err)

	// What may be read, the newest first.
	var may []*dumped
	for _, f := range before {
		if s.state == nil || f.path == s.state.path && (f != s.state || again) || f.path != s.state.path && s.after(f, s.state) {
			may = append(may, f)
		}
	}
	slices.SortFunc(may, func(a, b *dumped) int { return map[bool]int{true: -1, false: 1}[s.after(a, b)] })
	for _, f := range may {
		want, bad := s.says(f)
		switch {
		case touched[f.path] && err == nil && (got.Scan == nil || got.File.Path != f.path):
			continue // passed over, or gone: it will be looked at again
		case touched[f.path] && err != nil:
			return
		case f.fate == "cut" || f.fate == "empty":
			if !slices.ContainsFunc(got.Incomplete, func(i dumpfile.Incomplete) bool { return i.Path == f.path }) && err == nil {
				t.Errorf("%s was not told to be incomplete", f.path)
			}
			continue
		case bad:
			if err == nil || !strings.Contains(err.Error(), f.path) {
				t.Errorf("%s is bad: %v", f.path, err)
			}
			return
		}
		if err != nil || got.Scan == nil || got.File.Path != f.path {
			t.Errorf("%s should be read, and not %s: %v", f.path, got.File.Path, err)
			return
		}
		diff(t, f.path, readScan(t, got.Scan), want)
		s.state, s.last = f, got.File
		return
	}
	switch {
	case got.Scan != nil:
		t.Errorf("nothing should be read, and %s was", got.File.Path)
	case (err != nil) != (s.state == nil || again || len(before) == 0):
		t.Errorf("nothing is there to be read: %v", err)
	}
}

// says is what a scan of a file must give; bad tells that it has to be an error.
func (s *series) says(f *dumped) (want map[string][]rdfres.Triple, bad bool) {
	all := s.cfg.Graphs != nil && s.cfg.Graphs[0] == "*" || s.cfg.Graphs == nil && s.cfg.Describe == "graph"
	picked := map[string][]rdfres.Triple{}
	var merged []rdfres.Triple
	for g, ts := range f.quads {
		own := strings.HasPrefix(g, "urn:rsbridge:")
		if !own && (all || g == "" && s.cfg.Graphs == nil || slices.Contains(s.cfg.Graphs, g)) && (g != "" || s.cfg.Describe != "graph") {
			picked[g] = slices.Clone(ts)
			merged = append(merged, ts...)
		}
	}
	if bad = f.fate == "bad" || len(picked) == 0 && !(all && f.quads["urn:rsbridge:state"] != nil); bad {
		return nil, true
	}
	if s.cfg.Describe == "graph" {
		return asGraphs(s.t, picked), false
	}
	return expected(s.t, rdfres.SortUnique(merged), false), false
}
