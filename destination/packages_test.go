package destination

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The packages of a dump are downloaded ahead of their reading. One that is not as promised
// ends the run by its name, and what was read before it stays for the next.
func TestPackageAheadIsBad(t *testing.T) {
	for name, spoil := range map[string]func(doc foreignDoc) (foreignDoc, bool){
		"gone": func(doc foreignDoc) (foreignDoc, bool) { return doc, false },
		"cut":  func(doc foreignDoc) (foreignDoc, bool) { doc.body = doc.body[:len(doc.body)/2]; return doc, true },
		"another": func(doc foreignDoc) (foreignDoc, bool) {
			doc.body = append(slices.Clone(doc.body), 'x')
			return doc, true
		},
	} {
		for bad := range 4 {
			if teststores.Unraced(t, 3) {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, bad), func(t *testing.T) {
				f := plainForeign()
				f.list, f.changes, f.dump, f.alone, f.dumpParts, f.hashes = false, false, true, true, 4, 4
				s := newForeignSource(rand.New(rand.NewPCG(5, 1)), f)
				for n := range 40 {
					s.write(fmt.Sprintf("n%d", n))
				}
				s.publish()
				b := foreignBench(t, s)
				path := fmt.Sprintf("/set/dump-%d.zip", bad)
				good, ok := s.docs[path]
				if !ok {
					t.Fatalf("no %s", path)
				}
				doc, there := spoil(good)
				if s.docs[path] = doc; !there {
					delete(s.docs, path)
				}
				d := b.open()
				rep, err := d.Sync(t.Context(), SyncOptions{})
				if err == nil || !strings.Contains(err.Error(), path) || rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				want := s.want()
				for _, line := range b.mir.lines(graphA) {
					if !slices.Contains(want, line) {
						t.Errorf("not of the source: %s", line)
					}
				}
				if n := d.mem.SnapshotMeta().Resources; n != 30 {
					t.Errorf("%d resources are kept of the other packages", n)
				}
				s.docs[path] = good
				b.clock = b.clock.AddDate(0, 0, 1)
				if rep := b.sync(); !rep.InSync {
					t.Errorf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), want)
			})
		}
	}
}

// Where there is a list too, only what was in the bad package and behind it is fetched by itself.
func TestBadPackageBesideList(t *testing.T) {
	f := plainForeign()
	f.changes, f.dump, f.dumpParts, f.hashes = false, true, 4, 4
	s := newForeignSource(rand.New(rand.NewPCG(5, 1)), f)
	for n := range 40 {
		s.write(fmt.Sprintf("n%d", n))
	}
	s.publish()
	delete(s.docs, "/set/dump-3.zip")
	b := foreignBench(t, s)
	var single atomic.Int64
	b.fetch = inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/set/") {
			single.Add(1)
		}
		s.ServeHTTP(w, r)
	})}
	if rep := b.sync(); !rep.InSync || single.Load() > 10 {
		t.Errorf("%d requests: %+v", single.Load(), rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}

// A manifest that is cut ends the run by the name of its package, and what was read before the
// cut stays.
func TestManifestIsCut(t *testing.T) {
	f := plainForeign()
	f.list, f.changes, f.dump, f.alone, f.dumpParts = false, false, true, true, 4
	s := newForeignSource(rand.New(rand.NewPCG(5, 1)), f)
	for n := range 40 {
		s.write(fmt.Sprintf("n%d", n))
	}
	s.publish()
	b := foreignBench(t, s)
	const path = "/set/dump-2.zip"
	good := s.docs[path]
	bad := good
	bad.body = withCutManifest(t, good.body)
	s.docs[path] = bad
	d := b.open()
	rep, err := d.Sync(t.Context(), SyncOptions{})
	if err == nil || !strings.Contains(err.Error(), path) || rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	if n := d.mem.SnapshotMeta().Resources; n < 30 || n >= 40 {
		t.Errorf("%d resources are kept of three packages and a part of one", n)
	}
	s.docs[path] = good
	b.clock = b.clock.AddDate(0, 0, 1)
	if rep := b.sync(); !rep.InSync {
		t.Errorf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
}

func withCutManifest(t *testing.T, packed []byte) []byte {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range in.File {
		body, err := fs.ReadFile(in, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == resourcesync.ManifestName {
			body = body[:len(body)/2]
		}
		to, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Without a list, what is in a bad package is fetched one by one where the dump links to
// copies of the manifests.
func TestBadPackageWithCopiedManifest(t *testing.T) {
	for name, spoil := range map[string]func(w http.ResponseWriter){
		"gone":    func(w http.ResponseWriter) { http.Error(w, "gone", http.StatusNotFound) },
		"another": func(w http.ResponseWriter) { fmt.Fprint(w, "no package") },
	} {
		b := newBench(t)
		s := b.src
		s.list, s.changes, s.dump, s.contents = false, false, true, true
		fill(s, 12)
		bad := true
		b.fetch = inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if bad && r.URL.Path == "/set/dump.zip" {
				spoil(w)
				return
			}
			s.ServeHTTP(w, r)
		})}
		rep := b.sync()
		if !rep.InSync || rep.Created != 12 || !strings.Contains(rep.Why, "a package cannot be used") {
			t.Errorf("%s: %+v", name, rep)
		}
		b.equal()
		bad = false
		s.put("e3.nt", nt("e3", "changed"))
		s.remove("e4.nt")
		if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Deleted != 1 {
			t.Errorf("%s: %+v", name, rep)
		}
		b.equal()
	}
}

func TestIsZIP(t *testing.T) {
	for _, c := range []struct {
		url, typ string
		want     bool
	}{
		{"http://s.example/a.zip", "", true},
		{"http://s.example/a.ZIP?x=.warc", "application/octet-stream", true},
		{"http://s.example/package/7", "application/octet-stream", true},
		{"http://s.example/package/7", "", true},
		{"http://s.example/a.warc", "application/zip", true},
		{"http://s.example/a.warc", "application/octet-stream", false},
		{"http://s.example/a.tar.gz", "", false},
		{"http://s.example/a.zip", "application/warc", false},
	} {
		if p := (feed.Package{URL: c.url, Promise: fetch.Promise{Type: c.typ}}); p.IsZIP() != c.want {
			t.Errorf("%s %q: %t", c.url, c.typ, !c.want)
		}
	}
}
