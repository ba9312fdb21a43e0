package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/destination/sink/marks"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Resources that are no RDF (pages, images, PDFs) have nothing in a store. They are
// recorded with the SHA-256 of their bytes, counted, and indexed; with Config.Files
// their bytes are kept as well, each at the path of its address (folder.go). A file
// is written before the batch that records it and removed before the batch that
// forgets it, so that what a crash leaves is done again by the next run.

// Other is a resource, not of RDF.
type Other struct {
	Location string `json:"location"`
	Entity   string `json:"entity,omitempty"` // that it describes or belongs to, as the source tells
	Length   *int64 `json:"length"`           // as promised; null: unknown
	Digest   string `json:"digest,omitempty"` // SHA-256 of its bytes, hexadecimal
	File     string `json:"file,omitempty"`   // in the folder; "": its bytes are not kept
}

// root is the folder of what is kept as files.
func (d *Destination) root() *os.Root {
	if d.folder != nil {
		return d.folder
	}
	return d.beside
}

// nameKey has the owner of a path.
func (d *Destination) nameKey(name string) []byte {
	if d.folder != nil {
		return ledger.Key(ledger.KindGraph, d.space, ledger.HashOf(name))
	}
	return ledger.Key(ledger.KindFile, d.dest, ledger.HashOf(name))
}

// openBeside opens the folder of files beside a store.
func (d *Destination) openBeside() (err error) {
	if d.cfg.Files == "" {
		return nil
	}
	if d.folder != nil {
		return errors.New("files: the mirror is a folder of files already")
	}
	if d.cfg.Files, err = filepath.Abs(d.cfg.Files); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	if err := os.MkdirAll(d.cfg.Files, 0o777); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	if d.beside, err = os.OpenRoot(d.cfg.Files); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	return nil
}

// besideState is the file with the owner of the folder.
type besideState struct {
	Version int    `json:"version"`
	Mirror  string `json:"mirror"` // mark of the destination
	Name    string `json:"name"`
}

// claimBeside makes the folder ours, unless it holds what is not.
func (d *Destination) claimBeside() error {
	raw, err := d.readBeside(filesink.StateFile)
	var st besideState
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &st); err != nil {
			return fmt.Errorf("files: %s: %w", filepath.Join(d.cfg.Files, filesink.StateFile), err)
		}
		if st.Mirror == d.meta.Mark {
			return nil
		}
		if !d.cfg.Adopt {
			return fmt.Errorf("files: folder %s is kept by the destination %q of another state: choose another folder, or give %s to take it over", d.cfg.Files, st.Name, d.cfg.Settings.Of("adopt: true"))
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("files: %w", err)
	default:
		list, err := fs.ReadDir(d.beside.FS(), ".")
		if err != nil {
			return fmt.Errorf("files: %w", err)
		}
		foreign := func(e fs.DirEntry) bool { return !marks.Unfinished(e.Name()) }
		if slices.ContainsFunc(list, foreign) && !d.cfg.Adopt {
			return fmt.Errorf("files: folder %s already holds something that rsbridge did not write: choose another one, or give %s, after which an audit finds what is not of the source", d.cfg.Files, d.cfg.Settings.Of("adopt: true"))
		}
	}
	raw, err = json.Marshal(besideState{1, d.meta.Mark, d.cfg.Name})
	if err == nil {
		err = marks.Replace(filepath.Join(d.cfg.Files, filesink.StateFile), func(w io.Writer) error { _, err := w.Write(raw); return err })
	}
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	return nil
}

