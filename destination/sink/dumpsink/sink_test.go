package dumpsink

import (
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
