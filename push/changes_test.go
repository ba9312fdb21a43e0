package push

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/resourcesync"
)

func positionIn(told uint64) hub.Position { return hub.Position{Told: told, Seen: told} }

var webSub = Config{WebSub: true, WebSocket: true, Events: true}

// TestNotificationRules are the rules of Change Notification 1.0.1 and of notification 0.8 for
// channels and payloads, by their numbers in our list.
func TestNotificationRules(t *testing.T) {
	w := newWorld(t, webSub, nil)
	w.change(map[string]int{entity(1): 1, entity(2): 2, entity(3): 3})
	change := w.topic("change")
	start, err := change.Head(t.Context())
	w.must(err)
	w.change(map[string]int{entity(1): 5, entity(2): -1, entity(4): 4})
	w.change(map[string]int{entity(4): 6})
	first := w.after(change, start.Told)
	head, entries := w.read(first.body)
	for _, rule := range []struct {
		number int
		what   string
		check  func(t *testing.T)
	}{
		{1, "changes of resources and of documents are never on one channel", func(t *testing.T) {
			for _, e := range entries {
				if e.Meta.Capability != "" {
					t.Errorf("%s is of the capability %s", e.Loc, e.Meta.Capability)
				}
			}
		}},
		{2, "a set has one channel of each kind", func(t *testing.T) {
			for _, rest := range []string{"change", "framework"} {
				if res := w.get("GET", "/data/notify/"+rest); res.Code != 200 {
					t.Errorf("%s: %d", rest, res.Code)
				}
			}
			if res := w.get("GET", "/data/notify/other"); res.Code != 404 {
				t.Errorf("another one: %d", res.Code)
			}
		}},
		{4, "the Capability List names the channels, topics with a hub", func(t *testing.T) {
			got := w.capabilities()
			want := "change-notification http://source.example/at/data/notify/change hub http://source.example/at/hub socket ws://source.example/at/data/notify/change\n" +
				"framework-notification http://source.example/at/data/notify/framework hub http://source.example/at/hub socket ws://source.example/at/data/notify/framework\n"
			if got != want {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
		}},
		{7, "a urlset", func(t *testing.T) {
			if head.Index || !bytes.Contains(first.body, []byte("<urlset")) {
				t.Errorf("%.300s", first.body)
			}
		}},
		{8, "up leads to the Capability List", func(t *testing.T) {
			if got := head.Link(resourcesync.RelUp); got != base+"/data/capabilitylist.xml" {
				t.Error(got)
			}
		}},
		{9, "capability, from and until; none in 0.8", func(t *testing.T) {
			if m := head.Meta; m.Capability != resourcesync.ChangeNotification || m.From.IsZero() || m.Until.IsZero() {
				t.Errorf("%+v", m)
			}
			old, err := change.after(t.Context(), start, resourcesync.DialectSocket)
			w.must(err)
			if root, _, _ := bytes.Cut(old.body, []byte("<url>")); bytes.Contains(root, []byte("rs:md")) || !bytes.Contains(root, []byte(`rel="up"`)) {
				t.Errorf("%s", root)
			}
		}},
		{10, "consecutive notifications adjoin", func(t *testing.T) {
			w.change(map[string]int{entity(9): 9})
			next, _ := w.read(w.after(change, first.at.Told).body)
			if !next.Meta.From.Equal(head.Meta.Until) {
				t.Errorf("from %v after until %v", next.Meta.From, head.Meta.Until)
			}
		}},
		{11, "entries go forward in time", func(t *testing.T) { rising(t, head.Meta.From, entries, head.Meta.Until) }},
		{12, "loc, change, time, hash and links", func(t *testing.T) {
			if got := names(entries); !strings.HasSuffix(got, ", updated http~3A~2F~2Fexample.org~2Fe4") && !strings.HasSuffix(got, "updated e4") || len(entries) != 4 || strings.Count(got, "deleted") != 1 {
				t.Errorf("changes: %s", got)
			}
			for _, e := range entries {
				if e.Meta.Change != resourcesync.Deleted && (e.Meta.Hash.SHA256 == "" || e.Meta.Length <= 0 || e.Link(resourcesync.RelMemento) == nil) || e.Meta.DateTime.IsZero() {
					t.Errorf("%+v", e)
				}
			}
		}},
		{13, "lastmod is the time of the change", func(t *testing.T) {
			for _, e := range entries {
				if !e.LastMod.Equal(e.Meta.DateTime) {
					t.Errorf("%s: lastmod %v, datetime %v", e.Loc, e.LastMod, e.Meta.DateTime)
				}
			}
		}},
		{25, "a topic answers 200 as application/xml with links, also to HEAD; empty before the first change", func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				res := w.get(method, "/at/data/notify/change")
				link := `<http://source.example/at/data/notify/change>; rel="self", <http://source.example/at/hub>; rel="hub", <http://source.example/at/data/capabilitylist.xml>; rel="resourcesync"`
				if h := res.Header(); res.Code != 200 || h.Get("Content-Type") != "application/xml" || h.Get("Link") != link {
					t.Errorf("%s: %d %v", method, res.Code, h)
				}
				if got := w.get(method, "/data/notify/change", "If-None-Match", res.Header().Get("Etag")); got.Code != 304 {
					t.Errorf("%s with the ETag: %d", method, got.Code)
				}
			}
			res := newWorld(t, webSub, nil).get("GET", "/data/notify/change")
			if res.Code != 200 || res.Header().Get("Content-Length") != "0" {
				t.Errorf("before the first change: %d %v", res.Code, res.Header())
			}
		}},
	} {
		t.Run(fmt.Sprintf("%d %s", rule.number, rule.what), rule.check)
	}
}

