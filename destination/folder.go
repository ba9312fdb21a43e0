package destination

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/destination/sink/marks"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A mirror of files has each resource at the path of its address below the
// folder: of the source's own host as it is, of another host below a folder HOST
// (with _PORT). Bytes unfit for a file name are written %XX, a query is a part of the name, empty and dot segments are written
// %, and a long segment ends in a hash. If a path is taken, as by
// /a and /a/b, the file is below %/ by the hash of its address. What is written is
// what was verified, byte for byte; the record has its SHA-256 (normal digest).
//
// Files are written first, then the checkpoint, then the records: a run that was
// interrupted between them fetches and writes the same again. By the intent the next one
// knows which files may be otherwise than recorded, since the source may have gone on.

const maxSegment = 120

// pathsOf are the possible paths of an address: its own, the other one if that is taken,
// and the one from a former host of the source.
func (d *Destination) pathsOf(loc string) []string {
	u, err := url.Parse(loc)
	own, ownErr := url.Parse(d.cfg.Source)
	if err != nil || u.Host == "" {
		return []string{hashedPath(loc), hashedPath(loc)}
	}
	elsewhere := ownErr != nil || !strings.EqualFold(own.Host, u.Host)
	paths := []string{pathFrom(u, loc, elsewhere), hashedPath(loc)}
	if p := pathFrom(u, loc, !elsewhere); !slices.Contains(paths, p) {
		paths = append(paths, p)
	}
	return paths
}

// pathFrom is the path of an address of the source's own host, or elsewhere.
func pathFrom(u *url.URL, loc string, elsewhere bool) string {
	var parts []string
	if elsewhere {
		parts = append(parts, safeSegment(strings.ReplaceAll(strings.ToLower(u.Host), ":", "_")))
	}
	rest := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.RawQuery != "" {
		rest[len(rest)-1] += "?" + strings.ReplaceAll(u.RawQuery, "/", "%2F")
	}
	if u.Fragment != "" {
		rest[len(rest)-1] += "#" + strings.ReplaceAll(u.EscapedFragment(), "/", "%2F")
	}
	for _, s := range rest {
		parts = append(parts, safeSegment(s))
	}
	p := strings.Join(parts, "/")
	if len(p) > 1000 || strings.HasPrefix(p, ".rsbridge") {
		return hashedPath(loc)
	}
	return p
}

// hashedPath is for files without a path of their own.
func hashedPath(loc string) string {
	sum := sha256.Sum256([]byte(loc))
	ext := ""
	if u, err := url.Parse(loc); err == nil {
		if e := path.Ext(u.Path); len(e) > 1 && len(e) < 10 && safeSegment(e) == e {
			ext = e
		}
	}
	return "%/" + hex.EncodeToString(sum[:16]) + ext
}

