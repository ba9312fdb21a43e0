package resourcesync

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/klauspost/compress/flate"
)

// PackageWriter writes a ZIP package: bitstreams first, manifest.xml at the end.
// It streams; the manifest waits in memory up to 8 MB and in a temporary file
// beyond. The same calls give the same bytes: a member's time is its entry's
// LastMod, else its DateTime, else the first of January 1980, always in UTC. More than 65,535
// members or 4 GB make a ZIP64 file.
//
// The caller ends with Close, CloseTo or Abort.
type PackageWriter struct {
	zip      *zip.Writer
	manifest *Writer
	spool    *spool
	names    map[string]struct{}
	deflate  *flate.Writer
	packed   bytes.Buffer
	size     int64
	done     bool
	err      error // sticky: the package is broken
}

// manifestInMemory is how much of a manifest is held in memory.
const manifestInMemory = 8 << 20

// NewPackageWriter starts a package; head is the manifest's: its capability is
// ResourceDumpManifest or ChangeDumpManifest. Nothing is written before the first
// bitstream.
func NewPackageWriter(w io.Writer, head Head) (*PackageWriter, error) {
	if !head.Meta.Capability.Manifest() {
		return nil, fmt.Errorf("resourcesync: starting a package: the capability is %q, want %s or %s",
			head.Meta.Capability, ResourceDumpManifest, ChangeDumpManifest)
	}
	p := &PackageWriter{
		spool: &spool{bound: manifestInMemory},
		names: map[string]struct{}{ManifestName: {}},
	}
	manifest, err := NewWriter(p.spool, head)
	if err != nil {
		return nil, err
	}
	p.manifest = manifest
	p.zip = zip.NewWriter(w)
	return p, nil
}

// AddDeflated stores an already deflated bitstream (raw, RFC 1951) without packing it again. crc
// (CRC-32, IEEE) and length describe the unpacked bytes. The bytes are not checked. An empty
// e.Meta.Path is set from path ("/"+path if path has no slash); otherwise it must mean the same
// member. e.HasMeta is set, and e goes into the manifest.
//
// An unsafe path, a used one and an entry the Writer refuses are errors that leave the package as
// it was; an error of the io.Writer ends it.
func (p *PackageWriter) AddDeflated(path string, deflated []byte, crc uint32, length int64, e *Entry) error {
	return p.add(path, zip.Deflate, deflated, crc, length, e)
}

// Add packs a bitstream and stores it as AddDeflated does. If deflate does not make it smaller, it
// is stored unpacked.
func (p *PackageWriter) Add(path string, data []byte, e *Entry) error {
	crc := crc32.ChecksumIEEE(data)
	p.packed.Reset()
	if p.deflate == nil {
		w, err := flate.NewWriter(&p.packed, flate.DefaultCompression)
		if err != nil {
			return fmt.Errorf("resourcesync: packing %q: %w", clip(path), err)
		}
		p.deflate = w
	} else {
		p.deflate.Reset(&p.packed)
	}
	if _, err := p.deflate.Write(data); err != nil {
		return fmt.Errorf("resourcesync: packing %q: %w", clip(path), err)
	}
	if err := p.deflate.Close(); err != nil {
		return fmt.Errorf("resourcesync: packing %q: %w", clip(path), err)
	}
	if p.packed.Len() >= len(data) {
		return p.add(path, zip.Store, data, crc, int64(len(data)), e)
	}
	return p.add(path, zip.Deflate, p.packed.Bytes(), crc, int64(len(data)), e)
}

// AddStored stores a bitstream as it is, without packing it. crc (CRC-32, IEEE) and length describe
// the bytes of r; other bytes end the package. Otherwise it is like AddDeflated.
func (p *PackageWriter) AddStored(path string, r io.Reader, crc uint32, length int64, e *Entry) error {
	sum := crc32.NewIEEE()
	name, modified, err := p.enter(path, e)
	if err != nil {
		return err
	}
	if err := p.storeFrom(name, zip.Store, io.TeeReader(r, sum), length, crc, length, modified); err != nil {
		return err
	}
	if sum.Sum32() != crc {
		p.err = fmt.Errorf("resourcesync: writing %q into a package: its bytes are others than its sum says", clip(name))
	}
	return p.err
}

// AddFile stores a further bitstream without an entry of its own: a patch, named by its path in the
// rs:ln of an entry.
func (p *PackageWriter) AddFile(path string, data []byte, modified time.Time) error {
	name, err := p.newName(path)
	if err != nil {
		return err
	}
	return p.store(name, zip.Store, data, crc32.ChecksumIEEE(data), int64(len(data)), modified)
}

// AddEntry adds a manifest entry without a bitstream of its own: a deletion, or a second entry for
// a stored path.
func (p *PackageWriter) AddEntry(e *Entry) error {
	if err := p.usable(); err != nil {
		return err
	}
	return p.manifest.Write(e)
}

func (p *PackageWriter) usable() error {
	if p.done {
		return errors.New("resourcesync: adding to a package that is closed")
	}
	return p.err
}

// newName checks a path and gives the member's name.
func (p *PackageWriter) newName(path string) (string, error) {
	if err := p.usable(); err != nil {
		return "", err
	}
	name, err := MemberName(path)
	if err != nil {
		return "", err
	}
	if _, there := p.names[name]; there {
		return "", fmt.Errorf("resourcesync: path %q is in the package already", clip(path))
	}
	return name, nil
}

