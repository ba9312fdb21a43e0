package destination

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// intentVersion is the first byte of intentOf: packed bodies, as they are recorded.
const intentVersion = 3

// filesIntent has the same form, for a mirror of files, and for files beside a store before
// the whole batch has its own.
const filesIntent = 4

// asideIntent begins the name of an intent beside the tables.
const asideIntent = 5

// intentOf is the memory of a batch until it is recorded.
func intentOf(ops []*op) []byte {
	size := 1
	for _, o := range ops {
		size += o.size()
	}
	b := append(make([]byte, 0, size), intentVersion)
	for _, o := range ops {
		if o.fault != nil || o.settle {
			continue
		}
		b = append(b, o.loc[:]...)
		b = binary.AppendVarint(b, int64(len(o.replaces)))
		for _, loc := range o.replaces {
			b = append(b, loc[:]...)
		}
		if o.rec == nil {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = ledger.AppendString(b, o.rec.Encode())
		if o.packed == nil {
			o.packed = ledger.Pack(o.wire)
		}
		b = ledger.AppendString(b, o.packed)
	}
	return b
}

// intentKey is where the intent of a batch stands: two batches may be under way.
func (d *Destination) intentKey(slot byte) []byte {
	if slot == 0 {
		return ledger.Key(ledger.KindIntent, d.dest)
	}
	return append(ledger.Key(ledger.KindIntent, d.dest), slot)
}

// writeIntent makes a batch durable before the mirror sees it. A long one goes beside
// the tables, and only its name into them: it would be moved there, and read with
// every key near to it, long after it has gone.
func (d *Destination) writeIntent(slot byte, intent []byte) error {
	if aside, ok := kv.Aside(d.store); ok && len(intent) >= d.lim.aside {
		name := asideName{nonce: rand.Uint64(), sum: ledger.Checksum(intent), length: uint64(len(intent))}
		if err := aside.PutAside(name.key(d, slot), intent); err != nil {
			return fmt.Errorf("write the intent: %w", err)
		}
		intent = name.encode()
	}
	batch := d.store.Batch()
	defer batch.Close()
	batch.Set(d.intentKey(slot), intent)
	if err := batch.Commit(true); err != nil {
		return fmt.Errorf("write the intent: %w", err)
	}
	return nil
}

// asideName is left of an intent in the tables. Its successor has another name, so the
// earlier one stays whole until the successor is.
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
		return n, fmt.Errorf("%w: %d bytes", errIntent, len(b))
	}
	return asideName{binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[9:]), binary.BigEndian.Uint64(b[13:])}, nil
}

// asideKey begins the names of the intents of a slot beside the tables.
func (d *Destination) asideKey(slot byte) []byte {
	return append(ledger.Key(ledger.KindIntent, d.dest), slot)
}

func (n asideName) key(d *Destination, slot byte) []byte {
	return binary.BigEndian.AppendUint64(d.asideKey(slot), n.nonce)
}

// errIntent marks an intent other than written.
var errIntent = errors.New("the intent of a batch that was under way is damaged")

// readIntent gives the intent of a slot, or kv.ErrNotFound.
func (d *Destination) readIntent(slot byte) ([]byte, error) {
	raw, err := d.store.Get(d.intentKey(slot))
	if err != nil || len(raw) == 0 || raw[0] != asideIntent {
		return raw, err
	}
	name, err := decodeAsideName(raw)
	if err == nil {
		raw, err = d.readAside(slot, name)
	}
	return raw, err
}

func (d *Destination) readAside(slot byte, name asideName) ([]byte, error) {
	aside, ok := kv.Aside(d.store)
	if !ok {
		return nil, fmt.Errorf("%w: it is beside a state of another kind", errIntent)
	}
	raw, err := aside.GetAside(name.key(d, slot))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, fmt.Errorf("%w: its file in the state is not there", errIntent)
	case err != nil:
		return nil, fmt.Errorf("intended batch: %w", err)
	case uint64(len(raw)) != name.length || ledger.Checksum(raw) != name.sum:
		return nil, fmt.Errorf("%w: its file in the state has %d bytes with another checksum or length", errIntent, len(raw))
	}
	return raw, nil
}

// dropIntent is called when a commit has deleted the intent of a slot.
func (d *Destination) dropIntent(slot byte) {
	if aside, ok := kv.Aside(d.store); ok {
		if err := aside.DropAside(d.asideKey(slot)); err != nil {
			d.log.Warn("the intent of a batch that is recorded cannot be removed; the next one removes it", "error", err)
		}
	}
}

