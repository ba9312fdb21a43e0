package ledger

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Paths is the record of the paths of files, as a batch changes it.
type Paths struct {
	ledger *Ledger
	key    func(name Hash) []byte // of the record of a path
	batch  kv.Batch               // nil: it is only asked
	taken  map[string]Hash
}

// Paths are those with records at key.
func (l *Ledger) Paths(key func(name Hash) []byte, b kv.Batch) *Paths {
	return &Paths{l, key, b, map[string]Hash{}}
}

// Owner tells whether a path is of loc, and whether it is of any location.
func (p *Paths) Owner(ctx context.Context, name, loc string) (own, taken bool, err error) {
	of, taken := p.taken[name]
	if !taken {
		var o Owner
		o, taken, err = p.Recorded(ctx, name)
		of = o.Loc
	}
	return taken && of == HashOf(loc), taken, err
}

// Recorded is the recorded owner: several destinations may have adopted one folder.
func (p *Paths) Recorded(ctx context.Context, name string) (o Owner, ok bool, err error) {
	v, err := p.ledger.store.Get(ctx, p.key(HashOf(name)))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return o, false, nil
	case err != nil:
		return o, false, err
	case len(v) < 20:
		return o, false, ErrDamaged
	}
	return Owner{Dest: ID(binary.BigEndian.Uint32(v)), Loc: Hash(v[4:20])}, true, nil
}

// Take gives a path to a location.
func (p *Paths) Take(name, loc string) {
	of := HashOf(loc)
	v := binary.BigEndian.AppendUint32(nil, uint32(p.ledger.dest))
	p.batch.Set(p.key(HashOf(name)), append(append(v, of[:]...), name...))
	p.taken[name] = of
}

// Free takes a path from its location.
func (p *Paths) Free(name string) {
	p.batch.Delete(p.key(HashOf(name)))
	delete(p.taken, name)
}
