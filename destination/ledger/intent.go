package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
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
	OfStore IntentKind = 3
	// OfFiles is a batch of files: a mirror of files, or files beside a store.
	OfFiles IntentKind = 4

	// asideIntent names an intent in a file beside the tables.
	asideIntent = 5
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
	if len(in) > 0 && in[0] > asideIntent {
		return 0, nil, fmt.Errorf("intended batch: it was written by a newer rsbridge (version %d, this one knows %d), and only that can finish it: run sync with the newer one", in[0], asideIntent)
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

// Begin makes the intent of a batch durable. A long one goes beside the tables, and only its
// name into them: it would be moved there, and read with every key near to it, long after
// the batch is done.
func (l *Ledger) Begin(ctx context.Context, slot byte, in Intent) error {
	if aside, ok := kv.Aside(l.store); ok && len(in) >= l.aside {
		name := asideName{nonce: rand.Uint64(), sum: Checksum(in), length: uint64(len(in))}
		if err := aside.PutAside(ctx, name.key(l, slot), in); err != nil {
			return fmt.Errorf("write the intent: %w", err)
		}
		in = name.encode()
	}
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
	if err := l.Commit(ctx, b, m); err != nil {
		return err
	}
	l.forgetAside(ctx, slot)
	return nil
}

// Pending reads the batch that was under way in a slot; kind is 0 for none. A damaged intent
// is an ErrIntent.
func (l *Ledger) Pending(ctx context.Context, slot byte) (kind IntentKind, all []Intended, err error) {
	in, err := l.Intent(ctx, slot)
	if errors.Is(err, kv.ErrNotFound) {
		l.forgetAside(ctx, slot) // of a crash just before that
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return in.read()
}

// Intent reads the intent of a slot, or kv.ErrNotFound.
func (l *Ledger) Intent(ctx context.Context, slot byte) (Intent, error) {
	raw, err := l.store.Get(ctx, l.intentKey(slot))
	if err != nil || len(raw) == 0 || raw[0] != asideIntent {
		return raw, err
	}
	name, err := decodeAsideName(raw)
	if err != nil {
		return nil, err
	}
	aside, ok := kv.Aside(l.store)
	if !ok {
		return nil, fmt.Errorf("%w: it is beside a state of another kind", ErrIntent)
	}
	raw, err = aside.GetAside(ctx, name.key(l, slot))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, fmt.Errorf("%w: its file in the state is not there", ErrIntent)
	case err != nil:
		return nil, fmt.Errorf("intended batch: %w", err)
	case uint64(len(raw)) != name.length || Checksum(raw) != name.sum:
		return nil, fmt.Errorf("%w: its file in the state has %d bytes with another checksum or length", ErrIntent, len(raw))
	}
	return raw, nil
}

// forgetAside removes the files of a slot whose intent has gone from the tables.
func (l *Ledger) forgetAside(ctx context.Context, slot byte) {
	if aside, ok := kv.Aside(l.store); ok {
		if err := aside.DropAside(ctx, l.asideKey(slot)); err != nil {
			l.log.Warn("the intent of a batch that is recorded cannot be removed; the next one removes it", "error", err)
		}
	}
}

// asideName is what the tables keep of an intent in a file. Its successor has another name,
// so that the earlier file stays whole until the successor is.
type asideName struct {
	nonce  uint64
	sum    uint32 // CRC-32C
	length uint64
}

func (n asideName) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{asideIntent}, n.nonce)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, n.sum), n.length)
}

func decodeAsideName(b []byte) (n asideName, err error) {
	if len(b) != 1+8+4+8 || b[0] != asideIntent {
		return n, fmt.Errorf("%w: %d bytes", ErrIntent, len(b))
	}
	return asideName{binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[9:]), binary.BigEndian.Uint64(b[13:])}, nil
}

// asideKey begins the names of the files of a slot.
func (l *Ledger) asideKey(slot byte) []byte { return append(Key(KindIntent, l.dest), slot) }

func (n asideName) key(l *Ledger, slot byte) []byte {
	return binary.BigEndian.AppendUint64(l.asideKey(slot), n.nonce)
}
