package publish

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// unpack reads a package of a dump by its manifest.
func (w *world) unpack(p *resourcesync.Entry) map[string][]byte {
	w.t.Helper()
	zip := w.body(p.Loc)
	sum := sha256.Sum256(zip)
	if int64(len(zip)) != p.Meta.Length || hex.EncodeToString(sum[:]) != p.Meta.Hash.SHA256 {
		w.t.Fatalf("package %s is not what is promised", p.Loc)
	}
	pk, err := resourcesync.OpenPackage(bytes.NewReader(zip), int64(len(zip)), resourcesync.PackageOptions{})
	w.must(err)
	r, closer, err := pk.Manifest()
	w.must(err)
	defer closer.Close()
	got := map[string][]byte{}
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		w.must(err)
		if e.Meta.Change == "deleted" {
			continue
		}
		for _, l := range e.Links {
			if l.Rel != resourcesync.RelPatch {
				continue
			}
			f, err := pk.Open(l.Path)
			w.must(err)
			data, err := io.ReadAll(f)
			w.must(err)
			if got := rdfres.ComputeFixity(data, false, false); got.Length != l.Length || got.SHA256.String() != l.Hash.SHA256 {
				w.t.Fatalf("%s: the patch %s is not what is promised", p.Loc, l.Path)
			}
			w.applied["dump "+l.Type]++
		}
		f, err := pk.Open(e.Meta.Path)
		w.must(err)
		data, err := io.ReadAll(f)
		w.must(err)
		w.must(f.Close())
		if x := rdfres.ComputeFixity(data, false, false); x.SHA256.String() != e.Meta.Hash.SHA256 || x.Length != e.Meta.Length {
			w.t.Fatalf("%s in %s is not what the manifest promises", e.Meta.Path, p.Loc)
		}
		got[e.Loc] = data
	}
	contents := p.Link(resourcesync.RelContents)
	if contents == nil {
		w.t.Fatalf("package %s has no contents link", p.Loc)
	}
	w.read(contents.Href)
	return got
}

// checkChangeDump unpacks the Change Dump, if there is one, and compares it with
// the Change Lists; it gives the number of its changes.
func (w *world) checkChangeDump() int {
	w.t.Helper()
	_, changes := w.all(w.url("changelist.xml"))
	if w.get(w.url("changedump.xml")).Code == 404 {
		return 0
	}
	h, packages := w.all(w.url("changedump.xml"))
	last := h.Meta.From
	for len(changes) > 0 && !changes[0].Meta.DateTime.After(last) { // versions were dropped: it begins later
		changes = changes[1:]
	}
	n := 0
	for _, p := range packages {
		if !p.Meta.From.Equal(last) {
			w.t.Fatalf("%s begins at %v, the one before ends at %v", p.Loc, p.Meta.From, last)
		}
		last = p.Meta.Until
		w.unpack(p)
		_, entries := w.read(p.Link(resourcesync.RelContents).Href)
		for _, e := range entries {
			if c := changes[n]; e.Loc != c.Loc || e.Meta.Change != c.Meta.Change || !e.Meta.DateTime.Equal(c.Meta.DateTime) || e.Meta.Hash.String() != c.Meta.Hash.String() {
				w.t.Fatalf("Change Dump entry %d is %+v, the Change List has %+v", n, e, c)
			}
			n++
		}
	}
	return n
}

