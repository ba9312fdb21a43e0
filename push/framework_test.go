package push

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestFrameworkRules are the rules of Framework Notification, by their numbers in our list: each
// step changes the source, and the notification after it tells of documents in this way.
func TestFrameworkRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, webSub, func(c *publish.SetConfig) { c.RotateEntries = 4 })
		w.must(w.push.Start(t.Context()))
		framework := w.topic("framework")
		settle := func() { time.Sleep(2 * frameworkPause); synctest.Wait() }
		settle()
		at, err := framework.Head(t.Context())
		w.must(err)
		var until time.Time
		const set = "/at/data/"
		for _, step := range []struct {
			rules string
			do    func()
			want  string // "" for none
		}{
			{"5 new documents show in the Capability List; 18", func() { w.change(map[string]int{entity(1): 1, entity(2): 1}) },
				"updated capabilitylist capabilitylist.xml, created resourcelist resourcelist.xml, created changelist changelist.xml"},
			{"19 the open Change List grows: told at once, and then once for all changes of a pause", func() {
				for i := range 3 {
					w.change(map[string]int{entity(1): 10 + i})
					synctest.Wait()
				}
			}, "updated resourcelist resourcelist.xml, updated changelist changelist.xml, updated resourcelist resourcelist.xml, updated changelist changelist.xml"},
			{"16, 17 a new part with its index; never the index", func() { w.change(map[string]int{entity(1): 20, entity(2): 20}) },
				"updated resourcelist resourcelist.xml, created changelist changelist-000002.xml in changelist.xml"},
			{"18 a dump is created", func() { w.must(w.pub.Dump(t.Context(), "data")) },
				"updated capabilitylist capabilitylist.xml, created resourcedump resourcedump.xml"},
			{"18 a dump made again is created again", func() {
				w.change(map[string]int{entity(1): 30})
				synctest.Wait()
				w.must(w.pub.Dump(t.Context(), "data"))
			},
				"updated resourcelist resourcelist.xml, updated changelist changelist-000002.xml in changelist.xml, created resourcedump resourcedump.xml"},
			{"without a change there is nothing to tell", func() { w.push.Changed("data") }, ""},
		} {
			step.do()
			settle()
			n := w.after(framework, at.Told)
			if n.body == nil {
				if step.want != "" {
					t.Errorf("%s: nothing is told", step.rules)
				}
				continue
			}
			head, entries := w.read(n.body)
			var got []string
			for _, e := range entries {
				text := e.Meta.Change + " " + string(e.Meta.Capability) + " " + strings.TrimPrefix(e.Loc, "http://source.example"+set)
				if l := e.Link(resourcesync.RelIndex); l != nil {
					text += " in " + strings.TrimPrefix(l.Href, "http://source.example"+set)
				}
				got = append(got, text)
				if w.document(strings.TrimPrefix(e.Loc, "http://source.example")) == nil {
					t.Errorf("%s is told and cannot be fetched", e.Loc)
				}
			}
			if s := strings.Join(got, ", "); s != step.want {
				t.Errorf("%s:\n got %s\nwant %s", step.rules, s, step.want)
			}
			if head.Index || head.Meta.Capability != resourcesync.FrameworkNotification || head.Link(resourcesync.RelUp) != base+"/data/capabilitylist.xml" {
				t.Errorf("14, 15: %+v", head)
			}
			if !until.IsZero() && !head.Meta.From.Equal(until) {
				t.Errorf("from %v after until %v", head.Meta.From, until)
			}
			rising(t, head.Meta.From, entries, head.Meta.Until)
			at, until = n.at, head.Meta.Until
		}
		// What was told is remembered: after a restart nothing is told twice.
		w.push.Close()
		w.push = w.open(webSub)
		w.must(w.push.Start(t.Context()))
		settle()
		if n := w.after(w.topic("framework"), at.Told); n.body != nil {
			t.Errorf("after a restart: %s", n.body)
		}
		old, err := w.topic("framework").after(t.Context(), positionIn(0), resourcesync.DialectSocket)
		w.must(err)
		if root, _, _ := strings.Cut(string(old.body), "<url>"); strings.Contains(root, "rs:md") {
			t.Errorf("15: notification 0.8 has no rs:md at the root: %s", root)
		}
	})
}

// TestFrameworkIsBounded: however often documents change, a number of events is kept.
func TestFrameworkIsBounded(t *testing.T) {
	w := newWorld(t, webSub, nil)
	for i := range 40 {
		w.change(map[string]int{entity(1): i + 1})
		w.must(w.push.sets["data"].look(t.Context()))
	}
	r, err := w.push.sets["data"].frameworkRecord(t.Context())
	w.must(err)
	if len(r.Events) != keptEvents || r.Sequence < 2*39 {
		t.Errorf("%d events up to %d", len(r.Events), r.Sequence)
	}
	head, entries := w.read(w.after(w.topic("framework"), 1).body)
	rising(t, head.Meta.From, entries, head.Meta.Until)
}
