package hub

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func logger(to *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

// TestHubRules are the rules of WebSub for hubs, by their numbers in our list. Time is virtual.
func TestHubRules(t *testing.T) {
	pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
	soon := func() { pass(time.Second) }
	for _, rule := range []struct {
		number int
		what   string
		check  func(t *testing.T, w *world, s *subscriber)
	}{
		{6, "a form with callback, mode and topic", func(t *testing.T, w *world, s *subscriber) {
			for _, bad := range [][]string{
				{"hub.mode", "listen"}, {"hub.mode", "subscribe", "hub.topic", topicAddress},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", "ftp://s.example/"},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", "http://me:secret@s.example/"},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", "http://s.example/#part"},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", s.callback(), "hub.callback", s.callback()},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", s.callback(), "hub.lease_seconds", "-1"},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", s.callback(), "hub.lease_seconds", "ten"},
				{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", "http://s.example/" + strings.Repeat("x", longestURL)},
				{"hub.mode", "subscribe", "x", strings.Repeat("x", mostForm)},
			} {
				if res := w.ask("127.0.0.1", bad...); res.Code != 400 {
					t.Errorf("%.200q: %d", bad, res.Code)
				}
			}
			if soon(); len(s.got) > 0 {
				t.Error("a callback was called")
			}
		}},
		{8, "secrets below 200 bytes; unknown parameters and the lease of unsubscribe are ignored", func(t *testing.T, w *world, s *subscriber) {
			if res := w.subscribe(s.callback(), "hub.secret", strings.Repeat("s", 200)); res.Code != 400 {
				t.Errorf("200 bytes: %d", res.Code)
			}
			if res := w.subscribe(s.callback(), "hub.secret", strings.Repeat("s", 199), "hub.verify", "sync", "foo", "bar"); res.Code != 202 {
				t.Errorf("199 bytes: %d", res.Code)
			}
			soon()
			if res := w.ask("127.0.0.1", "hub.mode", "unsubscribe", "hub.topic", topicAddress, "hub.callback", s.callback(), "hub.lease_seconds", "x"); res.Code != 202 {
				t.Errorf("unsubscribe: %d", res.Code)
			}
			if soon(); w.hub.Count() != 0 {
				t.Error("it is still there")
			}
		}},
		{9, "202 at once, whatever the callback does; errors as text", func(t *testing.T, w *world, s *subscriber) {
			began := time.Now()
			s.echo = func(*request) (int, string) { time.Sleep(time.Hour); return 200, "" }
			if res := w.subscribe(s.callback()); res.Code != 202 || time.Since(began) > 0 {
				t.Errorf("%d after %v", res.Code, time.Since(began))
			}
			if res := w.ask("127.0.0.1", "hub.mode", "subscribe"); res.Code != 400 || !strings.HasPrefix(res.Header().Get("Content-Type"), "text/plain") || res.Body.Len() == 0 {
				t.Errorf("%d %v", res.Code, res.Header())
			}
			if pass(2 * time.Hour); w.hub.Count() != 0 {
				t.Error("a callback without an answer has a subscription")
			}
		}},
		{11, "a renewal counts once verified; until then lease and secret stay", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback(), "hub.secret", "old", "hub.lease_seconds", "1000")
			soon()
			s.set(func() { s.echo = func(*request) (int, string) { return 200, "wrong" } })
			w.subscribe(s.callback(), "hub.secret", "new", "hub.lease_seconds", "100000")
			soon()
			w.topic.say("one")
			soon()
			s.set(func() { s.echo = nil })
			w.subscribe(s.callback(), "hub.secret", "new", "hub.lease_seconds", "2000")
			soon()
			w.topic.say("two")
			soon()
			posts := s.requests("POST")
			if len(posts) != 2 || posts[0].header.Get("X-Hub-Signature") != signature("sha256", "old", "one") || posts[1].header.Get("X-Hub-Signature") != signature("sha256", "new", "two") {
				t.Errorf("%d deliveries, signed %v", len(posts), posts)
			}
			if pass(1500 * time.Second); w.hub.Count() != 1 {
				t.Error("the longer lease does not count")
			}
			if pass(600 * time.Second); w.hub.Count() != 0 {
				t.Error("the lease is over")
			}
		}},
		{12, "own topics and public callbacks only", func(t *testing.T, w *world, s *subscriber) {
			if res := w.ask("127.0.0.1", "hub.mode", "subscribe", "hub.topic", "http://other.example/", "hub.callback", s.callback()); res.Code != 404 {
				t.Errorf("another topic: %d", res.Code)
			}
			for _, inside := range []string{"http://127.0.0.1/", "http://localhost:8080/", "http://10.1.2.3/", "http://169.254.169.254/latest", "http://[::1]/", "http://[fd00::1]/", "http://a.localhost/", "http://0x7f.localhost/", "http://0.0.0.0/"} {
				if res := w.subscribe(inside); res.Code != 403 {
					t.Errorf("%s: %d", inside, res.Code)
				}
			}
		}},
		{13, "a subscription without its topic is denied", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback())
			soon()
			w.o.Find = func(string) (Topic, error) { return nil, fmt.Errorf("the set is gone") }
			w.open()
			soon()
			gets := s.requests("GET")
			if last := gets[len(gets)-1].query; len(gets) != 2 || last.Get("hub.mode") != "denied" || last.Get("hub.topic") != topicAddress || last.Get("hub.reason") != "the set is gone" {
				t.Errorf("%d requests, the last %v", len(gets), last)
			}
			if w.open(); w.hub.Count() != 0 || len(kept(t, w.o.Store)) > 0 {
				t.Error("it is still kept")
			}
		}},
		{15, "a new challenge each time, behind the callback's own query", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback()+"?hub.mode=mine&id=7", "hub.lease_seconds", "600")
			soon()
			w.subscribe(s.callback()+"?hub.mode=mine&id=7", "hub.lease_seconds", "600")
			soon()
			gets := s.requests("GET")
			if len(gets) != 2 || gets[0].query.Get("hub.challenge") == gets[1].query.Get("hub.challenge") || len(gets[0].query.Get("hub.challenge")) < 32 {
				t.Fatalf("%d requests", len(gets))
			}
			if q := gets[0].query; strings.Join(q["hub.mode"], " ") != "mine subscribe" || q.Get("id") != "7" || q.Get("hub.topic") != topicAddress || q.Get("hub.lease_seconds") != "600" {
				t.Errorf("%v", q)
			}
		}},
		{17, "3xx, 4xx, 5xx and another body are failures; redirects are not followed", func(t *testing.T, w *world, s *subscriber) {
			for _, a := range []struct {
				status int
				body   string
			}{{302, "c"}, {404, "c"}, {500, "c"}, {200, ""}, {200, "other"}, {200, "longer "}, {200, strings.Repeat("x", 1<<20)}} {
				s.set(func() {
					s.got, s.echo = nil, func(q *request) (int, string) {
						switch a.body {
						case "c":
							return a.status, q.query.Get("hub.challenge")
						case "longer ":
							return a.status, q.query.Get("hub.challenge") + " "
						}
						return a.status, a.body
					}
				})
				w.subscribe(s.callback())
				if soon(); w.hub.Count() != 0 || len(s.requests("GET")) != 1 {
					t.Errorf("%d with %.10q: %d subscriptions after %d requests", a.status, a.body, w.hub.Count(), len(s.requests("GET")))
				}
			}
			s.set(func() { s.echo = func(q *request) (int, string) { return 299, q.query.Get("hub.challenge") } })
			w.subscribe(s.callback())
			if soon(); w.hub.Count() != 1 {
				t.Error("299 is a success")
			}
		}},
		{20, "leases of 300 seconds to 31 days, 10 days by default; they end", func(t *testing.T, w *world, s *subscriber) {
			for i, l := range []struct{ asked, given string }{{"1", "300"}, {"299", "300"}, {"301", "301"}, {"2678400", "2678400"}, {"2678401", "2678400"}, {"9000000000000000000", "2678400"}, {"", "864000"}} {
				if l.asked == "" {
					w.subscribe(s.callback() + fmt.Sprint(i))
				} else {
					w.subscribe(s.callback()+fmt.Sprint(i), "hub.lease_seconds", l.asked)
				}
				soon()
				gets := s.requests("GET")
				if got := gets[len(gets)-1].query.Get("hub.lease_seconds"); got != l.given {
					t.Errorf("asked %q, given %s, want %s", l.asked, got, l.given)
				}
			}
			for _, left := range []struct {
				after time.Duration
				n     int
			}{{290 * time.Second, 7}, {time.Minute, 4}, {10 * 24 * time.Hour, 3}, {longestLease, 0}} {
				if pass(left.after); w.hub.Count() != left.n {
					t.Errorf("%v later: %d subscriptions, want %d", left.after, w.hub.Count(), left.n)
				}
			}
			w.topic.say("late")
			if soon(); s.bodies() != "" || len(kept(t, w.o.Store)) > 0 {
				t.Errorf("after the leases: %s", s.bodies())
			}
		}},
		{22, "the end is verified too; a forged one ends nothing", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback())
			soon()
			s.set(func() { s.echo = func(*request) (int, string) { return 404, "" } })
			w.ask("127.0.0.1", "hub.mode", "unsubscribe", "hub.topic", topicAddress, "hub.callback", s.callback())
			soon()
			gets := s.requests("GET")
			if q := gets[len(gets)-1].query; w.hub.Count() != 1 || q.Get("hub.mode") != "unsubscribe" || q.Has("hub.lease_seconds") {
				t.Errorf("%d subscriptions, asked %v", w.hub.Count(), q)
			}
			if res := w.ask("127.0.0.1", "hub.mode", "unsubscribe", "hub.topic", topicAddress, "hub.callback", "http://never.example/"); res.Code != 202 {
				t.Errorf("of a stranger: %d", res.Code)
			}
		}},
		{25, "nobody publishes here", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback())
			soon()
			for _, p := range [][]string{{"hub.url", topicAddress}, {"hub.topic", topicAddress}} {
				if res := w.ask("127.0.0.1", append([]string{"hub.mode", "publish"}, p...)...); res.Code != 204 {
					t.Errorf("%v: %d", p, res.Code)
				}
			}
			if res := w.ask("127.0.0.1", "hub.mode", "publish", "hub.url", "http://other.example/"); res.Code != 403 {
				t.Errorf("another topic: %d", res.Code)
			}
			r := httptest.NewRequest("POST", hubAddress, strings.NewReader("<urlset/>"))
			r.Header.Set("Content-Type", "application/xml")
			r.Header.Set("Link", links)
			rec := httptest.NewRecorder()
			w.hub.ServeHTTP(rec, r)
			if soon(); rec.Code != 403 || s.bodies() != "" {
				t.Errorf("%d, delivered %q", rec.Code, s.bodies())
			}
		}},
		{27, "a POST to the exact callback with the topic's type", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback() + "?id=a%2Fb")
			soon()
			w.topic.say("one")
			soon()
			p := s.requests("POST")
			if len(p) != 1 || p[0].path != "/callback" || p[0].query.Get("id") != "a/b" || p[0].header.Get("Content-Type") != "application/xml; charset=x" || p[0].body != "one" {
				t.Errorf("%+v", p)
			}
		}},
		{28, "Link with hub and self, in one header", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback())
			soon()
			w.topic.say("one")
			soon()
			if got := s.requests("POST")[0].header["Link"]; len(got) != 1 || got[0] != links {
				t.Errorf("%v", got)
			}
		}},
		{31, "410 ends it; redirects and other answers are failures", func(t *testing.T, w *world, s *subscriber) {
			status := 302
			s.take = func(*request) int { return status }
			w.subscribe(s.callback())
			soon()
			w.topic.say("one")
			soon()
			if posts := s.requests("POST"); len(posts) != 1 || w.hub.Count() != 1 {
				t.Fatalf("after 302: %d deliveries, %d subscriptions", len(posts), w.hub.Count())
			}
			s.set(func() { status = 410 })
			pass(time.Minute)
			if w.hub.Count() != 0 || len(kept(t, w.o.Store)) > 0 {
				t.Error("after 410 it is still there")
			}
		}},
		{32, "a failing subscriber is kept until its lease ends, with growing pauses, and gets what came since", func(t *testing.T, w *world, s *subscriber) {
			status := 500
			s.take = func(*request) int { return status }
			w.subscribe(s.callback())
			soon()
			w.topic.say("one")
			pass(12 * time.Hour)
			posts := s.requests("POST")
			if len(posts) < 10 || len(posts) > 30 {
				t.Errorf("%d tries in 12 hours", len(posts))
			}
			for i := 2; i < len(posts); i++ {
				if before, now := posts[i-1].at.Sub(posts[i-2].at), posts[i].at.Sub(posts[i-1].at); now < before || now > longestPause+time.Second {
					t.Errorf("pause %v after %v", now, before)
				}
			}
			w.topic.say("two")
			s.set(func() { status, s.got = 204, nil })
			if pass(longestPause); s.bodies() != "one two" {
				t.Errorf("delivered %q", s.bodies())
			}
			w.topic.say("three")
			if soon(); s.bodies() != "one two|three" {
				t.Errorf("delivered %q", s.bodies())
			}
		}},
		{33, "in order, one request in flight, and a slow one holds nobody up", func(t *testing.T, w *world, s *subscriber) {
			other := w.subscriber("other.example")
			s.take = func(*request) int { time.Sleep(10 * time.Second); return 200 }
			w.subscribe(s.callback())
			w.subscribe(other.callback())
			soon()
			began := time.Now()
			for i := range 50 {
				w.topic.say(fmt.Sprint(i))
				pass(200 * time.Millisecond)
			}
			if posts := other.requests("POST"); len(posts) != 50 || posts[49].at.Sub(began) > 10*time.Second {
				t.Errorf("the other has %d deliveries", len(posts))
			}
			pass(time.Minute)
			if got := strings.ReplaceAll(s.bodies(), "|", " "); got != strings.ReplaceAll(other.bodies(), "|", " ") || s.most != 1 || len(s.requests("POST")) > 4 {
				t.Errorf("%d deliveries, %d at once: %s", len(s.requests("POST")), s.most, s.bodies())
			}
		}},
		{34, "little is read of an answer", func(t *testing.T, w *world, s *subscriber) {
			s.take = func(*request) int { return 200 }
			s.echo = func(q *request) (int, string) { return 200, q.query.Get("hub.challenge") }
			w.subscribe(s.callback())
			soon()
			w.topic.say("one")
			if soon(); s.bodies() != "one" {
				t.Errorf("%q", s.bodies())
			}
		}},
		{35, "an HMAC of the body with the secret; without a secret none", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback()+"1", "hub.secret", "geheim")
			w.subscribe(s.callback() + "2")
			soon()
			w.topic.say("one")
			soon()
			for _, p := range s.requests("POST") {
				want := ""
				if p.path == "/callback1" {
					want = signature("sha256", "geheim", "one")
				}
				if got := p.header.Get("X-Hub-Signature"); got != want {
					t.Errorf("%s: %q, want %q", p.path, got, want)
				}
			}
		}},
		{36, "sha1, sha256, sha384 and sha512 by a setting", func(t *testing.T, w *world, s *subscriber) {
			for _, method := range []string{"sha1", "sha256", "sha384", "sha512"} {
				w.o.Method = method
				w.open()
				w.subscribe(s.callback(), "hub.secret", "geheim")
				soon()
				w.topic.say(method)
				soon()
				posts := s.requests("POST")
				if got := posts[len(posts)-1].header.Get("X-Hub-Signature"); got != signature(method, "geheim", method) {
					t.Errorf("%s: %s", method, got)
				}
			}
			if _, err := New(Options{Method: "md5"}); err == nil {
				t.Error("md5 is accepted")
			}
		}},
		{40, "secrets stand neither in records nor in the log, nor do callbacks stand in the log", func(t *testing.T, w *world, s *subscriber) {
			w.subscribe(s.callback()+"?token=hidden", "hub.secret", "geheim")
			soon()
			s.set(func() { s.take = func(*request) int { return 500 } })
			w.topic.say("one")
			pass(time.Minute)
			if strings.Contains(kept(t, w.o.Store), "geheim") {
				t.Error("the secret is in the records")
			}
			w.hub.Close()
			if l := w.logs.String(); strings.Contains(l, "geheim") || strings.Contains(l, "hidden") || !strings.Contains(l, "s.example") {
				t.Error(l)
			}
		}},
	} {
		t.Run(fmt.Sprintf("%d %s", rule.number, rule.what), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *Options) { o.KeyFile = t.TempDir() + "/key" })
				rule.check(t, w, w.subscriber("s.example"))
			})
		})
	}
}

