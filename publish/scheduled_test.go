package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestScheduledList: the Resource List stays as it was made until it is made
// again, with every part of it; what came after is in the Change Lists, also when
// retention drops older ones.
func TestScheduledList(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, PartEntries: 10, RotateEntries: 10, ScheduledList: true})
	values := map[string]int{}
	for i := range 40 {
		values[fmt.Sprintf("http://example.org/e/%d", i)] = i
	}
	w.scan(values, false, rdfres.JSONLD)
	w.publish()
	if w.get(w.url("resourcelist.xml")).Code != 404 || w.pub.HasResourceList("data") {
		t.Error("a list before it was made")
	}
	w.read(w.url("capabilitylist.xml"))
	w.must(w.pub.ListResources(t.Context(), "data"))
	if !w.pub.HasResourceList("data") {
		t.Error("no list after it was made")
	}
	h, _ := w.read(w.url("resourcelist.xml"))
	before := string(w.body(w.url("resourcelist.xml")))
	m := &mirror{w: w, from: "later"}
	m.baseline()
	m.compare("list")
	for i := range 5 {
		w.clock.add(time.Minute)
		w.scan(map[string]int{fmt.Sprintf("http://example.org/e/%d", i): 100 + i, fmt.Sprintf("http://example.org/e/%d", 20+i): -1}, true, rdfres.JSONLD)
		w.publish()
		if i == 2 {
			w.reopen()
		}
	}
	if !h.Index || string(w.body(w.url("resourcelist.xml"))) != before {
		t.Errorf("the list has changed, index %v", h.Index)
	}
	again := &mirror{w: w, from: "not earlier"} // begins with the old list
	h, entries := w.all(w.url("resourcelist.xml"))
	again.copies, again.t = map[string][]byte{}, h.Meta.At
	for _, e := range entries {
		if data, kept := again.version(e); kept {
			again.copies[e.Loc] = data
		}
	}
	for _, m := range []*mirror{m, again} {
		m.follow()
		m.compare("following the changes since")
	}
	w.must(w.pub.ListResources(t.Context(), "data"))
	m = &mirror{w: w, from: "later"}
	m.baseline()
	m.compare("the list made again")
	// Retention never leaves a list from which nobody could go on.
	for i := range 30 {
		w.clock.add(time.Minute)
		w.scan(map[string]int{"http://example.org/e/7": 1000 + i}, true, rdfres.JSONLD)
		w.publish()
	}
	cut := w.clock.now().Add(-3 * time.Minute)
	_, err := w.log.Retain(t.Context(), cut, cut)
	w.must(err)
	w.must(w.pub.Retain(t.Context(), "data"))
	h, _ = w.read(w.url("resourcelist.xml"))
	if c, _ := w.read(w.url("changelist.xml")); h.Meta.At.Before(c.Meta.From) {
		t.Errorf("the list is of %v, the changes begin at %v", h.Meta.At, c.Meta.From)
	}
}

// TestScheduledChangeDump: a Change Dump with its own schedule is made without the
// Resource Dump, and the other way round, and holds the same.
func TestScheduledChangeDump(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, RotateEntries: 3, ScheduledChangeDump: true,
		Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	if err := w.pub.DumpChanges(t.Context(), "data"); err == nil {
		t.Error("a Change Dump of nothing")
	}
	w.scan(map[string]int{"http://example.org/e/0": 1}, false, rdfres.JSONLD)
	w.publish()
	w.must(w.pub.DumpChanges(t.Context(), "data")) // no list is closed
	change := func(n int) {
		for i := range n {
			w.clock.add(time.Minute)
			w.scan(map[string]int{fmt.Sprintf("http://example.org/e/%d", i%4): 10 + int(w.clock.now().Unix())}, true, rdfres.JSONLD)
			w.publish()
		}
	}
	change(10)
	w.must(w.pub.Dump(t.Context(), "data"))
	if n := w.checkChangeDump(); n != 0 {
		t.Errorf("the dump made a Change Dump of %d changes", n)
	}
	before, ok := w.pub.ResourceDump("data")
	change(1)
	w.must(w.pub.DumpChanges(t.Context(), "data"))
	if n := w.checkChangeDump(); n != 9 {
		t.Errorf("the Change Dump has %d changes, want those of three closed lists", n)
	}
	if after, _ := w.pub.ResourceDump("data"); !ok || after != before {
		t.Errorf("the Resource Dump was made too: %+v, before %+v", after, before)
	}
	w.reopen()
	change(4)
	w.must(w.pub.Dump(t.Context(), "data"))
	if n := w.checkChangeDump(); n != 9 {
		t.Errorf("after a dump the Change Dump has %d changes", n)
	}
	w.must(w.pub.DumpChanges(t.Context(), "data"))
	if n := w.checkChangeDump(); n != 12 {
		t.Errorf("the next Change Dump has %d changes", n)
	}

	w = newWorld(t, SetConfig{Format: rdfres.JSONLD}) // offers none
	w.scan(map[string]int{"http://example.org/e/0": 1}, false, rdfres.JSONLD)
	w.publish()
	w.must(w.pub.DumpChanges(t.Context(), "data"))
	if w.get(w.url("changedump.xml")).Code != 404 {
		t.Error("a Change Dump where none is offered")
	}
}
