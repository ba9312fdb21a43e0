package dashboard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// lighthouse is the least of each category, in percent.
const lighthouse = 95

// TestLighthouse holds each page to Lighthouse, as on a telephone with a slow connection. Of an error it measures
// the page alone: it refuses to measure an answer with the status of an error.
// RSBRIDGE_LIGHTHOUSE names the program with more flags after it; make lighthouse installs it.
func TestLighthouse(t *testing.T) {
	program := strings.Fields(os.Getenv("RSBRIDGE_LIGHTHOUSE"))
	if len(program) == 0 {
		t.Skip("RSBRIDGE_LIGHTHOUSE is not set: make lighthouse runs this test")
	}
	browser := teststores.Browser(t)
	w := newWorld(t, nil)
	w.update("local", books(0, 120, "Book"))
	w.do("scan", "books", nil)
	w.do("sync", "copy", nil)
	w.update("local", books(119, 121, "Volume"))
	w.do("scan", "books", nil)
	w.update("mirror", `DELETE { ?s ?p ?o } INSERT { ?s ?p "wrong" } WHERE { VALUES ?s { <http://example.org/book5> } ?s ?p ?o }`)
	w.do("audit", "copy", nil)
	w.update("local", `DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(STR(?s) > "http://example.org/book2") }`)
	w.do("scan", "books", nil)

	categories := []string{"performance", "accessibility", "best-practices"}
	fmt.Println("| page | performance | accessibility | best practices | index of the machine |\n|---|---|---|---|---|")
	for _, p := range []struct{ name, at string }{
		{"dashboard", w.srv.URL + "/"},
		{"set", w.srv.URL + "/sets/books"},
		{"held run", w.srv.URL + "/sets/books/held"},
		{"entity", w.srv.URL + "/sets/books/entity?iri=http://example.org/book119"},
		{"mirror", w.srv.URL + "/destinations/copy"},
		{"difference", w.srv.URL + "/destinations/copy/difference?entity=http://example.org/book5"},
		{"runs", w.srv.URL + "/runs"},
		{"run", w.srv.URL + "/runs/1"},
		{"browse", w.srv.URL + "/search"},
		{"stores and sources", w.srv.URL + "/check"},
		{"public: start", w.pub.URL + "/"},
		{"public: set", w.pub.URL + "/books/about.html"},
		{"public: browse", w.pub.URL + "/books/browse"},
		{"public: search", w.pub.URL + "/books/search?q=book"},
		{"public: entity", w.pub.URL + "/books/r/book119.html"},
		{"public: history", w.pub.URL + "/books/history/book119"},
		{"public: comparison", w.pub.URL + "/books/compare/book119?from=120&to=121"},
		{"public: version", w.pub.URL + "/books/r/book119.html?version=120"},
		{"public: Resource List", w.pub.URL + "/books/resourcelist.html"},
		{"public: Change List", w.pub.URL + "/books/changelist.html"},
	} {
		t.Run(p.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			args := append(program[1:len(program):len(program)], p.at, "--quiet", "--output=json", "--output-path="+file, "--only-categories="+strings.Join(categories, ","), "--chrome-flags=--headless=new --no-sandbox")
			cmd := exec.CommandContext(t.Context(), program[0], args...)
			cmd.Env = append(os.Environ(), "CHROME_PATH="+browser)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var report struct {
				Environment struct{ BenchmarkIndex float64 } // speed of the machine; 1,500 to 2,000 is a desktop without other work
				Categories  map[string]struct{ Score float64 }
				Audits      map[string]struct {
					Title, DisplayValue string
					Score               *float64
				}
			}
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &report)
			}
			if err != nil {
				t.Fatal(err)
			}
			line := "| " + p.name
			for _, c := range categories {
				n := int(100*report.Categories[c].Score + 0.5)
				if line += fmt.Sprintf(" | %d", n); n >= lighthouse {
					continue
				}
				t.Errorf("%s has %d", c, n)
				for _, a := range report.Audits {
					if a.Score != nil && *a.Score < 0.9 {
						t.Logf("  %.2f %s %s", *a.Score, a.Title, a.DisplayValue)
					}
				}
			}
			fmt.Printf("%s | %.0f |\n", line, report.Environment.BenchmarkIndex)
		})
	}
}
