package resourcesync

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

// PackageOptions bound the reading of a package; zero values are sensible.
type PackageOptions struct {
	MaxEntryBytes int64 // unpacked, per bitstream; default 256 MiB
	MaxBytes      int64 // unpacked, all; default 64 GiB
	MaxRatio      int64 // unpacked to packed beyond the first MiB; default 2000
	MaxMembers    int   // files in the package; default 2,000,000
	Reader        ReaderOptions
}

func (o *PackageOptions) defaults() {
	if o.MaxEntryBytes == 0 {
		o.MaxEntryBytes = 256 << 20
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 30
	}
	if o.MaxRatio == 0 {
		o.MaxRatio = 2000
	}
	if o.MaxMembers == 0 {
		o.MaxMembers = 2_000_000
	}
}

// Package is an opened ZIP package. Bitstreams may be opened by several
// goroutines at once.
type Package struct {
	o      PackageOptions
	byName map[string]*packed // as it is written
	byForm map[string]*packed // by memberForm, for names in another form
	names  []string           // in the order of the package
	faults []string
}

// packed is one member.
type packed struct {
	*zip.File
	bad error // why it cannot be read
}

// OpenPackage opens a package of size bytes and finds manifest.xml at its top level (or the index
// of manifests of 0.5; Manifest follows it).
//
// An unreadable member is left out, and reported by Faults: its name leads out of the package,
// names a drive or holds NUL; another member has the same name; it is encrypted, packed by another
// method than stored or deflated, or would unpack to more than the options allow. Names of odd form
// are read by their meaning: backslashes, dots, CP437 instead of UTF-8, letters composed
// differently.
//
// Errors are of kind ErrPackage or ErrLimit: no ZIP file, or cut short; no readable manifest; all
// members together would unpack to more than the options allow.
func OpenPackage(r io.ReaderAt, size int64, o PackageOptions) (*Package, error) {
	o.defaults()
	p := &Package{o: o}
	z, err := zip.NewReader(&aheadReader{r: r, size: size}, size)
	if err != nil {
		return nil, p.fail(ErrPackage, "it is no ZIP file, or it was cut short: %v", err)
	}
	z.RegisterDecompressor(zip.Deflate, inflate) // twice as fast
	if len(z.File) > o.MaxMembers {
		return nil, p.fail(ErrLimit, "it has %d members, more than %d", len(z.File), o.MaxMembers)
	}
	p.byName, p.byForm = make(map[string]*packed, len(z.File)), map[string]*packed{}
	total := uint64(0)
	for _, f := range z.File {
		if n := len(f.Name); n > 0 && (f.Name[n-1] == '/' || f.Name[n-1] == '\\') && f.UncompressedSize64 == 0 {
			continue // a folder
		}
		m := &packed{f, p.checkMember(f, size)}
		if m.bad == nil {
			if total += f.UncompressedSize64; total > uint64(o.MaxBytes) {
				return nil, p.fail(ErrLimit, "its members unpack to more than %d bytes", o.MaxBytes)
			}
		}
		p.enter(p.byName, f.Name, m)
	}
	for _, f := range z.File {
		m := p.byName[f.Name]
		if m == nil || m.File != f {
			continue
		}
		form, err := memberForm(f.Name)
		if err == nil && form != f.Name && p.byName[form] == nil {
			p.enter(p.byForm, form, m)
			p.fault("the name %q is read as %q", clip(f.Name), clip(form))
		}
		if m.bad != nil {
			p.fault("%v", m.bad)
		} else {
			p.names = append(p.names, f.Name)
		}
	}
	if p.bomb(total, uint64(size)) { // overlapping members
		return nil, p.fail(ErrLimit, "%d bytes unpack to %d, more than %d times as much", size, total, o.MaxRatio)
	}
	switch m := p.find(ManifestName); {
	case m == nil:
		return nil, p.fail(ErrPackage, "it has no %s at its top level", ManifestName)
	case m.bad != nil:
		return nil, p.fail(kindOf(m.bad), "%v", m.bad)
	}
	return p, nil
}

