package destination

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Resources without RDF (pages, images, PDFs) have nothing in a store. They are recorded
// with the SHA-256 of their bytes, counted, and indexed; with Config.Files their bytes are
// kept as well. A file is written before the batch of its record and removed before the
// batch without it: the next run does again the work of a crash.

// Other is a resource, not of RDF.
type Other struct {
	Location string `json:"location"`
	Entity   string `json:"entity,omitempty"` // that it describes or belongs to, as the source tells
	Length   *int64 `json:"length"`           // as promised; null: unknown
	Digest   string `json:"digest,omitempty"` // SHA-256 of its bytes, hexadecimal
	File     string `json:"file,omitempty"`   // in the folder; "": its bytes are not kept
	Place    string `json:"-"`                // in the list
}

// openBeside opens the folder of files beside a store.
func (d *Destination) openBeside() error {
	if d.cfg.Files == "" {
		return nil
	}
	if d.stand.Files != nil {
		return errors.New("files: the mirror is a folder of files already")
	}
	path, err := filepath.Abs(d.cfg.Files)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	folder, err := filesink.Open(path)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	d.cfg.Files = path
	return d.useBeside(folder, &sink.Place{Source: d.cfg.Source, Log: d.mem.Log})
}

// useBeside opens the mirror in the folder of files beside a store.
func (d *Destination) useBeside(folder *filesink.Folder, place *sink.Place) error {
	m, err := folder.Open(place)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	d.stand.Beside = &keep.Beside{Full: sink.NewFull(place, m), Folder: folder}
	d.stand.Files = &keep.Files{Files: d.stand.Beside.Files, Memory: d.mem, State: func(rec *ledger.Record) rdfres.Digest { return rec.Graph }, Key: func(name ledger.Hash) []byte { return ledger.Key(ledger.KindFile, d.mem.Dest, name) }}
	return nil
}

// othersMoved brings the index and the files to what is configured now. It tells
// whether the resources that are no RDF must be fetched again.
func (r *run) othersMoved(ctx context.Context) (bool, error) {
	d := r.d
	m := d.mem.SnapshotMeta()
	fresh := false // as after it was removed
	if _, err := d.stand.IsBeside(ctx); err != nil {
		return false, err
	}
	if d.stand.Beside != nil {
		var err error
		if fresh, err = d.stand.ClaimBeside(ctx, r.dry); err != nil {
			return false, err
		}
	}
	if m.Files == d.cfg.Files && !fresh {
		return false, nil
	}
	refetch := m.Stage != ledger.None && d.cfg.Files != ""
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	b := d.mem.Store.Batch()
	defer b.Close()
	n, some := int64(0), false
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return false, rec.Err
		}
		if !rec.Has(ledger.FlagNotRDF) {
			continue
		}
		some = true
		if !rec.Has(ledger.FlagKept) {
			n++
		}
		b.Set(ledger.Key(ledger.KindOther, d.mem.Dest, loc), nil)
		if refetch {
			rec.Forget()
			d.mem.Ledger.PutRecord(b, loc, rec.Record)
		}
		if b.Size() > 4<<20 {
			if err := b.Commit(ctx, true); err != nil {
				return false, err
			}
		}
	}
	if m.Files != d.cfg.Files && !r.dry {
		from := ledger.Key(ledger.KindFile, d.mem.Dest)
		b.DeleteRange(from, kv.PrefixEnd(from))
		if m.Files != "" {
			d.mem.Log.Warn("the files of resources that are no RDF are kept elsewhere now, or not any more; those of before stay", "files", m.Files, "now", d.cfg.Files)
		}
	}
	if refetch && some {
		r.plan.lost = r.dry
		r.why("files is %s: the non-RDF resources are fetched for it", d.cfg.Files)
	}
	err := d.mem.Commit(ctx, b, func(m *keep.Meta) {
		m.Files, m.NotRDF = d.cfg.Files, n
		if refetch && some {
			m.OweSource("files was changed")
			if m.Damage != "" { // of the folder perhaps: a comparison tells
				m.OweMirror("files was changed after an audit found damage")
			}
		}
	})
	if err == nil && fresh && !r.dry { // what the folder lacks is recorded before
		err = d.stand.Beside.Apply(ctx, &sink.Batch{}, d.stand.CheckpointOf(&d.mem.Meta))
	}
	return refetch && some, err
}

// Others yields the resources that are no RDF, in no order that means something.
// The sequence ends after the first error.
func (d *Destination) Others(ctx context.Context, after string) iter.Seq2[Other, error] {
	return func(yield func(Other, error) bool) {
		_, place, err := placeAt(after)
		if err != nil {
			yield(Other{}, err)
			return
		}
		var behind []ledger.Hash
		if after != "" {
			behind = append(behind, place)
		}
		snap := d.mem.Store.Snapshot(ctx)
		defer snap.Close()
		prefix := ledger.Key(ledger.KindOther, d.mem.Dest)
		for pair, err := range snap.Scan(ctx, ledger.After(ledger.KindOther, d.mem.Dest, behind...), kv.PrefixEnd(prefix)) {
			var o Other
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				var raw []byte
				if raw, err = snap.Get(ctx, ledger.Key(ledger.KindResource, d.mem.Dest, ledger.Hash(pair.Key[len(prefix):]))); err == nil {
					var rec *ledger.Record
					if rec, err = ledger.DecodeRecord(raw); err == nil {
						o = Other{Place: placeOf('o', ledger.Hash(pair.Key[len(prefix):])), Location: rec.Loc, Entity: rec.Entity, File: string(pair.Value)}
						if n, _ := rec.Promised(); n >= 0 {
							o.Length = &n
						}
						if rec.Graph != (rdfres.Digest{}) {
							o.Digest = rec.Graph.String()
						}
					}
				}
			}
			if errors.Is(err, kv.ErrNotFound) {
				continue
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}
