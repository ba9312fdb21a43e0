package faces

import (
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

var update = flag.Bool("update", false, "write the golden files anew")

type oaiHeader struct {
	Status     string `xml:"status,attr"`
	Identifier string `xml:"identifier"`
	Datestamp  string `xml:"datestamp"`
	SetSpec    string `xml:"setSpec"`
}

type oaiRecord struct {
	Header   oaiHeader `xml:"header"`
	Metadata struct {
		XML string `xml:",innerxml"`
	} `xml:"metadata"`
}

type oaiToken struct {
	Cursor string `xml:"cursor,attr"`
	Token  string `xml:",chardata"`
}

type oaiAnswer struct {
	ResponseDate string `xml:"responseDate"`
	Error        struct {
		Code string `xml:"code,attr"`
		Text string `xml:",chardata"`
	} `xml:"error"`
	Records []oaiRecord `xml:"ListRecords>record"`
	Headers []oaiHeader `xml:"ListIdentifiers>header"`
	Record  oaiRecord   `xml:"GetRecord>record"`
	Formats []string    `xml:"ListMetadataFormats>metadataFormat>metadataPrefix"`
	More    *oaiToken   `xml:"ListRecords>resumptionToken"`
	MoreIDs *oaiToken   `xml:"ListIdentifiers>resumptionToken"`
}

func (w *world) oai(query string) (a oaiAnswer) {
	w.t.Helper()
	body := w.get("/data/oai?" + query).body
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict = true
	if err := d.Decode(&a); err != nil {
		w.t.Fatalf("%s: %v\n%s", query, err, body)
	}
	return a
}

// harvest reads a whole list; between pages it calls pause.
func (w *world) harvest(query string, pause func()) (out []oaiRecord) {
	w.t.Helper()
	seen := map[string]bool{}
	for pages := 0; ; pages++ {
		a := w.oai(query)
		if a.Error.Code == "noRecordsMatch" {
			return out
		}
		if a.Error.Code != "" {
			w.t.Fatalf("%s: %v", query, a.Error)
		}
		records, more := a.Records, a.More
		for _, h := range a.Headers {
			records = append(records, oaiRecord{Header: h})
		}
		if a.MoreIDs != nil {
			more = a.MoreIDs
		}
		if len(records) == 0 {
			w.t.Fatalf("%s: an empty list", query)
		}
		for _, r := range records {
			if k := r.Header.Identifier + r.Header.Datestamp; seen[k] {
				w.t.Errorf("%s came twice", r.Header.Identifier)
			} else {
				seen[k] = true
			}
		}
		out = append(out, records...)
		if more == nil && pages > 0 {
			w.t.Fatalf("%s: the last page has no empty token", query)
		}
		if more == nil || more.Token == "" {
			return out
		}
		verb, _, _ := strings.Cut(query, "&")
		query = verb + "&resumptionToken=" + url.QueryEscape(more.Token)
		if pause != nil {
			pause()
		}
	}
}

// copyOf is what a harvester has after records, onto what it had.
func apply(have map[string]string, records []oaiRecord) {
	for _, r := range records {
		entity, ok := entityOf(r.Header.Identifier)
		if !ok {
			panic(r.Header.Identifier)
		}
		if r.Header.Status == "deleted" {
			delete(have, entity)
		} else {
			have[entity] = r.Metadata.XML
		}
	}
}

func (w *world) checkCopy(have map[string]string) {
	w.t.Helper()
	if len(have) != len(w.model) {
		w.t.Fatalf("the harvester has %d records, want %d", len(have), len(w.model))
	}
	for entity, want := range w.model {
		body := strings.TrimSpace(have[entity])
		ts, err := codec.Decode(rdfres.RDFXML, []byte(body), rdfres.ReadOptions{Name: entity})
		if err != nil {
			w.t.Fatalf("%s: %v\n%s", entity, err, body)
		}
		if !slices.Equal(shape(ts), shape(want)) {
			w.t.Fatalf("%s: %v, want %v", entity, ts, want)
		}
	}
}

func TestOAIWholeAndIncremental(t *testing.T) {
	for _, kept := range []time.Duration{0, 12 * time.Hour} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			w := newWorld(t, SetConfig{Changes: kept, Versions: kept})
			r := rand.New(rand.NewPCG(11, 12))
			w.grow(650)
			have := map[string]string{}
			from := ""
			rounds := 25
			if testing.Short() {
				rounds = 8
			}
			for i := range rounds {
				query := "verb=ListRecords&metadataPrefix=rdf" + from
				from = "&from=" + w.oai("verb=Identify").ResponseDate
				pauses := 0
				apply(have, w.harvest(query, func() {
					if i%3 == 1 { // it changes while it is harvested
						pauses++
						w.clock.add(time.Second)
						w.change(r, 700, 10)
						if kept > 0 {
							w.retain(kept, kept)
						}
					}
					w.reopen()
				}))
				if pauses == 0 {
					w.checkCopy(have)
				}
				w.clock.add(time.Hour)
				w.change(r, 700, 1+r.IntN(40))
				if kept > 0 {
					w.retain(kept, kept)
				}
				if i%6 == 0 {
					late := map[string]string{}
					apply(late, w.harvest("verb=ListRecords&metadataPrefix=rdf&set=data", nil))
					w.checkCopy(late)
				}
			}
			ids := w.harvest("verb=ListIdentifiers&metadataPrefix=oai_dc", nil)
			current := 0
			for _, h := range ids {
				if h.Header.Status == "" {
					current++
				}
			}
			if current != len(w.model) {
				t.Errorf("%d identifiers, want %d", current, len(w.model))
			}
			// Windows of time hold each record once.
			total := 0
			day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
			for range 5 {
				s := day.Format(dayTime)
				total += len(w.harvest("verb=ListIdentifiers&metadataPrefix=oai_dc&from="+s+"&until="+s, nil))
				day = day.AddDate(0, 0, 1)
			}
			if total != len(ids) {
				t.Errorf("%d records in windows of a day, want %d", total, len(ids))
			}
			earliest := w.get("/data/oai?verb=Identify").body
			for _, h := range ids {
				if !strings.Contains(earliest, "<earliestDatestamp>") || h.Header.Datestamp < between(earliest, "<earliestDatestamp>", "<") {
					t.Fatalf("%s is older than the earliest datestamp", h.Header.Datestamp)
				}
			}
		})
	}
}

