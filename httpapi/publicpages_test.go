package httpapi_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/browsertest"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/resourcesync/staticsite"
)

// TestPublicPages reads the pages for people in a real browser: a search, the alphabet, a document as a table, an
// entity with lists and folded values, its history and a comparison, and a deleted one. axe-core finds no
// fault in any, in light and dark, wide and narrow. Then it reads the same as files, from a file server at another
// address. RSBRIDGE_SCREENSHOTS names a folder for pictures.
func TestPublicPages(t *testing.T) {
	tab := browsertest.Open(t)
	var public http.Handler
	pub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { public.ServeHTTP(w, r) }))
	t.Cleanup(pub.Close)
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: pub.URL}, ""
	s := bridge.NewStore()
	s.Embedded = filepath.Join(t.TempDir(), "store")
	cfg.Stores["local"] = s
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Title, set.Prefix = "local", "", "Painters", "http://example.org/"
	cfg.Sets["data"] = set
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{Command: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	public = b.PublicHandler()
	scan := func(update string) {
		t.Helper()
		load(t, b, "PREFIX : <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "+update)
		if err := b.Do(t.Context(), "scan", "data", nil, &bridge.ScanReport{}); err != nil {
			t.Fatal(err)
		}
	}
	var known strings.Builder
	for i := range 130 {
		fmt.Fprintf(&known, `:p%[1]d a :Painter ; rdfs:label "Painter %[1]d" . :Dürer :knew :p%[1]d . `, i)
	}
	scan(`INSERT DATA { :Dürer a :Painter ; rdfs:label "Albrecht Dürer"@de, "אלברכט דירר"@he ; rdfs:comment "` + strings.Repeat("A long text about a life. ", 60) + `"@en ;
	  :works ("Hare" "Rhinoceros" [ :title "Melencolia" ; :at [ :city "Nürnberg" ] ]) ; :born 1471 . ` + known.String() + ` :Nobody rdfs:label "Nobody at all" }`)
	scan(`DELETE DATA { :Dürer :born 1471 } ; INSERT DATA { :Dürer :born 1472 }`)
	scan(`DELETE DATA { :Dürer :born 1472 . :Nobody rdfs:label "Nobody at all" } ; INSERT DATA { :Dürer :born 1473 }`)

	do := func(what string, steps ...browsertest.Step) {
		t.Helper()
		tab.Do(steps...)
		tab.Look("public-" + what)
	}
	text, click, shown := tab.Text, browsertest.Click, browsertest.Shown
	status := func() int { // of the page itself
		return int(browsertest.Eval[float64](tab, `performance.getEntriesByType("navigation")[0].responseStatus`))
	}

	do("start", chromedp.Navigate(pub.URL+"/"))
	do("set", click(`//a[contains(., "Painters")]`), shown(`//h2[contains(., "Look at it")]`))
	do("search", browsertest.Type("input[type=search]", "durer\n"), shown(`//ul[@class="names"]`))
	do("entity", click(`//ul[@class="names"]//a`), shown(`//h1[contains(., "Dürer")]`))
	for css, want := range map[string]string{".types": "Painter", "ol.list > li:nth-child(2)": "Rhinoceros", "ol.list .node .node": "Nürnberg", `span[lang="he"]`: "אלברכט דירר"} {
		if got := text(css); !strings.Contains(got, want) {
			t.Errorf("%s shows %q, want %q", css, got, want)
		}
	}
	if dir := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector('span[lang="he"]')).direction`); dir != "rtl" {
		t.Errorf("Hebrew runs %s", dir)
	}
	if n := browsertest.Eval[float64](tab, `[...document.querySelectorAll("dd li a")].filter(a => a.textContent.startsWith("Painter") && a.checkVisibility()).length`); n != 20 {
		t.Errorf("%v of 130 values are open", n)
	}
	do("folded values", click(`//summary[contains(., "Show 110 more")]`))
	if n := browsertest.Eval[float64](tab, `[...document.querySelectorAll("dd li a")].filter(a => a.checkVisibility()).length`); n < 130 {
		t.Errorf("%v of 130 values are unfolded", n)
	}
	do("history", click(`//a[contains(., "The whole history")]`), shown(`//button[contains(., "Compare")]`))
	do("comparison", click(`//tr[contains(., "created")]//input[@name="from"]`), click(`//button[contains(., "Compare")]`), shown(`//h1[contains(., "Difference")]`))
	if gone, come := text("ul.diff del"), text("ul.diff ins"); !strings.HasPrefix(gone, "1471") || !strings.HasPrefix(come, "1473") {
		t.Errorf("first to last: - %s + %s", gone, come)
	}
	do("alphabet", chromedp.Navigate(pub.URL+"/data/browse?letter=p"), shown(`//a[contains(., "Painter 0")]`))
	do("end of the alphabet", click(`//a[@rel="next"]`), shown(`//a[contains(., "Painter 99")]`))
	do("document", chromedp.Navigate(pub.URL+"/data/resourcelist.xml"), shown(`//h1[contains(., "Resource List")]`))
	if at := browsertest.Eval[string](tab, "location.pathname"); at != "/data/resourcelist.html" {
		t.Errorf("the document is shown at %s", at)
	}
	do("second page", click(`//a[@rel="next"]`), shown(`//p[contains(., "101 to 131 of 131")]`))
	do("changes", chromedp.Navigate(pub.URL+"/data/changelist.xml"), shown(`//span[contains(., "deleted")]`))
	do("deleted", click(`//tr[contains(., "deleted")]//a`), shown(`//strong[contains(., "Deleted")]`))
	if code := status(); code != http.StatusGone || text("h1") != "Nobody at all" {
		t.Errorf("the deleted entity: %d %s", code, text("h1"))
	}
	do("missing", chromedp.Navigate(pub.URL+"/data/r/Nothing"), shown(`//h1[contains(., "404")]`))
	do("capabilities", chromedp.Navigate(pub.URL+"/data/capabilitylist.xml"), shown(`//a[contains(., "Change List")]`))
	do("sources", chromedp.Navigate(pub.URL+"/.well-known/resourcesync"), shown(`//h1[contains(., "Source Description")]`))
	if at := browsertest.Eval[string](tab, "location.pathname"); at != "/sourcedescription.html" {
		t.Errorf("the Source Description is shown at %s", at)
	}

	dir := t.TempDir()
	if _, err := staticsite.Write(t.Context(), staticsite.Options{Set: "data", BaseURL: pub.URL, Transport: inproc.Transport{Handler: public}, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(files.Close)
	pages := crawl(t, files.URL+"/")
	for _, want := range []string{"/data/about.html", "/data/browse.html", "/data/browse/p.2.html", "/data/resourcelist.2.html", "/data/r/p129.html", "/data/r/p129.ttl", "/.well-known/resourcesync"} {
		if !pages[files.URL+want] {
			t.Errorf("no link leads to %s", want)
		}
	}
	do("files-start", chromedp.Navigate(files.URL), shown(`//a[contains(., "Painters")]`))
	do("files-set", click(`//a[contains(., "Painters")]`), shown(`//a[contains(., "Browse A to Z")]`))
	do("files-alphabet", click(`//a[contains(., "Browse A to Z")]`), shown(`//nav[@aria-label="Letters"]`))
	do("files-letter", click(`//nav//a[.="P"]`), shown(`//a[contains(., "Painter 0")]`))
	do("files-entity", click(`//a[@rel="next"]`), click(`//a[.="Painter 99"]`), shown(`//h1[contains(., "Painter 99")]`))
	tab.Do(click(`//nav//a[1]`), shown(`//a[contains(., "Painters")]`))
	if at := browsertest.Eval[string](tab, "location.href"); at != files.URL+"/" { // the server leaves index.html out
		t.Errorf("the way back leads to %s", at)
	}
}

// crawl follows the links of pages to the site of the first one. Each has to be there.
func crawl(t *testing.T, first string) map[string]bool {
	t.Helper()
	seen := map[string]bool{first: true}
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		res, err := http.Get(queue[0])
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", queue[0], res.Status, err)
		}
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range regexp.MustCompile(` href="([^"]*)"`).FindAllStringSubmatch(string(body), -1) {
			to, err := res.Request.URL.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if to.Fragment = ""; to.Host == res.Request.URL.Host && !seen[to.String()] {
				seen[to.String()] = true
				queue = append(queue, to.String())
			}
		}
	}
	return seen
}
