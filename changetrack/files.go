package changetrack

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Descriptions link to files: a PDF, an image. The log keeps the links (LinkFiles), and the known
// state of each file at its own address (RecordFiles). Changes of files stand in the log beside
// those of the descriptions, with sequences and times of the same count. A file has no
// representation here and is no entity: it is in no history, and counts nowhere as a resource.

// FileVersion is the known state of a file at its own address.
type FileVersion struct {
	Sequence uint64 // of its change
	Time     time.Time
	Type     string        // media type without parameters, lower case; "" unknown
	Encoding string        // content coding of the response, "" for none
	Length   int64         // bytes, -1 unknown
	Modified time.Time     // Last-Modified, zero unknown
	SHA256   rdfres.Digest // zero: not asked for
}

// Same tells whether two versions describe the same file content. Equal hashes decide. Without
// hashes a property known to only one of the two is no difference.
func (v *FileVersion) Same(w *FileVersion) bool {
	if v.Type != w.Type || v.Encoding != w.Encoding || v.SHA256.IsZero() != w.SHA256.IsZero() {
		return false
	}
	if !v.SHA256.IsZero() {
		return v.SHA256 == w.SHA256
	}
	return (v.Length == w.Length || v.Length < 0 || w.Length < 0) && (v.Modified.Equal(w.Modified) || v.Modified.IsZero() || w.Modified.IsZero())
}

// FileState is the known state of one file.
type FileState struct {
	URL     string
	Current *FileVersion // nil: never seen, or gone
	Changes int          // how often it changed
	First   time.Time
	Gone    time.Time // time of the deletion when it was there once and is gone
}

// FileFound is the result of a look at a file.
type FileFound struct {
	URL     string
	Gone    bool
	Changed bool        // it is another one, although Version says the same
	Version FileVersion // without sequence and time
}

// FileChanges counts the changes added to the log by RecordFiles and DropFiles.
type FileChanges struct {
	Created, Updated, Deleted int64
}

// FileKey is the place of a file among all files, like rdfres.EntityKey for entities.
func FileKey(url string) rdfres.Digest { return rdfres.EntityKey(url) }

// OfFile tells a change of a file from one of an entity.
func (c *Change) OfFile() bool { return c.File != "" }

// OfEntity tells a change of an entity from one of a file, and from Rebased.
func (c *Change) OfEntity() bool { return c.File == "" && c.Kind != Rebased }

// ---- records

// Keys of one set for files.
const (
	kindFile      = 'f' // + file key -> fileRecord: every linked file, and deleted ones
	kindLeads     = 'd' // + file key + entity key -> entity: its description leads to the file
	kindLed       = 'u' // + entity key -> the files linked from its description
	kindRelinked  = 't' // + sequence + file key -> nothing: that change changed the descriptions linking to the file
	filesPerGroup = 500 // changes committed together
)

var filesKey = []byte("F") // filesRecord

// filesRecord is the state of the files as a whole, as JSON.
type filesRecord struct {
	Version    int    `json:"version"`
	Linked     uint64 `json:"linked"`     // the links are those of the log up to this sequence
	Properties string `json:"properties"` // the rule for links; another rule makes all anew
	Files      int64  `json:"files"`      // current ones
}

func readFiles(ctx context.Context, r kv.Reader) (f filesRecord, known bool, err error) {
	b, err := r.Get(ctx, filesKey)
	if errors.Is(err, kv.ErrNotFound) {
		return f, false, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, &f); err != nil {
			err = fmt.Errorf("record of the files cannot be read: %w: %w", err, errDamaged)
		} else if f.Version > recordVersion {
			err = fmt.Errorf("record of the files has version %d, this program knows %d: %w", f.Version, recordVersion, ErrNewer)
		}
	}
	return f, err == nil, err
}

func (f filesRecord) put(b kv.Batch) error {
	f.Version = recordVersion
	data, err := json.Marshal(f)
	if err == nil {
		b.Set(filesKey, data)
	}
	return err
}