// capabilities are the channels in the Capability List.
func (w *world) capabilities() (out string) {
	w.Helper()
	rec := w.document("/data/capabilitylist.xml")
	r, err := resourcesync.NewReader(rec, resourcesync.ReaderOptions{BaseURL: base, Strict: true})
	w.must(err)
	for _, e := range w.entries(r) {
		if !e.Meta.Capability.Notification() {
			continue
		}
		hub := ""
		if l := e.Link(resourcesync.RelHub); l != nil {
			hub = l.Href
		}
		out += fmt.Sprint(string(e.Meta.Capability), " ", e.Loc, " hub ", hub)
		for _, l := range e.Links {
			if strings.HasPrefix(l.Href, "ws:") {
				out += " socket " + l.Href
			}
		}
		out += "\n"
	}
	return out
}

// TestOneKind: a set without sockets or without a hub does not name them, and one without any
// channel has no topics.
func TestOneKind(t *testing.T) {
	w := newWorld(t, Config{WebSub: true, Hubs: []string{"https://hub.example/", "https://other.example/ ping"}}, nil)
	w.change(map[string]int{entity(1): 1})
	if got := w.capabilities(); strings.Contains(got, "ws:") || strings.Count(got, "https://hub.example/") != 2 {
		t.Error(got)
	}
	if got := w.get("GET", "/data/notify/change").Header().Get("Link"); !strings.Contains(got, `<https://hub.example/>; rel="hub", <https://other.example/>; rel="hub"`) {
		t.Error(got)
	}
	w = newWorld(t, Config{WebSocket: true}, nil)
	w.change(map[string]int{entity(1): 1})
	if got := w.capabilities(); !strings.Contains(got, "change-notification ws://source.example/at/data/notify/change hub \n") || strings.Contains(got, "http:") {
		t.Error(got)
	}
	w = newWorld(t, Config{}, nil)
	w.change(map[string]int{entity(1): 1})
	if got := w.capabilities(); got != "" {
		t.Error(got)
	}
	if res := w.get("GET", "/data/notify/change"); res.Code != 404 {
		t.Errorf("a topic of a set that pushes nothing: %d", res.Code)
	}
}

