package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/browsertest"
)

// faintText names text whose contrast with what is behind it is less than WCAG 2.2
// asks for (1.4.3, 4.5 to 1), "" for none.
const faintText = `(() => {
  const rgba = s => { const c = s.match(/[\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c };
  const over = (c, b) => [0, 1, 2].map(i => c[i] * c[3] + b[i] * (1 - c[3]));
  const paper = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]; // of the browser
  const behind = e => e ? over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : paper;
  const light = c => c.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const faint = new Set();
  for (const e of document.body.querySelectorAll("*")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.disabled) continue;
    const b = behind(e), c = over(rgba(getComputedStyle(e).color), b), [x, y] = [light(c), light(b)].sort((x, y) => y - x);
    const ratio = (x + 0.05) / (y + 0.05);
    if (ratio < 4.5) faint.add(e.tagName + " " + e.textContent.trim().slice(0, 30) + ": " + c.map(Math.round) + " on " + b.map(Math.round) + ", " + ratio.toFixed(1));
  }
  return [...faint].slice(0, 5).join("; ");
})()`

// asksEndpoint is a page that asks the endpoint of the address that it is made with, and shows what
// it was given.
const asksEndpoint = `<!doctype html><meta name="color-scheme" content="light dark"><title>asks</title><pre></pre><script>
(async () => {
  const site = "%s", at = site + "/stores/local/query", ask = "ASK { ?s ?p ?o }", out = [];
  const tell = async (name, want, request) => {
    const response = await request, text = await response.text();
    out.push(name + " " + (text.includes(want) ? want : text) + " " + response.status);
  };
  await tell("get", "true", fetch(at + "?query=" + encodeURIComponent(ask)));
  await tell("preflight", "true", fetch(at, {method: "POST", headers: {"Content-Type": "application/sparql-query"}, body: ask}));
  await tell("form", "true", fetch(at, {method: "POST", body: new URLSearchParams({query: ask})}));
  await tell("description", "void:triples", fetch(at));
  await tell("set", "/stores/local/query", fetch(site + "/.well-known/void"));
  const pre = document.querySelector("pre");
  pre.textContent = out.join("\n");
  pre.id = "done";
})();
</script>`

// hearsChanges is a page that hears the notifications of the site that it is made with, and shows
// what each way told.
const hearsChanges = `<!doctype html><meta name="color-scheme" content="light dark"><title>hears</title><pre></pre><script>
const at = "%s/data/notify/change", pre = document.querySelector("pre"), open = new Set(), out = [];
const opened = way => { open.add(way); if (open.size === 2) pre.id = "open"; pre.textContent = "open"; };
const heard = (way, text) => {
  const entry = new DOMParser().parseFromString(text, "application/xml").querySelector("url");
  out.push(way + " " + entry.querySelector("md").getAttribute("change") + " " + entry.querySelector("ln[rel=describes]").getAttribute("href"));
  pre.textContent = out.join("\n");
  if (out.length === 2) pre.id = "done";
};
const events = new EventSource(at), socket = new WebSocket(at.replace("http", "ws"));
events.onopen = () => opened("events");
events.addEventListener("change", e => heard("events", e.data));
socket.onopen = () => opened("socket");
socket.onmessage = e => heard("socket", e.data);
</script>`

