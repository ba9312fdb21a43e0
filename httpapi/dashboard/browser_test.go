package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// tab is a window of a real browser. Each view is looked at by axe, narrow and wide, light and dark;
// RSBRIDGE_SCREENSHOTS names a folder for pictures.
type tab struct {
	t   *testing.T
	ctx context.Context
	axe string // its script
}

func newTab(t *testing.T) *tab {
	t.Helper()
	browser := teststores.Browser(t)
	axe, err := os.ReadFile(filepath.Join(teststores.Npm(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return &tab{t, ctx, string(axe)}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func run[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *tab) js(expression string) string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string]("String("+expression+")"))
}

// shown waits for an element by XPath.
func shown(xpath string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.Search(xpath))
}

func click(xpath string) chromedp.Action[chromedp.Void] {
	return found(chromedp.Click(chromedp.Search(xpath)))
}

// typed writes into the element that a CSS selector finds.
func typed(css, keys string) chromedp.Action[chromedp.Void] {
	return found(chromedp.SendKeys(chromedp.CSS(css), keys))
}

// found repeats an action whose element left the page between the search and its use. Nothing was
// clicked or typed by then.
func found(action chromedp.Action[chromedp.Void]) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		for {
			v, err := action(ctx, target)
			if gone := new(cdproto.Error); !errors.As(err, &gone) || !strings.Contains(gone.Message, "Could not find node") {
				return v, err
			}
		}
	}
}

// replaced renews the page and names the elements that were put anew where an equal one stood: such a
// one loses focus, selection and what was typed.
const replaced = `(async () => {
  if (!document.querySelector("html:not(.lost) #main")) return ""; // it does not renew itself
  const all = () => [...document.querySelectorAll("body *")], before = new Map(all().map(e => [e, [e.parentNode, e.cloneNode(true)]]));
  const real = fetch;
  await new Promise(done => {
    window.fetch = async (...asked) => {
      const answer = await real(...asked), text = answer.text.bind(answer);
      answer.text = async () => { const page = await text(); setTimeout(done); return page }; // the page renews itself before the timer runs
      return answer;
    };
    document.dispatchEvent(new Event("visibilitychange"));
  });
  window.fetch = real;
  const come = all().filter(e => !before.has(e) && before.has(e.parentNode));
  const gone = [...before].filter(([e]) => !e.isConnected);
  return come.filter(c => gone.some(([, [parent, e]]) => parent === c.parentNode && e.isEqualNode(c))).map(e => e.outerHTML.slice(0, 200)).join("\n");
})()`

func (b *tab) sees(words ...string) {
	b.t.Helper()
	text := run(b, chromedp.Text(chromedp.CSS("body")))
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("the page does not say %q:\n%s", w, text)
		}
	}
}