func signature(method, secret, body string) string {
	mac := hmac.New(methods[method], []byte(secret))
	mac.Write([]byte(body))
	return method + "=" + hex.EncodeToString(mac.Sum(nil))
}

// TestRestart: subscriptions, their leases, secrets and positions survive a restart. Without the
// key of secrets a signed one ends.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := newWorld(t, func(o *Options) { o.KeyFile = dir + "/key" })
		s := w.subscriber("s.example")
		w.subscribe(s.callback(), "hub.secret", "geheim", "hub.lease_seconds", "1000")
		w.subscribe(s.callback() + "2")
		time.Sleep(time.Second)
		w.topic.say("one")
		time.Sleep(time.Second)
		w.hub.Close()
		w.topic.say("two")
		s.set(func() { s.got = nil })
		w.open()
		time.Sleep(time.Second)
		for _, p := range s.requests("POST") {
			if p.body != "two" || p.path == "/callback" && p.header.Get("X-Hub-Signature") != signature("sha256", "geheim", "two") {
				t.Errorf("%+v", p)
			}
		}
		if n := len(s.requests("POST")); n != 2 {
			t.Errorf("%d deliveries", n)
		}
		w.hub.Close()
		w.o.KeyFile = dir + "/other"
		w.open()
		if n := w.hub.Count(); n != 1 {
			t.Errorf("%d subscriptions without the key", n)
		}
		w.hub.Close()
		time.Sleep(defaultLease)
		w.open()
		if n := w.hub.Count(); n != 0 || len(kept(t, w.o.Store)) > 0 {
			t.Errorf("%d subscriptions after their leases", n)
		}
	})
}