func TestDumpGenerations(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PackageBytes: 4000, RotateEntries: 5,
		Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	if err := w.pub.Dump(t.Context(), "data"); err == nil {
		t.Error("a dump of nothing")
	}
	w.scan(map[string]int{"http://example.org/e/0": 0}, false, w.cfg.Format)
	w.publish()
	var first []*resourcesync.Entry
	for round := range 4 {
		values := map[string]int{}
		for i := range 60 {
			values[fmt.Sprintf("http://example.org/e/%d", i)] = round*100 + i
		}
		values["http://example.org/gone"] = []int{5, -1}[round%2]
		w.clock.add(time.Minute)
		w.scan(values, true, w.cfg.Format)
		w.publish()
		w.must(w.pub.Dump(t.Context(), "data"))
		w.checkDump()
		_, packages := w.all(w.url("resourcedump.xml"))
		if len(packages) < 2 {
			t.Fatalf("%d packages", len(packages))
		}
		switch round {
		case 0:
			first = packages
		case 1:
			w.unpack(first[0]) // one generation back
		case 2:
			if res := w.get(first[0].Loc); res.Code != 410 {
				t.Errorf("a package two generations old: %d", res.Code)
			}
		}
	}
	// more packages than one document lists: an index
	w.pub.sets["data"].sizes.dumpDocEntries = 2
	if h, _ := w.read(w.url("resourcedump.xml")); !h.Index {
		t.Error("no index of the Resource Dump")
	}
	w.checkDump()
	w.pub.sets["data"].sizes.dumpDocEntries = dumpDocEntries
	info, ok := w.pub.ResourceDump("data")
	if !ok || info.Entries != int64(len(w.model)) || info.Packages < 2 {
		t.Errorf("ResourceDump = %+v, %v", info, ok)
	}
	_, changes := w.all(w.url("changelist.xml"))
	if n := w.checkChangeDump(); n == 0 || len(changes)-n > 5 {
		t.Errorf("the Change Dump has %d changes, the Change Lists %d", n, len(changes))
	}
	_, packages := w.read(w.url("changedump.xml"))
	res := w.get(packages[0].Loc, "Range", "bytes=0-3")
	if res.Code != 206 || res.Body.String() != "PK\x03\x04" {
		t.Errorf("a range of a package: %d %q", res.Code, res.Body)
	}
	for given, want := range map[string]int{
		"bytes=0-3,6-7": 206, "bytes=-4": 206, "bytes=4-": 206, "bytes=99999999-": 416,
		"lines=1-2": 200, "items=0-5": 200, "bytes": 200, "bytes=": 200, "bytes=a-b": 200, "bytes=3-2": 416, "Bytes 0-3": 200, "bytes=0-3;x": 200, "seconds=1-, bytes=0-3": 200,
	} {
		if res := w.get(packages[0].Loc, "Range", given); res.Code != want {
			t.Errorf("Range: %s: %d, want %d", given, res.Code, want)
		}
	}
	// files that no record names go, and what is there stays
	stray := filepath.Join(w.o.Dir, "data", "resourcedump", "999", "00001.zip.tmp")
	w.must(os.MkdirAll(filepath.Dir(stray), 0o755))
	w.must(os.WriteFile(stray, []byte("x"), 0o644))
	w.reopen()
	if _, err := os.Stat(stray); err == nil {
		t.Error("a file of a dump that did not end is still there")
	}
	w.checkDump()
	// a dump whose files are lost is not offered
	w.must(os.RemoveAll(filepath.Join(w.o.Dir, "data", "resourcedump")))
	w.reopen()
	if _, ok := w.pub.ResourceDump("data"); ok {
		t.Error("a dump without files is offered")
	}
	_, offered := w.read(w.url("capabilitylist.xml"))
	for _, e := range offered {
		if e.Meta.Capability == resourcesync.ResourceDump {
			t.Error("a dump without files is in the Capability List")
		}
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	w.checkDump()
}

// TestPackagePathsDifferBeyondCase: unpacked on a file system that takes Berlin
// and berlin for the same, no member overwrites another.
func TestPackagePathsDifferBeyondCase(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/"})
	w.scan(map[string]int{"http://example.org/Berlin": 1, "http://example.org/berlin": 2, "http://example.org/BERLIN": 3,
		"http://example.org/a/x": 4, "http://example.org/A/x": 5, "http://example.org/\u00e9": 6, "http://example.org/\u00c9": 7}, false, w.cfg.Format)
	w.publish()
	w.must(w.pub.Dump(t.Context(), "data"))
	w.checkDump()
	_, packages := w.all(w.url("resourcedump.xml"))
	seen := map[string]string{}
	for _, p := range packages {
		data := w.body(p.Loc)
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		w.must(err)
		for _, f := range z.File {
			if other, ok := seen[strings.ToLower(f.Name)]; ok {
				t.Errorf("%s and %s", f.Name, other)
			}
			seen[strings.ToLower(f.Name)] = f.Name
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d members: %v", len(seen), seen)
	}
}

// TestChangeDumpWithoutGaps: what is left of a Change Dump whose package was lost ends
// before it, however often it is opened, and the next dump makes the rest again.
func TestChangeDumpWithoutGaps(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, RotateEntries: 2, Capabilities: []string{"resourcelist", "changelist", "changedump"}})
	w.scan(map[string]int{"http://example.org/e/0": 0}, false, w.cfg.Format)
	w.publish()
	for round := range 12 {
		w.clock.add(time.Minute)
		w.scan(map[string]int{fmt.Sprintf("http://example.org/e/%d", round): round + 1}, true, w.cfg.Format)
		w.publish()
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	_, packages := w.all(w.url("changedump.xml"))
	if len(packages) < 4 {
		t.Fatalf("%d packages", len(packages))
	}
	w.must(os.Remove(filepath.Join(w.o.Dir, strings.TrimPrefix(packages[1].Loc, testBase))))
	for range 3 {
		w.reopen()
		_, left := w.all(w.url("changedump.xml"))
		if len(left) != 1 || left[0].Loc != packages[0].Loc {
			t.Errorf("left are %d of %d packages, the first is %s", len(left), len(packages), left[0].Loc)
		}
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	w.checkChangeDump()
	if _, all := w.all(w.url("changedump.xml")); len(all) != len(packages) {
		t.Errorf("made again are %d of %d packages", len(all), len(packages))
	}

}
