package publish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// archives reads the archive of a kind, every document that it names, and checks
// that no link into this source is dead but where the resource itself has changed.
func (w *world) archives(kind resourcesync.Capability) (docs []*resourcesync.Entry, entries []*resourcesync.Entry) {
	w.t.Helper()
	address := w.url("archives/" + string(kind) + ".xml")
	if w.get(address).Code == 404 {
		return nil, nil
	}
	_, list := w.read(w.url("capabilitylist.xml"))
	found := false
	for _, e := range list {
		found = found || e.Loc == address && e.Meta.Capability == kind+"-archive"
	}
	if !found {
		w.t.Fatalf("the Capability List does not lead to %s", address)
	}
	_, docs = w.all(address)
	for _, d := range docs {
		h, more := w.all(d.Loc)
		if h.Meta.Capability != kind {
			w.t.Fatalf("%s is a %s", d.Loc, h.Meta.Capability)
		}
		entries = append(entries, more...)
	}
	return docs, entries
}

// checkArchives: archived and present Change Lists together are the log since the
// lists began, without a gap.
func (w *world) checkArchives(since time.Time) {
	w.t.Helper()
	docs, entries := w.archives(resourcesync.ChangeList)
	_, present := w.all(w.url("changelist.xml"))
	at := since
	for _, d := range docs {
		if !d.Meta.From.Equal(at) {
			w.t.Fatalf("the archive goes on at %v, want %v", d.Meta.From, at)
		}
		at = d.Meta.Until
	}
	if h, _ := w.read(w.url("changelist.xml")); !h.Meta.From.Equal(at) {
		w.t.Fatalf("the present lists go on at %v, want %v", h.Meta.From, at)
	}
	last := ""
	for _, e := range entries {
		for _, l := range e.Links {
			if l.Rel == resourcesync.RelPatch {
				w.t.Fatalf("%s links to a patch that is gone", e.Loc)
			}
		}
	}
	n := 0
	for _, e := range append(entries, present...) {
		if s := e.Meta.Ext[resourcesync.ExtSequence]; s != last {
			n++
			last = s
		}
	}
	head, _ := w.log.Head()
	base, _, _ := w.log.View(w.t.Context()).BaselineEnd()
	if uint64(n) != head-base {
		w.t.Fatalf("%d changes are in the lists and the archive, %d in the log", n, head-base)
	}
}

// TestArchives: everything that was offered can still be had, what is archived
// never changes, links that went are left out, and retention trims.
func TestArchives(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, RotateEntries: 5, PartEntries: 10, PackageBytes: 4000, DumpPatches: true,
		Archives: true, ArchivesKeep: 24 * time.Hour, Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	values := map[string]int{}
	for i := range 30 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.JSONLD)
	w.publish()
	_, since, _ := w.log.View(t.Context()).BaselineEnd()
	if w.get(w.url("archives/resourcelist.xml")).Code != 404 {
		t.Error("there is an archive before anything was archived")
	}
	want := map[string]map[string]string{} // archived Resource List: loc to hash
	known, checked, mementos := 0, 0, 0
	for round := range 4 {
		w.must(w.pub.Dump(t.Context(), "data"))
		w.must(w.pub.Archive(t.Context(), "data"))
		w.must(w.pub.Archive(t.Context(), "data")) // once is enough
		_, entries := w.all(w.url("resourcelist.xml"))
		hashes := map[string]string{}
		for _, e := range entries {
			hashes[e.Loc] = e.Meta.Hash.SHA256
		}
		want[fmt.Sprintf("%d", round)] = hashes
		w.clock.add(time.Hour)
		change := map[string]int{fmt.Sprintf("http://example.org/e/%d", round): -1}
		for i := range 7 {
			change[fmt.Sprintf("http://example.org/e/%d", 10+i)] = round*10 + i + 100
		}
		w.scan(change, true, rdfres.JSONLD)
		w.publish()
		if round == 2 {
			w.reopen()
		}
		w.must(w.pub.Dump(t.Context(), "data"))
		before := w.clock.now().Add(-90 * time.Minute)
		_, err := w.log.Retain(t.Context(), before, before)
		w.must(err)
		w.must(w.pub.Retain(t.Context(), "data"))
		w.checkArchives(since)
		docs, _ := w.archives(resourcesync.ChangeList)
		for _, d := range docs[known:] { // archived just now: no link is dead
			_, entries := w.all(d.Loc)
			for _, e := range entries {
				checked++
				for _, l := range e.Links {
					if !strings.HasPrefix(l.Href, testBase) {
						continue
					}
					if l.Rel == resourcesync.RelMemento {
						mementos++
					}
					if code := w.get(l.Href).Code; code != 200 && !(l.Rel == resourcesync.RelTimeGate && code == 302) {
						t.Errorf("%s: %s %s: %d", e.Loc, l.Rel, l.Href, code)
					}
				}
			}
		}
		known = len(docs)
	}
	docs, _ := w.archives(resourcesync.ResourceList)
	if len(docs) != 4 {
		t.Fatalf("%d archived Resource Lists", len(docs))
	}
	for i, d := range docs {
		_, entries := w.all(d.Loc)
		got := map[string]string{}
		for _, e := range entries {
			got[e.Loc] = e.Meta.Hash.SHA256
		}
		if fmt.Sprint(got) != fmt.Sprint(want[fmt.Sprint(i)]) {
			t.Errorf("%s holds %v, want %v", d.Loc, got, want[fmt.Sprint(i)])
		}
	}
	for _, kind := range []resourcesync.Capability{resourcesync.ResourceDump, resourcesync.ChangeDump} {
		docs, packages := w.archives(kind)
		if len(docs) < 2 {
			t.Errorf("%d documents in the archive of %s", len(docs), kind)
		}
		for _, p := range packages {
			w.unpack(p)
		}
	}
	if checked == 0 || mementos == checked {
		t.Errorf("%d changes are archived, %d with their versions", checked, mementos)
	}
	// An archive of many documents has an index.
	w.pub.lookup("data").archive.docEntries = 2
	if h, _ := w.read(w.url("archives/resourcelist.xml")); !h.Index {
		t.Error("no index")
	}
	if docs, _ := w.archives(resourcesync.ResourceList); len(docs) != 4 {
		t.Errorf("%d documents in the parts of the index", len(docs))
	}
	// Trimmed, also after a start; nothing is left on disk but what is offered.
	w.clock.add(25 * time.Hour)
	w.bytes = map[string]string{}
	w.must(w.pub.Retain(t.Context(), "data"))
	for _, kind := range archiveKinds {
		if code := w.get(w.url("archives/" + string(kind) + ".xml")).Code; code != 404 {
			t.Errorf("the archive of %s is still there: %d", kind, code)
		}
	}
	if code := w.get(docs[0].Loc).Code; code != 410 {
		t.Errorf("what was archived: %d", code)
	}
	w.checkDump()
	w.reopen()
	w.checkDump()
}
