package changetrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Representations of a set are small and alike. Packed each on its own they say
// the same again and again; with some of them as a dictionary they take less than
// half of the room, in less than half of the time.
const (
	// dictionaryBytes is how much of the first representations in a format
	// becomes its dictionary. A set that has less needs none.
	dictionaryBytes = 32 << 10
	// dictionaryMost is the longest representation that is packed with it: a
	// longer one gains nothing, and is better unpacked in pieces.
	dictionaryMost = 1 << 20
)

// dictionary packs and unpacks the representations in a format. It never changes.
type dictionary struct {
	number uint32
	format rdfres.Format
	enc    *zstd.Encoder
	dec    *zstd.Decoder
}

func newDictionary(number uint32, f rdfres.Format, content []byte) (*dictionary, error) {
	n := runtime.GOMAXPROCS(0)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(number, content), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(n), zstd.WithWindowSize(dictionaryMost), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", number, err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(number, content), zstd.WithDecoderConcurrency(n), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", number, err)
	}
	return &dictionary{number, f, enc, dec}, nil
}

func putDictionary(f rdfres.Format, content []byte) []byte {
	return append([]byte{recordVersion, formatCodes[f]}, content...)
}

func readDictionary(number uint32, b []byte) (*dictionary, error) {
	r := &reading{b: b}
	if err := r.begin("dictionary"); err != nil {
		return nil, err
	}
	f := r.format()
	if r.bad {
		return nil, fmt.Errorf("dictionary %d cannot be read: %w", number, errDamaged)
	}
	return newDictionary(number, f, r.b)
}

// dictionaries are those of a set that were used since it was opened. Safe for
// concurrent use.
type dictionaries struct {
	mu  sync.Mutex
	all map[uint32]*dictionary
}

// get reads a dictionary once.
func (d *dictionaries) get(r kv.Reader, number uint32) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.all[number]; known != nil {
		return known, nil
	}
	b, err := r.Get(dictionaryKey(number))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("there is no dictionary %d: %w", number, errDamaged)
	}
	if err != nil {
		return nil, err
	}
	read, err := readDictionary(number, b)
	if err != nil {
		return nil, err
	}
	return d.add(read), nil
}

func (d *dictionaries) add(made *dictionary) *dictionary {
	if d.all == nil {
		d.all = map[uint32]*dictionary{}
	}
	d.all[made.number] = made
	return made
}

// packing finds the dictionaries of a scan, and makes those that are not there
// yet. Safe for concurrent use.
type packing struct {
	l *Log

	mu      sync.Mutex // guards what follows
	last    uint32
	formats map[rdfres.Format]*dictionary
	samples map[rdfres.Format][]byte
}

func (l *Log) packing() (*packing, error) {
	p := &packing{l: l, formats: map[rdfres.Format]*dictionary{}, samples: map[rdfres.Format][]byte{}}
	for pair, err := range l.store.Scan([]byte{kindDictionary}, []byte{kindDictionary + 1}) {
		if err != nil {
			return nil, err
		}
		p.last = binary.BigEndian.Uint32(pair.Key[1:])
		d, err := l.dictionaries.get(l.store, p.last)
		if err != nil {
			return nil, err
		}
		p.formats[d.format] = d
	}
	return p, nil
}

// dictionary is that for a representation, nil while there is none. One that is
// made is durable before it is used, and stays if the scan comes to nothing.
func (p *packing) dictionary(f rdfres.Format, data []byte) (*dictionary, error) {
	if len(data) > dictionaryMost {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.formats[f]; d != nil {
		return d, nil
	}
	enough := p.l.t.o.dictionaryBytes
	content := append(p.samples[f], data[:min(len(data), enough-len(p.samples[f]))]...)
	if p.samples[f] = content; len(content) < enough {
		return nil, nil
	}
	d, err := newDictionary(p.last+1, f, content)
	if err != nil {
		return nil, err
	}
	b := p.l.store.Batch()
	defer b.Close()
	b.Set(dictionaryKey(d.number), putDictionary(f, content))
	if err := b.Commit(true); err != nil {
		return nil, fmt.Errorf("keep a dictionary: %w", err)
	}
	p.last, p.formats[f] = d.number, d
	p.l.dictionaries.mu.Lock()
	defer p.l.dictionaries.mu.Unlock()
	return p.l.dictionaries.add(d), nil
}