func (d *Destination) readBeside(name string) ([]byte, error) {
	f, err := d.beside.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// otherwise completes what is recorded of a resource that is no RDF: sum is the
// SHA-256 of its bytes, body nil where they were not fetched.
func (d *Destination) otherwise(o *outcome, sum rdfres.Digest, body []byte) {
	if !d.inPart(o) {
		return
	}
	o.rec.Graph = sum // so that its bytes are compared where graphs are
	if d.beside != nil {
		o.raw = body
	}
}

// keepFiles writes the files of a batch. By the intent the next run knows which may be
// otherwise than recorded.
func (d *Destination) keepFiles(ctx context.Context, slot byte, ops []*op) error {
	if d.beside == nil {
		return nil
	}
	var some []*op
	for _, o := range ops {
		if o.fault == nil && o.rec != nil && o.raw != nil {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		return nil
	}
	if err := d.led.Begin(slot, intentOf(ledger.OfFiles, some)); err != nil {
		return err
	}
	b := d.store.Batch()
	defer b.Close()
	files := d.fileWriter(ops)
	defer files.close()
	for _, o := range some {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := d.putFile(b, files, o, false); err != nil {
			return err
		}
		if err := d.crashAt("file"); err != nil {
			return err
		}
	}
	if err := files.flush(); err != nil {
		return err
	}
	return b.Commit(false)
}

// rememberOther keeps the index of what is no RDF, and tells by how many it grew.
func (d *Destination) rememberOther(b kv.Batch, ch *delta) (by int64, err error) {
	other := func(r *ledger.Record) bool { return r != nil && r.Has(ledger.FlagNotRDF) }
	loc, old, rec := ch.op.loc, ch.old, ch.op.rec
	kept := rec == nil && old != nil && d.cfg.Keep == "deleted" && !ch.op.moved
	if other(old) && !old.Has(ledger.FlagKept) {
		by--
	}
	switch {
	case kept:
		return by, nil // not current, and its file stays
	case other(rec):
		by++
		name := ""
		if d.beside != nil {
			if name, err = d.fileOf(rec.Loc); err != nil {
				return 0, err
			}
		}
		b.Set(ledger.Key(ledger.KindOther, d.dest, loc), []byte(name))
	case other(old), rec == nil && old == nil && ch.op.it != nil && d.beside != nil: // of the latter a crash may have left the file
		if d.beside != nil {
			at := ""
			if old != nil {
				at = old.Loc
			} else {
				at = ch.op.it.Loc
			}
			name, err := d.fileOf(at)
			switch {
			case err != nil:
			case name != "":
				err = d.removeFile(name)
				b.Delete(d.nameKey(name))
			case old == nil:
				err = d.removeStray(at)
			}
			if err != nil {
				return 0, err
			}
		}
		b.Delete(ledger.Key(ledger.KindOther, d.dest, loc))
	}
	return by, nil
}

// othersMoved brings the index and the files to what is configured now. It tells
// whether the resources that are no RDF must be fetched again.
func (d *Destination) othersMoved(r *run) (bool, error) {
	m := d.snapshotMeta()
	if d.folder != nil {
		return false, nil
	}
	if d.beside != nil && !r.dry {
		if err := d.claimBeside(); err != nil {
			return false, err
		}
	}
	if m.Files == d.cfg.Files {
		return false, nil
	}
	refetch := m.Stage != ledger.None && d.cfg.Files != "" && m.Files != d.cfg.Files
	snap := d.store.Snapshot()
	defer snap.Close()
	b := d.store.Batch()
	defer b.Close()
	n, some := int64(0), false
	for loc, rec := range d.led.Records(snap) {
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
		b.Set(ledger.Key(ledger.KindOther, d.dest, loc), nil)
		if refetch {
			rec.Forget()
			d.led.PutRecord(b, loc, rec.Record)
		}
		if b.Size() > 4<<20 {
			if err := b.Commit(true); err != nil {
				return false, err
			}
		}
	}
	if m.Files != d.cfg.Files && !r.dry {
		from := ledger.Key(ledger.KindFile, d.dest)
		b.DeleteRange(from, kv.PrefixEnd(from))
		if m.Files != "" {
			d.log.Warn("the files of resources that are no RDF are kept elsewhere now, or not any more; those of before stay", "files", m.Files, "now", d.cfg.Files)
		}
	}
	if refetch && some {
		r.why("files is %s now: the resources that are no RDF are fetched for it", d.cfg.Files)
	}
	return refetch && some, d.commit(b, func(m *meta) {
		m.Files, m.NotRDF = d.cfg.Files, n
		if refetch && some {
			m.OweSource("files was changed")
		}
	})
}

// beside compares the files beside a store with the records.
func (c *mirrorCompare) beside(ctx context.Context, snap kv.Reader) error {
	d := c.d
	if d.beside == nil || d.snapshotMeta().Files != d.cfg.Files {
		return nil
	}
	prefix := ledger.Key(ledger.KindOther, d.dest)
	for pair, err := range snap.Scan(prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		loc := ledger.Hash(pair.Key[len(prefix):])
		rec, err := d.led.Record(loc)
		if err != nil {
			return err
		}
		if rec == nil {
			continue
		}
		if err := c.file(loc, rec); err != nil {
			return err
		}
	}
	return c.strangers(ctx)
}

// Others yields the resources that are no RDF, in no order that means something.
// The sequence ends after the first error.
func (d *Destination) Others(ctx context.Context) iter.Seq2[Other, error] {
	return func(yield func(Other, error) bool) {
		snap := d.store.Snapshot()
		defer snap.Close()
		prefix := ledger.Key(ledger.KindOther, d.dest)
		for pair, err := range snap.Scan(prefix, kv.PrefixEnd(prefix)) {
			var o Other
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				var raw []byte
				if raw, err = snap.Get(ledger.Key(ledger.KindResource, d.dest, ledger.Hash(pair.Key[len(prefix):]))); err == nil {
					var rec *ledger.Record
					if rec, err = ledger.DecodeRecord(raw); err == nil {
						o = Other{Location: rec.Loc, Entity: rec.Entity, File: string(pair.Value)}
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
