package push

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// served is a world with a real listener.
func served(t *testing.T, c Config) (*world, string) {
	w := newWorld(t, c, nil)
	srv := httptest.NewServer(w.push.Handler(w.pub.Handler()))
	t.Cleanup(srv.Close)
	t.Cleanup(w.push.Close) // before: channels end
	w.change(map[string]int{entity(1): 1, entity(2): 2})
	return w, srv.URL
}

func (w *world) socket(url string) *websocket.Conn {
	w.Helper()
	c, _, err := websocket.Dial(w.Context(), "ws"+strings.TrimPrefix(url, "http"), &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
	w.must(err)
	c.SetReadLimit(2 * mostBytes)
	w.Cleanup(func() { c.CloseNow() })
	return c
}

// message reads the next document of a socket; one of notification 0.8 has no rs:md at its root.
func (w *world) message(c *websocket.Conn) ([]byte, []*resourcesync.Entry) {
	w.Helper()
	kind, body, err := c.Read(w.Context())
	w.must(err)
	if kind != websocket.MessageText {
		w.Errorf("a message of type %v", kind)
	}
	r, err := resourcesync.NewReader(bytes.NewReader(body), resourcesync.ReaderOptions{BaseURL: base})
	w.must(err)
	return body, w.entries(r)
}

// event reads the next event of a stream.
func (w *world) event(in *bufio.Reader) (kind, id, data string) {
	w.Helper()
	for {
		line, err := in.ReadString('\n')
		w.must(err)
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && data != "":
			return kind, id, data
		case name == "event":
			kind = value
		case name == "id":
			id = value
		case name == "data":
			data += value + "\n"
		}
	}
}

func (w *world) stream(url string, header ...string) *bufio.Reader {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
	w.must(err)
	req.Header.Set("Accept", eventStream)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	w.must(err)
	w.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != eventStream || res.Header.Get("Access-Control-Allow-Origin") != "*" {
		w.Fatalf("%s %v", res.Status, res.Header)
	}
	in := bufio.NewReader(res.Body)
	line, err := in.ReadString('\n') // it has begun
	if w.must(err); !strings.HasPrefix(line, ":") {
		w.Fatalf("it begins with %q", line)
	}
	return in
}

// TestSocketRules are the rules of notification 0.8 for channels, by their numbers in our list.
func TestSocketRules(t *testing.T) {
	n := 100
	for _, rule := range []struct {
		number int
		what   string
		check  func(t *testing.T, w *world, url string)
	}{
		{1, "each kind has its socket", func(t *testing.T, w *world, url string) {
			w.must(w.push.Start(t.Context()))
			c := w.socket(url + "/data/notify/framework")
			w.change(map[string]int{entity(1): n})
			_, entries := w.message(c)
			for _, e := range entries {
				if e.Meta.Capability == "" {
					t.Errorf("%s is no capability document", e.Loc)
				}
			}
		}},
		{9, "no rs:md at the root; up, and entries as in 1.0.1", func(t *testing.T, w *world, url string) {
			c := w.socket(url + "/data/notify/change")
			w.change(map[string]int{entity(1): n})
			body, entries := w.message(c)
			if root, _, _ := bytes.Cut(body, []byte("<url>")); bytes.Contains(root, []byte("rs:md")) || !bytes.Contains(root, []byte("capabilitylist.xml")) {
				t.Errorf("%s", root)
			}
			if got := names(entries); !strings.HasPrefix(got, "updated ") || len(entries) != 1 {
				t.Error(got)
			}
		}},
		{20, "whole documents as text; what the client sends means nothing, within bounds", func(t *testing.T, w *world, url string) {
			c := w.socket(url + "/data/notify/change")
			for range 100 {
				w.must(c.Write(t.Context(), websocket.MessageBinary, []byte("hello")))
			}
			pinged := make(chan error, 1)
			go func() { pinged <- c.Ping(t.Context()) }() // ends with the answer, read below
			w.change(map[string]int{entity(1): n})
			if _, entries := w.message(c); len(entries) != 1 {
				t.Errorf("%d entries", len(entries))
			}
			other := w.socket(url + "/data/notify/change")
			w.must(other.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), mostInput+1)))
			if _, _, err := other.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
				t.Errorf("after a long message: %v", err)
			}
			c.CloseNow()
			<-pinged
		}},
		{22, "connect first, then read the Change List: nothing is lost over a reconnect", func(t *testing.T, w *world, url string) {
			topic := w.topic("change")
			for i := range 20 {
				before, err := topic.Head(t.Context())
				w.must(err)
				w.change(map[string]int{entity(1): n + i}) // while there is no connection
				c := w.socket(fmt.Sprintf("%s/data/notify/change?since=%d", url, before.Told))
				w.change(map[string]int{entity(2): n + i})
				var got []string
				for len(got) < 2 {
					_, entries := w.message(c)
					for _, e := range entries {
						got = append(got, e.Link(resourcesync.RelDescribes).Href)
					}
				}
				if s := strings.Join(got, " "); s != entity(1)+" "+entity(2) {
					t.Fatalf("got %s", s)
				}
				c.CloseNow()
			}
		}},
		{23, "since, class, prefix, change and batch by query", func(t *testing.T, w *world, url string) {
			topic := w.topic("change")
			head, err := topic.Head(t.Context())
			w.must(err)
			w.change(map[string]int{entity(1): -1, entity(2): n})
			c := w.socket(fmt.Sprintf("%s/data/notify/change?since=%d&change=deleted", url, head.Told))
			body, entries := w.message(c)
			if h, _ := w.read(body); len(entries) != 1 || entries[0].Meta.Change != resourcesync.Deleted || h.Meta.From.IsZero() {
				t.Errorf("%s", body)
			}
			for _, bad := range []string{"since=x", "since=99999999", "foo=1", "batch=x", "batch=2h", "change=moved"} {
				_, res, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http")+"/data/notify/change?"+bad, nil)
				if err == nil || res == nil || res.StatusCode != 400 {
					t.Errorf("%s: %v %v", bad, res, err)
				}
			}
			batched := w.socket(url + "/data/notify/change?batch=300ms")
			began := time.Now()
			for i := range 3 {
				w.change(map[string]int{entity(2): n + 1 + i})
			}
			total := 0
			for total < 3 {
				_, entries := w.message(batched)
				total += len(entries)
			}
			if total > 1 && time.Since(began) < 300*time.Millisecond && total != 3 {
				t.Errorf("%d changes after %v", total, time.Since(began))
			}
		}},
		{23, "a slow reader is closed with a reason, and holds nobody up", func(t *testing.T, w *world, url string) {
			slow := w.socket(url + "/data/notify/change?since=0")
			quick := w.socket(url + "/data/notify/change")
			values := map[string]int{}
			for i := range mostBehind + 100 {
				values[entity(i+10)] = 2
			}
			w.change(values)
			for _, c := range []*websocket.Conn{slow, quick} { // ten thousand at once are too much for everybody
				for {
					_, _, err := c.Read(t.Context())
					if err == nil {
						continue
					}
					var why websocket.CloseError
					if !errors.As(err, &why) || why.Code != websocket.StatusTryAgainLater || why.Reason != behindReason {
						t.Errorf("closed with %v", err)
					}
					break
				}
			}
			again := w.socket(url + "/data/notify/change")
			w.change(map[string]int{entity(1): n})
			if _, entries := w.message(again); len(entries) != 1 {
				t.Errorf("afterwards %d entries", len(entries))
			}
		}},
		{24, "any origin may read", func(t *testing.T, w *world, url string) { w.socket(url + "/data/notify/change") }},
	} {
		t.Run(fmt.Sprintf("%d %s", rule.number, rule.what), func(t *testing.T) {
			w, url := served(t, webSub)
			rule.check(t, w, url)
		})
	}
}

