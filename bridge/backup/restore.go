package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Check reads a whole backup, and compares all of it with its sums.
func Check(ctx context.Context, f io.ReadSeeker) (Report, error) {
	r, err := read(ctx, f)
	if err != nil {
		return Report{}, err
	}
	for !r.ended {
		if err := r.next(); err != nil {
			return Report{}, err
		}
	}
	return r.report, nil
}

// Restore checks the folder, which is missing or empty, and the backup. Then it restores one into the other. open opens the records of a
// new state there. An error leaves it empty; a kill leaves it refused until it is
// restored again, or emptied.
func Restore(ctx context.Context, f io.ReadSeeker, dir string, open func(context.Context) (kv.Store, error)) (rep Report, err error) {
	if err := holder.Vacant(dir); err != nil {
		return rep, err
	}
	if rep, err = Check(ctx, f); err != nil {
		return rep, err
	}
	lock, err := holder.TakeNew(ctx, dir, "rsbridge restore")
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	r, err := read(ctx, f)
	if err == nil {
		err = r.restore(ctx, dir, open)
	}
	if err == nil {
		err = lock.Filled()
	}
	if err != nil {
		err = errors.Join(err, lock.Undo())
	}
	return rep, err
}

// reader reads the entries of a backup one after the other.
type reader struct {
	ctx  context.Context
	tar  *tar.Reader
	zip  *zstd.Decoder
	head header

	name   string    // of the present entry
	body   io.Reader // of it
	sum    hash.Hash // of what was read of it
	sums   map[string]string
	report Report
	ended  bool // all was read and is right
}

// read begins to read a backup.
func read(ctx context.Context, f io.ReadSeeker) (*reader, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := &reader{ctx: ctx, tar: tar.NewReader(bufio.NewReaderSize(f, 1<<20)), sums: map[string]string{}}
	h, err := r.tar.Next()
	if err != nil || h.Name != headerEntry {
		return nil, fmt.Errorf("%w: it does not begin with %s", ErrDamaged, headerEntry)
	}
	r.enter(h)
	raw, err := io.ReadAll(io.LimitReader(r.body, 1<<20))
	if err == nil {
		err = json.Unmarshal(raw, &r.head)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, headerEntry, err)
	}
	if r.head.Form > Form {
		return nil, fmt.Errorf("%w: the backup has form %d of rsbridge %s, and this program knows %d", kv.ErrNewer, r.head.Form, r.head.Program, Form)
	}
	if r.zip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
		return nil, err
	}
	return r, r.next()
}

func (r *reader) enter(h *tar.Header) {
	r.name, r.sum = h.Name, sha256.New()
	r.body = io.TeeReader(r.tar, r.sum)
}

// next reads the rest of an entry, and goes to the next one. The sums are the last one.
func (r *reader) next() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if _, err := io.Copy(io.Discard, r.body); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, r.name, err)
	}
	if _, twice := r.sums[r.name]; twice {
		return fmt.Errorf("%w: %s is in it twice", ErrDamaged, r.name)
	}
	r.sums[r.name] = fmt.Sprintf("%x", r.sum.Sum(nil))
	h, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it is cut after %s", ErrDamaged, r.name)
	}
	if err != nil {
		return fmt.Errorf("%w: after %s: %w", ErrDamaged, r.name, err)
	}
	r.enter(h)
	switch h.Name {
	case reportEntry:
		raw, err := io.ReadAll(io.LimitReader(r.body, 64<<20))
		if err == nil {
			err = json.Unmarshal(raw, &r.report)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, reportEntry, err)
		}
		return r.next()
	case sumsEntry:
		return r.compare()
	}
	return nil
}

// compare reads the sums.
func (r *reader) compare() error {
	raw, err := io.ReadAll(r.body)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, sumsEntry, err)
	}
	told := 0
	for line := range strings.Lines(string(raw)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if told++; r.sums[name] != sum {
			return fmt.Errorf("%w: %s differs from its SHA-256", ErrDamaged, name)
		}
	}
	if told != len(r.sums) {
		return fmt.Errorf("%w: %s has %d entries, and the backup %d", ErrDamaged, sumsEntry, told, len(r.sums))
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows %s", ErrDamaged, sumsEntry)
	}
	r.ended = true
	return nil
}

// restore writes everything into a folder.
func (r *reader) restore(ctx context.Context, dir string, open func(context.Context) (kv.Store, error)) error {
	if err := r.restoreRecords(ctx, open); err != nil {
		return err
	}
	for i, name := range r.head.Stores {
		at, err := localPath(dir, name)
		if err != nil {
			return err
		}
		if _, err := embedstore.Restore(ctx, at, r.pairs(storeDir(i))); err != nil {
			return err
		}
	}
	folders := map[string]bool{dir: true}
	for !r.ended {
		name, ok := strings.CutPrefix(r.name, filesDir)
		if !ok {
			return fmt.Errorf("%w: the entry %q is not known", ErrDamaged, r.name)
		}
		at, err := localPath(dir, name)
		if err == nil {
			err = ownfile.MkdirAll(filepath.Dir(at))
		}
		if err == nil {
			err = ownfile.Replace(at, func(w io.Writer) error { _, err := io.Copy(w, r.body); return err })
		}
		if err != nil {
			return err
		}
		for up := filepath.Dir(at); !folders[up]; up = filepath.Dir(up) {
			folders[up] = true
		}
		if err := r.next(); err != nil {
			return err
		}
	}
	for folder := range folders {
		if err := ownfile.Sync(folder); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) restoreRecords(ctx context.Context, open func(context.Context) (kv.Store, error)) (err error) {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = kv.Fill(ctx, s, r.pairs(recordsDir))
	return err
}

// pairs yields the records of all entries of a folder, from the present one on.
func (r *reader) pairs(dir string) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		var packed bytes.Buffer
		var chunk []byte
		for !r.ended && strings.HasPrefix(r.name, dir) {
			packed.Reset()
			_, err := packed.ReadFrom(r.body)
			if err == nil {
				chunk, err = r.zip.DecodeAll(packed.Bytes(), chunk[:0])
			}
			for rest := chunk; err == nil && len(rest) > 0; {
				var p kv.Pair
				if p.Key, rest, err = field(rest); err == nil {
					p.Value, rest, err = field(rest)
				}
				if err == nil && !yield(p, nil) {
					return
				}
			}
			if err != nil {
				err = fmt.Errorf("%w: %s: %w", ErrDamaged, r.name, err)
			} else {
				err = r.next()
			}
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
		}
	}
}

// field is the next key or value of a chunk.
func field(b []byte) (value, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, errors.New("a record is cut")
	}
	return b[w : w+int(n)], b[w+int(n):], nil
}

func syncFolder(dir string) error { return ownfile.Sync(dir) }

// Read opens a backup by its name. Only a fault of the backup is told with this name: the others are of the
// folder, or of the disk.
func Read(name string, f func(*os.File) error) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err = f(file); errors.Is(err, ErrDamaged) || errors.Is(err, kv.ErrNewer) {
		err = fmt.Errorf("backup %s: %w", name, err)
	}
	return err
}
