package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/history"
	"github.com/rsbridge/rsbridge/internal/browsertest"
)

// week is two sets and three mirrors, one of them in a store that is not always well.
type week struct {
	*world
	now    time.Time
	locked atomic.Bool // the store of the mirror "branch" refuses everybody
}

// things are entities with two words for a name.
func things(kind string, from, to int, note string) string {
	first := []string{"Silent", "Northern", "Hidden", "Golden", "Distant", "Broken", "Early", "Paper", "Winter", "Second", "Open"}
	second := []string{"Harbour", "Letters", "Garden", "Atlas", "River", "Journey", "Archive", "Lantern", "Island", "Orchard", "Bridge", "Mirror", "Choir"}
	var b strings.Builder
	b.WriteString("INSERT DATA {")
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "<http://example.org/%s/%d> a <http://example.org/%s> ; <%s> \"The %s %s\"@en ; <http://example.org/number> %d ; <http://example.org/note> \"%s\" .\n", strings.ToLower(kind), i, kind, label, first[i%len(first)], second[i%len(second)], i, note)
	}
	return b.String() + "}"
}

// part removes entities of a kind by their numbers.
func part(kind, filter string) string {
	return fmt.Sprintf(`DELETE { ?s ?p ?o } WHERE { ?s a <http://example.org/%s> ; <http://example.org/number> ?n ; ?p ?o FILTER(%s) }`, kind, filter)
}

func newWeek(t *testing.T) *week {
	w := &week{now: time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)} // a Monday
	var store http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.locked.Load() {
			http.Error(rw, "the password has expired", http.StatusForbidden)
			return
		}
		store.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.world = newWorldAt(t, func() time.Time { return w.now }, func(cfg *bridge.Config) {
		dir := filepath.Dir(cfg.State)
		cfg.Public.Title = "The town library"
		clear(cfg.Stores)
		for _, name := range []string{"catalogue", "staff", "museum", "hall", "branch"} {
			s := bridge.NewStore()
			s.Embedded = filepath.Join(dir, name)
			cfg.Stores[name] = s
		}
		far := bridge.NewStore()
		far.Query, far.Update = server.URL+"/query", server.URL+"/update"
		cfg.Stores["far"] = far
		set, mirror := cfg.Sets["books"], cfg.Destinations["copy"]
		clear(cfg.Destinations)
		set.Store = "catalogue"
		cfg.Sets["books"] = set
		set.Store = "staff"
		cfg.Sets["people"] = set
		for name, of := range map[string][2]string{"reading-room": {"books", "hall"}, "branch": {"books", "far"}, "museum": {"people", "museum"}} {
			mirror.Set, mirror.Store = of[0], of[1]
			cfg.Destinations[name] = mirror
		}
	})
	store = w.b.StoreHandler("branch")
	w.update("catalogue", things("Book", 0, 400, "new"))
	w.update("staff", things("Person", 0, 90, "new"))
	return w
}

