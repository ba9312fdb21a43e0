package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestChainHistories: B mirrors A and publishes its mirror, which C mirrors. A changes; each
// of them is restored from backups, in part too, cut off and behind, and B is made anew. At
// the end C has what A has, and what an audit with the first source says is true at any time.
// RSBRIDGE_HISTORIES is the number of them, for campaigns.
func TestChainHistories(t *testing.T) {
	for seed := range teststores.Histories(1, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playChain(t, uint64(seed))
		})
	}
}

// link is one of a chain: a store and what is published of it; all but the first mirror the
// link before.
type link struct {
	t         *testing.T
	dir       string
	cfg       *Config
	b         *Bridge
	published map[string]string // what its store had at the last scan

	backup    string // a copy of dir
	publishes map[string]string
}

func newLink(t *testing.T, before, first *link) *link {
	l := &link{t: t, dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.b.PublicHandler().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	l.cfg = small(l.dir)
	l.cfg.Public.BaseURL = server.URL
	delete(l.cfg.Stores, "mirror")
	set, d := l.cfg.Sets["data"], l.cfg.Destinations["copy"]
	set.Schedule, set.MaxDeleteRatio = "", 1
	l.cfg.Sets["data"] = set
	clear(l.cfg.Destinations)
	if before != nil {
		d.Source, d.Store, d.Schedule, d.Audit.Schedule, d.MaxDeleteRatio = before.cfg.Public.BaseURL, "source", "", "", 1
		d.Allow = []string{strings.TrimPrefix(first.cfg.Public.BaseURL, "http://")}
		l.cfg.Destinations["copy"] = d
	}
	l.b = mustOpen(t, l.cfg)
	t.Cleanup(func() { l.b.Close() })
	return l
}

// closed does something with the folder of a link while nothing is open in it.
func (l *link) closed(do func() error) {
	l.t.Helper()
	if err := errors.Join(l.b.Close(), do()); err != nil {
		l.t.Fatal(err)
	}
	l.b = mustOpen(l.t, l.cfg)
}

func (l *link) save() {
	l.t.Helper()
	l.backup, l.publishes = l.t.TempDir(), l.published
	l.closed(func() error { return os.CopyFS(l.backup, os.DirFS(l.dir)) })
}

// restore brings parts of the folder back, or removes them where there is no backup.
func (l *link) restore(parts ...string) {
	l.t.Helper()
	if slices.Contains(parts, "state") {
		l.published = l.publishes
	}
	l.closed(func() error {
		for _, part := range parts {
			if err := os.RemoveAll(filepath.Join(l.dir, part)); err != nil {
				return err
			}
			if l.backup == "" {
				continue
			}
			if err := os.CopyFS(filepath.Join(l.dir, part), os.DirFS(filepath.Join(l.backup, part))); err != nil {
				return err
			}
		}
		return nil
	})
}

// holds is what the store has of each entity.
func (l *link) holds() map[string]string {
	l.t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/data?default", nil)
	req.Header.Set("Accept", "application/n-triples")
	out := httptest.NewRecorder()
	l.b.StoreHandler("source").ServeHTTP(out, req)
	ts, err := codec.Decode(rdfres.NTriples, out.Body.Bytes(), rdfres.ReadOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range ts {
		ts[i].S, ts[i].O = rdfres.Unskolemize(ts[i].S), rdfres.Unskolemize(ts[i].O)
	}
	if ts, _, err = rdfres.NameBlanks(rdfres.SortUnique(ts), rdfres.NameOptions{}); err != nil {
		l.t.Fatal(err)
	}
	has := map[string]string{}
	for _, tr := range rdfres.SortUnique(ts) {
		has[string(tr.S)] += string(tr.AppendLine(nil))
	}
	return has
}

func (l *link) scan() {
	l.t.Helper()
	l.published = l.holds()
	if s := do[ScanReport](l.t, l.b, "scan", "data"); s.Held != nil {
		do[ScanReport](l.t, l.b, "accept", "data")
	}
}

func (l *link) sync() {
	l.t.Helper()
	if s := do[SyncReport](l.t, l.b, "sync", "copy"); !s.InSync {
		l.t.Errorf("%+v", s)
	}
}

func playChain(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 41))
	a := newLink(t, nil, nil)
	b := newLink(t, a, a)
	c := newLink(t, b, a)
	links := []*link{a, b, c}
	var told []string
	say := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(told, "; "))
		}
	}()
	model, value := map[string]int{}, 0
	edit := func() {
		for range 1 + r.IntN(4) {
			name := fmt.Sprintf("e%d", r.IntN(8))
			if value++; model[name] > 0 && r.IntN(3) == 0 && len(model) > 1 {
				delete(model, name)
			} else {
				model[name] = value
			}
		}
		var lines strings.Builder
		for name, v := range model {
			fmt.Fprintf(&lines, "<http://e.example/%s> <http://e.example/v> \"%d\" .\n", name, v)
			if v%3 == 0 {
				fmt.Fprintf(&lines, "<http://e.example/%s> <http://e.example/q> _:%s .\n_:%s <http://e.example/r> \"%d\" .\n", name, name, name, v%2)
			}
		}
		fill(t, a.b, "source", lines.String())
		say("edit to %d", value)
	}
	saved := model
	edit()
	for _, l := range links {
		if l != a {
			l.sync()
		}
		l.scan()
	}
	for range 14 {
		i := r.IntN(3)
		l := links[i]
		switch r.IntN(11) {
		case 0, 1:
			edit()
			a.scan()
		case 2:
			edit() // not published yet
		case 3, 4:
			if l.save(); l == a {
				saved = maps.Clone(model)
			}
			say("save %d", i)
		case 5, 6:
			if l.backup == "" {
				continue
			}
			parts := [][]string{{"state", "source"}, {"state"}, {"source"}}[r.IntN(3)]
			say("restore %v of %d", parts, i)
			l.restore(parts...)
			if l == a && slices.Contains(parts, "source") {
				model = maps.Clone(saved)
			}
		case 7:
			if l != b || r.IntN(2) == 0 {
				continue
			}
			say("make %d anew", i)
			l.backup, l.publishes = "", nil
			l.restore("state", "source")
		case 8: // cut off somewhere
			if l == a {
				continue
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Duration(r.IntN(30))*time.Millisecond)
			err := l.b.Do(ctx, "sync", "copy", nil, &SyncReport{})
			stop()
			say("sync of %d: %v", i, err)
		default:
			if l != a {
				say("sync %d: %v", i, l.b.Do(t.Context(), "sync", "copy", nil, &SyncReport{})) // the one before may have published nothing yet
			}
			say("scan %d", i)
			l.scan()
		}
		if r.IntN(3) > 0 {
			continue
		}
		var rep AuditReport
		if err := c.b.Do(t.Context(), "audit", "copy", AuditArgs{Depth: "origin"}, &rep); err != nil {
			say("audit: %v", err)
			continue
		}
		say("audit: %s", rep.Verdict)
		holds := c.holds()
		equal := maps.Equal(holds, b.published)
		for name, has := range holds {
			equal = equal && has == a.published[name]
		}
		if rep.Equal != equal {
			t.Errorf("an audit says %+v; the first source has %v, the source %v, the mirror %v", rep, a.published, b.published, holds)
		}
	}
	for _, l := range links {
		if l != a {
			l.sync()
		}
		l.scan()
	}
	if want, got := a.holds(), c.holds(); !maps.Equal(want, got) || len(got) == 0 {
		t.Fatalf("A has %v, C %v", want, got)
	}
	var rep AuditReport
	if err := c.b.Do(t.Context(), "audit", "copy", AuditArgs{Depth: "origin"}, &rep); err != nil || !rep.Equal || rep.Origins != rep.Resources {
		t.Errorf("%+v %v", rep, err)
	}
}
