package live

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// aHub is a topic and its hub; it does what the test tells it.
type aHub struct {
	*source
	asked chan url.Values // requests to the hub
	mine  *httptest.Server
	*hearer
}

func newHub(t *testing.T, mode string) *aHub {
	b := &aHub{source: &source{T: t}, asked: make(chan url.Values, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("HEAD /topic", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Link", `<http://unused.example/>; rel="other", </topic/self>; rel=self`)
		w.Header().Add("Link", `</moved>; rel="hub"`)
	})
	mux.Handle("/moved", http.RedirectHandler("/hub", http.StatusTemporaryRedirect))
	mux.HandleFunc("POST /hub", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		b.asked <- r.PostForm
		w.WriteHeader(http.StatusAccepted)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Server.Close)
	b.source.channel = []feed.Channel{{Loc: b.URL + "/topic", Hubs: []string{b.URL + "/nowhere"}}}
	b.mine = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.hearer.ServeHTTP(w, r) }))
	t.Cleanup(b.mine.Close)
	b.callback = b.mine.URL
	b.hearer = b.source.hear(mode, nil)
	return b
}

// get asks a callback, as a hub does.
func (b *aHub) get(form url.Values, q ...string) (int, string) {
	b.source.Helper()
	u, err := url.Parse(form.Get("hub.callback"))
	if err != nil {
		b.Fatal(err)
	}
	query := u.Query()
	for i := 0; i < len(q); i += 2 {
		query.Set(q[i], q[i+1])
	}
	u.RawQuery = query.Encode()
	res, err := http.Get(u.String())
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func (b *aHub) post(form url.Values, signature, body string) int {
	b.source.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, form.Get("hub.callback"), strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Hub-Signature", signature)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func sign(secret, body string) string {
	mac := hmac.New(sha512.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha512=" + strings.ToUpper(hex.EncodeToString(mac.Sum(nil)))
}

// confirmed takes the next request and asks the question of a hub.
func (b *aHub) confirmed(lease string) url.Values {
	b.source.Helper()
	form := <-b.asked
	if status, body := b.get(form, "hub.mode", "subscribe", "hub.topic", form.Get("hub.topic"), "hub.challenge", "c-1", "hub.lease_seconds", lease); status != 200 || body != "c-1" {
		b.Fatalf("the question is answered with %d %q", status, body)
	}
	<-b.woken // by the opening
	return form
}

// TestSubscribe are rules of WebSub for subscribers, by their numbers in our list.
func TestSubscribe(t *testing.T) {
	b := newHub(t, Auto)
	form := b.confirmed("100")
	// 2, 3, 10: the links of the topic decide, the hub redirects; 6, 7: what is sent
	if form.Get("hub.topic") != b.URL+"/topic/self" || form.Get("hub.mode") != "subscribe" || len(form.Get("hub.secret")) < 40 || len(form.Get("hub.secret")) >= 200 || !strings.HasPrefix(form.Get("hub.callback"), b.mine.URL+"/callback/copy/") {
		t.Errorf("the hub is asked %v", form)
	}
	if b.Way() != WebSub {
		t.Errorf("heard by %s", b.Way())
	}
	// 16, 21: nothing else is confirmed
	for _, q := range [][]string{
		{"hub.mode", "subscribe", "hub.topic", b.URL + "/topic", "hub.challenge", "x"},
		{"hub.mode", "unsubscribe", "hub.topic", form.Get("hub.topic"), "hub.challenge", "x"},
		{"hub.mode", "", "hub.topic", form.Get("hub.topic"), "hub.challenge", "x"},
	} {
		if status, body := b.get(form, q...); status != 404 || strings.HasPrefix(body, "x") {
			t.Errorf("%v: %d %s", q, status, body)
		}
	}
	other := url.Values{"hub.callback": {b.mine.URL + "/callback/copy/other"}}
	if status, _ := b.get(other, "hub.mode", "subscribe", "hub.topic", form.Get("hub.topic"), "hub.challenge", "x"); status != 404 {
		t.Errorf("a callback of nobody: %d", status)
	}
	if status := b.post(other, "", note(1)); status != 410 {
		t.Errorf("a notification for nobody: %d", status)
	}
	// 30, 37: what is signed is taken, and read; anything else is left out
	secret, body := form.Get("hub.secret"), note(8)
	old := hmac.New(sha1.New, []byte(secret))
	old.Write([]byte(body))
	for i, signature := range []string{"", "sha512=", "sha512=zz", sign("other", body), sign(secret, body+" "), "sha1=" + hex.EncodeToString(old.Sum(nil)), "md5=00"} {
		if status := b.post(form, signature, body); status/100 != 2 {
			t.Errorf("%s: %d", signature, status)
		}
		if n := b.log.count("without a right signature"); b.Announced().Position != 0 || n != i+1 {
			t.Errorf("%q: announced %d, told %d times", signature, b.Announced().Position, n)
		}
	}
	if status := b.post(form, sign(secret, body), body); status/100 != 2 {
		t.Errorf("a signed one: %d", status)
	}
	<-b.woken
	if b.Announced().Position != 8 {
		t.Errorf("announced %d", b.Announced().Position)
	}
	if status := b.post(form, "", strings.Repeat("x", mostBytes+1)); status != 413 {
		t.Errorf("a notification without bound: %d", status)
	}
	// 19, 39: the list is read once more; the subscription is renewed before its end, with another
	// callback and secret
	if d := <-b.pauses; d != settling {
		t.Errorf("a pause of %v", d)
	}
	b.wait <- struct{}{}
	<-b.woken
	if d := <-b.pauses; d < 50*time.Second || d > 70*time.Second {
		t.Errorf("a lease of 100 seconds is renewed after %v", d)
	}
	b.wait <- struct{}{}
	next := <-b.asked
	if status := b.post(form, sign(secret, body), body); status/100 != 2 { // the old one holds until the new one does
		t.Errorf("while a new one is asked for: %d", status)
	}
	<-b.woken
	if next.Get("hub.callback") == form.Get("hub.callback") || next.Get("hub.secret") == secret {
		t.Errorf("renewed with the same callback or secret: %v", next)
	}
	b.asked <- next
	if f := b.asked; f != nil {
		form2 := <-f
		if status, _ := b.get(form2, "hub.mode", "subscribe", "hub.topic", form2.Get("hub.topic"), "hub.challenge", "c", "hub.lease_seconds", "300"); status != 200 {
			t.Errorf("the new one is not confirmed: %d", status)
		}
	}
	leaving := <-b.asked
	if leaving.Get("hub.mode") != "unsubscribe" || leaving.Get("hub.callback") != form.Get("hub.callback") {
		t.Errorf("the old one is not ended: %v", leaving)
	}
	if status, body := b.get(form, "hub.mode", "unsubscribe", "hub.topic", form.Get("hub.topic"), "hub.challenge", "bye"); status != 200 || body != "bye" {
		t.Errorf("the end is answered with %d %s", status, body)
	}
	if status := b.post(form, sign(secret, body), body); status != 410 {
		t.Errorf("after the end: %d", status)
	}
	// 14: a denial ends it; polling goes on, and another attempt comes after a pause
	<-b.pauses // settling
	if status, _ := b.get(next, "hub.mode", "denied", "hub.topic", next.Get("hub.topic"), "hub.reason", "too many mirrors"); status != 200 {
		t.Errorf("a denial: %d", status)
	}
	if leaving := <-b.asked; leaving.Get("hub.mode") != "unsubscribe" {
		t.Errorf("after a denial: %v", leaving)
	}
	<-b.pauses
	if b.Way() != Polling || b.log.count("too many mirrors") != 1 {
		t.Errorf("after a denial it is heard by %s: %s", b.Way(), b.log)
	}
	b.wait <- struct{}{}
	again := b.confirmed("") // without a lease there is one all the same
	b.End()
	if leaving := <-b.asked; leaving.Get("hub.mode") != "unsubscribe" || leaving.Get("hub.callback") != again.Get("hub.callback") {
		t.Errorf("at the end: %v", leaving)
	}
	for _, secret := range []string{secret, next.Get("hub.secret"), again.Get("hub.secret")} { // 40
		if b.log.count(secret) != 0 {
			t.Error("a secret is in the log")
		}
	}
}

// TestDenied: a subscription that the hub refuses is none, and the next channel is taken.
func TestDenied(t *testing.T) {
	b := newHub(t, WebSub)
	form := <-b.asked
	b.get(form, "hub.mode", "denied", "hub.topic", form.Get("hub.topic"), "hub.reason", "no")
	if d := <-b.pauses; d > 2*shortest {
		t.Errorf("a pause of %v", d)
	}
	if b.log.count(fmt.Sprint(errDenied)) != 1 {
		t.Errorf("%s", b.log)
	}
}

// TestCalls: callbacks are found below the path of the address, and below the root.
func TestCalls(t *testing.T) {
	c := Config{Callback: "https://m.example/r%C3%A9/"}
	for path, want := range map[string]bool{"/callback/copy/x": true, "/r%C3%A9/callback/copy/x": true, "/callback/copyx/x": false, "/callback/copy": false, "/x/callback/copy/x": false} {
		if c.Calls(path, "copy") != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
	if c := (Config{}); c.Calls("/callback/copy/x", "copy") {
		t.Error("without a callback it is called")
	}
}
