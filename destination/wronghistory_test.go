package destination

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestWrongAnswers follows sources in every form that is met while any of their addresses answers
// wrongly for a time: with what is missing, stale, of another address, empty, cut, or no document
// at all, from before the source was found. Once the source answers rightly again the mirror ends
// equal, or says that it is not. In sync and EQUAL are never said of a mirror that differs.
func TestWrongAnswers(t *testing.T) {
	for seed := range teststores.Histories(3, 15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playWrong(t, uint64(seed))
		})
	}
}

// wrongSource is a source whose answers can be asked for one by one.
type wrongSource interface {
	http.Handler
	change()            // publishes some changes
	pass(time.Duration) // lets time go by
	time() time.Time
	lines() []string // what a mirror has
	knowable(lines []string) []string
	addresses() []string        // of what it has, with their queries
	proven(address string) bool // something is promised of the bytes there
	unequal() bool              // its form is one that a mirror need not understand
	published() bool            // its documents have all that it has
	String() string
}

// fickle stands before a source and answers wrongly.
type fickle struct {
	src  wrongSource
	seed uint64

	mu      sync.Mutex
	right   []map[string]*rightAnswer // of all publications so far
	phase   int
	rate    int // of a thousand addresses; 0: those of only
	only    map[string]kindOfWrong
	site    int  // publication that a cache has of everything; less than 0: none
	flood   bool // all resources without a promise have the same wrong answer
	again   bool // not the first run of the phase
	lasting bool // wrong lists are found by an audit
	told    map[string]string
	further map[string]furtherList // lists among the resources, by address
}

type rightAnswer struct {
	status int
	header http.Header
	body   []byte
}

type kindOfWrong int

const (
	wrongMissing kindOfWrong = iota
	wrongGone
	wrongFails
	wrongForbidden
	wrongPage
	wrongNothing
	wrongOther // a valid list of nothing
	wrongEmpty // the list, without entries
	wrongShort // the list, without some
	wrongStale
	wrongSwapped
	wrongTorn
	wrongUnchanged // 304 to who has another one
	wrongError     // an error page in RDF
	wrongFuture    // the list, of a time to come
	wrongMore      // the list, with entries that cannot be had
	wrongFeed      // a feed of nothing
	wrongText      // the addresses of the list as lines of text
	wrongNews      // they, in a feed
	wrongFurther   // the list, with some entries in a further list of another form
	wrongInserted  // the Change List, with a deletion of something else before its last entries
	wrongDeleted   // the Change List, with one of those entries turned into a deletion
	wrongReversed  // the list, the other way round
	wrongNowhere   // an index of a list that is not there
	wrongKinds
)

// ofBodies are the answers for a resource of which nothing is promised.
var ofBodies = []kindOfWrong{wrongMissing, wrongGone, wrongFails, wrongForbidden, wrongPage, wrongNothing, wrongStale, wrongSwapped, wrongError}

// believable are the answers that may be right lists.
var believable = []kindOfWrong{wrongOther, wrongEmpty, wrongShort, wrongStale, wrongSwapped, wrongFuture, wrongMore, wrongFeed, wrongText, wrongNews, wrongFurther, wrongInserted, wrongDeleted, wrongReversed, wrongNowhere}

var wrongNames = [...]string{"missing", "gone", "fails", "forbidden", "a page", "nothing", "another list", "empty", "short", "stale", "swapped", "torn", "unchanged", "an error in RDF", "of a time to come", "with more", "a feed", "text", "news", "further", "a foreign deletion", "a deletion", "reversed", "an index of nothing there"}

// look keeps what the source answers now.
func (f *fickle) look() {
	now := map[string]*rightAnswer{}
	for _, a := range f.src.addresses() {
		now[a] = f.ask(a)
	}
	f.right = append(f.right, now)
}

func (f *fickle) ask(address string) *rightAnswer {
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, foreignHost+"/", nil)
	u, err := url.Parse(foreignHost + address)
	if err != nil {
		panic(err)
	}
	req.URL, req.RequestURI, req.Host = u, "", u.Host
	f.src.ServeHTTP(rec, req)
	return &rightAnswer{rec.Code, rec.Header(), rec.Body.Bytes()}
}