func (p *PackageWriter) add(path string, method uint16, packed []byte, crc uint32, length int64, e *Entry) error {
	name, modified, err := p.enter(path, e)
	if err != nil {
		return err
	}
	return p.store(name, method, packed, crc, length, modified)
}

// enter writes the entry of a bitstream into the manifest, and gives the name and
// the time of its member.
func (p *PackageWriter) enter(path string, e *Entry) (name string, modified time.Time, err error) {
	if name, err = p.newName(path); err != nil {
		return "", modified, err
	}
	if own, err := MemberName(e.Meta.Path); e.Meta.Path != "" && (err != nil || own != name) {
		return "", modified, fmt.Errorf("resourcesync: the entry of the path %q has the path %q", clip(path), clip(e.Meta.Path))
	}
	e.HasMeta = true
	if e.Meta.Path == "" {
		e.Meta.Path = "/" + name
	}
	if err := p.manifest.Write(e); err != nil { // first, since an entry can be refused without harm
		return "", modified, err
	}
	if modified = e.LastMod; modified.IsZero() {
		modified = e.Meta.DateTime
	}
	return name, modified, nil
}

func (p *PackageWriter) store(name string, method uint16, packed []byte, crc uint32, length int64, modified time.Time) error {
	return p.storeFrom(name, method, bytes.NewReader(packed), int64(len(packed)), crc, length, modified)
}

func (p *PackageWriter) storeFrom(name string, method uint16, packed io.Reader, size int64, crc uint32, length int64, modified time.Time) error {
	h := &zip.FileHeader{
		Name: name, Method: method, CRC32: crc,
		CompressedSize64: uint64(size), UncompressedSize64: uint64(length),
	}
	setDOSTime(h, modified)
	p.names[name] = struct{}{}
	p.size += 30 + int64(len(name)) + size // a local header is 30 bytes and the name
	w, err := p.zip.CreateRaw(h)
	if err == nil {
		var n int64
		if n, err = io.Copy(w, io.LimitReader(packed, size+1)); err == nil && n != size {
			err = fmt.Errorf("%d bytes came of %d", n, size)
		}
	}
	if err != nil {
		p.err = fmt.Errorf("resourcesync: writing %q into a package: %w", clip(name), err)
	}
	return p.err
}

// setDOSTime sets ZIP's original time field: two-second steps from 1980 to 2107, without zone. The
// extended ones would differ by machine.
func setDOSTime(h *zip.FileHeader, t time.Time) {
	//lint:ignore SA1019 Modified would also write the extended time, which has the machine's zone
	h.ModifiedDate, h.ModifiedTime = 1<<5|1, 0 // 1980-01-01
	t = t.UTC()
	if y := t.Year(); y >= 1980 && y <= 2107 {
		//lint:ignore SA1019 as above
		h.ModifiedDate = uint16(t.Day() + int(t.Month())<<5 + (y-1980)<<9)
		//lint:ignore SA1019 as above
		h.ModifiedTime = uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
	}
	for i := range len(h.Name) {
		if h.Name[i] >= 0x80 {
			h.Flags |= 0x800 // the name is UTF-8
			return
		}
	}
}

// ManifestSize is the number of bytes of the manifest so far, without a buffered rest of at most 64
// KB.
func (p *PackageWriter) ManifestSize() int64 { return p.spool.size }

// Close writes manifest.xml and the directory, and returns the manifest's bytes.
// It does not close the io.Writer.
func (p *PackageWriter) Close() (manifest []byte, err error) {
	var b bytes.Buffer
	if err := p.CloseTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// CloseTo is Close for manifests of any size; it also writes a copy of the manifest to w, unless w
// is nil.
func (p *PackageWriter) CloseTo(w io.Writer) error {
	if err := p.usable(); err != nil {
		p.Abort()
		return err
	}
	defer p.Abort()
	if err := p.close(w); err != nil {
		return fmt.Errorf("resourcesync: closing a package: %w", err)
	}
	return nil
}

func (p *PackageWriter) close(w io.Writer) error {
	if err := p.manifest.Close(); err != nil {
		return err
	}
	if w != nil {
		r, err := p.spool.open()
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
	if err := p.writeManifest(); err != nil {
		return err
	}
	return p.zip.Close()
}

// writeManifest packs the manifest into the package. It is packed aside first, for its sizes. So
// the member needs no data descriptor; some streaming unpackers do not understand one.
func (p *PackageWriter) writeManifest() error {
	plain, err := p.spool.open()
	if err != nil {
		return err
	}
	packed := &spool{dir: p.spool.dir, bound: manifestInMemory}
	defer packed.remove()
	f, err := flate.NewWriter(packed, flate.DefaultCompression)
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(io.MultiWriter(f, sum), plain); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	h := &zip.FileHeader{
		Name: ManifestName, Method: zip.Deflate, CRC32: sum.Sum32(),
		CompressedSize64: uint64(packed.size), UncompressedSize64: uint64(p.spool.size),
	}
	setDOSTime(h, time.Time{})
	w, err := p.zip.CreateRaw(h)
	if err != nil {
		return err
	}
	r, err := packed.open()
	if err == nil {
		_, err = io.Copy(w, r)
	}
	return err
}

// Abort removes the temporary file of an unfinished package. It does nothing after Close.
func (p *PackageWriter) Abort() {
	p.done = true
	p.spool.remove()
}
