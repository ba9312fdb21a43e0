package bridge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Before anything was published no setting is held: nobody has an address of the set, or
// anything of it. After that each of them is.
func TestSettingsBeforePublication(t *testing.T) {
	settings := map[string]func(*Config, *Set){
		"base_url": func(c *Config, _ *Set) { c.Public.BaseURL = "http://other.invalid/data" },
		"prefix":   func(_ *Config, s *Set) { s.Prefix = "http://e.example/" },
		"format":   func(_ *Config, s *Set) { s.Format = "ntriples" },
		"graphs":   func(_ *Config, s *Set) { s.Graphs = []string{"*"} },
		"select":   func(_ *Config, s *Set) { s.Select.Prefixes = []string{"http://e.example/"} },
		"describe": func(_ *Config, s *Set) { s.Describe = "scbd" },
	}
	for name, change := range settings {
		for _, scanned := range []bool{false, true} {
			if !scanned && name != "base_url" {
				continue // as any set that was never there
			}
			if teststores.Unraced(t, 3) {
				continue
			}
			cfg := small(t.TempDir())
			clear(cfg.Destinations)
			b := mustOpen(t, cfg)
			if scanned {
				do[ScanReport](t, b, "scan", "data")
			}
			again := func() {
				t.Helper()
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				st, err := readStatus(t, cfg, Options{})
				if err != nil || (st.Sets[0].Held != nil) != (st.Sets[0].Sequence > 0 && (name == "base_url" || name == "prefix")) {
					t.Errorf("%s: read only: %+v, %v", name, st.Sets[0].Held, err)
				}
				b = mustOpen(t, cfg)
			}
			s := cfg.Sets["data"]
			change(cfg, &s)
			cfg.Sets["data"] = s
			again()
			if held := b.sets["data"].held(t.Context(), nil); held != nil {
				t.Errorf("%s, scanned %t: held when opened: %s", name, scanned, held.Reason)
			}
			if rep := do[ScanReport](t, b, "scan", "data"); rep.Held != nil || rep.Resources != 0 {
				t.Errorf("%s, scanned %t: %+v", name, scanned, rep.Held)
			}
			fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n")
			if rep := do[ScanReport](t, b, "scan", "data"); rep.Held != nil || rep.Created != 1 {
				t.Errorf("%s, scanned %t: %+v", name, scanned, rep)
			}
			w := httptest.NewRecorder()
			b.PublicHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Public.BaseURL+"/data/resourcelist.xml", nil))
			loc := cfg.Public.BaseURL + "/data/r/" + map[bool]string{true: "a.", false: "http"}[name == "prefix"]
			if !strings.Contains(w.Body.String(), "<loc>"+loc) {
				t.Errorf("%s, scanned %t: %s\nhas no address that begins with %s", name, scanned, w.Body, loc)
			}
			back := small(t.TempDir())
			cfg.Public.BaseURL, s = back.Public.BaseURL, cfg.Sets["data"]
			s.Prefix, s.Format, s.Graphs, s.Select, s.Describe = "", string(rdfres.JSONLD), nil, Select{}, "cbd"
			cfg.Sets["data"] = s
			again()
			if rep := do[ScanReport](t, b, "scan", "data"); rep.Held == nil {
				t.Errorf("%s, scanned %t: a change after the publication is not held", name, scanned)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