func (f *fickle) draw(address string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, f.seed, f.phase, address)
	return rand.New(rand.NewPCG(h.Sum64(), 9))
}

// wrong draws what is wrong with an address in this phase.
func (f *fickle) wrong(address string, r *rand.Rand) (kindOfWrong, bool) {
	kind, ok := f.only[address]
	if !ok && r.IntN(1000) < f.rate {
		kind, ok = kindOfWrong(r.IntN(int(wrongKinds))), true
	}
	if f.src.proven(address) {
		return kind, ok
	}
	if kind = ofBodies[int(kind)%len(ofBodies)]; f.flood {
		kind, ok = wrongError, true
	}
	return kind, ok && (kind <= wrongForbidden || !f.again) // the same in two runs is believed
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	address := r.URL.EscapedPath()
	if q := r.URL.RawQuery; q != "" {
		address += "?" + q
	}
	if strings.Contains(r.Host, "dead") {
		f.src.ServeHTTP(w, r)
		return
	}
	if body, ok := f.further[address]; ok {
		if body.typ != "" {
			w.Header().Set("Content-Type", body.typ)
		}
		io.WriteString(w, body.text)
		return
	}
	draw := f.draw(address)
	if f.site >= 0 && f.src.proven(address) {
		if a := f.right[f.site][address]; a != nil {
			f.give(w, a, a.body)
			return
		}
		http.NotFound(w, r)
		return
	}
	kind, ok := f.wrong(address, draw)
	// Two Resource Lists that say the same are believed until the next audit. A Change List that
	// lacks some has them again later.
	if ok && !f.lasting && f.src.proven(address) && slices.Contains(believable, kind) && f.again && !strings.Contains(address, "/change") {
		ok = false
	}
	if !ok {
		f.src.ServeHTTP(w, r)
		return
	}
	f.told[address] = wrongNames[kind]
	now := f.ask(address)
	switch kind {
	case wrongMissing:
		http.NotFound(w, r)
	case wrongGone:
		http.Error(w, "gone", http.StatusGone)
	case wrongFails:
		http.Error(w, "failed", http.StatusInternalServerError)
	case wrongForbidden:
		http.Error(w, "forbidden", http.StatusForbidden)
	case wrongPage:
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!DOCTYPE html><html><body>Please log in</body></html>")
	case wrongNothing:
		f.give(w, now, nil)
	case wrongOther:
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>`)
	case wrongEmpty:
		f.give(w, now, without(now.body, func(int) bool { return true }))
	case wrongShort:
		f.give(w, now, without(now.body, func(int) bool { return draw.IntN(3) == 0 }))
	case wrongStale:
		if a := f.right[draw.IntN(len(f.right))][address]; a != nil {
			f.give(w, a, a.body)
			return
		}
		http.NotFound(w, r)
	case wrongSwapped:
		last := f.right[len(f.right)-1]
		all := slices.DeleteFunc(slices.Sorted(maps.Keys(last)), func(a string) bool {
			return last[a].status != 200 || f.src.proven(a) != f.src.proven(address)
		})
		if len(all) == 0 {
			f.src.ServeHTTP(w, r)
			return
		}
		a := last[all[draw.IntN(len(all))]]
		f.give(w, a, a.body)
	case wrongError:
		w.Header().Set("Content-Type", "application/n-triples")
		io.WriteString(w, errorInRDF)
	case wrongFuture:
		to := f.src.time().Add(time.Duration(1+draw.IntN(100)) * 7 * time.Hour)
		f.give(w, now, replaceOnce(atOf, without(now.body, func(int) bool { return false }), ` at="`+feed.Stamp(to)+`"`))
	case wrongMore:
		change := ""
		if strings.Contains(address, "/change") {
			change = `<rs:md xmlns:rs="http://www.openarchives.org/rs/terms/" change="created" datetime="` + feed.Stamp(f.src.time()) + `"/>`
		}
		more := "<url><loc>http://foreign.example/" + fmt.Sprint(f.phase) + "</loc>" + change + "</url><url><loc>" + foreignHost + "/absent" + fmt.Sprint(f.phase) + "</loc>" + change + "</url></urlset>"
		f.give(w, now, bytes.Replace(without(now.body, func(int) bool { return false }), []byte("</urlset>"), []byte(more), 1))
	case wrongFeed:
		w.Header().Set("Content-Type", "application/rss+xml")
		io.WriteString(w, emptyFeed)
	case wrongText, wrongNews:
		form := "text"
		if w.Header().Set("Content-Type", "text/plain"); kind == wrongNews {
			form = []string{"Atom", "RSS"}[draw.IntN(2)]
			w.Header().Set("Content-Type", listForms[form].typ)
		}
		io.WriteString(w, inForm(form, locsOf(now.body, func(string) bool { return true })))
	case wrongFurther:
		moved := locsOf(now.body, func(loc string) bool { return !strings.Contains(loc, ".xml") && draw.IntN(2) == 0 })
		if len(moved) == 0 || !bytes.Contains(now.body, []byte("<urlset")) || bytes.Contains(now.body, []byte(`"change`)) {
			f.src.ServeHTTP(w, r)
			return
		}
		more := fmt.Sprintf("/further%d-%x", f.phase, address)
		forms := []string{"text", "Atom", "RSS", "page", "JSON", "JSON escapes", "one line", "YAML", "RSS 0.90", "RSS 1.1", "XML as RDF", "nodes", "JSON as RDF", "comments", "text as RDF", "catalogue"}
		codings := []func(string) string{func(s string) string { return s }, gzipOf, zstdOf, unmarked16Of, func(s string) string { return "\xfd7zXZ\x00" + s[len(s)/2:] }} // the last cannot be read
		form := forms[draw.IntN(len(forms))]
		sent := furtherList{text: codings[draw.IntN(len(codings))](inForm(form, moved))}
		if draw.IntN(2) == 0 {
			sent.typ = listForms[form].typ
		}
		f.further[more] = sent
		body := entryOf.ReplaceAllFunc(without(now.body, func(int) bool { return false }), func(e []byte) []byte {
			if loc := locsOf(e, func(string) bool { return true }); len(loc) == 1 && slices.Contains(moved, loc[0]) {
				return nil
			}
			return e
		})
		f.give(w, now, bytes.Replace(body, []byte("</urlset>"), []byte("<url><loc>"+foreignHost+more+"</loc></url></urlset>"), 1))
	case wrongInserted, wrongDeleted:
		f.give(w, now, withDeletion(now.body, draw, kind == wrongInserted))
	case wrongReversed:
		all := entryOf.FindAll(without(now.body, func(int) bool { return false }), -1)
		slices.Reverse(all)
		f.give(w, now, withEntries(now.body, all))
	case wrongNowhere:
		f.give(w, now, fmt.Appendf(nil, `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist"/><sitemap><loc>%s/nowhere%d.xml</loc></sitemap></sitemapindex>`, foreignHost, f.phase))
	case wrongTorn:
		f.give(w, now, now.body[:len(now.body)/2])
	case wrongUnchanged:
		if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		f.src.ServeHTTP(w, r)
	}
}