func between(s, a, b string) string {
	_, s, _ = strings.Cut(s, a)
	s, _, _ = strings.Cut(s, b)
	return s
}

// oaiWorld is small and has something of everything.
func oaiWorld(t testing.TB) *world {
	w := newWorld(t, SetConfig{Title: "Books & more", Email: "books@example.org", Changes: 720 * time.Hour, Versions: 720 * time.Hour})
	book, b := rdfres.NewIRI("http://example.org/book/1"), rdfres.NewBlank("x")
	iri := rdfres.NewIRI
	lit := rdfres.NewLiteral
	named, _, err := rdfres.NameBlanks([]rdfres.Triple{
		{S: book, P: rdfType, O: iri("http://schema.org/Book")},
		{S: book, P: voc(nsDCT, "title"), O: lit("Die Leiden <&>", "de", "")},
		{S: book, P: voc(nsSchemas, "name"), O: lit("The Sorrows", "en", "")},
		{S: book, P: voc(nsSchema, "author"), O: b},
		{S: b, P: voc(nsFOAF, "name"), O: lit("Goethe", "", "")},
		{S: book, P: voc(nsDCT, "issued"), O: lit("1774", "", nsXSD+"gYear")},
		{S: book, P: voc(nsDCT, "license"), O: iri("http://creativecommons.org/publicdomain/mark/1.0/")},
		{S: book, P: iri("http://example.org/unmapped"), O: lit("not in Dublin Core", "", "")},
	}, rdfres.NameOptions{})
	w.must(err)
	w.model[book.IRI()] = named
	w.model["http://example.org/buch/Käse"] = []rdfres.Triple{{S: iri("http://example.org/buch/Käse"), P: iri("http://example.org/p/1"), O: lit("no RDF/XML", "", "")},
		{S: iri("http://example.org/buch/Käse"), P: voc(nsDC, "title"), O: lit("no \x02", "", "")}}
	w.model["http://example.org/book/3"] = triplesOf("http://example.org/book/3", 3)
	w.scan()
	w.clock.add(time.Minute)
	delete(w.model, "http://example.org/book/3")
	w.scan()
	w.clock.add(time.Minute)
	return w
}

