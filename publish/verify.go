package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rsbridge/rsbridge/publish/kept"
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
	return err == nil && s.files.Lost.Load()
}

// Verify reads the published files of a set. A dump or list with a wrong file is made again. An
// all document cannot be made again, and is forgotten. It returns the number of files read,
// and the wrong ones. With Options.Dry it only tells.
func (p *Publisher) Verify(ctx context.Context, name string) (files int, faults []FileFault, err error) {
	s, err := p.set(name)
	if err != nil || s.files.Store == nil {
		return 0, nil, err
	}
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	v := &verifier{ctx: ctx, s: s, bad: map[string]error{}, seen: map[string]bool{}}
	if err := v.mendAll(); err != nil {
		return 0, nil, err
	}
	if lost := s.files.Lost.Swap(false); lost && len(v.bad) == 0 { // dropped by the opening
		if err := s.makeAgain(ctx); err != nil {
			return 0, nil, fmt.Errorf("publish: make the missing files of %s again: %w", name, err)
		}
	}
	archived := map[string]bool{}
	for _, r := range v.forgotten {
		for f := range filesOf(r.Documents, r.Packages) {
			archived[f] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(v.bad)) {
		again := !archived[file] && !s.files.Dry
		s.p.log.Error("a published file was damaged", "set", name, "file", file, "error", v.bad[file], "made again", again)
		faults = append(faults, FileFault{File: file, Error: v.bad[file].Error(), Again: again})
	}
	return len(v.seen), faults, nil
}

// Missing tells of a file that a request met so, until it is made again; "": none.
func (p *Publisher) Missing(name string) string {
	if s, err := p.set(name); err == nil {
		return s.files.First()
	}
	return ""
}

// mendMissing makes files again that are missing, or of another size. The caller holds s.dumping.
func mendMissing(ctx context.Context, s *set) error {
	there, err := s.files.There(ctx)
	if err != nil {
		return fmt.Errorf("publish: the files of %s: %w", s.cfg.Name, err)
	}
	return (&verifier{ctx: ctx, s: s, sizes: there, bad: map[string]error{}, seen: map[string]bool{}}).mendAll()
}

// verifier checks and mends the files of a set; s.dumping is held.
type verifier struct {
	ctx       context.Context
	s         *set
	sizes     kept.Files       // nil: their bytes are read
	bad       map[string]error // by file
	seen      map[string]bool
	forgotten []archiveRecord
}

type publishedFile struct {
	length int64
	check  func(context.Context, *kept.Folder) error
}

func filesOf(docs []kept.Document, packages []kept.Package) map[string]publishedFile {
	out := map[string]publishedFile{}
	for _, d := range docs {
		out[d.Path()] = publishedFile{d.Stored, func(ctx context.Context, f *kept.Folder) error { return f.CheckDocument(ctx, d) }}
	}
	for _, p := range packages {
		out[p.File] = publishedFile{p.Length, func(ctx context.Context, f *kept.Folder) error { return f.CheckFile(ctx, p.File, p.Length, p.SHA256) }}
		out[p.Manifest] = publishedFile{p.ManifestLength, func(ctx context.Context, f *kept.Folder) error {
			return f.CheckFile(ctx, p.Manifest, p.ManifestLength, p.ManifestSHA256)
		}}
	}
	return out
}

// mendAll checks all files, and makes wrong ones again.
func (v *verifier) mendAll() error {
	err := v.all()
	if err == nil && len(v.bad) > 0 && !v.s.files.Dry {
		err = v.mend(v.ctx)
	}
	if err != nil {
		return fmt.Errorf("publish: verify the files of %s: %w", v.s.cfg.Name, err)
	}
	v.s.files.Mended()
	return nil
}

// wrong checks files and tells whether one of them is wrong.
func (v *verifier) wrong(docs []kept.Document, packages []kept.Package) (wrong bool, err error) {
	for file, f := range filesOf(docs, packages) {
		if err := v.ctx.Err(); err != nil {
			return false, err
		}
		if !v.seen[file] {
			v.seen[file] = true
			var err error
			if v.sizes == nil {
				err = f.check(v.ctx, v.s.files)
			} else if !v.sizes.Has(file, f.length) {
				err = &kept.DamagedError{Why: "is not there in its size"}
			}
			var damage *kept.DamagedError
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
	for _, r := range s.archive.all() {
		if err == nil {
			_, err = v.wrong(r.Documents, r.Packages)
		}
	}
	return err
}

// mend removes documents with wrong files, and makes them again.
func (v *verifier) mend(ctx context.Context) error {
	s := v.s
	for _, r := range s.archive.all() {
		if wrong, err := v.wrong(r.Documents, r.Packages); err != nil {
			return err
		} else if wrong {
			v.forgotten = append(v.forgotten, r)
		}
	}
	if len(v.forgotten) > 0 {
		if err := s.archive.put(ctx, nil, v.forgotten); err != nil {
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
	if v.s.archive.keeps()[folder] {
		return
	}
	if err := v.s.files.RemoveFolder(v.ctx, folder); err != nil {
		v.s.p.log.Warn("removing what was damaged", "set", v.s.cfg.Name, "folder", folder, "error", err)
	}
}

// makeAgain makes missing published files. The caller holds s.dumping.
func (s *set) makeAgain(ctx context.Context) error {
	snap := s.acquire(ctx)
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