var locOf = regexp.MustCompile(`<loc>([^<]*)</loc>`)

// locsOf are the addresses of a document's entries.
func locsOf(body []byte, take func(loc string) bool) (out []string) {
	for _, m := range locOf.FindAllSubmatch(without(body, func(int) bool { return false }), -1) {
		if loc := html.UnescapeString(string(m[1])); take(loc) {
			out = append(out, loc)
		}
	}
	return out
}

// inForm is a list of addresses in one of listForms.
func inForm(name string, addresses []string) string {
	f := listForms[name]
	out := f.before
	for _, a := range addresses {
		escaped := html.EscapeString(a)
		if f.typ == "text/plain" {
			escaped = a
		}
		out += strings.NewReplacer("ADDRESS", escaped, "ESCAPED", strings.ReplaceAll(a, "/", `\/`), "UNICODE", strings.ReplaceAll(a, "/", `\u002F`), "PATH", "").Replace(f.entry)
	}
	return out + f.after
}

// furtherList is one as it is sent; without a type its bytes tell.
type furtherList struct{ typ, text string }

// onlyFurther tells whether all wrong answers so far had further lists.
func (f *fickle) onlyFurther() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range f.told {
		if kind != "further" {
			return false
		}
	}
	return len(f.further) > 0
}

func (f *fickle) give(w http.ResponseWriter, a *rightAnswer, body []byte) {
	maps.Copy(w.Header(), a.header)
	if len(body) != len(a.body) { // a validator is of its bytes
		w.Header().Del("ETag")
		w.Header().Del("Last-Modified")
	}
	w.Header().Set("Date", f.src.time().UTC().Format(http.TimeFormat))
	w.WriteHeader(a.status)
	w.Write(body)
}

