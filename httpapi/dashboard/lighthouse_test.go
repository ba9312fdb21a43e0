package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// lighthouse is the least of each category, in percent.
const lighthouse = 95

// TestLighthouse holds each page to Lighthouse, as on a telephone with a slow connection.
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

	res, err := http.Get(w.pub.URL + "/books/history/book119")
	if err != nil {
		t.Fatal(err)
	}
	history, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	link := func(pattern string) string {
		m := regexp.MustCompile(`href="([^"]*` + pattern + `[^"]*)"`).FindSubmatch(history)
		if m == nil {
			t.Fatalf("the history has no link %s:\n%s", pattern, history)
		}
		return html.UnescapeString(string(m[1]))
	}

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
		{"public: comparison", link("/compare/")},
		{"public: version", link("[?]version=")},
		{"public: Resource List", w.pub.URL + "/books/resourcelist.html"},
		{"public: Change List", w.pub.URL + "/books/changelist.html"},
		{"public: error", w.pub.URL + "/books/r/nothing.html"},
		{"error", w.srv.URL + "/sets/nothing"},
	} {
		t.Run(p.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			args := append(program[1:len(program):len(program)], p.at, "--quiet", "--output=json", "--output-path="+file, "--only-categories="+strings.Join(categories, ","), "--chrome-flags=--headless=new --no-sandbox")
			if strings.HasSuffix(p.name, "error") {
				args = append(args, "--ignore-status-code")
			}
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