// TestParts: many changes are a sequence of notifications within the limits (rules 7 and 10), and
// the topic's address has the last of them, within the same limits (rule 24 of WebSub).
func TestParts(t *testing.T) {
	w := newWorld(t, webSub, func(c *publish.SetConfig) { c.RotateEntries = 700 })
	w.change(map[string]int{entity(0): 0})
	change := w.topic("change")
	at, err := change.Head(t.Context())
	w.must(err)
	const n = 3000
	values := map[string]int{}
	for i := range n {
		values[entity(i)] = i + 7
	}
	w.change(values)
	var until time.Time
	seen := map[string]bool{}
	parts := 0
	for ; ; parts++ {
		got := w.after(change, at.Told)
		if got.body == nil {
			break
		}
		if len(got.body) > mostBytes {
			t.Fatalf("%d bytes", len(got.body))
		}
		head, entries := w.read(got.body)
		if parts > 0 && !head.Meta.From.Equal(until) {
			t.Fatalf("from %v after until %v", head.Meta.From, until)
		}
		rising(t, head.Meta.From, entries, head.Meta.Until)
		for _, e := range entries {
			seen[e.Loc] = true
		}
		at, until = got.at, head.Meta.Until
	}
	if parts < 2 || len(seen) != n {
		t.Errorf("%d parts with %d of %d resources", parts, len(seen), n)
	}
	head, entries := w.read(w.get("GET", "/data/notify/change").Body.Bytes())
	if !head.Meta.Until.Equal(until) || len(entries) < 500 || len(entries) > windowChanges {
		t.Errorf("the topic has %d changes until %v, want the last ones until %v", len(entries), head.Meta.Until, until)
	}
	rising(t, head.Meta.From, entries, head.Meta.Until)
}