// replaceOnce replaces the first match.
func replaceOnce(of *regexp.Regexp, body []byte, by string) []byte {
	at := of.FindIndex(body)
	if at == nil {
		return body
	}
	return slices.Concat(body[:at[0]], []byte(by), body[at[1]:])
}

var entryOf = regexp.MustCompile(`(?s)<(url|sitemap)>.*?</(url|sitemap)>`)

// without leaves out entries of a document.
func without(body []byte, drop func(n int) bool) []byte {
	if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		if body, err = io.ReadAll(z); err != nil {
			panic(err)
		}
	}
	n := 0
	return entryOf.ReplaceAllFunc(body, func(e []byte) []byte {
		if n++; drop(n) {
			return nil
		}
		return e
	})
}

// withEntries is a document with other entries.
func withEntries(body []byte, entries [][]byte) []byte {
	n := 0
	return entryOf.ReplaceAllFunc(without(body, func(int) bool { return false }), func([]byte) []byte {
		if n++; n > 1 {
			return nil
		}
		return bytes.Join(entries, nil)
	})
}

var changeOf = regexp.MustCompile(`change=(["'])[a-z]*["']`)

// withDeletion is a Change List with a deletion before its last two entries, at the time and under the
// number of one of them, in its place or beside it.
func withDeletion(body []byte, draw *rand.Rand, beside bool) []byte {
	all := entryOf.FindAll(without(body, func(int) bool { return false }), -1)
	if len(all) < 4 || !changeOf.Match(all[0]) {
		return body
	}
	at := draw.IntN(len(all) - 2)
	entry := changeOf.ReplaceAll(all[at], []byte("change=${1}deleted${1}"))
	if other := locOf.Find(all[draw.IntN(len(all))]); beside {
		entry = locOf.ReplaceAllLiteral(entry, other)
		return withEntries(body, slices.Insert(all, at+1, entry))
	}
	all[at] = entry
	return withEntries(body, all)
}

// begin draws which addresses answer wrongly from now on.
func (f *fickle) begin(r *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase++
	f.rate, f.site, f.only, f.told, f.further = 0, -1, map[string]kindOfWrong{}, map[string]string{}, map[string]furtherList{}
	f.flood = r.IntN(8) == 0
	switch x := r.IntN(10); {
	case x == 0:
		f.site = r.IntN(len(f.right))
	case x == 3:
		all := slices.DeleteFunc(slices.Sorted(maps.Keys(f.right[len(f.right)-1])), f.src.proven)
		for range min(len(all), 3) {
			f.only[all[r.IntN(len(all))]] = kindOfWrong(r.IntN(int(wrongKinds)))
		}
	case x < 3:
		f.rate = []int{50, 200, 500}[r.IntN(3)]
	default:
		all := slices.Sorted(maps.Keys(f.right[len(f.right)-1]))
		documents := slices.DeleteFunc(slices.Clone(all), func(a string) bool {
			return !strings.Contains(a, ".xml") && !strings.HasPrefix(a, "/.well") && len(a) > 1
		})
		if r.IntN(4) > 0 {
			all = documents
		}
		for range 1 + r.IntN(3) {
			f.only[all[r.IntN(len(all))]] = kindOfWrong(r.IntN(int(wrongKinds)))
		}
	}
}

// believed says that one run of the phase is over: what came wrong in it would come the second time.
func (f *fickle) believed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.again = true
}

func (f *fickle) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate, f.site, f.only, f.flood, f.further = 0, -1, nil, false, nil
}