// redo finishes the batches of a crash or a failed write. A batch may stand in
// the mirror whole, in part or not at all; afterwards it does. Where there are two,
// they are of different resources, all new: their order does not matter.
func (d *Destination) redo(ctx context.Context) error {
	d.unfinished.Store(false)
	for slot := range byte(2) {
		err := d.redoBatch(ctx, slot)
		if errors.Is(err, errIntent) {
			err = d.giveUp(slot, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp leaves a batch to the comparison: the cursor is before it, and what stands of it
// in the mirror is told by that, where no record has it.
func (d *Destination) giveUp(slot byte, why error) error {
	d.log.Error("a batch that was under way cannot be done again; the mirror is compared instead", "error", why)
	b := d.store.Batch()
	defer b.Close()
	b.Delete(d.intentKey(slot))
	if err := d.commit(b, func(m *meta) { m.Compare = cmp.Or(m.Compare, errIntent.Error()) }); err != nil {
		return err
	}
	d.dropIntent(slot)
	return nil
}

func (d *Destination) redoBatch(ctx context.Context, slot byte) error {
	raw, err := d.readIntent(slot)
	if errors.Is(err, kv.ErrNotFound) {
		d.dropIntent(slot) // of a crash just before that
		return nil
	}
	if err != nil {
		return err
	}
	files := len(raw) > 0 && raw[0] == filesIntent
	if len(raw) > 0 && raw[0] > asideIntent {
		return fmt.Errorf("intended batch: it was written by a newer rsbridge (version %d, this one knows %d), and only that can finish it: run sync with the newer one", raw[0], asideIntent)
	}
	if (len(raw) == 0 || raw[0] != intentVersion) && !files {
		return fmt.Errorf("%w: %w", errIntent, ledger.ErrDamaged)
	}
	var ops []*op
	dec := ledger.Decoder{B: raw[1:]}
	for len(dec.B) > 0 && !dec.Bad {
		o := &op{}
		dec.Fixed(o.loc[:])
		for n := dec.Varint(); n > 0 && !dec.Bad; n-- {
			var loc ledger.Hash
			dec.Fixed(loc[:])
			o.replaces = append(o.replaces, loc)
		}
		if dec.Flag() {
			if o.rec, err = ledger.DecodeRecord(dec.Bytes()); err != nil {
				return fmt.Errorf("%w: %w", errIntent, err)
			}
			if o.packed = slices.Clone(dec.Bytes()); len(o.packed) > 0 {
				if o.wire, err = ledger.Unpack(o.packed); err != nil {
					return fmt.Errorf("%w: %w", errIntent, err)
				}
			}
		}
		ops = append(ops, o)
	}
	if dec.Bad {
		return fmt.Errorf("%w: %w", errIntent, ledger.ErrDamaged)
	}
	if files {
		return d.redoFiles(slot, ops)
	}
	d.log.Info("redoing the batch that was under way", "resources", len(ops))
	if err := d.beforeRedo(ctx); err != nil {
		return err
	}
	var c counts
	d.spaceL.Lock()
	defer d.spaceL.Unlock()
	// What the record says may be in the mirror or not: deletions of the old and
	// insertions of the new state are both repeated.
	return d.applyLocked(ctx, &inFlight{slot: slot}, ops, nil, &c, d.meta.Phase == phaseBaseline, nil)
}

// cutOffBeside names another destination of the same graph whose batch has not ended, "" for
// none: what stands of it in the mirror is in no record yet.
func (d *Destination) cutOffBeside() (string, error) {
	for pair, err := range d.store.Scan([]byte{ledger.KindIntent}, []byte{ledger.KindIntent + 1}) {
		if err != nil {
			return "", err
		}
		dest := ledger.ID(binary.BigEndian.Uint32(pair.Key[1:]))
		if dest == d.dest {
			continue
		}
		raw, err := d.store.Get(ledger.Key(ledger.KindMeta, dest))
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		var m meta
		if err == nil {
			err = json.Unmarshal(raw, &m)
		}
		if err != nil {
			return "", fmt.Errorf("the batch of another destination: %w", err)
		}
		if m.Space == uint32(d.space) {
			return m.Name, nil
		}
	}
	return "", nil
}
