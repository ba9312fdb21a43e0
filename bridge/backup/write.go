package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// chunkBytes are packed together, and held in memory.
const chunkBytes = 4 << 20

// Write writes a backup of src. The state goes on meanwhile; the backup is of the moment at the beginning.
func Write(ctx context.Context, w io.Writer, src Source) (err error) {
	m, err := hold(ctx, src)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	t := &writer{tar: tar.NewWriter(w), at: src.Now.UTC().Truncate(time.Second)}
	if t.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	rep := Report{At: t.at, Program: src.Program, Stores: []StoreReport{}, LeftOut: append(append([]string{}, src.LeftOut...), m.leftOut...)}
	paths := slices.Sorted(maps.Keys(m.stores))
	if err := t.entry(headerEntry, asJSON(header{Form, src.Program, t.at, append([]string{}, paths...)})); err != nil {
		return err
	}
	if rep.Records, err = t.records(recordsDir, m.records.Scan(ctx, nil, nil)); err != nil {
		return fmt.Errorf("records of the state: %w", err)
	}
	for i, path := range paths {
		n, err := t.records(storeDir(i), m.stores[path].Records(ctx))
		if err != nil {
			return fmt.Errorf("embedded store %s: %w", path, err)
		}
		rep.Stores = append(rep.Stores, StoreReport{path, n})
	}
	for _, f := range m.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.file(filesDir+f.name, f.at, f.size); err != nil {
			return fmt.Errorf("file %s of the state: %w", f.name, err)
		}
		rep.Files++
	}
	if err := t.entry(reportEntry, asJSON(rep)); err != nil {
		return err
	}
	if err := t.entry(sumsEntry, t.sums.Bytes()); err != nil {
		return err
	}
	return t.tar.Close()
}

// writer writes entries, and their sums.
type writer struct {
	tar  *tar.Writer
	zip  *zstd.Encoder
	at   time.Time
	sums bytes.Buffer
}

func (t *writer) head(name string, size int64) error {
	return t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: t.at})
}

func (t *writer) entry(name string, data []byte) error {
	if err := t.head(name, int64(len(data))); err != nil {
		return err
	}
	fmt.Fprintf(&t.sums, "%x  %s\n", sha256.Sum256(data), name)
	_, err := t.tar.Write(data)
	return err
}

// file writes so many bytes of a file: more may have been appended since.
func (t *writer) file(name, at string, size int64) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.head(name, size); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(t.tar, sum), io.LimitReader(f, size))
	if err == nil && n < size {
		err = fmt.Errorf("it has become shorter, %d bytes instead of %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	fmt.Fprintf(&t.sums, "%x  %s\n", sum.Sum(nil), name)
	return err
}

// records writes pairs in packed chunks: the length of a key, the key, the length of its value, the value.
func (t *writer) records(dir string, pairs iter.Seq2[kv.Pair, error]) (n int64, err error) {
	var chunk, packed []byte
	number := 0
	flush := func() error {
		number++
		packed = t.zip.EncodeAll(chunk, packed[:0])
		chunk = chunk[:0]
		return t.entry(chunkName(dir, number), packed)
	}
	for p, err := range pairs {
		if err != nil {
			return n, err
		}
		n++
		chunk = append(binary.AppendUvarint(chunk, uint64(len(p.Key))), p.Key...)
		chunk = append(binary.AppendUvarint(chunk, uint64(len(p.Value))), p.Value...)
		if len(chunk) >= chunkBytes {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	if len(chunk) > 0 {
		err = flush()
	}
	return n, err
}

// moment is the state at one moment.
type moment struct {
	records kv.Snapshot
	stores  map[string]*embedstore.Snapshot
	files   []file
	leftOut []string
	links   string // removed at the end
}

// file is one of the state folder, by its path there.
type file struct {
	name string
	at   string // of the link to it
	size int64
}

// hold takes the moment. The writers of the stores wait for it: records and stores are then as after a kill at
// this moment. A file is there from before a record names it until after the record has gone, so it is met
// before the moment or just after it.
func hold(ctx context.Context, src Source) (_ *moment, err error) {
	m := &moment{stores: map[string]*embedstore.Snapshot{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if src.Links != "" {
		if m.links, err = ownfile.MkdirTemp(src.Links, "backup-"); err != nil {
			return m, err
		}
	}
	met := map[string]bool{}
	if err := m.find(src, met); err != nil {
		return m, err
	}
	if err := m.snapshots(ctx, src); err != nil {
		return m, err
	}
	return m, m.find(src, met)
}

func (m *moment) snapshots(ctx context.Context, src Source) error {
	if src.Links != "" { // others write
		for _, path := range slices.Sorted(maps.Keys(src.Stores)) { // in one order: two backups may begin at once
			if src.Stores[path] == nil {
				continue
			}
			release, err := src.Stores[path].Hold(ctx)
			if err != nil {
				return fmt.Errorf("embedded store %s: %w", path, err)
			}
			defer release()
		}
	}
	m.records = src.Records.Snapshot(ctx)
	for path, s := range src.Stores {
		if s == nil {
			continue
		}
		snap, err := s.Snapshot()
		if err != nil {
			return fmt.Errorf("embedded store %s: %w", path, err)
		}
		m.stores[path] = snap
	}
	return nil
}

// find adds the files of the state folder not met before.
func (m *moment) find(src Source, met map[string]bool) error {
	return filepath.WalkDir(src.Dir, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed since its folder was read
			return nil
		}
		if err != nil || at == src.Dir {
			return err
		}
		rel, err := filepath.Rel(src.Dir, at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		skip := error(nil)
		if d.IsDir() {
			skip = filepath.SkipDir
		}
		switch _, isStore := src.Stores[name]; {
		case ofOthers[name], isStore, strings.HasSuffix(name, ".tmp"), met[name]:
			return skip
		case d.IsDir():
			if holds, _, err := embedstore.Holds(at); err == nil && holds {
				m.leftOut = append(m.leftOut, "embedded store "+at+": the configuration does not name it")
				met[name] = true
				return skip
			}
			return nil
		case !d.Type().IsRegular():
			m.leftOut = append(m.leftOut, at+": it is no file")
			met[name] = true
			return nil
		}
		met[name] = true
		f, err := m.keep(name, at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		m.files = append(m.files, f)
		return err
	})
}

// keep links a file.
func (m *moment) keep(name, at string) (f file, err error) {
	f = file{name: name, at: at}
	if m.links != "" {
		f.at = filepath.Join(m.links, fmt.Sprint(len(m.files)))
		if err := os.Link(at, f.at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = copyFile(at, f.at) // a disk without links
			if err != nil {
				return f, err
			}
		} else if err != nil {
			return f, err
		}
	}
	info, err := os.Stat(f.at)
	if err == nil {
		f.size = info.Size()
	}
	return f, err
}

func copyFile(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	return ownfile.Replace(to, func(w io.Writer) error { _, err := io.Copy(w, r); return err })
}

func (m *moment) close() error {
	var errs []error
	if m.records != nil {
		errs = append(errs, m.records.Close())
	}
	for _, s := range m.stores {
		errs = append(errs, s.Close())
	}
	if m.links != "" {
		errs = append(errs, os.RemoveAll(m.links))
	}
	return errors.Join(errs...)
}