// newFickle is a mirror of a source of some form, whose answers may be wrong.
func newFickle(t *testing.T, r *rand.Rand, seed uint64) (b *bench, src wrongSource, f *fickle, mir *testMirror) {
	mir = makeTestMirror(t)
	mir.srv = &httptest.Server{URL: "http://mirror.example"}
	b = benchOf(t, &testSource{srv: &httptest.Server{URL: foreignHost}}, mir, teststores.Records(t))
	if seed%4 == 3 {
		src, b.cfg.Source = newOurs(t, r)
	} else {
		form := newForeignForm(r).withHabits(r)
		form.same, form.shared = false, false
		s := &wrongForeign{newForeignSource(r, form)}
		src, b.cfg.Source = s, s.source()
	}
	f = &fickle{src: src, seed: seed, site: -1, told: map[string]string{}}
	b.fetch, mir.transport = inproc.Transport{Handler: f}, inproc.Transport{Handler: mir}
	b.cfg.Allow = []string{"dead.example"}
	if b.cfg.MaxDeleteRatio = 1; r.IntN(3) == 0 {
		b.cfg.MaxDeleteRatio = 0.2
	}
	b.clock = src.time()
	return b, src, f, mir
}

func playWrong(t *testing.T, seed uint64) {
	r, polls := rand.New(rand.NewPCG(seed, 47)), rand.New(rand.NewPCG(seed, 48))
	b, src, f, mir := newFickle(t, r, seed)
	b.stays = seed%3 > 0
	lasting := seed%5 == 4
	f.lasting = lasting
	var did []string
	do := func(format string, a ...any) { did = append(did, fmt.Sprintf(format, a...)) }
	pass := func(d time.Duration) {
		if src.pass(d); src.time().After(b.clock) {
			b.clock = src.time()
		}
	}
	fail := func(format string, a ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\nratio %g, source %s\n%s", fmt.Sprintf(format, a...), strings.Join(did, "\n"), b.cfg.MaxDeleteRatio, b.cfg.Source, src)
	}
	publish := func() {
		src.change()
		f.look()
		do("published")
		pass(time.Duration(r.IntN(5)) * time.Second)
	}
	equal := func() bool {
		return slices.Equal(src.knowable(mir.lines(graphA)), src.knowable(src.lines()))
	}
	differs := func() string {
		var out strings.Builder
		got, want := mir.lines(graphA), src.lines()
		for _, l := range want {
			if !slices.Contains(got, l) {
				fmt.Fprintf(&out, "lacks %s", l)
			}
		}
		for _, l := range got {
			if !slices.Contains(want, l) {
				fmt.Fprintf(&out, "has   %s", l)
			}
		}
		return out.String()
	}
	audit := func(o AuditOptions) {
		rep, err := b.open().Audit(context.Background(), o)
		do("audit %+v: equal %t, %d missing, %d extra, %d different, held %q, source %q, %v", o, rep.Equal, rep.Missing, rep.Extra, rep.Different, rep.Held, rep.SourceError, err)
		if err == nil && rep.Equal && !equal() {
			fail("EQUAL, and it differs:\n%s", differs())
		}
	}
	poll := func() { // as a daemon does, soon after each other
		for range polls.IntN(5) {
			if !b.stays {
				return
			}
			rep, err := b.open().Sync(context.Background(), SyncOptions{})
			do("poll: in sync %t, held %q: %s (%v)", rep.InSync, rep.Held, rep.Why, err)
			pass(time.Duration(1+polls.IntN(200)) * time.Second)
		}
	}
	publish()
	for round := range 5 {
		poll()
		if r.IntN(3) > 0 || round == 0 {
			f.begin(r)
			for n := range 1 + r.IntN(3) {
				f.again = n > 0
				had := mir.lines(graphA)
				switch x := r.IntN(8); {
				case x == 0:
					rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: r.IntN(2) == 0})
					do("wrongly: audit: %+v %v", rep, err)
				default:
					rep, err := b.open().Sync(context.Background(), SyncOptions{Full: x == 1})
					do("wrongly: sync: in sync %t, held %q, failed %d, pending %d: %s (%v)", rep.InSync, rep.Held, rep.Failed, rep.Pending, rep.Why, err)
				}
				if got, want := mir.lines(graphA), src.lines(); f.site < 0 && f.onlyFurther() {
					for _, l := range had {
						if slices.Contains(want, l) && !slices.Contains(got, l) {
							fail("a list in another form was among the resources, and this went: %s", l)
						}
					}
				}
				f.believed()
				pass(time.Duration(r.IntN(90)) * time.Minute)
				poll()
				if r.IntN(3) == 0 {
					publish()
				}
			}
			do("that was %v, cache %d", f.told, f.site)
			f.end()
		}
		if r.IntN(2) == 0 {
			publish()
		}
		if lasting {
			rep, err := b.open().Sync(context.Background(), SyncOptions{})
			do("before the audit: in sync %t: %s (%v)", rep.InSync, rep.Why, err)
			audit(AuditOptions{})
		}
		var rep SyncReport
		var err error
		for try := range 4 {
			if try > 0 {
				pass(2 * time.Hour)
			}
			rep, err = b.open().Sync(context.Background(), SyncOptions{})
			do("rightly: sync: in sync %t, held %q, failed %d, pending %d: %s (%v)", rep.InSync, rep.Held, rep.Failed, rep.Pending, rep.Why, err)
			if rep.InSync && !equal() {
				fail("in sync, and it differs:\n%s", differs())
			}
			if rep.InSync {
				break
			}
		}
		if src.unequal() && !rep.InSync {
			return // and it says so
		}
		if err != nil {
			fail("the source answers rightly, and the sync fails: %v", err)
		}
		if st, err := b.d.Status(context.Background()); err != nil || st.Unpublished > 0 != (!rep.InSync && rep.Held == "" && rep.Pending == 0) {
			fail("%+v and %+v, %v", rep, st, err)
		} else if st.Unpublished > 0 {
			if src.published() {
				fail("everything is published, and the status tells that the source stands at change %d", st.Unpublished)
			}
			for _, depth := range depths {
				audit(AuditOptions{Depth: depth})
			}
			continue
		}
		for _, a := range src.addresses() {
			if strings.Contains(rep.Held, foreignHost+a+" ") && strings.Contains(rep.Held, "named and not there") {
				fail("it is there: %s", rep.Held)
			}
		}
		if !rep.InSync && rep.Held == "" {
			fail("it never gets in sync, and nothing is held: %+v", rep)
		}
		audit(AuditOptions{})
		if !rep.InSync || r.IntN(3) == 0 {
			audit(AuditOptions{Repair: true})
			rep, err = b.open().Sync(context.Background(), SyncOptions{})
			do("after the repair: in sync %t, held %q: %s (%v)", rep.InSync, rep.Held, rep.Why, err)
			if rep.InSync && !equal() {
				fail("in sync after a repair, and it differs:\n%s", differs())
			}
		}
		if !rep.InSync {
			t.Logf("round %d ends held: %s", round, rep.Held)
		}
		if r.IntN(2) == 0 {
			publish()
		}
	}
}

