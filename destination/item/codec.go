package item

import (
	"encoding/binary"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// version is the first byte of encode.
const version = 7

func (it *Item) Encode() []byte {
	b := []byte{version}
	b = ledger.AppendString(b, it.Loc)
	b = ledger.AppendString(b, it.Entity)
	b = ledger.AppendString(b, it.Change)
	b = appendPromise(b, &it.Promise)
	b = ledger.AppendTime(b, it.LastMod)
	b = ledger.AppendTime(b, it.Time)
	b = binary.AppendVarint(b, int64(it.Sequence))
	b = ledger.AppendString(b, it.Path)
	if it.Version == nil {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = ledger.AppendString(b, it.Version.URL)
		b = appendPromise(b, &it.Version.Promise)
	}
	b = binary.AppendVarint(b, int64(len(it.Others)))
	for _, p := range it.Others {
		b = ledger.AppendString(b, p.URL)
		b = appendPromise(b, &p.Promise)
		b = ledger.AppendString(b, p.Rel)
	}
	b = ledger.AppendString(b, it.Bad)
	if it.AsOf.IsZero() {
		b = append(b, 0)
	} else {
		b = ledger.AppendTime(ledger.AppendString(append(b, 1), it.TimeGate), it.AsOf)
	}
	if it.Path != "" {
		b = ledger.AppendString(b, it.Package)
	}
	if it.File {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return ledger.AppendString(b, it.Via)
}

func appendPromise(b []byte, p *fetch.Promise) []byte {
	b = ledger.AppendString(b, p.Hashes.String())
	b = binary.AppendVarint(b, p.Length)
	b = ledger.AppendString(b, p.Type)
	b = ledger.AppendString(b, p.Encoding)
	if p.Graph.IsZero() {
		return append(b, 0)
	}
	return append(append(b, 1), p.Graph[:]...)
}

func Decode(b []byte) (*Item, error) {
	if len(b) == 0 || b[0] != version {
		return nil, ledger.ErrDamaged
	}
	d := ledger.Decoder{B: b[1:]}
	it := &Item{Loc: d.String(), Entity: d.String(), Change: d.String(), Promise: decodePromise(&d), LastMod: d.Time(), Time: d.Time()}
	it.Sequence = uint64(d.Varint())
	it.Path = d.String()
	if d.Flag() {
		it.Version = &Place{URL: d.String(), Promise: decodePromise(&d)}
	}
	n := d.Varint()
	for range min(max(n, 0), MaxPlaces) {
		it.Others = append(it.Others, Place{URL: d.String(), Promise: decodePromise(&d), Rel: d.String()})
	}
	it.Bad = d.String()
	if d.Flag() {
		it.TimeGate, it.AsOf = d.String(), d.Time()
	}
	if it.Path != "" {
		it.Package = d.String()
	}
	it.File, it.Via = d.Flag(), d.String()
	if d.Bad || n > MaxPlaces {
		return nil, ledger.ErrDamaged
	}
	return it, nil
}

func decodePromise(d *ledger.Decoder) fetch.Promise {
	var p fetch.Promise
	if h := d.String(); h != "" {
		var err error
		if p.Hashes, err = resourcesync.ParseHashes(h); err != nil {
			d.Bad = true
		}
	}
	p.Length = d.Varint()
	p.Type = d.String()
	p.Encoding = d.String()
	if d.Flag() {
		d.Fixed(p.Graph[:])
	}
	return p
}
