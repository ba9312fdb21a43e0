package bridge

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"
)

// TestPackagesOfALostState: what is published after the state was lost does not stand at
// the addresses of packages from before, which may be kept for ever; and a state that is
// put back beside the files of another one promises none of them.
func TestPackagesOfALostState(t *testing.T) {
	cfg := small(t.TempDir())
	clear(cfg.Destinations)
	set := cfg.Sets["data"]
	set.Publish, set.ChangeList.Entries = []string{"resourcelist", "changelist", "resourcedump", "changedump"}, 1
	set.ResourceList.Schedule = "@yearly"
	cfg.Sets["data"] = set
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	zip := regexp.MustCompile(`<loc>([^<]*\.zip)</loc>`)
	backup := t.TempDir()
	packages := map[string]bool{}
	for _, life := range []string{"first", "lost", "restored"} {
		b, err := Open(t.Context(), cfg, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		for _, names := range [][]string{{life, "b"}, {life, "b", "c"}, {life, "b", "c", "d"}} {
			fill(t, b, "source", sayings(names...))
			do[ScanReport](t, b, "scan", "data")
		}
		for _, document := range []string{"resourcedump", "changedump"} {
			if err := b.pub.Dump(t.Context(), "data"); err != nil {
				t.Fatal(err)
			}
			rec := httptest.NewRecorder()
			b.PublicHandler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://source.invalid/data/"+document+".xml", nil))
			found := zip.FindAllStringSubmatch(rec.Body.String(), -1)
			if len(found) == 0 {
				t.Errorf("%s: there is no package: %d %s", document, rec.Code, rec.Body)
			}
			for _, m := range found {
				if packages[m[1]] {
					t.Errorf("%s: the package %s was there before, with what is lost", life, m[1])
				}
				packages[m[1]] = true
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if life == "first" {
			if err := os.CopyFS(backup, os.DirFS(cfg.State+"/kv")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(cfg.State + "/kv"); err != nil {
			t.Fatal(err)
		}
		if life == "lost" {
			if err := os.CopyFS(cfg.State+"/kv", os.DirFS(backup)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