// look holds a page to WCAG, and takes its pictures.
func (b *tab) look(name string) {
	b.t.Helper()
	if again := run(b, chromedp.Evaluate[string](replaced, chromedp.EvalAwaitPromise)); again != "" {
		b.t.Errorf("%s: renewed, the page has anew what it had:\n%s", name, again)
	}
	for _, view := range []struct {
		name, scheme  string
		width, height int64
	}{{"phone", "dark", 390, 844}, {"wide", "dark", 1360, 900}, {"phone", "light", 390, 844}, {"wide", "light", 1360, 900}} {
		if os.Getenv("RSBRIDGE_SCREENSHOTS") == "" && (view.name == "wide") == (view.scheme == "dark") {
			continue // both sizes and both schemes are seen
		}
		b.do(chromedp.EmulateViewport(view.width, view.height))
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
		}); err != nil {
			b.t.Fatal(err)
		}
		if run(b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > document.documentElement.clientWidth")) {
			b.t.Errorf("%s, %s: the page is wider than its window", name, view.name)
		}
		run(b, chromedp.Evaluate[bool]("window.axe ? true : "+"("+"() => {"+b.axe+"; return true})()"))
		raw := run(b, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 150) + " " + n.any.map(a => a.message).join(" ")).join(" | "))))`, chromedp.EvalAwaitPromise))
		var faults []string
		if err := json.Unmarshal([]byte(raw), &faults); err != nil {
			b.t.Fatal(err)
		}
		for _, f := range faults {
			b.t.Errorf("%s, %s, %s: %s", name, view.name, view.scheme, f)
		}
		if dir := os.Getenv("RSBRIDGE_SCREENSHOTS"); dir != "" {
			file := filepath.Join(dir, fmt.Sprintf("dashboard-%s-%s-%s.png", name, view.name, view.scheme))
			if err := os.WriteFile(file, run(b, chromedp.CaptureScreenshot()), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// TestStates: the dashboard as an operator meets it, from the first start to the loss of the daemon.
// The page renews itself, and leaves focus, selection and typed text alone.
func TestStates(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	b.do(chromedp.Navigate(w.srv.URL), shown(`//h2[contains(., "First steps")]`))
	b.look("empty")
	w.update("local", books(0, 120, "Book"))
	b.do(click(`//section[contains(., "First steps")]//button[contains(., "Scan now")]`), shown(`//p[@id="say"][contains(., "Scan of books")]`), shown(`//tr[contains(., "books") and contains(., "in sync")]`))
	w.do("sync", "copy", nil)
	w.do("audit", "copy", nil)
	b.do(shown(`//tr[contains(., "copy") and contains(., "equal")]`))
	b.sees("All 2 are well", "+120")
	b.look("in-sync")
	if icon := b.js(`document.getElementById("icon").href`); !strings.Contains(icon, "icon-good") {
		t.Errorf("the icon is %s", icon)
	}

	// what a reader holds stays while the page renews itself
	b.do(chromedp.EmulateViewport(1360, 900), click(`//input[@id="q"]`), typed("#q", "boo"))
	b.js(`(() => { const t = document.querySelector("tr[data-key=set-books] a").firstChild; getSelection().setBaseAndExtent(t, 1, t, 4); document.getElementById("q").focus(); document.querySelector("tr[data-key=set-books]").mark = 7; return 1 })()`)
	w.update("local", books(120, 130, "Book"))
	w.do("scan", "books", nil)
	b.do(shown(`//tr[contains(., "copy") and contains(., "10 changes behind")]`), shown(`//tr[contains(., "books") and contains(., "130")]`))
	if got := b.js(`document.activeElement.id + " " + document.activeElement.value + " " + getSelection().toString() + " " + document.querySelector("tr[data-key=set-books]").mark`); got != "q boo ook 7" {
		t.Errorf("after the page was renewed: %q", got)
	}
	b.look("behind")
	w.do("sync", "copy", nil)

	b.do(chromedp.Navigate(w.srv.URL+"/sets/books"), shown(`//h2[contains(., "Changes")]`))
	b.look("set")
	b.do(chromedp.Navigate(w.srv.URL+"/runs/1"), shown(`//h2[contains(., "Stages")]`))
	b.look("run")

	// a mirror that somebody else has written into
	w.update("mirror", `DELETE { ?s ?p ?o } INSERT { ?s ?p "wrong" } WHERE { VALUES ?s { <http://example.org/book5> } ?s ?p ?o }`)
	w.do("audit", "copy", nil)
	b.do(chromedp.Navigate(w.srv.URL+"/destinations/copy"), shown(`//a[contains(@href, "difference")]`))
	b.sees("The last audit found")
	b.look("mirror")
	b.do(click(`//a[contains(@href, "difference?")]`), shown(`//h2[contains(., "In the mirror")]`))
	b.sees("Book 5", "wrong")
	b.look("difference")

	// deletions that are held go by their number alone
	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(STR(?s) > "http://example.org/book2") }`)
	w.do("scan", "books", nil)
	b.do(chromedp.Navigate(w.srv.URL), click(`//a[contains(., "deletions")]`), shown(`//h2[contains(., "By class")]`))
	b.look("held")
	h, err := w.b.SetHeld(t.Context(), "books", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	b.do(typed("#number", "1"), click(`//button[contains(., "Accept")]`), shown(`//p[@id="say"][contains(., "not the number")]`))
	b.do(typed("#number", "\b"+fmt.Sprint(h.Deletions)), click(`//button[contains(., "Accept")]`), shown(`//h1[contains(., "Scan of books")]`), shown(`//span[contains(@class, "state")][contains(., "done")]`))

	// the daemon is lost, and comes back
	b.do(chromedp.Navigate(w.srv.URL), shown(`//h2[contains(., "Sets and mirrors")]`))
	back := w.handler
	w.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.srv.CloseClientConnections()
	b.do(shown(`//p[@id="lost"][contains(., "as of")]`))
	if title := b.js("document.title"); !strings.Contains(title, "lost") {
		t.Errorf("the title is %q", title)
	}
	b.look("lost")
	w.handler = back
	b.do(chromedp.WaitNotVisible(chromedp.CSS("#lost")))
	b.sees("Sets and mirrors")
}

// TestStoreKilled: a store dies in the middle of a scan, and the page says so within five seconds.
func TestStoreKilled(t *testing.T) {
	b := newTab(t)
	var store http.Handler
	var once sync.Once
	held, killed := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		store.ServeHTTP(&slowly{ResponseWriter: rw, once: &once, held: held, killed: killed}, r)
	}))
	t.Cleanup(server.Close)
	w := newWorld(t, func(cfg *bridge.Config) {
		far := bridge.NewStore()
		far.Query = server.URL + "/query"
		cfg.Stores["far"] = far
		set := cfg.Sets["books"]
		set.Store = "far"
		cfg.Sets["books"] = set
	})
	store = w.b.StoreHandler("local")
	for i := range 10 {
		w.update("local", books(i*1000, i*1000+1000, "Book"))
	}
	b.do(chromedp.Navigate(w.srv.URL), shown(`//h2[contains(., "First steps")]`))
	if _, _, err := w.b.Begin(t.Context(), "scan", "books", "test", nil); err != nil {
		t.Fatal(err)
	}
	<-held
	b.do(shown(`//h2[contains(., "Running now")]`))
	b.look("running")
	began := time.Now()
	close(killed)
	server.Listener.Close()
	server.CloseClientConnections()
	run(b, chromedp.Poll[bool](`/does not answer.*Attempt|unreachable/.test(document.body.innerText)`))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the page said it after %v", took)
	}
	b.look("store-killed")
	run(b, chromedp.Poll[bool](`/unreachable/.test(document.body.innerText)`))
	b.sees("1 of 2 needs you", "Needs attention", "Scan now", "The store far does not answer: the connection was refused. Nobody listens there: is the store running?")
	b.look("failing")
}

// slowly holds a long answer in its middle until its store is killed.
type slowly struct {
	http.ResponseWriter
	once         *sync.Once
	held, killed chan struct{}
	sent         int
}

func (s *slowly) Write(p []byte) (int, error) {
	if s.sent += len(p); s.sent > 200_000 {
		if f, ok := s.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		s.once.Do(func() { close(s.held) })
		<-s.killed
		return 0, http.ErrAbortHandler
	}
	return s.ResponseWriter.Write(p)
}