func TestOAIGolden(t *testing.T) {
	w := oaiWorld(t)
	for _, tt := range []struct{ name, query string }{
		{"identify", "verb=Identify"},
		{"formats", "verb=ListMetadataFormats"},
		{"formats-item", "verb=ListMetadataFormats&identifier=http://example.org/book/1"},
		{"formats-no-rdf", "verb=ListMetadataFormats&identifier=urn:rsbridge:iri:http%253A%252F%252Fexample.org%252Fbuch%252FK%25C3%25A4se"},
		{"sets", "verb=ListSets"},
		{"identifiers", "verb=ListIdentifiers&metadataPrefix=oai_dc"},
		{"identifiers-rdf", "verb=ListIdentifiers&metadataPrefix=rdf"},
		{"records", "verb=ListRecords&metadataPrefix=oai_dc&set=data"},
		{"records-from", "verb=ListRecords&metadataPrefix=oai_dc&from=2026-05-01T12:00:01Z&until=2026-05-01T12:01:00Z"},
		{"record-dc", "verb=GetRecord&metadataPrefix=oai_dc&identifier=http://example.org/book/1"},
		{"record-rdf", "verb=GetRecord&metadataPrefix=rdf&identifier=http://example.org/book/1"},
		{"record-deleted", "verb=GetRecord&metadataPrefix=rdf&identifier=http://example.org/book/3"},
		{"error-bad-verb", "verb=Nothing"},
		{"error-no-verb", ""},
		{"error-two-verbs", "verb=Identify&verb=Identify"},
		{"error-argument", "verb=Identify&other=1"},
		{"error-repeated", "verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc"},
		{"error-missing", "verb=GetRecord&metadataPrefix=oai_dc"},
		{"error-token-alone", "verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=1"},
		{"error-token", "verb=ListRecords&resumptionToken=none"},
		{"error-token-sets", "verb=ListSets&resumptionToken=none"},
		{"error-format", "verb=ListRecords&metadataPrefix=marc"},
		{"error-format-item", "verb=GetRecord&metadataPrefix=rdf&identifier=urn:rsbridge:iri:http%253A%252F%252Fexample.org%252Fbuch%252FK%25C3%25A4se"},
		{"error-id", "verb=GetRecord&metadataPrefix=rdf&identifier=http://example.org/book/9"},
		{"error-none", "verb=ListRecords&metadataPrefix=oai_dc&from=2026-06-01"},
		{"error-set", "verb=ListRecords&metadataPrefix=oai_dc&set=other"},
		{"error-date", "verb=ListRecords&metadataPrefix=oai_dc&from=2026-05-01T12:00:00.5Z"},
		{"error-granularity", "verb=ListRecords&metadataPrefix=oai_dc&from=2026-05-01&until=2026-05-02T00:00:00Z"},
		{"error-order", "verb=ListRecords&metadataPrefix=oai_dc&from=2026-05-02&until=2026-05-01"},
	} {
		a := w.get("/data/oai?" + tt.query)
		if ct := a.header.Get("Content-Type"); ct != "text/xml; charset=utf-8" {
			t.Errorf("%s: %s", tt.name, ct)
		}
		file := filepath.Join("testdata", "oai", tt.name+".xml")
		if *update {
			w.must(os.MkdirAll(filepath.Dir(file), 0o755))
			w.must(os.WriteFile(file, []byte(a.body), 0o644))
		}
		want, err := os.ReadFile(file)
		w.must(err)
		if a.body != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, a.body, want)
		}
		if strings.HasPrefix(tt.name, "error-") != strings.Contains(a.body, "<error code=") {
			t.Errorf("%s: %s", tt.name, a.body)
		}
	}
	// The same by POST.
	r := httptest.NewRequest(http.MethodPost, "/data/oai", strings.NewReader("verb=ListSets"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	if want := w.get("/data/oai?verb=ListSets").body; rec.Body.String() != want {
		t.Errorf("POST: %d %s", rec.Code, rec.Body)
	}
	if a := w.do(http.MethodHead, "/data/oai?verb=ListRecords&metadataPrefix=rdf"); a.code != 200 || a.body != "" {
		t.Errorf("HEAD: %d", a.code)
	}
}

// TestOAISettled: a response is dated when the scan under way began, since the
// changes of that get their times before they can be seen.
func TestOAISettled(t *testing.T) {
	began := time.Date(2026, 5, 1, 11, 58, 30, 500, time.UTC)
	w := newWorld(t, SetConfig{Settled: func() time.Time { return began }})
	w.grow(1)
	if a := w.oai("verb=Identify"); a.ResponseDate != "2026-05-01T11:58:30Z" {
		t.Error(a.ResponseDate)
	}
}

func TestIdentifiers(t *testing.T) {
	for entity, want := range map[string]string{
		"http://example.org/a?b=c#d": "http://example.org/a?b=c#d",
		"urn:x:%41":                  "urn:x:%41",
		"http://e/ä":                 "urn:rsbridge:iri:http%3A%2F%2Fe%2F%C3%A4",
		"http://e/a b":               "urn:rsbridge:iri:http%3A%2F%2Fe%2Fa%20b",
		"http://e/100%":              "urn:rsbridge:iri:http%3A%2F%2Fe%2F100%25",
		"urn:rsbridge:iri:x":         "urn:rsbridge:iri:urn%3Arsbridge%3Airi%3Ax",
		"relative":                   "urn:rsbridge:iri:relative",
		"":                           "urn:rsbridge:iri:",
	} {
		if got := identifierOf(entity); got != want {
			t.Errorf("%q: %s, want %s", entity, got, want)
		}
		if back, ok := entityOf(want); !ok || back != entity {
			t.Errorf("%s: %q, %v", want, back, ok)
		}
	}
	for _, s := range []string{"", "a b", "http://e/ä", "urn:rsbridge:iri:%61", "urn:rsbridge:iri:http%3a%2f%2fe%2f%c3%a4", "urn:rsbridge:iri:http%3A%2F%2Fe", "urn:rsbridge:iri:%4"} {
		if e, ok := entityOf(s); ok {
			t.Errorf("%q is read as %q", s, e)
		}
	}
}

func FuzzIdentifier(f *testing.F) {
	f.Add("http://e/ä")
	f.Add("urn:rsbridge:iri:%C3")
	f.Fuzz(func(t *testing.T, s string) {
		if back, ok := entityOf(identifierOf(s)); !ok || back != s {
			t.Errorf("%q: %q", s, back)
		}
		if e, ok := entityOf(s); ok && identifierOf(e) != s {
			t.Errorf("%q is read as %q", s, e)
		}
	})
}

func FuzzOAI(f *testing.F) {
	w := oaiWorld(f)
	for _, s := range []string{"verb=ListRecords&metadataPrefix=rdf&from=2026-05-01", "verb=GetRecord&identifier=x&metadataPrefix=oai_dc", "verb=%zz", "verb=ListSets;x=1"} {
		f.Add(s)
	}
	_, at, _ := w.log.View(f.Context()).BaselineEnd()
	for _, l := range []listing{
		{prefix: "rdf", log: at.UnixMicro(), position: position{high: 1}},
		{prefix: "oai_dc", log: at.UnixMicro(), cursor: 7, position: position{base: true, high: 3, key: rdfres.EntityKey("x")}},
		{prefix: "oai_dc", from: at, before: at.Add(time.Hour), log: at.UnixMicro(), position: position{base: true, low: 1, high: 3}},
	} {
		if m, ok := parseToken(l.token()); !ok || m.token() != l.token() {
			f.Fatalf("%+v is read as %+v, %v", l, m, ok)
		}
		f.Add("verb=ListRecords&resumptionToken=" + l.token())
	}
	f.Fuzz(func(t *testing.T, query string) {
		w.t = t
		r := httptest.NewRequest(http.MethodGet, "/data/oai", nil)
		r.URL.RawQuery = query
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, r)
		if rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		var a struct{ XMLName xml.Name }
		if err := xml.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			t.Fatalf("%v\n%s", err, rec.Body)
		}
		if v, err := url.ParseQuery(query); err == nil {
			if l, ok := parseToken(v.Get("resumptionToken")); ok && l.token() != v.Get("resumptionToken") {
				t.Errorf("the token %q is read as %+v", v.Get("resumptionToken"), l)
			}
		}
	})
}

// TestOAIRecordGone: a living item is told deleted in RDF/XML only if harvesters may hold
// a record of it in that format.
func TestOAIRecordGone(t *testing.T) {
	w := oaiWorld(t)
	book := "http://example.org/book/1"
	w.model[book] = append(w.model[book], rdfres.Triple{S: rdfres.NewIRI(book), P: rdfres.NewIRI("http://example.org/p/1"), O: `"no RDF/XML"`})
	w.scan()
	a := w.get("/data/oai?verb=ListIdentifiers&metadataPrefix=rdf").body
	if strings.Count(a, `status="deleted"`) != 2 || !strings.Contains(a, book) || strings.Contains(a, "urn:rsbridge:iri") {
		t.Error(a)
	}
}