// TestCrash: a payload may come twice after a crash, and none is lost.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		s := w.subscriber("s.example")
		w.subscribe(s.callback())
		time.Sleep(10 * time.Millisecond)
		w.topic.say("one")
		time.Sleep(10 * time.Millisecond) // it is delivered, and its position is not written
		crashed := w.hub
		w.hub = nil
		w.open()
		w.topic.say("two")
		time.Sleep(time.Second)
		crashed.Close()
		if got := s.bodies(); !strings.HasPrefix(got, "one|") || !strings.Contains(got, "one two") && !strings.Contains(got, "two") {
			t.Errorf("delivered %q", got)
		}
	})
}

// TestLimits: a stranger with ten thousand subscriptions is refused in time, and the others are
// served.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Limits = Limits{All: 50, Host: 20, Client: 30, Waiting: 10} })
		flood, good := w.subscriber("flood.example"), w.subscriber("good.example")
		codes := map[int]int{}
		for i := range 10_000 {
			res := w.subscribe(flood.callback() + fmt.Sprint(i))
			codes[res.Code]++
			if i%9 == 0 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
		if codes[202] > 40 || codes[503] != 10_000-codes[202] || w.hub.Count() != 20 { // some were refused after their verification
			t.Errorf("answers %v, %d subscriptions", codes, w.hub.Count())
		}
		for i := range 40 { // of one address, with callbacks anywhere
			host := fmt.Sprintf("h%d.example", i)
			w.subscriber(host)
			codes[w.ask("192.0.2.7", "hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", "http://"+host+"/").Code]++
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if w.hub.Count() != 50 {
			t.Errorf("%d subscriptions", w.hub.Count())
		}
		if res := w.subscribe(good.callback()); res.Code != 503 || res.Header().Get("Retry-After") == "" {
			t.Errorf("a full hub answers %d", res.Code)
		}
		w.ask("127.0.0.1", "hub.mode", "unsubscribe", "hub.topic", topicAddress, "hub.callback", flood.callback()+"0")
		time.Sleep(time.Second)
		w.subscribe(good.callback())
		time.Sleep(time.Second)
		w.topic.say("one")
		if time.Sleep(time.Second); good.bodies() != "one" {
			t.Errorf("delivered %q", good.bodies())
		}
		w.hub.Close()
		if n := strings.Count(w.logs.String(), "\n"); n > 400 {
			t.Errorf("%d lines in the log", n)
		}
	})
}

