package destination

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// An audit and a dry run of a damaged place change no byte of it. No audit calls it equal that was to see the
// damage, and the sync does what the dry run says.
func TestLookingChangesNothing(t *testing.T) {
	for _, kind := range []string{"folder", "beside", "dump"} {
		for _, damage := range []string{"removed", "marks removed", "marks and a part removed", "emptied", "a folder in its place", "replaced"} {
			if kind != "dump" && (damage == "a folder in its place" || damage == "replaced") || kind == "dump" && damage == "marks and a part removed" {
				continue
			}
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(kind+" "+damage, func(t *testing.T) {
				b := newBench(t)
				above := t.TempDir()
				place := filepath.Join(above, "place")
				marks := filepath.Join(place, filesink.StateFile)
				open := b.open
				switch kind {
				case "folder":
					open = b.intoFolder(place)
				case "beside":
					b.cfg.Files = place
				case "dump":
					place += ".nt"
					marks = place + ".rsbridge"
					dump, err := dumpsink.Open(place)
					if err != nil {
						t.Fatal(err)
					}
					open = func() *Destination { return b.openSink(dump) }
				}
				fill(b.src, 3)
				b.src.types["a.png"], b.src.types["b.png"] = "image/png", "image/png"
				b.src.put("a.png", "a")
				b.src.put("b.png", "b")
				inSync(t, open())
				do := func(errs ...error) {
					t.Helper()
					for _, err := range errs {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				switch damage {
				case "removed":
					do(os.RemoveAll(place))
				case "marks removed":
					do(os.Remove(marks))
				case "marks and a part removed":
					do(os.Remove(marks), os.Remove(filepath.Join(place, "set/r/b.png")))
				case "emptied":
					do(os.RemoveAll(place), os.RemoveAll(marks))
					if kind != "dump" {
						do(os.Mkdir(place, 0o777))
					}
				case "a folder in its place":
					do(os.Remove(place), os.Mkdir(place, 0o777))
				case "replaced":
					do(os.WriteFile(place, []byte("<http://ex.org/mine> <http://ex.org/p> \"precious\" .\n"), 0o600))
				}
				before := filesIn(t, above)
				unchanged := func(what string) {
					t.Helper()
					if now := filesIn(t, above); !maps.Equal(now, before) {
						t.Fatalf("%s: %q, was %q", what, now, before)
					}
				}
				whole := damage == "marks removed" // and nothing else
				refused := damage == "a folder in its place"
				dry, derr := open().Sync(t.Context(), SyncOptions{DryRun: true})
				unchanged("dry run")
				for _, depth := range []string{"inventory", "store", "origin"} {
					rep, err := open().Audit(t.Context(), AuditOptions{Depth: depth})
					unchanged("audit " + depth)
					if depth == "inventory" && damage == "marks and a part removed" && kind == "beside" {
						continue // some of its files are there
					}
					if read := depth != "inventory"; rep.Equal != (whole && (read || kind == "beside")) || (err != nil) != (refused && read) {
						t.Errorf("audit %s: %+v %v", depth, rep, err)
					}
				}
				st, err := open().Status(t.Context())
				if err != nil || st.InSync && !whole {
					t.Errorf("status: %+v %v", st, err)
				}
				if refused || damage == "replaced" {
					if _, err := open().Forget(t.Context(), ForgetOptions{}); err == nil || derr == nil {
						t.Fatalf("forget: %v, dry run: %v", err, derr)
					}
					unchanged("forget")
					do(os.Rename(place, filepath.Join(above, "away"))) // the remedy
					inSync(t, open())
				} else {
					real := inSync(t, open())
					if derr != nil || dry.Mode != real.Mode || dry.Created != real.Created || dry.Updated != real.Updated || dry.Deleted != real.Deleted {
						t.Errorf("dry  %+v %v\nreal %+v", dry, derr, real)
					}
				}
				for _, depth := range []string{"inventory", "store"} {
					if rep, err := open().Audit(t.Context(), AuditOptions{Depth: depth}); err != nil || !rep.Equal {
						t.Errorf("after the sync, depth %s: %+v %v", depth, rep, err)
					}
				}
			})
		}
	}
}

// A dump of a lost state that somebody has replaced: the remedies that the refusal names work.
func TestReplacedDumpOfLostState(t *testing.T) {
	for _, remedy := range []string{"move it away", "adopt: true"} {
		b := newBench(t)
		fill(b.src, 3)
		file := filepath.Join(t.TempDir(), "a.nt")
		dump, err := dumpsink.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		inSync(t, b.openSink(dump))
		write(t, file, "<http://ex.org/mine> <http://ex.org/p> \"precious\" .\n")
		again := newBench(t)
		again.src, again.cfg = b.src, b.cfg
		_, err = again.openSink(dump).Sync(t.Context(), SyncOptions{})
		_, aerr := again.openSink(dump).Audit(t.Context(), AuditOptions{Repair: true})
		for _, err := range []error{err, aerr} {
			if err == nil || !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), "audit --repair") {
				t.Fatal(err)
			}
		}
		if remedy == "adopt: true" {
			again.cfg.Adopt = true
		} else if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		inSync(t, again.openSink(dump))
		if rep, err := again.openSink(dump).Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal || rep.Resources != 3 {
			t.Fatalf("%s: %+v %v", remedy, rep, err)
		}
	}
}
