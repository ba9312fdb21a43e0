package publish

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/fileblob"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// folder has the files of a set: packages and kept documents. None changes its bytes after it was
// written. A set takes it along to new addresses.
type folder struct {
	store  blob.Store // nil: there are no files
	dir    string     // of files that are being made
	local  bool       // nobody else writes to the store
	public string     // address of the store's files, for a redirection; "": they are sent from here
	set    string
	log    *slog.Logger
	ask    func(set string) // for the making of missing files; may be nil
	now    func() time.Time
	dry    bool // nothing is made or removed

	lost  atomic.Bool            // some were wrong when the set was opened
	first atomic.Pointer[string] // wrong one met by a request
}

// filed are the files of a set, by name.
type filed map[string]blob.Info

// unfinished is the pattern of a file that is being made.
const unfinished = ".tmp-*"

// make makes the folder, without what a crash left in it.
func (f *folder) make() error {
	if f.dry {
		return nil
	}
	err := ownfile.MkdirAll(f.dir)
	if err == nil {
		err = fileblob.Clean(f.dir)
	}
	return err
}

// temp begins a file that is being made. The caller closes and removes it.
func (f *folder) temp() (*os.File, error) {
	if err := ownfile.MkdirAll(f.dir); err != nil {
		return nil, err
	}
	return ownfile.CreateTemp(f.dir, unfinished)
}

// there gives all files. Without a store there is none.
func (f *folder) there(ctx context.Context) (filed, error) {
	all := filed{}
	if f.store == nil {
		return all, nil
	}
	for info, err := range f.store.List(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		all[info.Name] = info
	}
	return all, nil
}

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

// has tells whether a file is there and has so many bytes.
func (z filed) has(name string, size int64) bool {
	info, ok := z[name]
	return ok && info.Size == size
}

func (z filed) hasAll(ps []packageRecord) bool {
	for _, p := range ps {
		if !z.has(p.File, p.Length) || !z.has(p.Manifest, p.ManifestLength) {
			return false
		}
	}
	return true
}

// kept tells whether packages are kept at an opening. A dry one keeps all, for Verify to name wrong ones.
func (f *folder) kept(z filed, packages []packageRecord) bool { return f.dry || z.hasAll(packages) }

// aside is how long a file without a record stays where others write too: another process may be at
// work on its dump.
const aside = 24 * time.Hour

// sweep removes all files not in keep, by their names or their folders'.
func (f *folder) sweep(ctx context.Context, z filed, keep map[string]bool) error {
	var gone []string
	for name, info := range z {
		folder, _, _ := strings.Cut(name, "/")
		ours := slices.Contains([]string{"resourcedump", "changedump", "archives", "resourcelist"}, folder)
		if ours && !keep[name] && !keep[path.Dir(name)] && (f.local || f.now().Sub(info.Modified) > aside) {
			gone = append(gone, name)
		}
	}
	return f.store.Delete(ctx, gone...)
}

// removeFolder removes the files below a folder.
func (f *folder) removeFolder(ctx context.Context, folder string) error {
	var gone []string
	for info, err := range f.store.List(ctx, folder+"/", "") {
		if err != nil {
			return err
		}
		gone = append(gone, info.Name)
	}
	return f.store.Delete(ctx, gone...)
}

// forever is told to those who read a file from the store.
func forever(contentType string) blob.Meta {
	return blob.Meta{ContentType: contentType, CacheControl: cacheForever}
}

// newPackage begins a package; prefix is removed from entity IRIs in its paths.
func (f *folder) newPackage(name, prefix string, head resourcesync.Head) (*packageFile, error) {
	pk := &packageFile{files: f, prefix: prefix, name: name, folded: map[string]bool{}}
	file, err := f.temp()
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
func (f *folder) keepDocument(ctx context.Context, folder, name string, d *document) (archivedDocument, error) {
	a := archivedDocument{Name: name, Folder: folder, Length: d.body.Length, CRC32: d.body.CRC32, Stored: int64(len(d.body.Deflated))}
	if folder == "" {
		a.File = onlyName("archives/%s", name)
	}
	return a, f.store.Create(ctx, a.file(), bytes.NewReader(d.body.Deflated), a.Stored, forever("application/octet-stream"))
}

// stored is a kept document, at the address of a set.
func (f *folder) stored(ctx context.Context, url string, r *archiveRecord, a archivedDocument) (*document, error) {
	var packed bytes.Buffer
	_, err := f.readFile(ctx, a.file(), &packed)
	if damaged := (*damagedFile)(nil); errors.As(err, &damaged) {
		f.meets(a.file())
		return nil, notFound("This document has just been replaced, or has left the archive.")
	}
	if err != nil {
		return nil, err
	}
	return &document{etag: nameTag("stored %s %s %s %d %d", url, a.Name, r.Stored, a.CRC32, a.Length), contentType: xmlType, modified: r.Stored,
		body: changetrack.Blob{Deflated: packed.Bytes(), CRC32: a.CRC32, Length: a.Length}}, nil
}

// damagedFile is a file with other bytes than its record says.
type damagedFile struct{ why string }

func (e *damagedFile) Error() string { return e.why }

// checkFile reads a file and compares it with its record.
func (f *folder) checkFile(ctx context.Context, name string, length int64, sum string) error {
	h := sha256.New()
	n, err := f.readFile(ctx, name, h)
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
func (f *folder) checkDocument(ctx context.Context, d archivedDocument) error {
	var packed bytes.Buffer
	if _, err := f.readFile(ctx, d.file(), &packed); err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	n, err := io.Copy(crc, flate.NewReader(&packed))
	if err != nil || n != d.Length || crc.Sum32() != d.CRC32 || packed.Len() > 0 {
		return &damagedFile{fmt.Sprintf("holds %d bytes of CRC-32 %08x, want %d of %08x", n, crc.Sum32(), d.Length, d.CRC32)}
	}
	return nil
}

func (f *folder) readFile(ctx context.Context, name string, w io.Writer) (int64, error) {
	r, _, err := f.store.Open(ctx, name, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return 0, &damagedFile{"is not there"}
	}
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(w, r)
}
