package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// registry is held while numbers are given out or go.
var registry sync.Mutex

// LockNumbers locks the numbers of destinations and spaces until release is called.
func LockNumbers() (release func()) {
	registry.Lock()
	return registry.Unlock
}

// CheckLayout refuses records of another layout, and adds the version of a new state to a batch.
func CheckLayout(ctx context.Context, r kv.Reader, b kv.Batch) error {
	v, err := r.Get(ctx, []byte{KindVersion})
	switch {
	case errors.Is(err, kv.ErrNotFound):
		b.Set([]byte{KindVersion}, []byte{LayoutVersion})
	case err != nil:
		return err
	case len(v) != 1 || v[0] > LayoutVersion:
		return fmt.Errorf("its records were written by a newer rsbridge (layout %v, this one knows %d)", v, LayoutVersion)
	case v[0] < LayoutVersion:
		return fmt.Errorf("its records were written by an earlier rsbridge (layout %d, this one reads %d): begin with a new state", v[0], LayoutVersion)
	}
	return nil
}

// Space is one graph of one store, or all per-entity graphs of one store.
type Space struct {
	Target string // address of the store, without an access token
	Name   string // SingleSpace and the graph, or PerEntity
}

// PerEntity is the name of a space of per-entity graphs.
const PerEntity = "per-entity"

func (s Space) key() []byte { return NameKey(KindSpaceName, s.Target, s.Name) }

// SpaceID is the number of a space, 0 for none.
func SpaceID(ctx context.Context, r kv.Reader, s Space) (ID, error) { return lookup(ctx, r, s.key()) }

// NewSpaceID is SpaceID, with a new number in the batch for none.
func NewSpaceID(ctx context.Context, r kv.Reader, b kv.Batch, s Space) (ID, error) {
	return allocate(ctx, r, b, s.key(), KindSpaceLast)
}

// DestID is the number of a destination, 0 for none.
func DestID(ctx context.Context, r kv.Reader, name string) (ID, error) {
	return lookup(ctx, r, NameKey(KindDestName, name))
}

// NewDestID is DestID, with a new number in the batch for none.
func NewDestID(ctx context.Context, r kv.Reader, b kv.Batch, name string) (ID, error) {
	return allocate(ctx, r, b, NameKey(KindDestName, name), KindDestLast)
}

// Rename gives the number of a destination another name. The record of a destination that
// has the name already goes: it has mirrored nothing.
func Rename(ctx context.Context, r kv.Reader, b kv.Batch, from, to string) (ID, error) {
	n, err := DestID(ctx, r, from)
	if err != nil || n == 0 {
		return 0, err
	}
	if own, err := DestID(ctx, r, to); err != nil {
		return 0, err
	} else if own != 0 {
		b.Delete(Key(KindMeta, own))
	}
	b.Set(NameKey(KindDestName, to), n.append(nil))
	b.Delete(NameKey(KindDestName, from))
	return n, nil
}

func (n ID) append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func lookup(ctx context.Context, r kv.Reader, name []byte) (ID, error) {
	v, err := r.Get(ctx, name)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(v) != 4:
		return 0, fmt.Errorf("%w: number of %q", ErrDamaged, name[1:])
	}
	return ID(binary.BigEndian.Uint32(v)), nil
}

func allocate(ctx context.Context, r kv.Reader, b kv.Batch, name []byte, last byte) (ID, error) {
	n, err := lookup(ctx, r, name)
	if err != nil || n != 0 {
		return n, err
	}
	if n, err = lookup(ctx, r, []byte{last}); err != nil {
		return 0, err
	}
	n++
	b.Set(name, n.append(nil))
	b.Set([]byte{last}, n.append(nil))
	return n, nil
}

// Named yields the numbers of all destinations, by name. The sequence ends after the first
// error.
func Named(ctx context.Context, r kv.Reader) iter.Seq2[Name, error] {
	return func(yield func(Name, error) bool) {
		prefix := []byte{KindDestName}
		for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			var n Name
			if err == nil && len(pair.Value) != 4 {
				err = fmt.Errorf("%w: name of a destination", ErrDamaged)
			}
			if err == nil {
				n = Name{string(pair.Key[1:]), ID(binary.BigEndian.Uint32(pair.Value))}
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

// Name is a destination and its number.
type Name struct {
	Name string
	Dest ID
}

// Spaces reads all spaces, by number.
func Spaces(ctx context.Context, r kv.Reader) (map[ID]Space, error) {
	out := map[ID]Space{}
	prefix := []byte{KindSpaceName}
	for pair, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		target, name, ok := bytes.Cut(pair.Key[1:], []byte{0})
		if !ok || len(pair.Value) != 4 {
			return nil, fmt.Errorf("%w: name of a space", ErrDamaged)
		}
		out[ID(binary.BigEndian.Uint32(pair.Value))] = Space{string(target), string(name)}
	}
	return out, nil
}