// TestBrowser opens the pages for people in a real browser, as a reader would:
// from the start page to the set, to an entity, to its history, to a difference,
// to another entity by its link; then the dashboard, with a button that starts a scan.
// RSBRIDGE_SCREENSHOTS names a folder for pictures of them, narrow and wide, light
// and dark.
func TestBrowser(t *testing.T) {
	tab := browsertest.Open(t)
	var public, admin http.Handler
	serve := func(h *http.Handler) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h).ServeHTTP(w, r) }))
		t.Cleanup(s.Close)
		return s
	}
	pub, adm := serve(&public), serve(&admin)

	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: pub.URL}, ""
	s := bridge.NewStore()
	s.Embedded, s.Serve = filepath.Join(t.TempDir(), "store"), true
	cfg.Stores["local"] = s
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Title, set.Prefix = "local", "", "Painters", "http://example.org/"
	cfg.Sets["data"] = set
	takeOut(t, cfg, &public)
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{Command: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	public, admin = b.PublicHandler(), httpapi.New(b, httpapi.Options{})
	scan := func(update string) {
		t.Helper()
		load(t, b, update)
		var rep bridge.ScanReport
		if err := b.Do(t.Context(), "scan", "data", nil, &rep); err != nil {
			t.Fatal(err)
		}
	}
	const label = "http://www.w3.org/2000/01/rdf-schema#label"
	scan(`INSERT DATA { <http://example.org/Dürer> <` + label + `> "Albrecht Dürer"@de ; <http://example.org/taught> <http://example.org/Baldung> ; <http://example.org/born> [ <http://example.org/year> 1471 ] .
	  <http://example.org/Baldung> <` + label + `> "Hans Baldung" }`)
	scan(`DELETE DATA { <http://example.org/Dürer> <` + label + `> "Albrecht Dürer"@de } ; INSERT DATA { <http://example.org/Dürer> <` + label + `> "Albrecht Dürer the Younger"@en }`)

	shots := 0
	do := func(what string, steps ...browsertest.Step) {
		t.Helper()
		tab.Do(steps...)
		shots++
		tab.Through(fmt.Sprintf("%d %s", shots, what), browsertest.Views, func(view browsertest.View) {
			t.Helper()
			if faint := browsertest.Eval[string](tab, faintText); faint != "" {
				t.Errorf("%s, %s: text that cannot be read well: %s", what, view.Scheme, faint)
			}
		})
	}
	click, shown, sees := browsertest.Click, browsertest.Shown, tab.Sees
	link := func(words string) browsertest.Step { return click(`//a[contains(., "` + words + `")]`) }
	says := func(words string) browsertest.Step {
		return chromedp.Poll[chromedp.Void](fmt.Sprintf("document.body.innerText.includes(%q)", words))
	}

	do("start page", chromedp.Navigate(pub.URL))
	sees("Painters", "2 descriptions")
	do("set page", link("Painters"), shown(`//h2[contains(., "What it holds")]`))
	sees("updated", "rsbridge mirror "+pub.URL)
	do("entity", link("Dürer"), shown(`//h1[contains(., "Younger")]`))
	sees("http://example.org/Dürer", "1471", "History", "created", "updated")
	do("comparison", link("compare"), shown(`//h1[contains(., "Difference")]`))
	gone, come := tab.Text("ul.diff del"), tab.Text("ul.diff ins")
	if gone != "Albrecht Dürer de" || come != "Albrecht Dürer the Younger en" {
		t.Errorf("the difference: - %s + %s", gone, come)
	}
	do("history", link("History"), shown(`//button[contains(., "Compare")]`))
	do("first version", click(`//tr[contains(., "created")]//a`), shown(`//p[contains(., "This is the version of")]`))
	sees("Albrecht Dürer")
	if text := tab.Text("h1"); strings.Contains(text, "Younger") {
		t.Errorf("the first version has what came later: %s", text)
	}
	do("linked entity", link("Baldung"), shown(`//h1[contains(., "Hans Baldung")]`))

	// A page of another origin queries the public endpoint.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, asksEndpoint, pub.URL)
	}))
	t.Cleanup(other.Close)
	do("page of another origin", chromedp.Navigate(other.URL), shown(`//pre[@id="done"]`))
	for _, want := range []string{"get true 200", "preflight true 200", "form true 200", "description void:triples 200", "set /stores/local/query 200"} {
		sees(want)
	}
	hears := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, hearsChanges, pub.URL)
	}))
	t.Cleanup(hears.Close)
	do("page that hears changes", chromedp.Navigate(hears.URL), shown(`//pre[@id="open"]`))
	scan(`INSERT DATA { <http://example.org/Cranach> <` + label + `> "Lucas Cranach" }`)
	do("heard changes", shown(`//pre[@id="done"]`))
	sees("events created http://example.org/Cranach", "socket created http://example.org/Cranach")

	do("dashboard", chromedp.Navigate(adm.URL), shown(`//h2[contains(., "Sets and mirrors")]`))
	sees("former", "rsbridge forget former", "copy", "its mirror is not updated: put it back, or rsbridge forget copy")
	do("set of the dashboard", click(`//a[.="data"]`), shown(`//button[contains(., "Scan now")]`))
	do("scan by its button", click(`//button[contains(., "Scan now")]`), says("Scan of data begins"), says("by dashboard"))

	// Behind a login, and below another path.
	guarded := httpapi.New(b, httpapi.Options{Token: "secret"})
	below := http.StripPrefix("/ops", guarded)
	adm2 := serve(&below)
	do("login", chromedp.Navigate(adm2.URL+"/ops/sets/data"), shown(`//input[@id="token"]`))
	do("dashboard behind a token", browsertest.Type("#token", "secret"), click(`//button[contains(., "Log in")]`), shown(`//button[contains(., "Log out")]`))
	do("overview behind a token", chromedp.Navigate(adm2.URL+"/ops/"), shown(`//h2[contains(., "Sets and mirrors")]`))
	do("set behind a token", click(`//a[.="data"]`), shown(`//button[contains(., "Scan now")]`))
	do("scan behind a token", click(`//button[contains(., "Scan now")]`), says("Scan of data begins"))
	do("logout", click(`//button[contains(., "Log out")]`), shown(`//input[@id="token"]`))
}

// takeOut publishes and mirrors a set that the configuration no longer has.
func takeOut(t *testing.T, cfg *bridge.Config, public *http.Handler) {
	t.Helper()
	former := bridge.NewSet()
	former.Store, former.Schedule, former.Select.Prefixes = "local", "", []string{"http://example.org/former/"}
	cfg.Sets["former"] = former
	d := bridge.NewDestination()
	d.Source, d.Set, d.Store, d.GraphIRI, d.Schedule, d.Audit.Schedule = cfg.Public.BaseURL, "former", "local", "http://example.org/copy", "", ""
	cfg.Destinations["copy"] = d
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{Command: "test"})
	if err != nil {
		t.Fatal(err)
	}
	*public = b.PublicHandler()
	load(t, b, `INSERT DATA { <http://example.org/former/1> <http://example.org/born> 1471 }`)
	err = b.Do(t.Context(), "scan", "former", nil, &bridge.ScanReport{})
	if err == nil {
		err = b.Do(t.Context(), "sync", "copy", nil, &bridge.SyncReport{})
	}
	if err != nil {
		t.Fatal(err)
	}
	load(t, b, `DELETE DATA { <http://example.org/former/1> <http://example.org/born> 1471 }`)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	delete(cfg.Sets, "former")
	clear(cfg.Destinations)
}

// load changes the embedded store.
func load(t *testing.T, b *bridge.Bridge, update string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/update", strings.NewReader(update))
	req.Header.Set("Content-Type", "application/sparql-update")
	rec := httptest.NewRecorder()
	b.StoreHandler("local").ServeHTTP(rec, req)
	if rec.Code >= 300 {
		t.Fatalf("%s: %d %s", update, rec.Code, rec.Body)
	}
}