// TestFilters: a part of the changes, in the same order, against a comparison with each change.
func TestFilters(t *testing.T) {
	w := newWorld(t, webSub, nil)
	w.change(map[string]int{entity(1): 1, entity(2): 2})
	all := w.topic("change")
	start, err := all.Head(t.Context())
	w.must(err)
	r := rand.New(rand.NewPCG(1, 2))
	before := map[string]int{entity(1): 1, entity(2): 2}
	type one struct {
		kind, entity string
		person       bool
	}
	var model []one
	for range 60 {
		e := entity(r.IntN(4))
		if r.IntN(3) == 0 {
			e = "http://other.example/" + fmt.Sprint(r.IntN(3))
		}
		v, had := r.IntN(100)-20, false
		old, had := before[e]
		if v < 0 && !had || had && v == old {
			continue
		}
		kind := resourcesync.Created
		switch {
		case v < 0:
			kind, v = resourcesync.Deleted, -1
			delete(before, e)
		default:
			if had {
				kind = resourcesync.Updated
			}
			before[e] = v
		}
		model = append(model, one{kind, e, v >= 0 && v%2 == 1 || had && old%2 == 1})
		w.change(map[string]int{e: v})
	}
	for query, takes := range map[string]func(one) bool{
		"": func(one) bool { return true },
		"?class=http%3A%2F%2Fexample.org%2FPerson":                                   func(o one) bool { return o.person },
		"?change=deleted":                                                            func(o one) bool { return o.kind == resourcesync.Deleted },
		"?change=created&change=updated":                                             func(o one) bool { return o.kind != resourcesync.Deleted },
		"?prefix=http%3A%2F%2Fother.example%2F":                                      func(o one) bool { return strings.HasPrefix(o.entity, "http://other.example/") },
		"?change=deleted&class=http%3A%2F%2Fexample.org%2FPerson":                    func(o one) bool { return o.kind == resourcesync.Deleted && o.person },
		"?prefix=http%3A%2F%2Fexample.org%2Fe1&prefix=http%3A%2F%2Fexample.org%2Fe2": func(o one) bool { return o.entity == entity(1) || o.entity == entity(2) },
	} {
		var want []string
		for _, o := range model {
			if takes(o) {
				want = append(want, o.kind+" "+o.entity)
			}
		}
		var got []string
		var until time.Time
		topic := w.topic("change" + query)
		for at := start; ; {
			n, err := topic.after(t.Context(), at, "")
			w.must(err)
			if n.body == nil {
				break
			}
			head, entries := w.read(n.body)
			if !until.IsZero() && !head.Meta.From.Equal(until) {
				t.Errorf("%s: from %v after until %v", query, head.Meta.From, until)
			}
			at, until = n.at, head.Meta.Until
			for _, e := range entries {
				got = append(got, e.Meta.Change+" "+e.Link(resourcesync.RelDescribes).Href)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, bad := range []string{"change=moved", "class=", "prefix=" + strings.Repeat("x", longestValue+1), "change=" + strings.Repeat("&change=", 20)} {
		if res := w.get("GET", "/data/notify/change?"+bad); res.Code != 400 {
			t.Errorf("%.40s: %d", bad, res.Code)
		}
	}
}

// TestOldPositions: after a position outside of the log a notification begins with the first change
// there is, and its from tells so; a position after the end tells nothing.
func TestOldPositions(t *testing.T) {
	w := newWorld(t, webSub, nil)
	w.change(map[string]int{entity(1): 1, entity(2): 2})
	change := w.topic("change")
	start, err := change.Head(t.Context())
	w.must(err)
	for i := range 5 {
		w.change(map[string]int{entity(1): 10 + i})
	}
	if n := w.after(change, 0); n.entries != 5 {
		t.Errorf("from the beginning: %d changes, want those of the Change Lists", n.entries)
	}
	if n := w.after(change, start.Told+100); n.body != nil || n.at.Told != start.Told+5 {
		t.Errorf("after the end: %+v", n.at)
	}
	_, err = w.log.Retain(t.Context(), time.Now(), time.Now())
	w.must(err)
	w.change(map[string]int{entity(2): 20})
	head, entries := w.read(w.after(change, start.Told).body)
	if len(entries) != 1 {
		t.Errorf("after retention: %d changes", len(entries))
	}
	rising(t, head.Meta.From, entries, head.Meta.Until)
}

// TestMovedTopics: a former address of a topic, of a set with another name or base URL then, leads to
// the present one at the hub.
func TestMovedTopics(t *testing.T) {
	w := newWorld(t, Config{WebSub: true}, nil)
	w.push.o.Former = func(name string) string {
		if name == "books" {
			return "data"
		}
		return ""
	}
	for address, want := range map[string]string{
		base + "/books/notify/change":                           base + "/data/notify/change",
		"http://former.example/data/notify/change":              base + "/data/notify/change",
		"http://former.example/x/books/notify/framework":        base + "/data/notify/framework",
		base + "/books/notify/change?change=deleted":            base + "/data/notify/change?change=deleted",
		base + "/data/notify/change":                            "",
		base + "/data/notify/change?change=deleted&class=":      "",
		base + "/others/notify/change":                          "",
		base + "/books/notify/others":                           "",
		base + "/books/notify/change?change=nothing-of-the-set": "",
	} {
		got := ""
		if to := w.push.movedTo(address); to != nil {
			got = to.address()
		}
		if got != want {
			t.Errorf("%s has moved to %q, want %q", address, got, want)
		}
	}
}

// TestTopicSpelling: an address is compared by its meaning, as a reader's request is.
func TestTopicSpelling(t *testing.T) {
	w := newWorld(t, webSub, nil)
	want := w.topic("change?class=http%3A%2F%2Fe%2FC2&prefix=http%3A%2F%2Fe%2F").address()
	for _, rest := range []string{"change?class=http://e/C2&prefix=http://e/", "change?prefix=http://e/&class=http:%2f/e/C2", "change?prefix=http://e/&class=http://e/C2&class=http://e/C2"} {
		if got, err := w.push.Topic(base + "/data/notify/" + rest); err != nil || got.address() != want {
			t.Errorf("%s: %v", rest, err)
		}
	}
	for address, want := range map[string]string{
		base + "/data/notify/change?klass=http://e/C2": `"klass" is no key`,
		base + "/data/notify/change?since=1":           `"since" is no key`,
		base + "/data/notify/change#x":                 "no topic",
		"http://other.example/data/notify/change":      "no topic",
	} {
		if _, err := w.push.Topic(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