// fileRecord is FileState as it is kept.
type fileRecord struct {
	url     string
	first   time.Time
	changes uint64
	current *FileVersion
	delSeq  uint64 // of the deletion, 0 if it was never there
	delTime time.Time
}

const (
	fileHasLength = 1 << iota
	fileHasModified
	fileHasHash
)

func putFileVersion(b []byte, v *FileVersion) []byte {
	b = putTime(binary.AppendUvarint(b, v.Sequence), v.Time)
	b = putString(putString(b, v.Type), v.Encoding)
	var flags byte
	if v.Length >= 0 {
		flags |= fileHasLength
	}
	if !v.Modified.IsZero() {
		flags |= fileHasModified
	}
	if !v.SHA256.IsZero() {
		flags |= fileHasHash
	}
	b = append(b, flags)
	if flags&fileHasLength != 0 {
		b = binary.AppendUvarint(b, uint64(v.Length))
	}
	if flags&fileHasModified != 0 {
		b = putTime(b, v.Modified)
	}
	if flags&fileHasHash != 0 {
		b = append(b, v.SHA256[:]...)
	}
	return b
}

func (r *reading) fileVersion() *FileVersion {
	v := &FileVersion{Sequence: r.uvarint(), Time: r.time(), Type: r.string(), Encoding: r.string(), Length: -1}
	flags := r.byte()
	if flags&fileHasLength != 0 {
		v.Length = int64(r.uvarint())
	}
	if flags&fileHasModified != 0 {
		v.Modified = r.time()
	}
	if flags&fileHasHash != 0 {
		v.SHA256 = r.digest()
	}
	if flags > fileHasLength|fileHasModified|fileHasHash || v.Length < -1 {
		r.bad = true
	}
	return v
}

func putFileRecord(b []byte, f *fileRecord) []byte {
	b = putString(append(b, recordVersion), f.url)
	b = binary.AppendUvarint(putTime(b, f.first), f.changes)
	if f.current != nil {
		return putFileVersion(append(b, 1), f.current)
	}
	return putTime(binary.AppendUvarint(append(b, 0), f.delSeq), f.delTime)
}

func readFileRecord(b []byte) (*fileRecord, error) {
	r := &reading{b: b}
	if err := r.begin("state of a file"); err != nil {
		return nil, err
	}
	f := &fileRecord{url: r.string(), first: r.time(), changes: r.uvarint()}
	if r.bool() {
		f.current = r.fileVersion()
	} else {
		f.delSeq, f.delTime = r.uvarint(), r.time()
	}
	return f, r.end("state of a file")
}

func (f *fileRecord) state() FileState {
	s := FileState{URL: f.url, Current: f.current, Changes: int(f.changes), First: f.first}
	if f.current == nil && f.delSeq > 0 {
		s.Gone = f.delTime
	}
	return s
}

func putLed(urls []string) []byte {
	b := binary.AppendUvarint([]byte{recordVersion}, uint64(len(urls)))
	for _, u := range urls {
		b = putString(b, u)
	}
	return b
}

func readLed(b []byte) ([]string, error) {
	r := &reading{b: b}
	if err := r.begin("files of a description"); err != nil {
		return nil, err
	}
	n := r.uvarint()
	if n > uint64(len(b)) {
		r.bad = true
	}
	var urls []string
	for i := uint64(0); i < n && !r.bad; i++ {
		urls = append(urls, r.string())
	}
	return urls, r.end("files of a description")
}

func leadsKey(file, entity rdfres.Digest) []byte {
	return append(entityKey(kindLeads, file), entity[:]...)
}

func relinkedKey(seq uint64, file rdfres.Digest) []byte {
	return append(seqKey(kindRelinked, seq), file[:]...)
}

// ---- links from descriptions to files

