package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/browsertest"
)

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

// comesAndGoes selects a part of a name and renews the page twice: with a section before it, and
// without. It tells what is selected after each.
const comesAndGoes = `(async () => {
  const name = document.querySelector("tr[data-key=set-books] a").firstChild, real = fetch, told = [];
  getSelection().setBaseAndExtent(name, 1, name, 4);
  for (const section of ['<section data-key="comes"><h2>Comes</h2></section>\n', ""]) {
    await new Promise(done => {
      window.fetch = async (...asked) => {
        const answer = await real(...asked), text = answer.text.bind(answer);
        answer.text = async () => {
          const page = await text();
          setTimeout(done);
          return page.replace('<section aria-labelledby="h-rows"', section + "$&");
        };
        return answer;
      };
      document.dispatchEvent(new Event("visibilitychange"));
    });
    told.push(getSelection().toString());
  }
  window.fetch = real;
  return told.join(", ");
})()`

// look renews a page, and holds it to WCAG.
func look(t *testing.T, b *browsertest.Tab, name string) {
	t.Helper()
	if again := browsertest.Eval[string](b, replaced); again != "" {
		t.Errorf("%s: renewed, the page has anew what it had:\n%s", name, again)
	}
	b.Look("dashboard-" + name)
}

// js is the value of an expression as text.
func js(b *browsertest.Tab, expression string) string {
	return browsertest.Eval[string](b, "String("+expression+")")
}

// TestStates: the dashboard as an operator meets it, from the first start to the loss of the daemon.
// The page renews itself, and leaves focus, selection and typed text alone.
func TestStates(t *testing.T) {
	b := browsertest.Open(t)
	w := newWorld(t, nil)
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Shown(`//h2[contains(., "First steps")]`))
	look(t, b, "empty")
	w.update("local", books(0, 120, "Book"))
	b.Do(browsertest.Click(`//section[contains(., "First steps")]//button[contains(., "Scan now")]`), browsertest.Shown(`//p[@id="say"][contains(., "Scan of books")]`), browsertest.Shown(`//tr[contains(., "books") and contains(., "in sync")]`))
	w.do("sync", "copy", nil)
	w.do("audit", "copy", nil)
	b.Do(browsertest.Shown(`//tr[contains(., "copy") and contains(., "equal")]`))
	b.Sees("All 2 are well", "+120")
	look(t, b, "in-sync")
	if icon := js(b, `document.getElementById("icon").href`); !strings.Contains(icon, "icon-good") {
		t.Errorf("the icon is %s", icon)
	}

	// what a reader holds stays while the page renews itself
	b.Do(chromedp.EmulateViewport(1360, 900), browsertest.Click(`//input[@id="q"]`), browsertest.Type("#q", "boo"))
	js(b, `(() => { const t = document.querySelector("tr[data-key=set-books] a").firstChild; getSelection().setBaseAndExtent(t, 1, t, 4); document.getElementById("q").focus(); document.querySelector("tr[data-key=set-books]").mark = 7; return 1 })()`)
	w.update("local", books(120, 130, "Book"))
	w.do("scan", "books", nil)
	b.Do(browsertest.Shown(`//tr[contains(., "copy") and contains(., "10 changes behind")]`), browsertest.Shown(`//tr[contains(., "books") and contains(., "130")]`))
	if got := js(b, `document.activeElement.id + " " + document.activeElement.value + " " + getSelection().toString() + " " + document.querySelector("tr[data-key=set-books]").mark`); got != "q boo ook 7" {
		t.Errorf("after the page was renewed: %q", got)
	}
	if got := browsertest.Eval[string](b, comesAndGoes); got != "ook, ook" {
		t.Errorf("selected, after a section came and went: %q", got)
	}
	b.Sees("not all is in sync")
	look(t, b, "behind")
	w.do("sync", "copy", nil)

	b.Do(chromedp.Navigate(w.srv.URL+"/sets/books"), browsertest.Shown(`//h2[contains(., "Changes")]`))
	look(t, b, "set")
	b.Do(chromedp.Navigate(w.srv.URL+"/runs/1"), browsertest.Shown(`//h2[contains(., "Stages")]`))
	look(t, b, "run")

	// a mirror that somebody else has written into
	w.update("mirror", `DELETE { ?s ?p ?o } INSERT { ?s ?p "wrong" } WHERE { VALUES ?s { <http://example.org/book5> } ?s ?p ?o }`)
	w.do("audit", "copy", nil)
	b.Do(chromedp.Navigate(w.srv.URL+"/destinations/copy"), browsertest.Shown(`//a[contains(@href, "difference")]`))
	b.Sees("The last audit found")
	look(t, b, "mirror")
	b.Do(browsertest.Click(`//a[contains(@href, "difference?")]`), browsertest.Shown(`//h2[contains(., "In the mirror")]`))
	b.Sees("Book 5", "wrong")
	look(t, b, "difference")

	// deletions that are held go by their number alone
	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(STR(?s) > "http://example.org/book2") }`)
	w.do("scan", "books", nil)
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Click(`//a[contains(., "deletions")]`), browsertest.Shown(`//h2[contains(., "By class")]`))
	look(t, b, "held")
	h, err := w.b.SetHeld(t.Context(), "books", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Do(browsertest.Type("#number", "1"), browsertest.Click(`//button[contains(., "Accept")]`), browsertest.Shown(`//p[@id="say"][contains(., "not the number")]`))
	b.Do(browsertest.Type("#number", "\b"+fmt.Sprint(h.Deletions)), browsertest.Click(`//button[contains(., "Accept")]`), browsertest.Shown(`//h1[contains(., "Scan of books")]`), browsertest.Shown(`//span[contains(@class, "state")][contains(., "done")]`))

	// the daemon is lost, and comes back
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Shown(`//h2[contains(., "Sets and mirrors")]`))
	w.lost.Store(true)
	w.srv.CloseClientConnections()
	b.Do(browsertest.Shown(`//p[@id="lost"][contains(., "as of")]`))
	if title := js(b, "document.title"); !strings.Contains(title, "lost") {
		t.Errorf("the title is %q", title)
	}
	look(t, b, "lost")
	w.lost.Store(false)
	b.Do(chromedp.WaitNotVisible(chromedp.CSS("#lost")))
	b.Sees("Sets and mirrors")
}

