package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// A batch is written in three steps, and a crash between any two of them is made good by
// repeating the batch of the remaining intent:
//
//  1. Begin: the intent is durable.
//  2. The caller writes the mirror, with the checkpoint of the next generation.
//  3. Done: records, ownership, position and generation are durable in one commit, without
//     the intent.
//
// The mirror may have the batch whole, in part or not at all while an intent stands.
// Repeating is harmless: deletions of the old state and insertions of the new one are both
// made again. Nothing else writes before Pending was empty, or its batch done.

// IntentKind says what a batch wrote.
type IntentKind byte

const (
	// OfStore is a batch of triples.
	OfStore IntentKind = 1
	// OfFiles is a batch of files: a mirror of files, or files beside a store.
	OfFiles IntentKind = 2
)

// Slots bounds the batches under way: the next may be sent while one is being recorded.
const Slots = 2

// Intended is what a batch makes of one resource.
type Intended struct {
	Loc      Hash
	Replaces []Hash  // former locations of its entity, which go with it
	Record   *Record // nil: the resource goes
	Body     []byte  // packed
}

// Intent is the stored form of a batch.
type Intent []byte

// NewIntent begins an intent of about so many bytes.
func NewIntent(kind IntentKind, size int) Intent {
	return append(make(Intent, 0, 1+size), byte(kind))
}

// Add appends a resource.
func (in Intent) Add(e Intended) Intent {
	b := append([]byte(in), e.Loc[:]...)
	b = binary.AppendVarint(b, int64(len(e.Replaces)))
	for _, loc := range e.Replaces {
		b = append(b, loc[:]...)
	}
	if e.Record == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = AppendString(b, e.Record.Encode())
	return AppendString(b, e.Body)
}

// ErrIntent marks an intent that is not as it was written. The mirror is compared then.
var ErrIntent = errors.New("the intent of a batch that was under way is damaged")

// read takes an intent apart.
func (in Intent) read() (kind IntentKind, all []Intended, err error) {
	if len(in) > 0 && IntentKind(in[0]) > OfFiles {
		return 0, nil, fmt.Errorf("intended batch: it was written by a newer rsbridge (version %d, this one knows %d), and only that can finish it: run sync with the newer one", in[0], OfFiles)
	}
	if len(in) > 0 {
		kind = IntentKind(in[0])
	}
	if kind != OfStore && kind != OfFiles {
		return 0, nil, fmt.Errorf("%w: %w", ErrIntent, ErrDamaged)
	}
	dec := Decoder{B: in[1:]}
	for len(dec.B) > 0 && !dec.Bad {
		var e Intended
		dec.Fixed(e.Loc[:])
		for n := dec.Varint(); n > 0 && !dec.Bad; n-- {
			var loc Hash
			dec.Fixed(loc[:])
			e.Replaces = append(e.Replaces, loc)
		}
		if dec.Flag() {
			if e.Record, err = DecodeRecord(dec.Bytes()); err != nil {
				return 0, nil, fmt.Errorf("%w: %w", ErrIntent, err)
			}
			e.Body = slices.Clone(dec.Bytes())
		}
		all = append(all, e)
	}
	if dec.Bad {
		return 0, nil, fmt.Errorf("%w: %w", ErrIntent, ErrDamaged)
	}
	return kind, all, nil
}

func (l *Ledger) intentKey(slot byte) []byte {
	if slot == 0 {
		return Key(KindIntent, l.dest)
	}
	return append(Key(KindIntent, l.dest), slot)
}

// Begin makes the intent of a batch durable.
func (l *Ledger) Begin(ctx context.Context, slot byte, in Intent) error {
	batch := l.store.Batch()
	defer batch.Close()
	batch.Set(l.intentKey(slot), in)
	if err := batch.Commit(ctx, true); err != nil {
		return fmt.Errorf("write the intent: %w", err)
	}
	return nil
}

// Done commits what a batch has become, with the record of the destination, and ends its
// intent.
func (l *Ledger) Done(ctx context.Context, slot byte, b kv.Batch, m *Meta) error {
	b.Delete(l.intentKey(slot))
	return l.Commit(ctx, b, m)
}

// Pending reads the batch that was under way in a slot; kind is 0 for none. A damaged intent
// is an ErrIntent.
func (l *Ledger) Pending(ctx context.Context, slot byte) (kind IntentKind, all []Intended, err error) {
	in, err := l.Intent(ctx, slot)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return in.read()
}

// Intent reads the intent of a slot, or kv.ErrNotFound.
func (l *Ledger) Intent(ctx context.Context, slot byte) (Intent, error) {
	return l.store.Get(ctx, l.intentKey(slot))
}
