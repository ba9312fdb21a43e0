package sparqlsink

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sinktest"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// A store takes mirrors in one graph and in many, with updates and by the Graph Store
// Protocol alone.
func TestSink(t *testing.T) {
	for name, layout := range map[string]sink.Layout{"single": {Graph: "http://ex.org/g"}, "default": {}, "per-entity": {PerEntity: true, Template: "{entity}"}} {
		for _, update := range []string{"http://embedded/update", ""} {
			t.Run(name+update, func(t *testing.T) {
				sinktest.Run(t, layout, func(t *testing.T) sink.Sink {
					store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
					if err != nil {
						t.Fatal(err)
					}
					c, err := sparql.New(sparql.Endpoint{Name: "embedded", Query: "http://embedded/query", Update: update, GraphStore: "http://embedded/data", Transport: store.Transport()})
					if err != nil {
						t.Fatal(err)
					}
					return &owned{Of(c), store}
				})
			})
		}
	}
}

// owned is a store and its server.
type owned struct {
	*Store
	embedded *embedstore.Store
}

func (o *owned) Close() error { return errors.Join(o.Store.Close(), o.embedded.Close()) }