// TestExternal: hubs of others get the payload, the address of the topic, or both; after a refused
// payload the address (rule 23).
func TestExternal(t *testing.T) {
	for mode, want := range map[string]string{Fat: "one", Ping: "ping", Both: "one|ping", "refused": "one|ping"} {
		synctest.Test(t, func(t *testing.T) {
			m := mode
			if mode == "refused" {
				m = Fat
			}
			w := newWorld(t, nil)
			w.o.External = []External{{w.topic, topicAddress, "http://hub.example/publish", m}}
			w.open()
			s := w.subscriber("hub.example")
			s.take = func(r *request) int {
				if mode == "refused" && r.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
					return 405
				}
				return 202
			}
			time.Sleep(time.Second)
			w.topic.say("one")
			time.Sleep(time.Second)
			var got []string
			for _, r := range s.requests("POST") {
				if r.header.Get("Content-Type") == "application/x-www-form-urlencoded" {
					form, err := url.ParseQuery(r.body)
					w.must(err)
					if form.Get("hub.mode") != "publish" || form.Get("hub.url") != topicAddress || form.Get("hub.topic") != topicAddress {
						t.Errorf("%s: %s", mode, r.body)
					}
					got = append(got, "ping")
					continue
				}
				if r.header.Get("Link") != links || r.header.Get("Content-Type") != "application/xml; charset=x" {
					t.Errorf("%s: %v", mode, r.header)
				}
				got = append(got, r.body)
			}
			if s := strings.Join(got, "|"); s != want {
				t.Errorf("%s: %q, want %q", mode, s, want)
			}
			// What came while the hub or we were away is told afterwards, once.
			s.set(func() { s.got, s.take = nil, func(*request) int { return http.StatusBadGateway } })
			w.topic.say("two")
			time.Sleep(time.Second)
			w.open()
			w.topic.say("three")
			s.set(func() { s.got, s.take = nil, nil })
			time.Sleep(time.Minute)
			if m != Ping && s.requests("POST")[0].body != "two three" {
				t.Errorf("%s: after a failure %q", mode, s.bodies())
			}
		})
	}
}