func safeSegment(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 0x80 || c <= 0x20 || c == 0x7f || strings.IndexByte(`\:*?"<>|#`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	out := b.String()
	if strings.Trim(out, ".") == "" || strings.HasSuffix(out, ".") {
		out += "%" // "", ".", "..", and names that some systems cut
	}
	if len(out) > maxSegment {
		sum := sha256.Sum256([]byte(s))
		ext := path.Ext(out)
		if len(ext) > 10 {
			ext = ""
		}
		out = out[:maxSegment-20-len(ext)] + "%" + hex.EncodeToString(sum[:8]) + ext
	}
	return out
}

// represent makes a record of a verified body, with its triples or bytes.
func (d *Destination) represent(ctx context.Context, it *item, p place, body []byte, kind fetch.Kind) (*outcome, error) {
	if kind := listKind(body); kind != "" {
		return nil, fmt.Errorf("%s %w: it is a %s, and no resource", clip.Middle(p.URL), errContent, kind)
	}
	o, err := d.representRDF(ctx, it, p, body, kind)
	if d.folder == nil {
		if err == nil {
			err = d.mapped(context.Background(), o)
		}
		if err != nil {
			return nil, err
		}
		if o.rec.Has(ledger.FlagNotRDF) {
			d.otherwise(o, sha256.Sum256(body), body)
		}
		return o, nil
	}
	if err != nil {
		if !errors.Is(err, errContent) || !it.Promise.Graph.IsZero() {
			return nil, err
		}
		// The bytes are the promised ones, whatever they are.
		rec := it.record()
		rec.Flags |= ledger.FlagNotRDF
		o = &outcome{it: it, rec: rec, notRDF: true}
	}
	o.empty = o.empty || len(bytes.TrimSpace(body)) == 0
	o.wire, o.ts, o.rec.Triples = nil, nil, 0
	if o.rec.Has(ledger.FlagNotRDF) {
		d.inPart(o)
	}
	if o.rec.Has(ledger.FlagUnselected) {
		return o, nil
	}
	if h := o.rec.Hashes; h.SHA256 == "" && h.SHA1 == "" && h.MD5 == "" {
		o.rec.Hashes = resourcesync.HashesOf(body, h)
	}
	o.raw, o.rec.Normal = body, sha256.Sum256(body)
	if o.rec.Has(ledger.FlagNotRDF) {
		o.rec.Graph = o.rec.Normal // bytes are compared as graphs are
	}
	return o, nil
}

// ownerOf is the location of a path.
func (d *Destination) ownerOf(name string) (loc ledger.Hash, ok bool, err error) {
	v, err := d.store.Get(d.nameKey(name))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return loc, false, nil
	case err != nil:
		return loc, false, err
	case len(v) < 20:
		return loc, false, ledger.ErrDamaged
	}
	return ledger.Hash(v[4:20]), true, nil
}

// fileOf is the path of a recorded resource, "" for none.
func (d *Destination) fileOf(loc string) (string, error) {
	for _, name := range d.pathsOf(loc) {
		owner, ok, err := d.ownerOf(name)
		if err != nil {
			return "", err
		}
		if ok && owner == ledger.HashOf(loc) {
			return name, nil
		}
	}
	return "", nil
}

