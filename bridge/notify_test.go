package bridge

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/push"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestPush: with real servers, a subscriber hears of each change once its documents can be
// fetched, also after a restart and after another configuration; without notify there is no hub.
func TestPush(t *testing.T) {
	var serving atomic.Pointer[http.Handler]
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*serving.Load()).ServeHTTP(w, r) }))
	defer source.Close()
	cfg := small(t.TempDir())
	cfg.Public.BaseURL = source.URL
	cfg.Destinations = nil
	plain := NewSet()
	plain.Store, plain.Notify = "source", push.Config{}
	cfg.Sets["plain"] = plain
	s := cfg.Sets["data"]
	s.Notify.WebSub, s.Notify.Events = true, true
	cfg.Sets["data"] = s
	cfg.Public.Hub.Callbacks = []string{"127.0.0.1"}
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	use := func() {
		h := b.PublicHandler()
		serving.Store(&h)
		b.Start(t.Context())
	}
	use()
	get := func(address string) (*http.Response, string) {
		res, err := http.Get(address)
		if err != nil {
			t.Error(err)
			return &http.Response{}, ""
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res, string(body)
	}
	heard := make(chan string, 100)
	subscriber := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, r.URL.Query().Get("hub.challenge"))
			return
		}
		doc, err := resourcesync.NewReader(r.Body, resourcesync.ReaderOptions{BaseURL: source.URL, Strict: true})
		if err != nil {
			t.Error(err)
			return
		}
		_, list := get(source.URL + "/data/changelist.xml")
		for {
			e, err := doc.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Error(err)
				return
			}
			if !strings.Contains(list, e.Loc) {
				t.Errorf("%s is told before the Change List has it", e.Loc)
			}
			if e.Meta.Change != "deleted" { // of which there is no version
				if res, _ := get(e.Link(resourcesync.RelMemento).Href); res.StatusCode != 200 {
					t.Errorf("%s is told before it can be fetched: %d", e.Loc, res.StatusCode)
				}
			}
			heard <- e.Meta.Change + " " + e.Link(resourcesync.RelDescribes).Href
		}
	}))
	defer subscriber.Close()
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"0\" .\n")
	do[ScanReport](t, b, "scan", "data")
	topic := source.URL + "/data/notify/change"
	subscribe := func(mode string) {
		t.Helper()
		res, err := http.PostForm(source.URL+"/hub", url.Values{"hub.mode": {mode}, "hub.topic": {topic}, "hub.callback": {subscriber.URL + "/c"}, "hub.secret": {"s"}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 202 {
			t.Fatalf("%s: %s", mode, res.Status)
		}
	}
	subscribe("subscribe")
	n, known := 0, map[string]bool{}
	change := func(what string) {
		t.Helper()
		n++
		fill(t, b, "source", fmt.Sprintf("<http://e.example/%d> <http://e.example/p> \"1\" .\n<http://e.example/a> <http://e.example/p> \"0\" .\n", n))
		do[ScanReport](t, b, "scan", "data")
		wait := map[string]bool{fmt.Sprintf("created http://e.example/%d", n): true}
		if n > 1 {
			wait[fmt.Sprintf("deleted http://e.example/%d", n-1)] = true
		}
		maps.Copy(known, wait)
		for len(wait) > 0 { // what was told as the bridge ended is told again
			told := <-heard
			if !known[told] {
				t.Errorf("%s %s", what, told)
			}
			delete(wait, told)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	for b.forms.push.Listeners("data").WebSub == 0 { // verified by then
		do[ScanReport](t, b, "scan", "data")
	}
	change("first:")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if all, _ := io.ReadAll(stream.Body); !strings.Contains(string(all), "event: change\nid: ") { // it ends with the bridge
		t.Errorf("the stream had %q", all)
	}
	b = mustOpen(t, cfg)
	use()
	change("after a restart:")
	s.Title = "another"
	other := *cfg
	other.Sets = map[string]Set{"data": s, "plain": plain}
	next, err := b.Reload(t.Context(), &other, nil)
	if err != nil {
		t.Fatal(err)
	}
	old := b
	b = next
	old.HangUp()
	use()
	if err := old.Retire(b); err != nil {
		t.Fatal(err)
	}
	change("with another configuration:")
	if res, _ := get(source.URL + "/plain/notify/change"); res.StatusCode != 404 {
		t.Errorf("a set without notify has a topic: %s", res.Status)
	}
	if res, body := get(topic); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Link"), "<"+source.URL+"/hub>; rel=\"hub\"") || !strings.Contains(body, "change-notification") {
		t.Errorf("the topic: %s %v", res.Status, res.Header)
	}
}

// TestNotifyFaults: wrong settings are told with their keys.
func TestNotifyFaults(t *testing.T) {
	for want, wrong := range map[string]func(*Config){
		`sets.data.notify: hub "ftp://hub.example/"`:     func(c *Config) { setNotify(c, "ftp://hub.example/") },
		`sets.data.notify: hub "http://h.example/ loud"`: func(c *Config) { setNotify(c, "http://h.example/ loud") },
		`public.hub: callbacks: "a/b"`:                   func(c *Config) { c.Public.Hub.Callbacks = []string{"a/b"} },
	} {
		cfg := small(t.TempDir())
		wrong(cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func setNotify(c *Config, hub string) {
	s := c.Sets["data"]
	s.Notify.WebSub, s.Notify.Hubs = true, []string{hub}
	c.Sets["data"] = s
}
