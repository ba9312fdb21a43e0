package bridge

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFaces: other forms of the log are served where they are switched on, at the
// addresses in force, and nowhere else.
func TestFaces(t *testing.T) {
	cfg := small(t.TempDir())
	plain := NewSet()
	plain.Store = "source"
	cfg.Sets["plain"] = plain
	shown := cfg.Sets["data"]
	shown.Faces, shown.Contact = []string{"ldes", "iiif", "oai"}, "who@example.org"
	cfg.Sets["data"] = shown
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	h := b.PublicHandler()
	get := func(path string, code int, wants ...string) {
		t.Helper()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		if rec.Code != code {
			t.Fatalf("%s: %d, want %d\n%s", path, rec.Code, code, rec.Body)
		}
		for _, want := range wants {
			if !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%s: no %s in\n%s", path, want, rec.Body)
			}
		}
	}
	fill(t, b, "source", "<http://e.example/a> <http://purl.org/dc/terms/title> \"A\" .\n")
	do[ScanReport](t, b, "scan", "data")
	do[ScanReport](t, b, "scan", "plain")
	get("/data/ldes/view", 200, "<http://source.invalid/data/ldes/member/1>", `"PT675H"`, "<http://e.example/a>")
	get("/data/oai?verb=Identify", 200, "who@example.org", "http://source.invalid/data/oai")
	get("/data/oai?verb=ListRecords&metadataPrefix=oai_dc", 200, "<dc:title>A</dc:title>")
	get("/data/activity/page/0", 200, "http://source.invalid/data/r/http:/~2Fe.example/a.jsonld")
	for _, p := range []string{"/plain/ldes/view", "/plain/oai?verb=Identify", "/plain/activity"} {
		get(p, 404)
	}
	get("/data/capabilitylist.xml", 200)
	get("/plain/about.nt", 200)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/data/about", nil))
	found := regexp.MustCompile(`<http://source.invalid([^>]*)>; rel="service-desc[^"]*"; type="([^"]*)"`).FindAllStringSubmatch(rec.Header().Get("Link"), -1)
	if len(found) != 3 {
		t.Errorf("the description of the set leads to %q in %q", found, rec.Header().Get("Link"))
	}
	for _, link := range found {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, link[1], nil))
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), link[2]) {
			t.Errorf("%s: %d %s, want %s", link[1], rec.Code, rec.Header().Get("Content-Type"), link[2])
		}
	}

	// A scan that is under way dates the answers.
	s := b.sets["data"]
	began := time.Now().Add(-time.Hour)
	end := s.during(&Run{Started: began})
	get("/data/oai?verb=Identify", 200, "<responseDate>"+began.UTC().Format("2006-01-02T15:04:05Z"))
	end()
	if now := s.settled(); time.Since(now) > time.Minute {
		t.Errorf("settled is %s without a scan", now)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	get("/data/ldes/view", 503)
}