// asks loses the daemon in front of a page, fires its timers seven times, and tells their pauses. Then it hides
// the page, and tells how many timers and requests come.
const asks = `(async () => {
  const real = setTimeout, now = Date.now, timers = [], told = [];
  let asked = 0, ids = 0, later = 0;
  window.setTimeout = (f, ms) => { timers.push({ id: ++ids, f, ms }); return ids };
  window.clearTimeout = id => { const i = timers.findIndex(t => t.id === id); if (i >= 0) timers.splice(i, 1) };
  window.fetch = async () => { asked++; throw new TypeError("lost") };
  Date.now = () => now() + later;
  const turn = () => new Promise(done => real(done));
  const see = async hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    await turn();
  };
  await see(false);
  for (let i = 0; i < 7; i++) {
    told.push(timers.map(t => t.ms).join("+"));
    const due = timers.splice(0);
    later += due[0].ms;
    for (const t of due) t.f();
    await turn();
  }
  told.push(asked);
  await see(true);
  return told.join(" ") + ", hidden " + timers.length + " " + asked;
})()`

// TestLost: a page without its daemon has one timer, with pauses that grow to ten seconds. A hidden one asks
// nothing.
func TestLost(t *testing.T) {
	b, w := browsertest.Open(t), newWorld(t, nil)
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Shown(`//h2[contains(., "First steps")]`))
	if got, want := browsertest.Eval[string](b, asks), "1500 3000 6000 10000 10000 10000 10000 8, hidden 0 8"; got != want {
		t.Errorf("its pauses, and requests: %s, want %s", got, want)
	}
}

// TestStoreKilled: a store dies in the middle of a scan, and the page says so within five seconds.
func TestStoreKilled(t *testing.T) {
	b := browsertest.Open(t)
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
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Shown(`//h2[contains(., "First steps")]`))
	if _, _, err := w.b.Begin(t.Context(), "scan", "books", "test", nil); err != nil {
		t.Fatal(err)
	}
	<-held
	b.Do(browsertest.Shown(`//h2[contains(., "Running now")]`))
	look(t, b, "running")
	began := time.Now()
	close(killed)
	server.Listener.Close()
	server.CloseClientConnections()
	browsertest.Get(b, chromedp.Poll[bool](`/does not answer.*Attempt|unreachable/.test(document.body.innerText)`))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the page said it after %v", took)
	}
	look(t, b, "store-killed")
	browsertest.Get(b, chromedp.Poll[bool](`/unreachable/.test(document.body.innerText)`))
	b.Sees("1 of 2 needs you", "Needs attention", "Scan now", "The store far does not answer: the connection was refused. Nobody listens there: is the store running?")
	look(t, b, "failing")
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