// look is a round of all runs, and a sample of how far the mirrors are. Runs of a refusing store fail.
func (w *week) look(audit bool) {
	w.t.Helper()
	begin := func(action, name string) {
		run, _, err := w.b.Begin(w.t.Context(), action, name, "schedule", nil)
		if err == nil {
			_, err = w.b.Runner().Wait(w.t.Context(), run.ID)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, name := range []string{"books", "people"} {
		begin("scan", name)
	}
	samples := map[string]history.Sample{}
	for _, name := range []string{"reading-room", "branch", "museum"} {
		if begin("sync", name); audit {
			begin("audit", name)
		}
		st, err := w.b.DestinationStatus(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		samples["destination:"+name] = history.Sample{Behind: st.BehindSeconds}
	}
	hours := (4 * time.Hour).Seconds() // since the round before
	counts := history.Counts{Created: 10, Deleted: 1, Runs: 1, Longest: 2}
	samples["set:books"], samples["set:people"] = history.Sample{Behind: &hours, Counts: counts}, history.Sample{Behind: &hours, Counts: history.Counts{Runs: 1, Longest: 1}}
	if err := bridge.Samples(w.b).Add(w.t.Context(), w.now, samples); err != nil {
		w.t.Fatal(err)
	}
}

var tags = regexp.MustCompile(`<[^>]*>|\s+`)

// morning is what an operator reads at nine o'clock: the sentence, what needs somebody, and the rows;
// and those in the status that are not well.
func (w *week) morning() (page, status string) {
	w.t.Helper()
	plain := func(page string) string {
		return html.UnescapeString(strings.Join(strings.Fields(tags.ReplaceAllString(page, " ")), " "))
	}
	home := w.get("/", 200)
	sentence := regexp.MustCompile(`(?s)id="sentence".*?</p>`).FindString(home)
	lines := []string{plain("<" + sentence)}
	home = regexp.MustCompile(`(?s)<details data-key="detail">.*?</details>`).ReplaceAllString(home, "")
	for _, trouble := range regexp.MustCompile(`(?s)<article.*?</article>`).FindAllString(home, -1) {
		lines = append(lines, plain(trouble))
	}
	for _, row := range regexp.MustCompile(`(?s)<tr role="row" data-key.*?</tr>`).FindAllString(home, -1) {
		lines = append(lines, "| "+plain(row))
	}
	st, err := w.b.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, u := range st.Unwell() {
		out = append(out, fmt.Sprint(u.Name, ": ", u.State))
	}
	return strings.Join(lines, "\n"), strings.Join(out, ", ")
}

// TestWeek: what an operator sees on the dashboard, and in the status, on each morning of a week.
func TestWeek(t *testing.T) {
	w := newWeek(t)
	const refuses = `The store far refuses: 403 Forbidden: "the password has expired".`
	for day, want := range []struct {
		page   []string
		status string // of those that are not well
	}{
		{[]string{"All 5 are well"}, ""},
		{[]string{"1 of 5 needs you", "mirror branch failing since 8 h ago , 3 times in a row " + refuses, "Sync now", "| ↳ mirror branch in far failing 24 h behind"}, "branch: failing"},
		// the sync runs again, and nobody has proven the mirror since
		{[]string{"1 of 5 needs you", "mirror branch failing since 32 h ago , 2 times in a row " + refuses, "Audit"}, "branch: failing"},
		{[]string{"1 of 5 needs you", "set people held since 8 h ago It would delete 69 of 90 resources", "See 69 deletions Scan now", "in sync lag of 24 hours: at most 0.1 s created +90 3 days ago now no schedule 90 equal 8 h ago 24 h"}, "people: held"},
		{[]string{"All 5 are well"}, ""},
		{[]string{"1 of 5 needs you", "mirror reading-room differs since 8 h ago The last audit found 1 missing of 544 resources. See the differences", "| ↳ mirror reading-room in hall differs"}, "reading-room: failing"},
		{[]string{"1 of 5 needs you", "mirror reading-room differs since 32 h ago , 2 times in a row The last audit found 1 missing of 571 resources."}, "reading-room: failing"},
		{[]string{"3 of 5 need you"}, "people: held, branch: failing, reading-room: failing"},
	} {
		for round := range 3 {
			w.now = time.Date(2026, 3, 2+day, 1+4*round, 0, 0, 0, time.UTC)
			n := 3*day + round
			w.update("catalogue", part("Book", fmt.Sprint("?n = ", n)))
			w.update("catalogue", things("Book", 400+10*n, 410+10*n, "bought"))
			switch 10*day + round {
			case 10, 70: // Tuesday: a password expires
				w.locked.Store(true)
			case 21: // Wednesday: it is renewed after the audit
				w.locked.Store(false)
			case 30, 72: // Thursday: an import has lost most of the people
				w.update("staff", part("Person", "?n > 20"))
			case 40: // Friday: they are back
				w.update("staff", things("Person", 21, 90, "new"))
			case 50: // Saturday: somebody else writes into a mirror
				w.update("hall", part("Book", "?n = 300"))
			}
			w.look(round == 0)
		}
		page, status := w.morning()
		w.sees(page, want.page...)
		if status != want.status {
			t.Errorf("%s: %q, want %q", w.now.Weekday(), status, want.status)
		}
	}
	pictures(t, w)
}

// pictures are those of the docs: RSBRIDGE_PICTURES names their folder.
func pictures(t *testing.T, w *week) {
	dir := os.Getenv("RSBRIDGE_PICTURES")
	if dir == "" {
		return
	}
	book := "http://example.org/book/302"
	w.update("catalogue", `DELETE { ?s <http://example.org/note> ?o } INSERT { ?s <http://example.org/note> "lent out" } WHERE { VALUES ?s { <`+book+`> } ?s <http://example.org/note> ?o }`)
	w.now = w.now.Add(4 * time.Minute)
	w.do("scan", "books", nil)
	location, err := w.b.Location(t.Context(), "books", book)
	if err != nil {
		t.Fatal(err)
	}
	history := strings.TrimSuffix(strings.Replace(location, "/r/", "/history/", 1), filepath.Ext(location))
	wide, phone := browsertest.View{Name: "wide", Scheme: "light", Width: 1280, Height: 800}, browsertest.View{Name: "phone", Scheme: "dark", Width: 390, Height: 800}
	b := browsertest.Open(t)
	for _, p := range []struct {
		name, at string
		view     browsertest.View
	}{
		{"dashboard", w.srv.URL, wide},
		{"dashboard-phone", w.srv.URL, phone},
		{"set", w.srv.URL + "/sets/books?range=7d", wide},
		{"held", w.srv.URL + "/sets/people/held", wide},
		{"difference", w.srv.URL + "/destinations/reading-room/difference?entity=http://example.org/book/300", wide},
		{"history", history, wide},
	} {
		b.Do(chromedp.Navigate(p.at), browsertest.Shown("//main"))
		b.Picture(filepath.Join(dir, p.name+".webp"), p.view)
	}
}
