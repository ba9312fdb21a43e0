package publish

import (
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// folder has the files of a set: packages and kept documents. A set takes it along to
// new addresses.
type folder struct {
	dir string // "": there are no files
	set string
	log *slog.Logger
	ask func(set string) // for the making of missing files; may be nil
	dry bool             // nothing is made or removed

	lost  atomic.Bool            // some were wrong when the set was opened
	first atomic.Pointer[string] // wrong one met by a request
}

func (f *folder) make() error {
	if f.dry {
		return nil
	}
	return ownfile.MkdirAll(f.dir)
}

// kept tells whether packages are kept at an opening. A dry one keeps all, for Verify to name wrong ones.
func (f *folder) kept(packages []packageRecord) bool { return f.dry || f.allThere(packages) }

// path is the place of a file named in a record.
func (f *folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// meets notes the first wrong file met by a request, and asks for its making.
func (f *folder) meets(file string) {
	if !f.first.CompareAndSwap(nil, &file) {
		return
	}
	f.log.Error("a published file is missing, or of another size than it was made with", "set", f.set, "file", file)
	if f.ask != nil {
		f.ask(f.set)
	}
}

// hasSize tells whether a file is there and has so many bytes.
func (f *folder) hasSize(name string, size int64) bool {
	info, err := os.Stat(f.path(name))
	return err == nil && info.Size() == size
}

func (f *folder) allThere(ps []packageRecord) bool {
	for _, p := range ps {
		if !f.hasSize(p.File, p.Length) || !f.hasSize(p.Manifest, p.ManifestLength) {
			return false
		}
	}
	return true
}

// sweep removes all files not in keep from the two folders of packages.
func (f *folder) sweep(keep map[string]bool) error {
	for _, folder := range []string{"resourcedump", "changedump", "archives", "resourcelist"} {
		entries, err := os.ReadDir(filepath.Join(f.dir, folder))
		if ownfile.IsAbsent(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !keep[folder+"/"+e.Name()] {
				if err := os.RemoveAll(filepath.Join(f.dir, folder, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// newPackage begins a package; prefix is removed from entity IRIs in its paths.
func (f *folder) newPackage(name, prefix string, head resourcesync.Head) (*packageFile, error) {
	pk := &packageFile{files: f, prefix: prefix, name: name, folded: map[string]bool{}}
	path := f.path(name)
	if err := ownfile.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file, err := ownfile.Create(path + ".zip.tmp")
	if err != nil {
		return nil, err
	}
	pk.file = file
	pk.buf = bufio.NewWriterSize(file, 256<<10)
	pk.sum = countingHash{w: pk.buf, h: sha256.New()}
	if pk.zip, err = resourcesync.NewPackageWriter(&pk.sum, head); err != nil {
		pk.abort()
		return nil, err
	}
	return pk, nil
}

// keepDocument writes a document into a folder of the archives; "" is their own.
func (f *folder) keepDocument(folder, name string, d *document) (archivedDocument, error) {
	a := archivedDocument{Name: name, Folder: folder, Length: d.body.Length, CRC32: d.body.CRC32, Stored: int64(len(d.body.Deflated))}
	file := f.path(a.file())
	if err := ownfile.MkdirAll(filepath.Dir(file)); err != nil {
		return a, err
	}
	return a, ownfile.Replace(file, func(w io.Writer) error {
		_, err := w.Write(d.body.Deflated)
		return err
	})
}

// stored is a kept document, at the address of a set.
func (f *folder) stored(url string, r *archiveRecord, a archivedDocument) (*document, error) {
	data, err := os.ReadFile(f.path(a.file()))
	if ownfile.IsAbsent(err) {
		f.meets(a.file())
		return nil, notFound("This document has just been replaced, or has left the archive.")
	}
	if err != nil {
		return nil, err
	}
	return &document{etag: nameTag("stored %s %s %s %d %d", url, a.Name, r.Stored, a.CRC32, a.Length), contentType: xmlType, modified: r.Stored,
		body: changetrack.Blob{Deflated: data, CRC32: a.CRC32, Length: a.Length}}, nil
}

// damagedFile is a file with other bytes than its record says.
type damagedFile struct{ why string }

func (e *damagedFile) Error() string { return e.why }

// checkFile reads a file and compares it with its record.
func (f *folder) checkFile(name string, length int64, sum string) error {
	h := sha256.New()
	n, err := f.readFile(name, h)
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
func (f *folder) checkDocument(d archivedDocument) error {
	var packed bytes.Buffer
	if _, err := f.readFile(d.file(), &packed); err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	n, err := io.Copy(crc, flate.NewReader(&packed))
	if err != nil || n != d.Length || crc.Sum32() != d.CRC32 || packed.Len() > 0 {
		return &damagedFile{fmt.Sprintf("holds %d bytes of CRC-32 %08x, want %d of %08x", n, crc.Sum32(), d.Length, d.CRC32)}
	}
	return nil
}

func (f *folder) readFile(name string, w io.Writer) (int64, error) {
	file, err := os.Open(f.path(name))
	if ownfile.IsAbsent(err) {
		return 0, &damagedFile{"is not there"}
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(w, file)
}
