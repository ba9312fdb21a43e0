package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Bodies are kept with S2. It costs little, and leaves common parts of neighbouring
// bodies to the store's lowest level: on disk less than half of Zstandard for each alone.

const (
	packedS2   = 1       // the first byte of a packed body
	packedHead = 1 + 4   // and the CRC-32C of the body
	maxKept    = 1 << 30 // bytes of an unpacked body
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is a CRC-32C.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Pack packs a body; nothing stays nothing.
func Pack(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	room := packedHead + s2.MaxEncodedLen(len(b))
	var out []byte
	if room <= pooledPack {
		from := packRooms.Get().(*[pooledPack]byte)
		defer packRooms.Put(from)
		out = from[:0]
	} else {
		out = make([]byte, 0, room)
	}
	out = binary.LittleEndian.AppendUint32(append(out, packedS2), Checksum(b))
	n := len(s2.Encode(out[packedHead:cap(out)], b))
	return slices.Clip(slices.Clone(out[:packedHead+n]))
}

// packRooms are buffers for packing bodies up to pooledPack bytes.
var packRooms = sync.Pool{New: func() any { return new([pooledPack]byte) }}

const pooledPack = 64 << 10

// Unpack is the inverse of Pack. Damage of any bit is an ErrDamaged.
func Unpack(b []byte) ([]byte, error) { return UnpackInto(nil, b) }

// UnpackInto is Unpack into a buffer, as far as its capacity lasts.
func UnpackInto(buf, b []byte) (out []byte, err error) {
	switch {
	case len(b) > 0 && b[0] != packedS2:
		err = errors.New("its packing is unknown")
	case len(b) >= packedHead:
		var n int
		if n, err = s2.DecodedLen(b[packedHead:]); err == nil && n > maxKept {
			err = fmt.Errorf("%d bytes", n)
		}
		if err == nil {
			out, err = s2.Decode(buf[:cap(buf)], b[packedHead:])
		}
		if err == nil && Checksum(out) != binary.LittleEndian.Uint32(b[1:]) {
			err = errors.New("another checksum than was recorded")
		}
	case len(b) > 0:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: kept body: %w", ErrDamaged, err)
	}
	return out, nil
}

// ParseWire reads the triples of a kept representation.
func ParseWire(wire []byte) ([]rdfres.Triple, error) {
	var ts []rdfres.Triple
	for len(wire) > 0 {
		line, rest, _ := bytes.Cut(wire, newline)
		wire = rest
		q, ok, err := rdfres.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("%w: kept triple: %w", ErrDamaged, err)
		}
		if ok {
			ts = append(ts, q.Triple)
		}
	}
	return ts, nil
}

var newline = []byte("\n")
