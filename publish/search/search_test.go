package search

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// world is a log and its index.
type world struct {
	t     *testing.T
	store kv.Store
	track *changetrack.Tracker
	log   *changetrack.Log
	index *Index
}

func newWorld(t *testing.T) *world { return newWorldIn(t, teststores.Records(t)) }

func newWorldIn(t *testing.T, store kv.Store) *world {
	w := &world{t: t, store: store}
	var err error
	w.track, err = changetrack.Open(t.Context(), kv.Prefix(w.store, []byte("log/")), changetrack.Options{Dir: t.TempDir()})
	w.must(err)
	w.log, err = w.track.Log(t.Context(), "data")
	w.must(err)
	w.index = New(kv.Prefix(w.store, []byte("pub/")), w.log)
	t.Cleanup(func() {
		w.index.Close()
		w.must(w.track.Close())
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// scan brings entities with labels into the log; "" deletes.
func (w *world) scan(partial bool, labels map[string]string) {
	w.t.Helper()
	entities := slices.SortedFunc(maps.Keys(labels), func(a, b string) int {
		x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return bytes.Compare(x[:], y[:])
	})
	var found iter.Seq2[rdfres.Description, error] = func(yield func(rdfres.Description, error) bool) {
		for _, e := range entities {
			d := rdfres.Description{Entity: e}
			for i, label := range strings.Split(labels[e], "|") {
				if label != "" {
					d.Triples = append(d.Triples, rdfres.Triple{S: rdfres.NewIRI(e), P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral(label, []string{"en", "de", "fr"}[i], "")})
				}
			}
			d.Triples = rdfres.SortUnique(d.Triples)
			if !yield(d, nil) {
				return
			}
		}
	}
	_, err := w.log.Scan(w.t.Context(), found, changetrack.ScanOptions{Partial: partial, Format: rdfres.NTriples, MaxDeleteRatio: -1})
	w.must(err)
}

func (w *world) ready() {
	w.t.Helper()
	if _, whole, err := w.index.Ready(w.t.Context()); err != nil || !whole {
		w.t.Fatalf("ready: %v %v", whole, err)
	}
}

func (w *world) find(query string) (labels []string) {
	w.t.Helper()
	hits, _, err := w.index.Find(w.t.Context(), query, 50)
	w.must(err)
	for _, h := range hits {
		labels = append(labels, h.Label)
	}
	return labels
}

func (w *world) browse(beginning string) (labels []string) {
	w.t.Helper()
	for mark := ""; ; {
		hits, err := w.index.Browse(w.t.Context(), beginning, mark, 2)
		w.must(err)
		for _, h := range hits {
			labels = append(labels, h.Label)
			mark = h.Mark
		}
		if len(hits) < 2 {
			return labels
		}
	}
}

// records counts the keys of the index.
func (w *world) records() (n int) {
	for range w.index.records.Scan(w.t.Context(), []byte("E"), []byte("O")) {
		n++
	}
	return n
}

// TestNames: entities are found by words of their labels in any language, by local name, in any case and
// without accents; what changes or goes is found as it is now.
func TestNames(t *testing.T) {
	w := newWorld(t)
	w.scan(false, map[string]string{
		"http://e.example/Dürer": "Albrecht Dürer|Albrecht Dürer der Jüngere", "http://e.example/b": "Hans Baldung", "http://e.example/Lucas_Cranach": "Cranach, Lucas",
		"http://e.example/x#ελ": "Ελλάδα", "http://e.example/q": "北京",
	})
	if n := w.records(); n != 0 {
		t.Errorf("%d records before anybody asked", n)
	}
	w.must(w.index.Follow(t.Context()))
	if n := w.records(); n != 0 {
		t.Errorf("%d records before anybody asked, after a publication", n)
	}
	w.ready()
	for query, want := range map[string]string{
		"dur": "Albrecht Dürer", "DÜRER albr": "Albrecht Dürer", "albrecht durer": "Albrecht Dürer", "jungere": "Albrecht Dürer", "bald": "Hans Baldung", "Baldung Hans": "Hans Baldung",
		"lucas cran": "Cranach, Lucas", "ελλ": "Ελλάδα", "北": "北京", "rer": "", "dürer baldung": "", "": "", "!": "",
	} {
		if got := strings.Join(w.find(query), "|"); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if got := fmt.Sprint(w.browse("")); got != "[Albrecht Dürer Cranach, Lucas Hans Baldung Ελλάδα 北京]" {
		t.Errorf("the alphabet: %s", got)
	}
	if got := fmt.Sprint(w.browse("h")); got != "[Hans Baldung]" {
		t.Errorf("the letter h: %s", got)
	}
	if letters, err := w.index.Letters(t.Context(), 10); err != nil || fmt.Sprint(letters) != "[a c h ε 北]" {
		t.Errorf("letters: %v %v", letters, err)
	}
	if letters, err := w.index.Letters(t.Context(), 2); err != nil || fmt.Sprint(letters) != "[a c]" {
		t.Errorf("two letters: %v %v", letters, err)
	}
	w.scan(true, map[string]string{"http://e.example/b": "Hans Baldung Grien", "http://e.example/q": "", "http://e.example/n": "New"})
	w.scan(true, map[string]string{"http://e.example/n": "Newer"})
	w.ready()
	if got := fmt.Sprint(w.browse("")); got != "[Albrecht Dürer Cranach, Lucas Hans Baldung Grien Newer Ελλάδα]" {
		t.Errorf("after changes: %s", got)
	}
	if got := fmt.Sprint(w.find("grien"), w.find("北"), w.find("newer")); got != "[Hans Baldung Grien] [] [Newer]" {
		t.Errorf("found after changes: %s", got)
	}
}

// TestMade: the index is made before anybody asks.
func TestMade(t *testing.T) {
	w := newWorld(t)
	w.scan(false, map[string]string{"http://e.example/a": "Alpha"})
	w.must(w.index.Make(t.Context()))
	<-w.index.begin()
	if got := fmt.Sprint(w.browse("")); got != "[Alpha]" {
		t.Errorf("made: %s", got)
	}
}

// TestInnerWords: a capital inside a word, and a digit beside a letter, begin words. Other parts of a word are not found.
func TestInnerWords(t *testing.T) {
	for name, want := range map[string]string{
		"hasAuthorName": "hasauthorname authorname name", "XMLHttpRequest": "xmlhttprequest httprequest request", "v2": "v2 2", "2ndPart": "2ndpart ndpart part", "HTTP": "http",
		"a_b-c.d": "a_b_c_d b_c_d c_d d", "Q42": "q42 42", "straßeÖst": "straßeost ost", "北京2008": "北京2008 2008", "": "", "ÉcoleÉtoile é": "ecoleetoile_e e etoile_e", "plain": "plain",
		"one two threeFour": "one_two_threefour two_threefour threefour four", "ΑλφαΒήτα": "αλφαβητα βητα", "한국어": "한국어", "हिन्दी2": "हिन्दी2 2",
	} {
		got := strings.ReplaceAll(strings.Join(starts(name, 20), "|"), " ", "_")
		if want = strings.ReplaceAll(want, " ", "|"); got != want {
			t.Errorf("%q begins at %q, want %q", name, got, want)
		}
		if folded := Fold(name); folded != "" && strings.ReplaceAll(folded, " ", "_") != strings.Split(got, "|")[0] {
			t.Errorf("%q folds to %q", name, folded)
		}
	}
	if got := starts("a1b2c3d4e5f6g7h8i9 b c d e f g h i j k", mostWords); len(got) != 2*mostWords {
		t.Errorf("%d beginnings", len(got))
	}
	w := newWorld(t)
	w.scan(false, map[string]string{"http://e.example/1": "hasPartOf", "http://e.example/2": "boeing747jet", "http://e.example/3": "under_score-dash.dot", "http://e.example/x": "eins zwei drei vier fünf sechs sieben acht neun zehn"})
	w.ready()
	for query, want := range map[string]string{
		"part": "hasPartOf", "partof": "hasPartOf", "hasPart": "hasPartOf", "of has": "hasPartOf", "747": "boeing747jet", "jet": "boeing747jet", "boeing 747": "boeing747jet", "score": "under_score-dash.dot", "dot dash": "under_score-dash.dot",
		"art": "", "ash": "", "acht zehn": "eins zwei drei vier fünf sechs sieben acht neun zehn",
	} {
		if got := strings.Join(w.find(query), "|"); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// TestSameInAnyWay: an index made at once, one that followed each change, and one interrupted in its first
// reading have the same records.
func TestSameInAnyWay(t *testing.T) {
	follows := newWorld(t)
	labels := map[string]string{}
	for i := range 300 {
		labels[fmt.Sprintf("http://e.example/%d", i)] = fmt.Sprintf("Thing %d of %d", i, i%7)
	}
	follows.scan(false, labels)
	follows.ready()
	for round := range 5 {
		changed := map[string]string{}
		for i := round; i < 300; i += 10 {
			changed[fmt.Sprintf("http://e.example/%d", i)] = strings.Repeat(fmt.Sprintf("Round %d ", round), round%3)
		}
		follows.scan(true, changed)
		follows.must(follows.index.Follow(t.Context()))
		follows.ready()
	}
	dump := func(r kv.Reader) (out []string) {
		for pair, err := range r.Scan(t.Context(), []byte("E"), []byte("O")) {
			follows.must(err)
			if pair.Key[0] != 'M' {
				out = append(out, fmt.Sprintf("%q %q", pair.Key, pair.Value))
			}
		}
		return out
	}
	want := dump(follows.index.records)
	anew := New(kv.Prefix(follows.store, []byte("anew/")), follows.log)
	defer anew.Close()
	if _, _, err := anew.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dump(anew.records); !slices.Equal(got, want) {
		t.Errorf("made at once: %d records, want %d", len(got), len(want))
	}
	half := New(kv.Prefix(follows.store, []byte("half/")), follows.log)
	defer half.Close()
	view := follows.log.View(t.Context())
	defer view.Close()
	head, _ := view.Head()
	w := &writer{index: half, view: view, batch: half.records.Batch(), at: position{Version: version, Sequence: head}}
	n := 0
	for st, err := range view.Current(t.Context(), rdfres.Digest{}, rdfres.Digest{}) {
		follows.must(err)
		if n++; n == 100 {
			w.at.Next = rdfres.EntityKey(st.Entity).String()
			break
		}
		follows.must(w.put(t.Context(), []present{{st.Entity, st.Current}}))
	}
	follows.must(w.commit(t.Context()))
	if _, _, err := half.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dump(half.records); !slices.Equal(got, want) {
		t.Errorf("interrupted: %d records, want %d", len(got), len(want))
	}
}

// counting counts the steps of scans.
type counting struct {
	kv.Store
	steps, gets int
}

func (c *counting) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for p, err := range c.Store.Scan(ctx, lo, hi) {
			if c.steps++; !yield(p, err) {
				return
			}
		}
	}
}

func (c *counting) Get(ctx context.Context, key []byte) ([]byte, error) {
	c.gets++
	return c.Store.Get(ctx, key)
}

// TestBoundedWork: a search, a letter and the letters read as much in a large set as in a small one.
func TestBoundedWork(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{}
	for i := range 6000 {
		labels[fmt.Sprintf("http://e.example/%d", i)] = fmt.Sprintf("%c thing %d", 'a'+i%26, i)
	}
	w.scan(false, labels)
	w.ready()
	c := &counting{Store: w.index.records}
	w.index.records = c
	for what, do := range map[string]func() error{
		"a beginning":      func() error { _, _, err := w.index.Find(t.Context(), "1999", 50); return err },
		"a common word":    func() error { _, _, err := w.index.Find(t.Context(), "thing", 50); return err },
		"a common pair":    func() error { _, _, err := w.index.Find(t.Context(), "thing q", 50); return err },
		"nothing":          func() error { _, _, err := w.index.Find(t.Context(), "zzz", 50); return err },
		"a pair, of none":  func() error { _, _, err := w.index.Find(t.Context(), "thing zzz", 50); return err },
		"the letters":      func() error { _, err := w.index.Letters(t.Context(), 100); return err },
		"a page of a name": func() error { _, err := w.index.Browse(t.Context(), "m", "", 100); return err },
	} {
		c.steps, c.gets = 0, 0
		w.must(do())
		if c.steps > mostSteps+2 || c.gets > 2*mostSteps+2 || !strings.Contains(what, "pair") && c.steps > 110 {
			t.Errorf("%s: %d steps, %d gets", what, c.steps, c.gets)
		}
	}
}

// TestLostLog: an index ahead of its log, or behind its beginning, is made anew.
func TestLostLog(t *testing.T) {
	w := newWorld(t)
	w.scan(false, map[string]string{"http://e.example/a": "Alpha", "http://e.example/b": "Beta"})
	w.ready()
	at, err := w.index.position(t.Context())
	w.must(err)
	at.Sequence += 100
	b := w.index.records.Batch()
	x := &writer{index: w.index, batch: b, at: at}
	b.Set([]byte("Nagone\x00"+strings.Repeat("k", keyBytes)), nil)
	w.must(x.commit(t.Context()))
	w.scan(true, map[string]string{"http://e.example/b": "Gamma"})
	w.index.begin()
	w.index.Close()
	w.index = New(w.index.records, w.log)
	w.must(w.index.Follow(t.Context()))
	w.ready()
	if got := fmt.Sprint(w.browse(""), w.records()); got != "[Alpha Gamma] 9" {
		t.Errorf("%s", got)
	}
}
