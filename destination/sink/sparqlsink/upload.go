package sparqlsink

import (
	"context"
	"io"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// BulkTriples bounds a batch for one upload.
func (m *Mirror) BulkTriples() int { return m.traits.bulkTriples }

const (
	// longTriples bounds a long upload.
	longTriples = 200_000
	// longTime bounds its time, as fast as the store was with the one before: it is given a
	// minute or two for an answer, and by proxies no more.
	longTime = 20 * time.Second
)

// PostPacked adds packed triples, and some statements, by one Graph Store POST.
func (m *Mirror) PostPacked(ctx context.Context, p *sink.Packed, sts []sink.Statement) error {
	if err := m.inject("before"); err != nil {
		return err
	}
	began := time.Now()
	err := m.Client.PostGraph(ctx, m.Layout.Graph, rdfres.NTriples, func() (io.ReadCloser, error) {
		return p.Reader(sts), nil
	})
	if err != nil {
		return err
	}
	m.pace = int(min(longTriples, float64(p.Triples+int64(len(sts)))*longTime.Seconds()/max(time.Since(began).Seconds(), 0.001)))
	return m.inject("after")
}

// CanPostPacked tells whether packed triples can be uploaded.
func (m *Mirror) CanPostPacked() bool {
	return m.CanBulk() && m.updates() && m.traits.packs
}

// TakesLong tells of a store for uploads of longTriples.
func (m *Mirror) TakesLong() bool { return m.traits.longUploads }
