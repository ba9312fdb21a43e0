package filesink

import (
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sinktest"
)

func TestSink(t *testing.T) {
	sinktest.Run(t, sink.Layout{}, func(t *testing.T) sink.Sink {
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
