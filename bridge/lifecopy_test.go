package bridge

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// lifeCopy is a destination of ours that follows a life from elsewhere, whatever becomes of
// its source: what it takes for a copy of the set is one.
type lifeCopy struct {
	w     *life
	store *embedstore.Store
	d     *destination.Destination
	now   time.Time
	began bool // it has had something to begin with
}

func newLifeCopy(w *life) *lifeCopy {
	c := &lifeCopy{w: w, now: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC)}
	var err error
	c.store, err = embedstore.Open(w.t.TempDir(), embedstore.Options{})
	w.must(err)
	e := sparql.Endpoint{Name: "mirror", Transport: c.store.Transport()}
	e.Query, e.Update, e.GraphStore = embeddedAddresses("mirror")
	client, err := sparql.New(e)
	w.must(err)
	c.d, err = destination.Open(w.t.Context(), memkv.New(), sparqlsink.Of(client), destination.Config{
		Name: "copy", Source: "http://source.invalid", MaxDeleteRatio: 1, Allow: []string{"source.invalid", "other.invalid", w.repo.URL}, TempDir: w.t.TempDir(), Files: filepath.Join(w.t.TempDir(), "files"),
	}, destination.Options{Now: func() time.Time { return c.now }, Transport: inproc.Transport{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Host, ".invalid") {
			w.repo.ServeHTTP(rw, r)
			return
		}
		w.b.PublicHandler().ServeHTTP(rw, r)
	})}})
	w.must(err)
	w.t.Cleanup(func() { c.d.Close(); client.Close(); c.store.Close() })
	return c
}

// follow lets it look; last tells that there is nothing more to come.
func (c *lifeCopy) follow(last bool) {
	w := c.w
	w.t.Helper()
	c.now = c.now.Add(time.Hour)
	if offered := w.offers(); !c.began && offered["resourcelist"] == "" && offered["resourcedump"] == "" {
		return // of changes alone nobody makes a copy
	}
	c.began = true
	rep, err := c.d.Sync(w.t.Context(), destination.SyncOptions{Retry: true})
	w.say("our copy: %s, %s, in sync %v, %d pending, %d failed, %v %+v %v", rep.Mode, rep.Why, rep.InSync, rep.Pending, rep.Failed, rep.Held, rep.Problems, err)
	if err == nil && rep.InSync {
		c.equal()
		c.equalFiles()
		return
	}
	if last {
		w.t.Fatalf("our copy does not come to an end: %+v %v", rep, err)
	}
}

// equal: the copy has the triples of all descriptions, and no others.
func (c *lifeCopy) equal() {
	w := c.w
	w.t.Helper()
	var has bytes.Buffer
	w.must(c.store.Dump(w.t.Context(), &has, rdfres.NTriples, embedstore.DumpOptions{}))
	got, err := codec.Decode(rdfres.NTriples, has.Bytes(), rdfres.ReadOptions{})
	w.must(err)
	for i := range got {
		got[i].S, got[i].O = rdfres.Unskolemize(got[i].S), rdfres.Unskolemize(got[i].O)
	}
	var want []rdfres.Triple
	for e := range w.each() {
		want = append(want, w.description(e)...)
	}
	if got, want = rdfres.SortUnique(got), rdfres.SortUnique(want); slices.Equal(got, want) {
		return
	}
	var diff []string
	for _, x := range got {
		if !slices.Contains(want, x) {
			diff = append(diff, "+ "+fmt.Sprint(x))
		}
	}
	for _, x := range want {
		if !slices.Contains(got, x) {
			diff = append(diff, "- "+fmt.Sprint(x))
		}
	}
	w.t.Fatalf("our copy says that it is in sync:\n%s", strings.Join(diff[:min(len(diff), 20)], "\n"))
}

// equalFiles: the copy has the files of the set, and no others, as they are listed.
func (c *lifeCopy) equalFiles() {
	w := c.w
	w.t.Helper()
	got, want := map[string]string{}, map[string]string{}
	for o, err := range c.d.Others(w.t.Context(), "") {
		w.must(err)
		got[o.Location] = o.Digest
	}
	view := w.b.Log("data").View(context.Background())
	defer view.Close()
	for st, err := range view.CurrentFiles(context.Background(), rdfres.Digest{}, rdfres.Digest{}) {
		w.must(err)
		want[st.URL] = st.Current.SHA256.String()
		if st.Current.SHA256.IsZero() { // whatever it is
			want[st.URL] = got[st.URL]
		}
	}
	if !maps.Equal(got, want) {
		w.t.Fatalf("our copy says that it is in sync; it has the files\n%v, want\n%v", got, want)
	}
}

// ---- backups of the state

// save makes a backup of the state.
func (w *life) save() {
	w.must(w.b.Close())
	w.backup = w.t.TempDir()
	w.must(os.CopyFS(w.backup, os.DirFS(w.cfg.State)))
	w.say("saved")
	w.open()
}

// restore brings back the state, without or with what is published of it, or that alone,
// or nothing.
func (w *life) restore() {
	w.must(w.b.Close())
	const published = "published"
	parts := [][]string{{"kv", "stage", published}, {"kv", "stage"}, {published}, {}}[w.r.IntN(4)]
	for _, part := range []string{"kv", "stage", published} {
		if len(parts) == 0 || slices.Contains(parts, part) {
			w.must(os.RemoveAll(filepath.Join(w.cfg.State, part)))
		}
	}
	for _, part := range parts {
		if from := filepath.Join(w.backup, part); exists(from) {
			w.must(os.CopyFS(filepath.Join(w.cfg.State, part), os.DirFS(from)))
		}
	}
	w.say("restored: %q", parts)
	w.open()
	if !slices.Equal(parts, []string{published}) { // nobody goes on from what never was; destination has tests of that
		w.followers, w.checker, w.copy = nil, nil, newLifeCopy(w)
	}
	if _, ok := w.b.pub.Generation("data"); !ok {
		w.look()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
