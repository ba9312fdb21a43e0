package destination

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
)

// A report tells where the mirror is, and of what is no RDF: a folder has it like any other. An
// audit names a file that is gone.
func TestPlacesOfReports(t *testing.T) {
	for _, kind := range []string{"folder", "beside", "dump"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			place, open := filepath.Join(t.TempDir(), "place"), b.open
			switch kind {
			case "folder":
				open = b.intoFolder(place)
			case "beside":
				b.cfg.Files = place
			case "dump":
				dump, err := dumpsink.Open(place)
				if err != nil {
					t.Fatal(err)
				}
				open = func() *Destination { return b.openSink(dump) }
			}
			fill(b.src, 3)
			b.src.types["a.png"] = "image/png"
			b.src.put("a.png", "a")
			rep, err := open().Sync(t.Context(), SyncOptions{})
			if err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			if want := map[string]int64{"folder": 0, "beside": 1, "dump": 1}[kind]; rep.NotRDF != want || (rep.Files == place) != (kind == "beside") || kind != "beside" && !strings.HasSuffix(rep.Store, ":"+place) {
				t.Errorf("%d resources are no RDF, in %q of %q", rep.NotRDF, rep.Files, rep.Store)
			}
			if kind == "dump" {
				return
			}
			for name := range filesIn(t, place) {
				if strings.HasSuffix(name, "a.png") {
					if err := os.Remove(filepath.Join(place, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			audit, err := open().Audit(t.Context(), AuditOptions{})
			if err != nil || len(audit.Named) != 1 || !strings.HasPrefix(audit.Named[0].Detail, "its file ") || !strings.HasSuffix(audit.Named[0].Detail, "a.png is gone") {
				t.Errorf("%+v %v", audit.Named, err)
			}
			if st, err := open().Status(t.Context()); err != nil || st.Held != "an audit found the mirror changed or incomplete; audit --repair restores it" {
				t.Errorf("%q %v", st.Held, err)
			}
		})
	}
}
