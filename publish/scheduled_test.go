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
