package bridge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSourceSettings: what is configured about the source and about who publishes a
// set is told, and robots.txt is there only when it is configured.
func TestSourceSettings(t *testing.T) {
	for _, robots := range []bool{false, true} {
		cfg := small(t.TempDir())
		cfg.Public.Robots, cfg.Public.Title = robots, "All our books"
		s := cfg.Sets["data"]
		s.Publisher = "The Library of Nowhere"
		cfg.Sets["data"] = s
		b := mustOpen(t, cfg)
		for path, want := range map[string]string{"/": "All our books", "/about.nt": "All our books", "/data/about.nt": "The Library of Nowhere", "/robots.txt": "Sitemap: http://source.invalid/data/resourcelist.xml"} {
			rec := httptest.NewRecorder()
			b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
			there := path != "/robots.txt" || robots
			if (rec.Code == http.StatusOK) != there || there && !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%s: %d, no %q in\n%s", path, rec.Code, want, rec.Body)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
