package resourcesync

import (
	"io"
	"time"
)

// PackageWriter writes a ZIP package: bitstreams first, manifest.xml at the end.
type PackageWriter struct{}

// NewPackageWriter starts a package; head is the manifest's.
func NewPackageWriter(w io.Writer, head Head) (*PackageWriter, error) { panic("stub") }

// AddDeflated stores a bitstream that is already raw deflate, without packing it again. e.Meta.Path is set from path when empty.
func (p *PackageWriter) AddDeflated(path string, deflated []byte, crc uint32, length int64, e *Entry) error {
	panic("stub")
}
func (p *PackageWriter) Add(path string, data []byte, e *Entry) error { panic("stub") }

// AddEntry adds a manifest entry without a bitstream (deleted).
func (p *PackageWriter) AddEntry(e *Entry) error { panic("stub") }

// Close writes manifest.xml and the directory, and returns the manifest's bytes.
func (p *PackageWriter) Close() (manifest []byte, err error) { panic("stub") }

// PackageOptions bound the reading of a package.
type PackageOptions struct {
	MaxEntryBytes int64 // unpacked, per bitstream; default 256 MiB
	MaxBytes      int64 // unpacked, all; default 64 GiB
	MaxRatio      int64 // unpacked to packed beyond the first MiB; default 2000
	Reader        ReaderOptions
}

// Package is an opened ZIP package.
type Package struct{}

// OpenPackage opens a package and finds manifest.xml at its top level (or the
// index of manifests of 0.5). Unsafe names, doubles and bombs are errors.
func OpenPackage(r io.ReaderAt, size int64, o PackageOptions) (*Package, error) { panic("stub") }

// Manifest streams the manifest.
func (p *Package) Manifest() (*Reader, io.Closer, error) { panic("stub") }

// Open opens a bitstream by its manifest path, bounded.
func (p *Package) Open(path string) (io.ReadCloser, error) { panic("stub") }

// Finding is one rule that a document breaks (dossier, section 6).
type Finding struct {
	Rule     int    `json:"rule"`
	Severity string `json:"severity"` // E, W, I
	Line     int    `json:"line"`
	Message  string `json:"message"` // with the offending text and what would be right
}

// ValidateOptions of Validate.
type ValidateOptions struct {
	Location string
	Strict   bool
	Now      time.Time
}

// Validate checks one document against the offline rules, streaming.
func Validate(r io.Reader, o ValidateOptions) (h Head, findings []Finding, err error) { panic("stub") }