// LinkOptions of LinkFiles.
type LinkOptions struct {
	// Properties names the rule for links; another rule than the last time makes all links anew.
	// "": descriptions link to no files.
	Properties string
	// Files gives the addresses linked from a representation.
	Files func(entity string, f rdfres.Format, data []byte) ([]string, error)
}

// LinkFiles updates the links from descriptions to files from the log. Its cost is the cost of the
// changes since the last time. Nothing is added to the log. The next publication finds every file
// with changed descriptions (View.Relinked). An error or the end of ctx leaves consistent records,
// and the next call goes on.
func (l *Log) LinkFiles(ctx context.Context, o LinkOptions) error {
	if _, known, err := readFiles(ctx, l.store); err != nil || !known && o.Properties == "" {
		return err // the usual set has no files
	}
	if err := l.lock(ctx); err != nil {
		return fmt.Errorf("link files of set %s: %w", l.name, err)
	}
	defer l.unlock()
	v := l.View(ctx)
	defer v.Close()
	k := &linker{l: l, v: v, o: o, b: l.store.Batch()}
	defer k.b.Close()
	if err := k.run(ctx); err != nil {
		return fmt.Errorf("link files of set %s: %w", l.name, err)
	}
	return nil
}

type linker struct {
	l    *Log
	v    *View
	o    LinkOptions
	b    kv.Batch
	head filesRecord
}

func (k *linker) run(ctx context.Context) (err error) {
	if k.v.err != nil {
		return k.v.err
	}
	if k.head, _, err = readFiles(ctx, k.v.r); err != nil {
		return err
	}
	if k.head.Properties == k.o.Properties && k.head.Linked == k.v.head.seq {
		return nil
	}
	k.l.freeze(ctx)
	if k.head.Properties != k.o.Properties || k.v.head.tail > k.head.Linked {
		err = k.all(ctx)
	} else {
		err = k.changes(ctx)
	}
	if err != nil {
		return err
	}
	k.head.Linked, k.head.Properties = k.v.head.seq, k.o.Properties
	if err := k.head.put(k.b); err != nil {
		return err
	}
	if err := k.b.Commit(ctx, true); err != nil {
		return err
	}
	k.l.show(k.v.head)
	return nil
}

