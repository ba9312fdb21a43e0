package kept

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
)

// Folder has the files of a set: packages and kept documents. None changes its bytes after it was
// written. A set takes it along to new addresses.
type Folder struct {
	Store  blob.Store // nil: there are no files
	Dir    string     // of files that are being made
	Local  bool       // nobody else writes to the store
	Public string     // address of the store's files, for a redirection; "": they are sent from here
	Set    string
	Log    *slog.Logger
	Ask    func(set string) // for the making of missing files; may be nil
	Now    func() time.Time
	Dry    bool // nothing is made or removed

	Lost  atomic.Bool            // some were wrong when the set was opened
	first atomic.Pointer[string] // wrong one met by a request
}

// First is the wrong file met by a request, until it is [Folder.Mended]; "": none.
func (f *Folder) First() string {
	if name := f.first.Load(); name != nil {
		return *name
	}
	return ""
}

// Mended forgets the file of First.
func (f *Folder) Mended() { f.first.Store(nil) }

// Files are the files of a set, by name.
type Files map[string]blob.Info

// Make makes the folder, without what a crash left in it.
func (f *Folder) Make() error {
	if f.Dry {
		return nil
	}
	err := ownfile.MkdirAll(f.Dir)
	if err == nil {
		err = fileblob.Clean(f.Dir)
	}
	return err
}

// Temp begins a file that is being made. The caller closes and removes it.
func (f *Folder) Temp() (*os.File, error) {
	if err := ownfile.MkdirAll(f.Dir); err != nil {
		return nil, err
	}
	return ownfile.CreateTemp(f.Dir, ".tmp-*") // Clean knows the name
}

// There gives all files. Without a store there is none.
func (f *Folder) There(ctx context.Context) (Files, error) {
	all := Files{}
	if f.Store == nil {
		return all, nil
	}
	for info, err := range f.Store.List(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		all[info.Name] = info
	}
	return all, nil
}

// Meets notes the first wrong file met by a request, and asks for its making.
func (f *Folder) Meets(file string) {
	if !f.first.CompareAndSwap(nil, &file) {
		return
	}
	f.Log.Error("a published file is missing, or of another size than it was made with", "set", f.Set, "file", file)
	if f.Ask != nil {
		f.Ask(f.Set)
	}
}

// Has tells whether a file is there and has so many bytes.
func (z Files) Has(name string, size int64) bool {
	info, ok := z[name]
	return ok && info.Size == size
}

// HasAll tells it of all files of packages.
func (z Files) HasAll(ps []Package) bool {
	for _, p := range ps {
		if !z.Has(p.File, p.Length) || !z.Has(p.Manifest, p.ManifestLength) {
			return false
		}
	}
	return true
}

// Keeps tells whether packages are kept at an opening. A dry one keeps all, for Verify to name wrong ones.
func (f *Folder) Keeps(z Files, packages []Package) bool { return f.Dry || z.HasAll(packages) }

// aside is how long a file without a record stays where others write too: another process may be at
// work on its dump.
const aside = 24 * time.Hour

// Sweep removes all files not in keep, by their names or their folders'.
func (f *Folder) Sweep(ctx context.Context, z Files, keep map[string]bool) error {
	var gone []string
	for name, info := range z {
		folder, _, _ := strings.Cut(name, "/")
		ours := slices.Contains([]string{"resourcedump", "changedump", "archives", "resourcelist"}, folder)
		if ours && !keep[name] && !keep[path.Dir(name)] && (f.Local || f.Now().Sub(info.Modified) > aside) {
			gone = append(gone, name)
		}
	}
	return f.Store.Delete(ctx, gone...)
}

// RemoveFolder removes the files below a folder.
func (f *Folder) RemoveFolder(ctx context.Context, folder string) error {
	var gone []string
	for info, err := range f.Store.List(ctx, folder+"/", "") {
		if err != nil {
			return err
		}
		gone = append(gone, info.Name)
	}
	return f.Store.Delete(ctx, gone...)
}

// Forever is the Cache-Control of bytes that never change.
const Forever = "public, max-age=31536000, immutable"

// forever is told to those who read a file from the store.
func forever(contentType string) blob.Meta {
	return blob.Meta{ContentType: contentType, CacheControl: Forever}
}

// Keep writes a packed document into a folder of the archives; "" is their own.
func (f *Folder) Keep(ctx context.Context, folder, name string, body changetrack.Blob) (Document, error) {
	d := Document{Name: name, Folder: folder, Length: body.Length, CRC32: body.CRC32, Stored: int64(len(body.Deflated))}
	if folder == "" {
		d.File = OnlyName("archives/%s", name)
	}
	return d, f.Store.Create(ctx, d.Path(), bytes.NewReader(body.Deflated), d.Stored, forever("application/octet-stream"))
}

// Document reads a kept document, packed and unchecked. One that is not there is [DamagedError], and met.
func (f *Folder) Document(ctx context.Context, d Document) (changetrack.Blob, error) {
	var packed bytes.Buffer
	if _, err := f.read(ctx, d.Path(), &packed); err != nil {
		if errors.As(err, new(*DamagedError)) {
			f.Meets(d.Path())
		}
		return changetrack.Blob{}, err
	}
	return changetrack.Blob{Deflated: packed.Bytes(), CRC32: d.CRC32, Length: d.Length}, nil
}

// DamagedError is a file with other bytes than its record says.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string { return e.Why }

// CheckFile reads a file and compares it with its record.
func (f *Folder) CheckFile(ctx context.Context, name string, length int64, sum string) error {
	h := sha256.New()
	n, err := f.read(ctx, name, h)
	if err != nil {
		return err
	}
	if n != length {
		return &DamagedError{Why: fmt.Sprintf("has %d bytes, want %d", n, length)}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return &DamagedError{Why: fmt.Sprintf("SHA-256 is %s, want %s", got, sum)}
	}
	return nil
}

// CheckDocument reads a stored document and compares it with its record.
func (f *Folder) CheckDocument(ctx context.Context, d Document) error {
	var packed bytes.Buffer
	if _, err := f.read(ctx, d.Path(), &packed); err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	n, err := io.Copy(crc, flate.NewReader(&packed))
	if err != nil || n != d.Length || crc.Sum32() != d.CRC32 || packed.Len() > 0 {
		return &DamagedError{Why: fmt.Sprintf("holds %d bytes of CRC-32 %08x, want %d of %08x", n, crc.Sum32(), d.Length, d.CRC32)}
	}
	return nil
}

func (f *Folder) read(ctx context.Context, name string, w io.Writer) (int64, error) {
	r, _, err := f.Store.Open(ctx, name, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return 0, &DamagedError{Why: "is not there"}
	}
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(w, r)
}
