package dumpsink

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sinktest"
)

func TestSink(t *testing.T) {
	for _, name := range []string{"a.nt", "b/a.nq.gz"} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sink.Layout{Graph: "http://ex.org/g"}, func(t *testing.T) sink.Sink {
				s, err := Open(filepath.Join(t.TempDir(), name))
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

// Somebody else's file is no empty dump, also without a triple.
func TestForeignFile(t *testing.T) {
	for name, files := range map[string]map[string]bool{
		"a.nt":    {"": true, "\r\n \n": true, "# my notes\n": false, "<a> <b> <c> .\n": false, "\x00": false},
		"a.nq.gz": {"": true, "no gzip": false},
	} {
		for text, want := range files {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Open(&sink.Place{})
			if err != nil {
				t.Fatal(err)
			}
			if empty, err := m.(sink.Marked).IsEmpty(t.Context(), nil); err != nil || empty != want {
				t.Errorf("%s with %q: empty %v, %v", name, text, empty, err)
			}
		}
	}
}
