package kept

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The media types of packages and of the copies of their manifests.
const (
	ZIPType = "application/zip"
	XMLType = "application/xml"
)

// NewPackage begins a package; prefix is removed from entity IRIs in its paths.
func (f *Folder) NewPackage(name, prefix string, head resourcesync.Head) (*Writer, error) {
	pk := &Writer{files: f, prefix: prefix, name: name, folded: map[string]bool{}}
	file, err := f.Temp()
	if err != nil {
		return nil, err
	}
	pk.file = file
	pk.buf = bufio.NewWriterSize(file, 256<<10)
	pk.sum = countingHash{w: pk.buf, h: sha256.New()}
	if pk.zip, err = resourcesync.NewPackageWriter(&pk.sum, head); err != nil {
		pk.Abort()
		return nil, err
	}
	return pk, nil
}

// Writer writes one ZIP package under a temporary name.
type Writer struct {
	files   *Folder
	prefix  string // removed from entity IRIs in paths
	name    string // without suffix
	file    *os.File
	buf     *bufio.Writer
	sum     countingHash
	zip     *resourcesync.PackageWriter
	folded  map[string]bool // paths in small letters
	entries int
}

type countingHash struct {
	w io.Writer
	h interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func (c *countingHash) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.h.Write(b[:n])
	c.n += int64(n)
	return n, err
}

// Path is the path of a representation in a package. It is the public one, unless a segment is too
// long for file systems, or differs only in case from a path in the package: some file systems take
// these for the same.
func (w *Writer) Path(folder, entity string, format rdfres.Format) string {
	name := naming.Encode(entity, w.prefix)
	folded := folder + "/" + strings.ToLower(name) + format.Suffix()
	hashed := w.folded[folded]
	for segment := range strings.SplitSeq(name, "/") {
		hashed = hashed || len(segment) > 200
	}
	if hashed {
		return "/" + folder + "/~-" + rdfres.EntityKey(entity).String() + format.Suffix()
	}
	w.folded[folded] = true
	return "/" + folder + "/" + name + format.Suffix()
}

// Size is how many bytes were written.
func (w *Writer) Size() int64 { return w.sum.n }

// Entries is how many resources it has, and ManifestSize the bytes of its manifest.
func (w *Writer) Entries() int        { return w.entries }
func (w *Writer) ManifestSize() int64 { return w.zip.ManifestSize() }

// Add adds a resource with its bytes.
func (w *Writer) Add(path string, blob changetrack.Blob, e *resourcesync.Entry) error {
	blob, err := blob.Deflate()
	if err != nil {
		return err
	}
	w.entries++
	return w.zip.AddDeflated(path, blob.Deflated, blob.CRC32, blob.Length, e)
}

// AddStored adds a resource with bytes that are not packed.
func (w *Writer) AddStored(path string, r io.Reader, crc uint32, length int64, e *resourcesync.Entry) error {
	w.entries++
	return w.zip.AddStored(path, r, crc, length, e)
}

// AddEntry adds a resource without bytes, as a deletion.
func (w *Writer) AddEntry(e *resourcesync.Entry) error {
	w.entries++
	return w.zip.AddEntry(e)
}

// AddFile adds bytes beside the resources.
func (w *Writer) AddFile(path string, data []byte, modified time.Time) error {
	return w.zip.AddFile(path, data, modified)
}

// Abort removes what was not closed.
func (w *Writer) Abort() {
	if w.zip != nil {
		w.zip.Abort()
	}
	w.file.Close()
	os.Remove(w.file.Name())
}

// Close ends the package, puts it and the copy of its manifest in place, and gives its record.
func (w *Writer) Close(ctx context.Context) (rec Package, err error) {
	defer w.Abort() // what is put in place stays there
	manifest, err := w.files.Temp()
	if err != nil {
		return rec, err
	}
	defer os.Remove(manifest.Name())
	defer manifest.Close()
	copied := countingHash{w: manifest, h: sha256.New()}
	if err := w.zip.CloseTo(&copied); err != nil {
		return rec, err
	}
	if err := w.buf.Flush(); err != nil {
		return rec, err
	}
	rec = Package{Version: Version, File: w.name + ".zip", Length: w.sum.n, SHA256: hex.EncodeToString(w.sum.h.Sum(nil)),
		Manifest: w.name + "-manifest.xml", ManifestLength: copied.n, ManifestSHA256: hex.EncodeToString(copied.h.Sum(nil)), Entries: w.entries}
	if err := w.files.put(ctx, rec.Manifest, manifest, rec.ManifestLength, rec.ManifestSHA256, XMLType); err != nil {
		return rec, err
	}
	return rec, w.files.put(ctx, rec.File, w.file, rec.Length, rec.SHA256, ZIPType)
}

// put stores a file that was made here, after it was read again.
func (f *Folder) put(ctx context.Context, name string, made *os.File, length int64, sum, contentType string) error {
	h := sha256.New()
	_, err := made.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(h, made)
	}
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("what was written to %s is read back wrong: SHA-256 is %s, want %s", name, got, sum)
	}
	return f.Store.Create(ctx, name, made, length, forever(contentType))
}
