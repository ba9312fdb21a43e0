package changetrack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// dictionaryMost is the longest representation packed with a dictionary.
const dictionaryMost = 1 << 20

// dictionary unpacks representations packed with it by an older version of this program. It never
// changes.
type dictionary struct {
	dec *zstd.Decoder
}

func newDictionary(number uint32, content []byte) (*dictionary, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(number, content), zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", number, err)
	}
	return &dictionary{dec}, nil
}

func readDictionary(number uint32, b []byte) (*dictionary, error) {
	r := &reading{b: b}
	if err := r.begin("dictionary"); err != nil {
		return nil, err
	}
	if r.format(); r.bad {
		return nil, fmt.Errorf("dictionary %d cannot be read: %w", number, errDamaged)
	}
	return newDictionary(number, r.b)
}

// dictionaries are those of a set used since it was opened. Safe for concurrent use.
type dictionaries struct {
	mu  sync.Mutex
	all map[uint32]*dictionary
}

// get reads a dictionary once.
func (d *dictionaries) get(ctx context.Context, r kv.Reader, number uint32) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.all[number]; known != nil {
		return known, nil
	}
	b, err := r.Get(ctx, dictionaryKey(number))
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
	if d.all == nil {
		d.all = map[uint32]*dictionary{}
	}
	d.all[number] = read
	return read, nil
}