// changes links the entities changed since the last time.
func (k *linker) changes(ctx context.Context) error {
	for c, err := range k.v.Changes(ctx, k.head.Linked) {
		if err != nil {
			return err
		}
		if c.OfEntity() {
			st, err := k.v.Entity(ctx, c.Entity)
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return err
			}
			if err == nil && st.Current != nil && st.Current.Sequence != c.Sequence {
				continue // a later change says it
			}
			moved := c.Before != nil && c.After != nil && c.Before.Format != c.After.Format
			if err := k.link(ctx, c.Entity, st.Current, c.Sequence, moved); err != nil {
				return err
			}
		}
		k.head.Linked = c.Sequence
		if err := k.flush(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// all links every description, and removes the links of entities without one.
func (k *linker) all(ctx context.Context) error {
	for st, err := range k.v.Current(ctx, rdfres.Digest{}, rdfres.Digest{}) {
		if err == nil {
			err = k.link(ctx, st.Entity, st.Current, k.v.head.seq, true)
		}
		if err == nil {
			err = k.flush(ctx, false)
		}
		if err != nil {
			return err
		}
	}
	for p, err := range k.v.r.Scan(ctx, []byte{kindLed}, []byte{kindLed + 1}) {
		if err != nil {
			return err
		}
		key := rdfres.Digest(p.Key[1:])
		s, _, err := stateOf(ctx, k.v.r, key)
		if err == nil && s.current != nil {
			continue
		}
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		if err := k.set(ctx, key, "", nil, k.v.head.seq, false); err != nil {
			return err
		}
		if err := k.flush(ctx, false); err != nil {
			return err
		}
	}
	return nil
}

func (k *linker) flush(ctx context.Context, progress bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if k.b.Size() < k.l.t.o.batchBytes {
		return nil
	}
	if progress {
		if err := k.head.put(k.b); err != nil {
			return err
		}
	}
	return k.b.Commit(ctx, false)
}

// link finds the files of an entity's current version.
func (k *linker) link(ctx context.Context, entity string, v *Version, seq uint64, moved bool) error {
	key := rdfres.EntityKey(entity)
	var urls []string
	if v != nil && k.o.Properties != "" {
		b, err := k.v.r.Get(ctx, entitySeqKey(kindBlob, key, v.Sequence))
		var blob Blob
		if err == nil {
			blob, err = readBlob(b)
		}
		var data []byte
		if err == nil {
			data, err = blob.Bytes()
		}
		if err == nil {
			urls, err = k.o.Files(entity, v.Format, data)
		}
		if err != nil {
			return fmt.Errorf("files of %s: %w", entity, err)
		}
		slices.Sort(urls)
		urls = slices.Compact(urls)
	}
	return k.set(ctx, key, entity, urls, seq, moved)
}

// set writes the changed links of an entity.
func (k *linker) set(ctx context.Context, key rdfres.Digest, entity string, urls []string, seq uint64, moved bool) error {
	var old []string
	b, err := k.l.store.Get(ctx, entityKey(kindLed, key))
	if err == nil {
		old, err = readLed(b)
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if len(old) == 0 && len(urls) == 0 || !moved && slices.Equal(old, urls) {
		return nil
	}
	for _, u := range old {
		if _, stays := slices.BinarySearch(urls, u); !stays {
			k.b.Delete(leadsKey(FileKey(u), key))
			k.b.Set(relinkedKey(seq, FileKey(u)), nil)
		}
	}
	for _, u := range urls {
		file := FileKey(u)
		if _, had := slices.BinarySearch(old, u); had && !moved {
			continue
		}
		k.b.Set(relinkedKey(seq, file), nil)
		k.b.Set(leadsKey(file, key), []byte(entity))
		known, err := exists(ctx, k.l.store, entityKey(kindFile, file))
		if err != nil {
			return err
		}
		if !known {
			k.b.Set(entityKey(kindFile, file), putFileRecord(nil, &fileRecord{url: u}))
		}
	}
	if len(urls) == 0 {
		k.b.Delete(entityKey(kindLed, key))
	} else {
		k.b.Set(entityKey(kindLed, key), putLed(urls))
	}
	return nil
}

// ---- changes of files

// RecordFiles compares found files with their known states and appends the differences to the log;
// a few hundred at a time is a good measure. A file without a link is passed over. The changes are
// durable when RecordFiles returns.
func (l *Log) RecordFiles(ctx context.Context, found []FileFound) (n FileChanges, err error) {
	if err := l.lock(ctx); err != nil {
		return n, fmt.Errorf("record files of set %s: %w", l.name, err)
	}
	defer l.unlock()
	w := &fileWriter{l: l}
	defer w.close()
	seen := map[string]bool{}
	for i := range found {
		f := &found[i]
		if seen[f.URL] {
			continue
		}
		seen[f.URL] = true
		if err = w.record(ctx, f); err != nil {
			break
		}
	}
	if err == nil {
		err = w.commit(ctx)
	}
	if err != nil {
		return FileChanges{}, fmt.Errorf("record files of set %s: %w", l.name, err)
	}
	return w.n, nil
}

// DropFiles removes files without any link left; present ones are deleted in the log.
func (l *Log) DropFiles(ctx context.Context) (n FileChanges, err error) {
	if _, known, err := readFiles(ctx, l.store); err != nil || !known {
		return n, err
	}
	if err := l.lock(ctx); err != nil {
		return n, fmt.Errorf("drop files of set %s: %w", l.name, err)
	}
	defer l.unlock()
	w := &fileWriter{l: l}
	defer w.close()
	snap := l.store.Snapshot(ctx)
	defer snap.Close()
	for f, err := range allFiles(ctx, snap, rdfres.Digest{}, rdfres.Digest{}) {
		switch {
		case err != nil:
		case f.led || f.rec.current == nil && f.rec.delSeq > 0: // Retain forgets it
			continue
		case f.rec.current != nil:
			err = w.change(ctx, f.rec, nil)
		default:
			err = w.forget(ctx, f.rec)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && w.records >= filesPerGroup {
			err = w.commit(ctx)
		}
		if err != nil {
			return n, fmt.Errorf("drop files of set %s: %w", l.name, err)
		}
	}
	if err := w.commit(ctx); err != nil {
		return n, fmt.Errorf("drop files of set %s: %w", l.name, err)
	}
	return w.n, nil
}

// fileWriter appends changes of files to the log. The caller is the only writer.
type fileWriter struct {
	l       *Log
	b       kv.Batch
	head    headRecord
	files   filesRecord
	at      time.Time
	n       FileChanges
	records int
	changed bool
}

func (w *fileWriter) close() {
	if w.b != nil {
		w.b.Close()
	}
}

func (w *fileWriter) begin(ctx context.Context) (err error) {
	if w.records > 0 {
		return nil
	}
	if w.b == nil {
		w.b = w.l.store.Batch()
	}
	if w.head, err = readHeadRecord(ctx, w.l.store); err != nil {
		return err
	}
	w.files, _, err = readFiles(ctx, w.l.store)
	w.at, w.changed = w.l.nextTime(w.head), false
	return err
}

func (w *fileWriter) commit(ctx context.Context) error {
	if w.records == 0 {
		return nil
	}
	if w.changed {
		w.b.Set(headKey, putHead(nil, &w.head))
		if err := w.files.put(w.b); err != nil {
			return err
		}
	}
	w.l.freeze(ctx)
	if err := w.b.Commit(ctx, true); err != nil {
		return err
	}
	w.records = 0
	w.l.show(w.head)
	return nil
}

func (w *fileWriter) record(ctx context.Context, f *FileFound) error {
	key := FileKey(f.URL)
	b, err := w.l.store.Get(ctx, entityKey(kindFile, key))
	if errors.Is(err, kv.ErrNotFound) {
		return nil // nobody leads to it
	}
	if err != nil {
		return err
	}
	rec, err := readFileRecord(b)
	if err != nil {
		return err
	}
	if f.Gone {
		if rec.current == nil {
			return nil
		}
		return w.change(ctx, rec, nil)
	}
	if rec.current == nil {
		led, err := anyOf(ctx, w.l.store, entityKey(kindLeads, key))
		if err != nil || !led {
			return err
		}
	} else if !f.Changed && rec.current.Same(&f.Version) {
		return nil
	}
	v := f.Version
	return w.change(ctx, rec, &v)
}

// change appends one change; v nil is a deletion.
func (w *fileWriter) change(ctx context.Context, rec *fileRecord, v *FileVersion) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.head.seq++
	if w.changed {
		w.at = w.at.Add(time.Microsecond)
	}
	w.head.time, w.changed = w.at, true
	c := Change{Sequence: w.head.seq, Time: w.at, File: rec.url, FileBefore: rec.current, FileAfter: v, Finder: "files"}
	switch {
	case v == nil:
		c.Kind = Deleted
		w.n.Deleted++
		w.files.Files--
		rec.delSeq, rec.delTime = c.Sequence, c.Time
	case rec.current == nil:
		c.Kind = Created
		w.n.Created++
		w.files.Files++
	default:
		c.Kind = Updated
		w.n.Updated++
	}
	if v != nil {
		v.Sequence, v.Time = c.Sequence, c.Time
	}
	if rec.changes == 0 {
		rec.first = c.Time
	}
	rec.changes++
	rec.current = v
	w.b.Set(entityKey(kindFile, FileKey(rec.url)), putFileRecord(nil, rec))
	w.b.Set(seqKey(kindLog, c.Sequence), putChange(nil, &c))
	w.records++
	return nil
}

func (w *fileWriter) forget(ctx context.Context, rec *fileRecord) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.b.Delete(entityKey(kindFile, FileKey(rec.url)))
	w.records++
	return nil
}

func anyOf(ctx context.Context, r kv.Reader, prefix []byte) (bool, error) {
	for _, err := range r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		return err == nil, err
	}
	return false, nil
}

// ---- reading

type knownFile struct {
	rec *fileRecord
	led bool // a description leads to it
}

// allFiles merges the files with the links to them.
func allFiles(ctx context.Context, r kv.Reader, lo, hi rdfres.Digest) iter.Seq2[knownFile, error] {
	return func(yield func(knownFile, error) bool) {
		end, endLeads := []byte{kindFile + 1}, []byte{kindLeads + 1}
		if !hi.IsZero() {
			end, endLeads = entityKey(kindFile, hi), entityKey(kindLeads, hi)
		}
		next, stop := iter.Pull2(r.Scan(ctx, entityKey(kindLeads, lo), endLeads))
		defer stop()
		lead, err, ok := next()
		for p, ferr := range r.Scan(ctx, entityKey(kindFile, lo), end) {
			var f knownFile
			if err = errors.Join(err, ferr); err == nil {
				f.rec, err = readFileRecord(p.Value)
			}
			for err == nil && ok {
				c := bytes.Compare(lead.Key[1:33], p.Key[1:])
				f.led = f.led || c == 0
				if c > 0 {
					break
				}
				lead, err, ok = next()
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// Files is the number of current files.
func (v *View) Files(ctx context.Context) (int64, error) {
	if v.err != nil {
		return 0, v.err
	}
	f, _, err := readFiles(ctx, v.r)
	return f.Files, err
}

// LedFiles yields every linked file, those never seen included, in the order of FileKey.
func (v *View) LedFiles(ctx context.Context) iter.Seq2[FileState, error] {
	return func(yield func(FileState, error) bool) {
		if v.err != nil {
			yield(FileState{}, v.err)
			return
		}
		for f, err := range allFiles(ctx, v.r, rdfres.Digest{}, rdfres.Digest{}) {
			if err != nil {
				yield(FileState{}, err)
				return
			}
			if f.led && !yield(f.rec.state(), nil) {
				return
			}
		}
	}
}

// CurrentFiles yields the current files with lo <= FileKey, and < hi unless hi is zero, in the
// order of FileKey.
func (v *View) CurrentFiles(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[FileState, error] {
	return func(yield func(FileState, error) bool) {
		if v.err != nil {
			yield(FileState{}, v.err)
			return
		}
		end := []byte{kindFile + 1}
		if !hi.IsZero() {
			end = entityKey(kindFile, hi)
		}
		for p, err := range v.r.Scan(ctx, entityKey(kindFile, lo), end) {
			var f *fileRecord
			if err == nil {
				f, err = readFileRecord(p.Value)
			}
			if err != nil {
				yield(FileState{}, err)
				return
			}
			if f.current != nil && !yield(f.state(), nil) {
				return
			}
		}
	}
}

// File gives the state of one file; kv.ErrNotFound if no description has ever led
// to it.
func (v *View) File(ctx context.Context, url string) (FileState, error) {
	if v.err != nil {
		return FileState{}, v.err
	}
	b, err := v.r.Get(ctx, entityKey(kindFile, FileKey(url)))
	if err != nil {
		return FileState{}, err
	}
	f, err := readFileRecord(b)
	if err != nil {
		return FileState{}, err
	}
	return f.state(), nil
}

// FilesOf are the addresses of the files linked from the description of an entity, sorted; none is
// nil.
func (v *View) FilesOf(ctx context.Context, entity string) ([]string, error) {
	if v.err != nil {
		return nil, v.err
	}
	b, err := v.r.Get(ctx, entityKey(kindLed, rdfres.EntityKey(entity)))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readLed(b)
}

// LeadingTo yields the entities whose descriptions link to a file, in the order of their keys.
func (v *View) LeadingTo(ctx context.Context, url string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if v.err != nil {
			yield("", v.err)
			return
		}
		prefix := entityKey(kindLeads, FileKey(url))
		for p, err := range v.r.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if !yield(string(p.Value), err) || err != nil {
				return
			}
		}
	}
}

// Relinked yields the keys of files whose linking descriptions changed with after < sequence <=
// last. A key may come more than once.
func (v *View) Relinked(ctx context.Context, after, last uint64) iter.Seq2[rdfres.Digest, error] {
	return func(yield func(rdfres.Digest, error) bool) {
		if v.err != nil {
			yield(rdfres.Digest{}, v.err)
			return
		}
		for p, err := range v.r.Scan(ctx, seqKey(kindRelinked, after+1), seqKey(kindRelinked, last+1)) {
			var key rdfres.Digest
			if err == nil {
				key = rdfres.Digest(p.Key[9:])
			}
			if !yield(key, err) || err != nil {
				return
			}
		}
	}
}

// retainFile forgets a deleted file when its deletion leaves the log.
func (r *retention) retainFile(ctx context.Context, c *Change) error {
	if c.FileAfter != nil {
		return nil
	}
	key := FileKey(c.File)
	b, err := r.l.store.Get(ctx, entityKey(kindFile, key))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	var rec *fileRecord
	if err == nil {
		rec, err = readFileRecord(b)
	}
	if err != nil || rec.current != nil || rec.delSeq != c.Sequence {
		return err
	}
	led, err := anyOf(ctx, r.l.store, entityKey(kindLeads, key))
	if err != nil {
		return err
	}
	if led { // it may come back
		r.b.Set(entityKey(kindFile, key), putFileRecord(nil, &fileRecord{url: rec.url}))
	} else {
		r.b.Delete(entityKey(kindFile, key))
	}
	return nil
}

// files checks the records of files.
func (c *checker) files(ctx context.Context) error {
	head, _, err := readFiles(ctx, c.v.r)
	if err != nil {
		return err
	}
	var current int64
	for f, err := range allFiles(ctx, c.v.r, rdfres.Digest{}, rdfres.Digest{}) {
		if err != nil {
			return err
		}
		seq := f.rec.delSeq
		if v := f.rec.current; v != nil {
			current++
			seq = v.Sequence
		}
		if seq <= c.v.head.tail {
			continue // the change has left the log
		}
		b, err := c.v.r.Get(ctx, seqKey(kindLog, seq))
		var ch Change
		if err == nil {
			ch, err = readChange(seq, b)
		}
		if err != nil || ch.File != f.rec.url || (ch.FileAfter == nil) != (f.rec.current == nil) {
			return wrong("the file %s was made what it is by change %d, which is another (%v)", f.rec.url, seq, err)
		}
	}
	if current != head.Files {
		return wrong("%d files are counted, there are %d", head.Files, current)
	}
	for p, err := range c.v.r.Scan(ctx, []byte{kindLed}, []byte{kindLed + 1}) {
		var urls []string
		if err == nil {
			urls, err = readLed(p.Value)
		}
		if err != nil {
			return err
		}
		for _, u := range urls {
			if ok, err := exists(ctx, c.v.r, leadsKey(FileKey(u), rdfres.Digest(p.Key[1:]))); err != nil || !ok {
				return wrong("a description leads to %s, which does not know it (%v)", u, err)
			}
			if ok, err := exists(ctx, c.v.r, entityKey(kindFile, FileKey(u))); err != nil || !ok {
				return wrong("a description leads to %s, which has no state (%v)", u, err)
			}
		}
	}
	return nil
}