// TestMovedTopic: a kept subscription goes on after its topic got another address, and may be renewed
// and ended. A new one is sent to the new address.
func TestMovedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := newWorld(t, func(o *Options) { o.KeyFile = dir + "/key" })
		s := w.subscriber("s.example")
		w.subscribe(s.callback(), "hub.secret", "geheim")
		time.Sleep(time.Second)
		w.topic.say("one")
		time.Sleep(time.Second)
		const to = "http://other.example/data/notify/change"
		w.o.Find = func(address string) (Topic, error) {
			switch address {
			case to:
				return w.topic, nil
			case topicAddress:
				return nil, &Moved{Topic: w.topic, To: to}
			}
			return nil, errors.New("no such topic")
		}
		w.open()
		w.topic.say("two")
		time.Sleep(time.Second)
		if got := s.bodies(); got != "one|two" || w.hub.CountOf("http://other.example/data/") != 1 {
			t.Errorf("delivered %s; %d subscriptions count there", got, w.hub.CountOf("http://other.example/data/"))
		}
		if rec := w.subscribe(s.callback() + "/new"); rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), to) {
			t.Errorf("a new subscription of the former address: %d %s", rec.Code, rec.Body)
		}
		if rec := w.subscribe(s.callback(), "hub.lease_seconds", "1000"); rec.Code != http.StatusAccepted {
			t.Errorf("renewal: %d %s", rec.Code, rec.Body)
		}
		time.Sleep(900 * time.Second)
		w.topic.say("three")
		time.Sleep(time.Second)
		if got := s.bodies(); got != "one|two|three" || w.hub.Count() != 1 {
			t.Errorf("after the renewal %d subscriptions, delivered %s", w.hub.Count(), got)
		}
		w.ask("127.0.0.1", "hub.mode", "unsubscribe", "hub.topic", topicAddress, "hub.callback", s.callback())
		time.Sleep(time.Second)
		if n := w.hub.Count(); n != 0 {
			t.Errorf("%d subscriptions after the end", n)
		}
	})
}