// applyFiles is apply for a mirror of files.
func (d *Destination) applyFiles(ctx context.Context, ops []*op, c *counts, change func(*meta)) error {
	b := d.store.Batch()
	defer b.Close()
	var n counts
	var resources, unselected int64
	written := false
	files := d.fileWriter(ops)
	defer files.close()
	named := map[ledger.Hash]bool{}
	for _, o := range ops {
		named[o.loc] = o.fault == nil && !o.settle // else nothing becomes of it
	}
	remove := func(loc ledger.Hash, moved bool) error {
		old, err := d.led.Record(loc)
		switch {
		case err != nil:
			return err
		case old == nil && !moved:
			n.unchanged++
			return nil
		case old == nil:
			return nil
		}
		if !old.Has(ledger.FlagKept) {
			resources--
		}
		unselected -= old.Unselected()
		switch {
		case moved:
			n.moved++
		case d.cfg.Keep != "deleted" || !old.Has(ledger.FlagKept):
			n.became(old, nil, false)
		}
		if d.cfg.Keep == "deleted" && !moved {
			old.Flags |= ledger.FlagKept
			d.led.PutRecord(b, loc, old)
			return nil
		}
		name, err := d.fileOf(old.Loc)
		if err != nil {
			return err
		}
		if name != "" {
			files.close()
			if err := d.removeFile(name); err != nil {
				return err
			}
			written = true
			b.Delete(d.nameKey(name))
		}
		d.led.Drop(b, loc)
		return nil
	}
	leave := func(o *op) error { // former locations of its entity
		for _, loc := range o.replaces {
			if !named[loc] {
				named[loc] = true
				if err := remove(loc, o.rec != nil); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if slices.ContainsFunc(ops, func(o *op) bool { return o.fault == nil && !o.settle }) {
		if err := d.led.Begin(0, intentOf(ledger.OfFiles, ops)); err != nil {
			return err
		}
	}
	for _, o := range ops {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		d.tell(o)
		d.withLeaving(b, o)
		if o.fault != nil {
			d.led.PutFault(b, o.loc, o.fault)
			continue
		}
		d.led.DropFault(b, o.loc)
		if o.settle {
			continue
		}
		if o.rec == nil {
			if err := remove(o.loc, false); err != nil {
				return err
			}
			if err := leave(o); err != nil {
				return err
			}
			continue
		}
		old, err := d.led.Record(o.loc)
		if err != nil {
			return err
		}
		if o.raw == nil && old != nil && o.rec.Normal.IsZero() && !o.rec.Has(ledger.FlagUnselected) { // as recorded
			o.rec.Normal = old.Normal
		}
		same := old != nil && old.Normal == o.rec.Normal
		if !same && old != nil && o.raw == nil { // not selected any more
			if err := remove(o.loc, true); err != nil {
				return err
			}
			n.moved--
			if !old.Has(ledger.FlagKept) {
				resources++
			}
			unselected += old.Unselected()
		} else if o.raw != nil && (!same || old.Has(ledger.FlagKept)) { // whatever became of the file meanwhile
			if err := d.putFile(b, files, o, old == nil); err != nil {
				return err
			}
			written = true
		}
		if old != nil || len(o.replaces) == 0 {
			n.became(old, o.rec, same)
		}
		if old == nil || old.Has(ledger.FlagKept) {
			resources++
		}
		unselected += o.rec.Unselected() - old.Unselected()
		d.led.PutRecord(b, o.loc, o.rec)
		if err := leave(o); err != nil {
			return err
		}
	}
	if written {
		if err := files.flush(); err != nil {
			return err
		}
		if err := d.crashAt("written"); err != nil {
			return err
		}
		next := d.meta
		d.wrote(&next)
		if change != nil {
			change(&next)
		}
		if err := d.mirror.Apply(ctx, &sink.Batch{}, d.checkpointOf(&next)); err != nil {
			return err
		}
		if err := d.crashAt("checkpoint"); err != nil {
			return err
		}
	}
	if err := d.done(0, b, func(m *meta) {
		if written {
			d.wrote(m)
		}
		m.Resources += resources
		m.Unselected += unselected
		if change != nil {
			change(m)
		}
	}); err != nil {
		return err
	}
	c.add(n)
	return d.crashAt("recorded")
}

// putFile writes a representation to the path that it has, else, and always when it is
// known to have none, to that of its address, or where that is taken to its other one.
func (d *Destination) putFile(b kv.Batch, w *fileWriter, o *op, isNew bool) error {
	loc := o.rec.Loc
	names := d.pathsOf(loc)
	ownerOf := func(name string) (ledger.Hash, bool, error) {
		if owner, ok := w.taken[name]; ok {
			return owner, true, nil
		}
		return d.ownerOf(name)
	}
	for i, name := range names {
		if isNew {
			break
		}
		owner, ok, err := ownerOf(name)
		if err != nil {
			return err
		}
		if !ok || owner != o.loc {
			continue
		}
		err = d.putAt(w, name, o.raw, false)
		if err != nil && i != 1 && !errors.Is(err, fs.ErrPermission) && d.blocked(name) { // its file is gone, and another is in the way
			b.Delete(d.nameKey(name))
			continue
		}
		return err
	}
	for i, name := range names[:2] {
		if _, ok, err := ownerOf(name); err != nil {
			return err
		} else if ok {
			continue
		}
		err := d.putAt(w, name, o.raw, true)
		if err != nil && i == 0 && !errors.Is(err, fs.ErrPermission) && d.blocked(name) {
			continue
		}
		if err != nil {
			return err
		}
		v := binary.BigEndian.AppendUint32(nil, uint32(d.dest))
		b.Set(d.nameKey(name), append(append(v, o.loc[:]...), name...))
		w.taken[name] = o.loc
		return nil
	}
	return fmt.Errorf("%w: no path is free for %s", errMirror, clip.Middle(loc))
}

func (d *Destination) putAt(w *fileWriter, name string, body []byte, isNew bool) error {
	if err := w.put(name, body, isNew); err != nil {
		return fmt.Errorf("%w: write %s: %w", errMirror, name, err)
	}
	return nil
}

// blocked tells that a path cannot be a file here: it is a folder, or a part of it
// is a file.
func (d *Destination) blocked(name string) bool {
	if st, err := d.root().Lstat(name); err == nil {
		return st.IsDir()
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := d.root().Lstat(dir); err == nil {
			return !st.IsDir()
		}
	}
	return false
}

// fileWriter writes the files of a batch. It keeps the folder of the last one open,
// since most have neighbours. later: new files are made durable at the end of the
// batch, all at once, which for many takes a small part of the time.
type fileWriter struct {
	root    *os.Root
	later   bool
	written bool

	dir string
	at  *os.Root // dir, nil: none is open

	taken map[string]ledger.Hash // paths that resources of the batch have got
}

func (d *Destination) fileWriter(ops []*op) *fileWriter {
	return &fileWriter{root: d.root(), later: flushesAll && len(ops) >= 64, taken: map[string]ledger.Hash{}}
}

// folder opens the folder of a file, and makes it if need be.
func (w *fileWriter) folder(dir string) (*os.Root, error) {
	if w.at != nil && w.dir == dir {
		return w.at, nil
	}
	w.close()
	if err := w.root.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	at, err := w.root.OpenRoot(dir)
	if err == nil {
		w.at, w.dir = at, dir
	}
	return at, err
}

// close is called before files go as well: their folders may go with them.
func (w *fileWriter) close() {
	if w.at != nil {
		w.at.Close()
		w.at = nil
	}
}

// put puts a file in the place of what is there.
func (w *fileWriter) put(name string, body []byte, isNew bool) error {
	at, err := w.folder(path.Dir(name))
	if err != nil {
		return err
	}
	base, part := path.Base(name), ".rsbridge-"+hex.EncodeToString(hashSlice(name))+".part"
	f, err := at.Create(part)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && !(w.later && isNew) {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = at.Rename(part, base)
	}
	if err != nil {
		at.Remove(part)
		return err
	}
	w.written = true
	return nil
}

// flush makes the written files durable.
func (w *fileWriter) flush() error {
	w.close()
	if !w.later || !w.written {
		return nil
	}
	if err := flushAll(w.root); err != nil {
		return fmt.Errorf("%w: %w", errMirror, err)
	}
	return nil
}

func hashSlice(s string) []byte {
	h := ledger.HashOf(s)
	return h[:]
}

// removeFile removes a file, and folders without any.
func (d *Destination) removeFile(name string) error {
	if err := d.root().Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", errMirror, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := d.root().Lstat(dir); err == nil && !st.IsDir() { // a file has taken its place
			break
		}
		if d.root().Remove(dir) != nil {
			break
		}
	}
	return nil
}

// redoFiles takes back what a batch that was interrupted may have written: files of what
// is not recorded go, and what is recorded is fetched again when the change is met that
// the cursor is still before.
func (d *Destination) redoFiles(slot byte, ops []*op) error {
	here := d.folder != nil || d.beside != nil && d.snapshotMeta().Files == d.cfg.Files // else the files of before stay
	b := d.store.Batch()
	defer b.Close()
	for _, o := range ops {
		for _, loc := range append(o.replaces, o.loc) {
			rec, err := d.led.Record(loc)
			switch {
			case err != nil:
				return err
			case rec != nil && d.folder == nil:
				rec.AskAgain()
				d.led.PutRecord(b, loc, rec)
			case rec != nil && !rec.Normal.IsZero():
				rec.Forget()
				rec.Normal = rdfres.Digest{}
				d.led.PutRecord(b, loc, rec)
			case rec == nil && loc == o.loc && o.rec != nil && here:
				name, err := d.fileOf(o.rec.Loc)
				if err == nil && name == "" {
					err = d.removeStray(o.rec.Loc)
				} else if err == nil {
					b.Delete(d.nameKey(name))
					err = d.removeFile(name)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return d.done(slot, b, nil)
}

// removeStray removes the file that a crash has left of a resource that was never
// recorded.
func (d *Destination) removeStray(loc string) error {
	for _, name := range d.pathsOf(loc)[:2] {
		if _, ok, err := d.ownerOf(name); err != nil {
			return err
		} else if ok {
			continue
		}
		if st, err := d.root().Lstat(name); err == nil && st.Mode().IsRegular() {
			if err := d.removeFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// files compares the records with the folder. What is missing or otherwise is
// fetched again, what nobody owns is removed, when it is to be repaired.
func (c *mirrorCompare) files(ctx context.Context) error {
	d := c.d
	snap := d.store.Snapshot()
	defer snap.Close()
	n := int64(0)
	for loc, rec := range d.led.Records(snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if n++; n%256 == 0 {
			d.opt.Progress("files", n, 0)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if rec.Normal.IsZero() && rec.Has(ledger.FlagUnselected) {
			continue
		}
		if err := c.file(loc, rec.Record); err != nil {
			return err
		}
	}
	return c.strangers(ctx)
}

// file compares the file of a resource with its record.
func (c *mirrorCompare) file(loc ledger.Hash, rec *ledger.Record) error {
	rank, why, err := c.fileDiffers(rec)
	if err != nil || why == "" {
		return err
	}
	needed := !rec.Has(ledger.FlagKept) // else the source does not have it any more
	if needed && c.alone {
		why += onlySource
	}
	if err := c.event(loc, rank, event{Entity: rec.Entity, Location: rec.Loc, Detail: why}); err != nil {
		return err
	}
	if !c.fix || !needed || c.alone {
		return nil
	}
	return c.forget(loc, rec)
}

// onlySource ends what is told of a resource that cannot be put right without the source.
const onlySource = "; only the source can give it again, and it cannot be asked"

// forget makes a resource be fetched again.
func (c *mirrorCompare) forget(loc ledger.Hash, rec *ledger.Record) error {
	c.refetch++
	forgotten := *rec
	forgotten.Forget()
	forgotten.Normal = rdfres.Digest{}
	b := c.d.store.Batch()
	defer b.Close()
	c.d.led.PutRecord(b, loc, &forgotten)
	return c.d.commit(b, func(m *meta) { m.OweSource("a file is not as recorded") })
}

func (c *mirrorCompare) fileDiffers(rec *ledger.Record) (byte, string, error) {
	d := c.d
	name, err := d.fileOf(rec.Loc)
	if err != nil {
		return 0, "", err
	}
	if name == "" {
		return rankMissing, "it has no file", nil
	}
	f, err := d.root().Open(name)
	if err != nil {
		return rankMissing, "its file cannot be read: " + err.Error(), nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return rankDifferent, "its file cannot be read: " + err.Error(), nil
	}
	want := rec.Normal
	if d.folder == nil {
		want = rec.Graph
	}
	if !bytes.Equal(h.Sum(nil), want[:]) {
		return rankDifferent, "its file " + name + " has other bytes than were verified", nil
	}
	return 0, "", nil
}

// strangers finds files without a resource.
func (c *mirrorCompare) strangers(ctx context.Context) error {
	d := c.d
	var extra []string
	err := fs.WalkDir(d.root().FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir(), name == filesink.StateFile, marks.Unfinished(name):
			return nil
		}
		owner, ok, err := d.ownerOf(name)
		if err == nil && ok && d.folder == nil { // its record comes after the file
			var rec *ledger.Record
			rec, err = d.led.Record(owner)
			ok = rec != nil
		}
		if err == nil && !ok {
			extra = append(extra, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(extra)
	for _, name := range extra {
		if err := c.event(ledger.HashOf("entity\x00"+name), rankNoSubject, event{Entity: name, Detail: "the folder has a file that no resource owns"}); err != nil {
			return err
		}
		if c.fix {
			c.fixed++
			if err := d.removeFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}
