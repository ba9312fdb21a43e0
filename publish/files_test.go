package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// files tells the log of a new version of n files, which the description of berlin
// leads to: they have a length now.
func (w *world) files(length int64, n int) {
	w.t.Helper()
	var found []changetrack.FileFound
	for i := range n {
		found = append(found, changetrack.FileFound{URL: fmt.Sprintf("http://files.example/%d.pdf", i), Changed: true, Version: changetrack.FileVersion{Type: "application/pdf", Length: length}})
	}
	_, err := w.log.RecordFiles(w.t.Context(), found)
	w.must(err)
}

// TestChangeDumpOfFiles: packages hold no files. Where closed Change Lists tell of
// nothing else there is no package without an entry; the next one covers their time,
// so that packages adjoin and the first begins with the first list.
func TestChangeDumpOfFiles(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, RotateEntries: 3, PackageBytes: 1, Content: "1",
		Capabilities: []string{"resourcelist", "changelist", "changedump"}})
	w.tune = func(s *set) { s.sizes.dumpDocEntries = 2 }
	w.o.Dir = t.TempDir()
	w.reopen()
	w.scan(map[string]int{berlin: 1}, false, rdfres.NTriples)
	w.must(w.log.LinkFiles(t.Context(), changetrack.LinkOptions{Properties: "1", Files: func(string, rdfres.Format, []byte) (urls []string, err error) {
		for i := range 3 {
			urls = append(urls, fmt.Sprintf("http://files.example/%d.pdf", i))
		}
		return urls, nil
	}}))
	w.publish()
	begin := w.mustGeneration().At
	value := 1
	entity := func() {
		value++
		w.scan(map[string]int{berlin: value}, true, rdfres.NTriples)
	}
	packages := func() (list []*resourcesync.Entry) {
		t.Helper()
		w.publish()
		w.must(w.pub.DumpChanges(t.Context(), "data"))
		if w.get(w.url("changedump.xml")).Code == 404 {
			return nil
		}
		_, list = w.all(w.url("changedump.xml"))
		until := begin
		for _, p := range list {
			if !p.Meta.From.Equal(until) {
				t.Errorf("%s begins at %s, what is before ends at %s", p.Loc, p.Meta.From, until)
			}
			until = p.Meta.Until
			h, entries := w.read(p.Link(resourcesync.RelContents).Href)
			if len(entries) == 0 || !h.Meta.From.Equal(p.Meta.From) || !h.Meta.Until.Equal(p.Meta.Until) {
				t.Errorf("%s from %s until %s: the manifest has %d entries from %s until %s", p.Loc, p.Meta.From, p.Meta.Until, len(entries), h.Meta.From, h.Meta.Until)
			}
			for _, e := range entries {
				if strings.HasSuffix(e.Loc, ".pdf") {
					t.Errorf("%s has %s", p.Loc, e.Loc)
				}
			}
		}
		return list
	}
	step := func(f func()) {
		w.clock.add(time.Minute)
		f()
	}
	for i := range 3 { // lists 1 to 3, of which 3 is open
		step(func() { w.files(int64(10+i), 3) })
	}
	if list := packages(); list != nil {
		t.Fatalf("packages of files: %v", list)
	}
	for i := range 4 { // the entity, then files, in each; beyond one byte a package is cut
		step(func() { entity(); w.files(int64(20+i), 2) })
	}
	list := packages()
	if len(list) != 3 {
		t.Fatalf("%d packages", len(list))
	}
	if _, root := w.read(w.url("changelist.xml")); !list[2].Meta.Until.Equal(root[len(root)-2].Meta.Until) {
		t.Errorf("the packages end at %s, the closed lists at %s", list[2].Meta.Until, root[len(root)-2].Meta.Until)
	}
	last := list[2].Meta.Until
	for i := range 6 { // so many that a part of the Change Dump's index has nothing
		step(func() { w.files(int64(30+i), 3) })
	}
	if list := packages(); len(list) != 4 || !list[3].Meta.Until.After(last) {
		t.Errorf("%d packages after many of files", len(list))
	}
	step(func() { entity(); entity(); entity() })
	step(func() { entity() })
	w.reopen()
	if list := packages(); len(list) != 7 {
		t.Errorf("%d packages at the end", len(list))
	}
	if _, parts := w.read(w.url("changedump.xml")); len(parts) == 0 {
		t.Error("no index")
	}
	// Every change of an entity that a closed list tells of is in a package, once.
	var told, packaged []string
	_, lists := w.read(w.url("changelist.xml"))
	for _, l := range lists[:len(lists)-1] {
		_, entries := w.read(l.Loc)
		for _, e := range entries {
			if e.Meta.Ext[resourcesync.ExtKind] != resourcesync.KindFile {
				told = append(told, e.Meta.Ext[resourcesync.ExtSequence])
			}
		}
	}
	for _, p := range packages() {
		_, entries := w.read(p.Link(resourcesync.RelContents).Href)
		for _, e := range entries {
			packaged = append(packaged, e.Meta.Ext[resourcesync.ExtSequence])
		}
	}
	if !slices.Equal(told, packaged) {
		t.Errorf("the packages hold the changes %v, the closed lists tell of %v", packaged, told)
	}
}