// TestSlowCallbacks: the refusal for too many waiting requests, and its line in the log, name the host
// with slow callbacks.
func TestSlowCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Limits.Waiting = 10 })
		slow := w.subscriber("slow.example")
		slow.echo = func(*request) (int, string) { time.Sleep(time.Minute); return 200, "" }
		w.subscriber("good.example")
		for i := range 11 {
			res := w.subscribe(slow.callback() + fmt.Sprint(i))
			if want := map[bool]int{true: 202, false: 503}[i < 10]; res.Code != want {
				t.Errorf("request %d: %d %s", i, res.Code, res.Body)
			}
			if i == 10 && (!strings.Contains(res.Body.String(), "10 requests for callbacks at slow.example wait") || !strings.Contains(w.logs.String(), "callbacks at slow.example wait")) {
				t.Errorf("told %s, logged %s", res.Body, w.logs)
			}
		}
		for i := range mostWaiting { // callbacks at many hosts
			w.hub.mu.Lock()
			w.hub.intents[keyOf("x", fmt.Sprint(i))] = &intent{}
			w.hub.mu.Unlock()
		}
		if res := w.subscribe("http://good.example/"); res.Code != 503 || !strings.Contains(res.Body.String(), "10 of them for callbacks at slow.example") {
			t.Errorf("%d %s", res.Code, res.Body)
		}
		time.Sleep(2 * time.Minute)
	})
}
