package sparqlsink

import (
	"context"
	"io"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
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
	var rest []byte
	for i := range sts {
		rest = sts[i].Triple.AppendLine(rest)
	}
	began := time.Now()
	err := m.Client.PostGraph(ctx, m.Layout.Graph, rdfres.NTriples, func() (io.ReadCloser, error) {
		return &packedBody{packed: p.Parts, rest: rest, left: p.Bytes + len(rest)}, nil
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

// packedBody is the text of packed triples, unpacked one after the other.
type packedBody struct {
	packed [][]byte
	rest   []byte
	text   []byte // of buf, or rest
	buf    []byte
	left   int
}

// Len is how much is still to be read.
func (b *packedBody) Len() int { return b.left }

func (b *packedBody) Close() error { return nil }

func (b *packedBody) Read(p []byte) (int, error) {
	for len(b.text) == 0 {
		switch {
		case len(b.packed) > 0:
			packed := b.packed[0]
			b.packed = b.packed[1:]
			var err error
			if b.buf, err = ledger.UnpackInto(b.buf, packed); err != nil {
				return 0, err
			}
			b.text = b.buf
		case len(b.rest) > 0:
			b.text, b.rest = b.rest, nil
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, b.text)
	b.text, b.left = b.text[n:], b.left-n
	return n, nil
}
