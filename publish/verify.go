package publish

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// A published file is checked three times: when it was written, by its size when the
// publisher opens, and by its bytes when Verify is called.

// FileFault is a published file different from its record.
type FileFault struct {
	File  string `json:"file"` // below the folder of the set
	Error string `json:"error"`
	Again bool   `json:"made_again"` // else its dump, list or document is withdrawn
}

// Lost tells whether files were missing, or of the wrong size, when the set was opened. Their dumps
// and lists are withdrawn until made again (Dump, ListResources).
func (p *Publisher) Lost(name string) bool {
	s, err := p.set(name)
	return err == nil && s.wrong.lost.Load()
}

// Verify reads the published files of a set. A dump or list with a wrong file is made again. An
// archived document cannot be made again, and is forgotten. It returns the number of files read,
// and the wrong ones.
func (p *Publisher) Verify(ctx context.Context, name string) (files int, faults []FileFault, err error) {
	s, err := p.set(name)
	if err != nil || s.dir == "" {
		return 0, nil, err
	}
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	v := &verifier{ctx: ctx, s: s, bad: map[string]error{}, seen: map[string]bool{}}
	if err := v.mendAll(); err != nil {
		return 0, nil, err
	}
	archived := map[string]bool{}
	for _, r := range v.forgotten {
		for f := range filesOf(r.Documents, r.Packages) {
			archived[f] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(v.bad)) {
		s.p.log.Error("a published file was damaged", "set", name, "file", file, "error", v.bad[file], "made again", !archived[file])
		faults = append(faults, FileFault{File: file, Error: v.bad[file].Error(), Again: !archived[file]})
	}
	return len(v.seen), faults, nil
}

// wrongFiles are published files that are not as they were made.
type wrongFiles struct {
	lost  atomic.Bool // some, when the set was opened
	first atomic.Pointer[string]
}

// meets notes the first one that a request meets, and asks for its making.
func (w *wrongFiles) meets(s *set, file string) {
	if !w.first.CompareAndSwap(nil, &file) {
		return
	}
	s.p.log.Error("a published file is missing, or of another size than it was made with", "set", s.cfg.Name, "file", file)
	if s.p.o.Missing != nil {
		s.p.o.Missing(s.cfg.Name)
	}
}

// Missing tells of a file that a request met so, until it is made again; "": none.
func (p *Publisher) Missing(name string) string {
	if s, err := p.set(name); err == nil && s.wrong.first.Load() != nil {
		return *s.wrong.first.Load()
	}
	return ""
}

// mendMissing makes files again that are missing, or of another size. The caller holds s.dumping.
func mendMissing(ctx context.Context, s *set) error {
	return (&verifier{ctx: ctx, s: s, sizes: true, bad: map[string]error{}, seen: map[string]bool{}}).mendAll()
}

// verifier checks and mends the files of a set; s.dumping is held.
type verifier struct {
	ctx       context.Context
	s         *set
	sizes     bool             // only their sizes are looked at
	bad       map[string]error // by file
	seen      map[string]bool
	forgotten []archiveRecord
}

type publishedFile struct {
	length int64
	check  func(*set) error
}

func filesOf(docs []archivedDocument, packages []packageRecord) map[string]publishedFile {
	out := map[string]publishedFile{}
	for _, d := range docs {
		out[d.file()] = publishedFile{d.Stored, func(s *set) error { return s.checkDocument(d) }}
	}
	for _, p := range packages {
		out[p.File] = publishedFile{p.Length, func(s *set) error { return s.checkFile(p.File, p.Length, p.SHA256) }}
		out[p.Manifest] = publishedFile{p.ManifestLength, func(s *set) error { return s.checkFile(p.Manifest, p.ManifestLength, p.ManifestSHA256) }}
	}
	return out
}

// mendAll checks all files, and makes wrong ones again.
func (v *verifier) mendAll() error {
	err := v.all()
	if err == nil && len(v.bad) > 0 {
		err = v.mend(v.ctx)
	}
	if err != nil {
		return fmt.Errorf("publish: verify the files of %s: %w", v.s.cfg.Name, err)
	}
	v.s.wrong.first.Store(nil)
	return nil
}

// wrong checks files and tells whether one of them is wrong.
func (v *verifier) wrong(docs []archivedDocument, packages []packageRecord) (wrong bool, err error) {
	for file, f := range filesOf(docs, packages) {
		if err := v.ctx.Err(); err != nil {
			return false, err
		}
		if !v.seen[file] {
			v.seen[file] = true
			var err error
			if !v.sizes {
				err = f.check(v.s)
			} else if !v.s.hasSize(file, f.length) {
				err = &damagedFile{"is not there in its size"}
			}
			var damage *damagedFile
			switch {
			case errors.As(err, &damage):
				v.bad[file] = err
			case err != nil:
				return false, err
			}
		}
		wrong = wrong || v.bad[file] != nil
	}
	return wrong, nil
}

func (v *verifier) all() error {
	s := v.s
	_, err := v.wrong(nil, *s.changeDumps.Load())
	if d := s.dump.Load(); err == nil && d != nil {
		_, err = v.wrong(nil, d.Packages)
		if d.Before != nil && err == nil {
			_, err = v.wrong(nil, d.Before.Packages)
		}
	}
	if r := s.scheduled.Load(); err == nil && r != nil {
		_, err = v.wrong(r.Documents, nil)
	}
	for _, r := range s.archived() {
		if err == nil {
			_, err = v.wrong(r.Documents, r.Packages)
		}
	}
	return err
}

// mend removes documents with wrong files, and makes them again.
func (v *verifier) mend(ctx context.Context) error {
	s := v.s
	for _, r := range s.archived() {
		if wrong, err := v.wrong(r.Documents, r.Packages); err != nil {
			return err
		} else if wrong {
			v.forgotten = append(v.forgotten, r)
		}
	}
	if len(v.forgotten) > 0 {
		if err := s.putArchives(ctx, nil, v.forgotten); err != nil {
			return err
		}
	}
	if d := s.dump.Load(); d != nil {
		wrong, err := v.wrong(nil, d.Packages)
		before := false
		if d.Before != nil && err == nil {
			before, err = v.wrong(nil, d.Before.Packages)
		}
		if err != nil {
			return err
		}
		var left *dumpRecord
		if !wrong {
			left = new(*d)
			if before {
				left.Before = nil
			}
		}
		if wrong || before {
			if err := s.putDump(ctx, left); err != nil {
				return err
			}
			s.dump.Store(left)
		}
		if wrong {
			v.remove(d.Folder)
		}
		if before || wrong && d.Before != nil {
			v.remove(d.Before.Folder)
		}
	}
	cds := *s.changeDumps.Load()
	for i := range cds {
		wrong, err := v.wrong(nil, cds[i:i+1])
		if err != nil {
			return err
		}
		if !wrong {
			continue
		}
		for i > 0 && cds[i-1].Number == cds[i].Number { // of the same list
			i--
		}
		if err := s.dropChangeDumps(ctx, slices.Clone(cds[i:])); err != nil { // without gaps: later ones follow
			return err
		}
		break
	}
	if r := s.scheduled.Load(); r != nil {
		wrong, err := v.wrong(r.Documents, nil)
		if err != nil {
			return err
		}
		if wrong {
			s.scheduled.Store(nil)
			v.remove(r.Documents[0].Folder)
		}
	}
	return s.makeAgain(v.ctx)
}

// remove removes the folder of a withdrawn document.
func (v *verifier) remove(folder string) {
	if v.s.archivedFiles()[folder] {
		return
	}
	if err := os.RemoveAll(filepath.Join(v.s.dir, filepath.FromSlash(folder))); err != nil {
		v.s.p.log.Warn("removing what was damaged", "set", v.s.cfg.Name, "folder", folder, "error", err)
	}
}

// makeAgain makes missing published files. The caller holds s.dumping.
func (s *set) makeAgain(ctx context.Context) error {
	snap := s.acquire()
	if snap == nil {
		return nil
	}
	defer snap.release()
	if s.offers(resourcesync.ResourceDump) {
		if err := s.makeDump(ctx, snap); err != nil {
			return err
		}
	}
	if err := s.dumpChanges(ctx, snap); err != nil {
		return err
	}
	if s.cfg.ScheduledList && s.offers(resourcesync.ResourceList) {
		return s.makeList(ctx)
	}
	return nil
}

// damagedFile is a file with other bytes than its record says.
type damagedFile struct{ why string }

func (e *damagedFile) Error() string { return e.why }

// checkFile reads a file and compares it with its record.
func (s *set) checkFile(name string, length int64, sum string) error {
	h := sha256.New()
	n, err := s.readFile(name, h)
	if err != nil {
		return err
	}
	if n != length {
		return &damagedFile{fmt.Sprintf("has %d bytes, want %d", n, length)}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return &damagedFile{fmt.Sprintf("SHA-256 is %s, want %s", got, sum)}
	}
	return nil
}

// checkDocument reads a stored document and compares it with its record.
func (s *set) checkDocument(d archivedDocument) error {
	var packed bytes.Buffer
	if _, err := s.readFile(d.file(), &packed); err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	n, err := io.Copy(crc, flate.NewReader(&packed))
	if err != nil || n != d.Length || crc.Sum32() != d.CRC32 || packed.Len() > 0 {
		return &damagedFile{fmt.Sprintf("holds %d bytes of CRC-32 %08x, want %d of %08x", n, crc.Sum32(), d.Length, d.CRC32)}
	}
	return nil
}

func (s *set) readFile(name string, w io.Writer) (int64, error) {
	f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, &damagedFile{"is not there"}
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(w, f)
}

// hasSize tells whether a file is there and has so many bytes.
func (s *set) hasSize(name string, size int64) bool {
	info, err := os.Stat(filepath.Join(s.dir, filepath.FromSlash(name)))
	return err == nil && info.Size() == size
}