// TestEvents: server-sent events tell each change, resume by their id, and take the same filters.
func TestEvents(t *testing.T) {
	w, url := served(t, webSub)
	in := w.stream(url + "/data/notify/change")
	w.change(map[string]int{entity(1): 7})
	kind, id, data := w.event(in)
	head, entries := w.read([]byte(data))
	if kind != "change" || len(entries) != 1 || head.Meta.Ext[resourcesync.ExtSequence] != id {
		t.Errorf("%s %s %s", kind, id, data)
	}
	w.change(map[string]int{entity(2): 8})
	again := w.stream(url+"/data/notify/change?since=0", "Last-Event-ID", id)
	for _, in := range []*bufio.Reader{in, again} {
		_, _, data := w.event(in)
		next, _ := w.read([]byte(data))
		if !next.Meta.From.Equal(head.Meta.Until) {
			t.Errorf("from %v after until %v", next.Meta.From, head.Meta.Until)
		}
	}
	deleted := w.stream(url + "/data/notify/change?change=deleted")
	w.change(map[string]int{entity(2): 9})
	w.change(map[string]int{entity(1): -1})
	if _, _, data := w.event(deleted); strings.Count(data, "<url>") != 1 || !strings.Contains(data, `change="deleted"`) {
		t.Error(data)
	}
	values := map[string]int{}
	for i := range mostBehind + 100 {
		values[entity(i+10)] = 2
	}
	late := w.stream(url + "/data/notify/change?since=0&class=http://example.org/Nobody")
	w.change(values)
	kind, id, data = w.event(late)
	if end, err := w.topic("change").Head(t.Context()); err != nil || kind != "gap" || data != behindReason+"\n" || id != fmt.Sprint(end.Told) {
		t.Errorf("%s %s %s", kind, id, data)
	}
}

// TestChannelsClose: channels end with their source; a set without a kind of channel has none; and
// the number of channels is bounded.
func TestChannelsClose(t *testing.T) {
	w, url := served(t, webSub)
	c, in := w.socket(url+"/data/notify/change"), w.stream(url+"/data/notify/change")
	done := make(chan error, 1)
	go func() { // ends with the socket
		_, _, err := c.Read(context.WithoutCancel(t.Context()))
		done <- err
	}()
	w.push.Close()
	if err := <-done; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("a socket is closed with %v", err)
	}
	if rest, err := in.ReadString('e'); err == nil {
		t.Errorf("a stream goes on: %q", rest)
	}
	_, url = served(t, Config{WebSub: true})
	if _, res, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http")+"/data/notify/change", nil); err == nil || res == nil || res.StatusCode != 200 {
		t.Errorf("a socket of a set without: %v", err)
	}
	var all channels
	open := 0
	for range mostOfClient + 10 {
		if all.enter("192.0.2.1") {
			open++
		}
	}
	if open != mostOfClient || !all.enter("192.0.2.2") || !all.enter("") {
		t.Errorf("%d of one client", open)
	}
	for range mostOfClient + 10 {
		all.leave("192.0.2.1")
	}
	all.leave("192.0.2.2")
	all.leave("")
	if all.all != 0 || len(all.of) != 0 {
		t.Errorf("%d left, %v", all.all, all.of)
	}
}