// wrongForeign is a source of any form.
type wrongForeign struct{ *foreignSource }

func (s *wrongForeign) change() {
	for range s.r.IntN(6) {
		s.edit()
	}
	for len(s.res) == 0 { // an empty list says nothing
		s.edit()
	}
	s.publish()
	s.foreignSource.pass()
}

func (s *wrongForeign) pass(d time.Duration) { s.now = s.now.Add(d) }
func (s *wrongForeign) time() time.Time      { return s.now }
func (s *wrongForeign) lines() []string      { return s.want() }
func (s *wrongForeign) unequal() bool        { return s.urlset == 3 }
func (s *wrongForeign) published() bool      { return true }

func (s *wrongForeign) addresses() []string {
	all := append(slices.Collect(maps.Keys(s.docs)), "/", "/.well-known/resourcesync", "/robots.txt", "/about", "/resourcelist.xml", "/sitemap.xml")
	for name := range s.res {
		if u, err := url.Parse(s.location(name)); err == nil {
			u.RawQuery = strings.TrimPrefix(u.RawQuery, "?")
			all = append(all, u.RequestURI())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// proven tells that of the bytes at an address a hash is told, or they are a document.
func (s *wrongForeign) proven(address string) bool {
	path, _, _ := strings.Cut(address, "?")
	if d, ok := s.docs[address]; ok && d.typ == "application/xml" {
		return true
	}
	switch path {
	case "", "/", "/.well-known/resourcesync", "/robots.txt", "/about", "/resourcelist.xml", "/sitemap.xml":
		return true
	}
	return s.hashes > 0 && !s.generic && !s.alternates
}

// wrongOurs is a source in the form of our own.
type wrongOurs struct {
	*testSource
	r    *rand.Rand
	late bool // lists and dumps are made now and then
}

func newOurs(t *testing.T, r *rand.Rand) (wrongSource, string) {
	s := makeTestSource(t)
	s.srv = &httptest.Server{URL: foreignHost}
	s.ours, s.exact, s.tails = true, true, true
	s.inventory, s.dump, s.changeDump = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(3) == 0
	s.parts, s.changeParts = r.IntN(3), r.IntN(2)*(2+r.IntN(4))
	o := &wrongOurs{testSource: s, r: r}
	if r.IntN(3) == 0 { // it publishes later than it changes
		o.late, s.inventory, s.changes = true, true, false
		s.list = r.IntN(2) == 0
		s.dump, s.packed = !s.list || s.dump, 1+r.IntN(4)
		return o, s.url([]string{"/.well-known/resourcesync", "/", "/set/capabilitylist.xml"}[r.IntN(3)])
	}
	return o, s.url([]string{"/.well-known/resourcesync", "/", "/set/capabilitylist.xml", "/set/resourcelist.xml"}[r.IntN(4)])
}

func (s *wrongOurs) change() {
	for range s.r.IntN(6) {
		name := fmt.Sprintf("e%d", s.r.IntN(12))
		if s.r.IntN(3) == 0 && len(s.bodies) > 1 {
			s.remove(name + ".nt")
		} else {
			s.put(name+".nt", nt(name, fmt.Sprint(len(s.log)), fmt.Sprint(s.r.IntN(3))))
		}
	}
	if len(s.bodies) == 0 {
		s.put("e0.nt", nt("e0", "0"))
	}
	if s.late && (s.frozen == nil || s.r.IntN(2) == 0) {
		s.frozen, s.listSeq, s.listAt, s.dumped = maps.Clone(s.bodies), len(s.log), s.now, nil
		s.freezeDump()
	}
}

// published tells that lists, dumps or changes have all that the source has.
func (s *wrongOurs) published() bool {
	return !s.late || s.listSeq == len(s.log) || s.changeDump && len(s.log)%s.packed == 0
}

func (s *wrongOurs) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.date = s.now
}
func (s *wrongOurs) time() time.Time                  { return s.now }
func (s *wrongOurs) lines() []string                  { return s.want() }
func (s *wrongOurs) knowable(lines []string) []string { return lines }
func (s *wrongOurs) unequal() bool                    { return false }
func (s *wrongOurs) proven(string) bool               { return true }
func (s *wrongOurs) String() string {
	return fmt.Sprintf("ours, inventory %t, list %t, dump %t, change dump %t of %d, parts %d, change parts %d, late %t", s.inventory, s.list, s.dump, s.changeDump, s.packed, s.parts, s.changeParts, s.late)
}

func (s *wrongOurs) addresses() []string {
	all := []string{"/", "/.well-known/resourcesync", "/robots.txt", "/set/capabilitylist.xml", "/set/resourcelist.xml", "/set/changelist.xml"}
	if s.inventory {
		all = append(all, "/set/inventory.json", "/set/inventory/node.json")
	}
	if s.dump {
		all = append(all, "/set/resourcedump.xml", "/set/dump.zip")
	}
	if s.changeDump {
		all = append(all, "/set/changedump.xml")
		for i := range s.changePackages() {
			all = append(all, fmt.Sprintf("/set/changes%d.zip", i))
		}
	}
	for i := range s.parts {
		all = append(all, fmt.Sprintf("/set/resourcelist-%d.xml", i))
	}
	for i := 0; s.changeParts > 0 && i*s.changeParts <= len(s.log); i++ {
		all = append(all, fmt.Sprintf("/set/changelist-%d.xml", i))
	}
	for name := range s.bodies {
		all = append(all, "/set/r/"+name)
	}
	slices.Sort(all)
	return all
}