// enter puts a member under a name. Of two with one name none can be meant without doubt,
// unless they are the same.
func (p *Package) enter(in map[string]*packed, name string, m *packed) {
	before := in[name]
	switch {
	case before == nil:
		in[name] = m
	case before.CRC32 != m.CRC32 || before.UncompressedSize64 != m.UncompressedSize64:
		in[name] = &packed{before.File, memberError{ErrPackage, fmt.Sprintf("the name %q stands twice", clip(name))}}
	}
}

const maxFaults = 100

func (p *Package) fault(format string, args ...any) {
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

// Faults are the first 100 faults of members: unreadable ones with the reason, and names read in
// another form than written.
func (p *Package) Faults() []string { return p.faults }

// memberError is why one member cannot be read.
type memberError struct {
	kind error
	text string
}

func (e memberError) Error() string { return e.text }

func kindOf(err error) error {
	var e memberError
	if errors.As(err, &e) {
		return e.kind
	}
	return ErrPackage
}

// checkMember tells why a member cannot be read, nil if it can.
func (p *Package) checkMember(f *zip.File, size int64) error {
	form, err := memberForm(f.Name)
	if err != nil {
		return memberError{ErrPackage, fmt.Sprintf("the name %q is not safe: %v", clip(f.Name), err)}
	}
	limit := p.o.MaxEntryBytes
	if form == ManifestName {
		limit = p.o.MaxBytes
	}
	because := func(kind error, format string, args ...any) error {
		return memberError{kind, fmt.Sprintf(format, args...)}
	}
	switch {
	case f.Flags&1 != 0:
		return because(ErrPackage, "%q is encrypted", clip(f.Name))
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return because(ErrPackage, "%q is packed with method %d; stored (0) and deflated (8) are read", clip(f.Name), f.Method)
	case f.CompressedSize64 > uint64(size):
		return because(ErrPackage, "%q claims %d packed bytes, the package has %d", clip(f.Name), f.CompressedSize64, size)
	case f.UncompressedSize64 > uint64(limit):
		return because(ErrLimit, "%q unpacks to %d bytes, more than %d", clip(f.Name), f.UncompressedSize64, limit)
	case p.bomb(f.UncompressedSize64, f.CompressedSize64):
		return because(ErrLimit, "%q unpacks from %d to %d bytes, more than %d times as much", clip(f.Name), f.CompressedSize64, f.UncompressedSize64, p.o.MaxRatio)
	}
	return nil
}

// bomb says whether a size is out of proportion.
func (p *Package) bomb(unpacked, packed uint64) bool {
	const free = 1 << 20
	return unpacked > free && (unpacked-free)/uint64(p.o.MaxRatio) > packed
}

func (p *Package) fail(kind error, format string, args ...any) error {
	return &DocumentError{Location: p.o.Reader.BaseURL, Kind: kind, Message: "the package cannot be used: " + fmt.Sprintf(format, args...)}
}

// Names gives the names of the members, the manifest among them, in the order of
// the package.
func (p *Package) Names() []string { return p.names }

// Open opens a bitstream by its manifest path, with or without leading slash.
// Reading it ends in an error when it is longer than the package claims, or its
// checksum does not match.
func (p *Package) Open(path string) (io.ReadCloser, error) {
	f, err := p.member(path)
	if err != nil {
		return nil, err
	}
	return p.open(f)
}

func (p *Package) member(path string) (*zip.File, error) {
	m := p.find(path)
	switch {
	case m == nil:
		if _, err := memberForm(path); err != nil {
			return nil, p.fail(ErrPackage, "path %q: %v", clip(path), err)
		}
		return nil, p.fail(ErrPackage, "the manifest names %q, which is not in it", clip(path))
	case m.bad != nil:
		return nil, p.fail(kindOf(m.bad), "%v", m.bad)
	}
	return m.File, nil
}

// find gives the member of a path: one with exactly this name, or else one with the same name in
// another form; nil: none.
func (p *Package) find(path string) *packed {
	if m := p.byName[strings.TrimPrefix(path, "/")]; m != nil {
		return m
	}
	forms := []string{path}
	if plain, err := url.PathUnescape(path); err == nil && plain != path { // taken for a part of an address
		forms = append(forms, plain)
	}
	for _, form := range forms {
		form, err := memberForm(form)
		if err != nil {
			continue
		}
		if m := cmp.Or(p.byName[form], p.byForm[form]); m != nil {
			return m
		}
	}
	return nil
}

// Member gives the name of a path's member, "" for none.
func (p *Package) Member(path string) string {
	if m := p.find(path); m != nil {
		return m.Name
	}
	return ""
}

func (p *Package) open(f *zip.File) (io.ReadCloser, error) {
	body, err := f.Open()
	if err != nil {
		return nil, p.fail(ErrPackage, "opening %q: %v", clip(f.Name), err)
	}
	return &bounded{r: body, p: p, name: f.Name, left: int64(f.UncompressedSize64)}, nil
}

// ReadFile gives a bitstream whole, with the errors of Open and of reading; one of more
// than most bytes, as the package claims, is ErrLimit.
func (p *Package) ReadFile(path string, most int64) ([]byte, error) {
	f, err := p.member(path)
	if err != nil {
		return nil, err
	}
	if f.UncompressedSize64 > uint64(most) {
		return nil, p.fail(ErrLimit, "%q has %d bytes, at most %d are taken", clip(f.Name), f.UncompressedSize64, most)
	}
	if f.Method == zip.Deflate && max(f.CompressedSize64, f.UncompressedSize64) <= smallMember {
		return p.readSmall(f)
	}
	r, err := p.open(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body := bytes.NewBuffer(make([]byte, 0, min(f.UncompressedSize64, smallMember)+bytes.MinRead))
	if _, err := body.ReadFrom(r); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// smallMember is read at once, packed and unpacked: for most members making the readers takes as
// long as the reading.
const smallMember = 64 << 10

type smallReader struct {
	packed [smallMember]byte
	in     bytes.Reader
	out    io.ReadCloser
}

var smallReaders = sync.Pool{New: func() any { return &smallReader{out: flate.NewReader(nil)} }}

func (p *Package) readSmall(f *zip.File) ([]byte, error) {
	raw, err := f.OpenRaw()
	if err != nil {
		return nil, p.fail(ErrPackage, "opening %q: %v", clip(f.Name), err)
	}
	r := smallReaders.Get().(*smallReader)
	defer smallReaders.Put(r)
	packed, body := r.packed[:f.CompressedSize64], make([]byte, f.UncompressedSize64)
	if _, err = io.ReadFull(raw, packed); err == nil {
		r.in.Reset(packed)
		_ = r.out.(flate.Resetter).Reset(&r.in, nil) // never fails
		_, err = io.ReadFull(r.out, body)
	}
	switch {
	case err == io.EOF: // nothing at all
		err = io.ErrUnexpectedEOF
	case err == nil:
		var more [1]byte
		var n int
		if n, err = io.ReadFull(r.out, more[:]); n > 0 {
			return nil, p.fail(ErrPackage, "%q is longer than it claims", clip(f.Name))
		}
		if err == io.EOF {
			err = nil
		}
	}
	if err == nil && f.CRC32 != 0 && crc32.ChecksumIEEE(body) != f.CRC32 {
		err = errors.New("its checksum does not match its bytes")
	}
	if err != nil {
		return nil, p.fail(ErrPackage, "reading %q: %v", clip(f.Name), err)
	}
	return body, nil
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func inflate(r io.Reader) io.ReadCloser {
	f := &inflater{r: inflaters.Get().(io.ReadCloser)}
	_ = f.r.(flate.Resetter).Reset(r, nil) // never fails
	return f
}

type inflater struct {
	mu sync.Mutex // Close may come while something is read
	r  io.ReadCloser
}

func (f *inflater) Read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.r == nil {
		return 0, errors.New("read after it was closed")
	}
	return f.r.Read(b)
}

// Close gives the reader back, once.
func (f *inflater) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.r == nil {
		return nil
	}
	err := f.r.Close()
	inflaters.Put(f.r)
	f.r = nil
	return err
}

// bounded ends reading at the declared end of the member.
type bounded struct {
	r    io.ReadCloser
	p    *Package
	name string
	left int64
}

func (b *bounded) Read(buf []byte) (int, error) {
	if int64(len(buf)) > b.left+1 {
		buf = buf[:b.left+1]
	}
	n, err := b.r.Read(buf)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return max(0, n-1), b.p.fail(ErrPackage, "%q is longer than it claims", clip(b.name))
	case err != nil && err != io.EOF:
		why := err
		if errors.Is(err, zip.ErrChecksum) {
			why = errors.New("its checksum does not match its bytes")
		}
		return n, b.p.fail(ErrPackage, "reading %q: %v", clip(b.name), why)
	}
	return n, err
}

func (b *bounded) Close() error { return b.r.Close() }

// Manifest streams the manifest. In a package of 0.5 manifest.xml may be an index: then it streams
// all named manifests, one after the other, under the root of the first. The caller closes the
// io.Closer at the end.
func (p *Package) Manifest() (*Reader, io.Closer, error) {
	m := &manifests{p: p, seen: map[string]bool{ManifestName: true}}
	r, err := m.open(ManifestName)
	if err != nil {
		return nil, nil, err
	}
	if !r.head.Index {
		return r, m, nil
	}
	if err := m.list(r); err != nil {
		m.Close()
		return nil, nil, err
	}
	first, err := m.next()
	if err == io.EOF {
		err = p.fail(ErrPackage, "%s is an index that names no manifest", ManifestName)
	}
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	out := &Reader{o: r.o, d: r.d, head: first.head, part: first, parts: m.next}
	return out, m, nil
}

// manifests goes through the manifests of a package of 0.5.
type manifests struct {
	p     *Package
	queue []string
	seen  map[string]bool
	body  io.Closer
}

const maxManifests = 10_000

func (m *manifests) Close() error {
	if m.body == nil {
		return nil
	}
	err := m.body.Close()
	m.body = nil
	return err
}

func (m *manifests) open(path string) (*Reader, error) {
	m.Close()
	body, err := m.p.Open(path)
	if err != nil {
		return nil, err
	}
	m.body = body
	o := m.p.o.Reader
	r, err := NewReader(body, o)
	if err != nil {
		m.Close()
		return nil, err
	}
	return r, nil
}

// list puts the manifests of an index in front of the queue.
func (m *manifests) list(r *Reader) error {
	var paths []string
	r.d.base = "" // its loc are paths
	for {
		e, err := r.Next()
		if err == io.EOF {
			m.queue = append(paths, m.queue...)
			return nil
		}
		if err != nil {
			return err
		}
		path := e.Meta.Path
		if path == "" {
			path = e.Loc
		}
		name, err := memberForm(path)
		if err != nil {
			return m.p.fail(ErrPackage, "index of manifests: path %q: %v", clip(path), err)
		}
		if m.seen[name] {
			return m.p.fail(ErrPackage, "the index of manifests leads to %q twice", clip(name))
		}
		if len(m.seen) > maxManifests {
			return m.p.fail(ErrLimit, "it has more than %d manifests", maxManifests)
		}
		m.seen[name] = true
		paths = append(paths, path)
	}
}

// next opens the next manifest; indexes among them are followed.
func (m *manifests) next() (*Reader, error) {
	for len(m.queue) > 0 {
		path := m.queue[0]
		m.queue = m.queue[1:]
		r, err := m.open(path)
		if err != nil {
			return nil, err
		}
		if !r.head.Index {
			return r, nil
		}
		if err := m.list(r); err != nil {
			return nil, err
		}
	}
	m.Close()
	return nil, io.EOF
}
