package destination

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
)

// inPlaces runs a test over mirrors in files: a folder, a folder beside a store, a dump.
func inPlaces(t *testing.T, test func(t *testing.T, kind, place string, b *bench, open func() *Destination)) {
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
			test(t, kind, place, b, open)
		})
	}
}

// A mirror in a place that is gone is forgotten all the same, and nothing is said to be removed.
func TestForgetGonePlace(t *testing.T) {
	inPlaces(t, func(t *testing.T, kind, place string, b *bench, open func() *Destination) {
		for _, err := range []error{os.RemoveAll(place), os.RemoveAll(place + ".rsbridge")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, dry := range []bool{true, false} {
			if kind == "beside" && !dry {
				return // the store of the bench cannot
			}
			rep, err := open().Forget(t.Context(), ForgetOptions{DryRun: dry})
			if err != nil || rep.Files != 0 || (rep.Triples == 0) != (kind != "beside") || rep.Records == 0 || !strings.HasSuffix(rep.Gone, place) {
				t.Fatalf("dry run %v: %+v %v", dry, rep, err)
			}
		}
	})
}

// A place with files of somebody else is told with one remedy, by status and by each refusal.
func TestDamageOfForeignPlace(t *testing.T) {
	inPlaces(t, func(t *testing.T, kind, place string, b *bench, open func() *Destination) {
		damage := func(want string) {
			t.Helper()
			st, err := open().Status(t.Context())
			if err != nil || !strings.Contains(st.Held, want) || strings.Contains(st.Held, "--repair") != strings.Contains(want, "--repair") {
				t.Errorf("%q %v", st.Held, err)
			}
		}
		mine := place
		if kind != "dump" {
			mine = filepath.Join(place, "mine.txt")
		}
		write(t, mine, "<http://ex.org/mine> <http://ex.org/p> \"precious\" .\n")
		if rep, err := open().Audit(t.Context(), AuditOptions{}); err != nil || rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
		damage("changed or incomplete; audit --repair restores it")

		for _, err := range []error{os.RemoveAll(place), os.RemoveAll(place + ".rsbridge")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if kind != "dump" {
			if err := os.Mkdir(place, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write(t, mine, "<http://ex.org/mine> <http://ex.org/p> \"precious\" .\n")
		refused := func(err error) {
			t.Helper()
			if foreign := (*keep.ForeignPlaceError)(nil); !errors.As(err, &foreign) {
				t.Fatal(err)
			}
			damage(err.Error()[strings.Index(err.Error(), " already holds"):])
		}
		_, err := open().Sync(t.Context(), SyncOptions{})
		refused(err)
		rep, err := open().Audit(t.Context(), AuditOptions{})
		if err != nil || rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
		_, err = open().Audit(t.Context(), AuditOptions{Repair: true})
		refused(err)
		for _, d := range rep.Named {
			if strings.Contains(d.Detail, "no such file") {
				t.Error(d.Detail)
			}
		}
	})
}
