package sink

import (
	"context"
	"io"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

// Packer mirrors take triples in uploads of any length, as they are packed in the records. An
// implementer guarantees:
//   - PostPacked adds packed triples and some statements, if CanPostPacked. Adding them again
//     changes nothing.
//   - TakesLong tells of a sink for uploads of many seconds.
//   - Pace is how many triples of an upload the sink took lately in a good time; 0 unknown.
type Packer interface {
	CanPostPacked() bool
	PostPacked(ctx context.Context, p *Packed, sts []Statement) error
	TakesLong() bool
	Pace() int
}

// Packed are triples to upload: canonical N-Triples, packed.
type Packed struct {
	Parts   [][]byte // as the records keep them
	Bytes   int      // unpacked
	Triples int64
}

// Reader unpacks the triples one part after the other, and gives the statements after them, all
// as N-Triples. It has Len, the number of bytes to come.
func (p *Packed) Reader(sts []Statement) io.ReadCloser {
	var rest []byte
	for i := range sts {
		rest = sts[i].Triple.AppendLine(rest)
	}
	return &unpacked{packed: p.Parts, rest: rest, left: p.Bytes + len(rest)}
}

// unpacked is the text of packed triples.
type unpacked struct {
	packed [][]byte
	rest   []byte
	text   []byte // of buf, or rest
	buf    []byte
	left   int
}

// Len is how much is still to be read.
func (b *unpacked) Len() int { return b.left }

func (b *unpacked) Close() error { return nil }

func (b *unpacked) Read(p []byte) (int, error) {
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
