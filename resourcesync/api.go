package resourcesync

import (
	"io"
	"time"
)

// Capability is the value of rs:md/@capability.
type Capability string

const (
	Description           Capability = "description"
	CapabilityList        Capability = "capabilitylist"
	ResourceList          Capability = "resourcelist"
	ResourceDump          Capability = "resourcedump"
	ResourceDumpManifest  Capability = "resourcedump-manifest"
	ChangeList            Capability = "changelist"
	ChangeDump            Capability = "changedump"
	ChangeDumpManifest    Capability = "changedump-manifest"
	ResourceListArchive   Capability = "resourcelist-archive"
	ResourceDumpArchive   Capability = "resourcedump-archive"
	ChangeListArchive     Capability = "changelist-archive"
	ChangeDumpArchive     Capability = "changedump-archive"
	ChangeNotification    Capability = "change-notification"
	FrameworkNotification Capability = "framework-notification"
)

// Link relations.
const (
	RelUp           = "up"
	RelIndex        = "index"
	RelDescribedBy  = "describedby"
	RelDescribes    = "describes"
	RelContents     = "contents"
	RelDuplicate    = "duplicate"
	RelAlternate    = "alternate"
	RelCanonical    = "canonical"
	RelPatch        = "http://www.openarchives.org/rs/terms/patch"
	RelMemento      = "memento"
	RelTimeGate     = "timegate"
	RelTimeMap      = "timemap"
	RelCollection   = "collection"
	RelVia          = "via"
	RelArchives     = "archives"
	RelHub          = "hub"
	RelSelf         = "self"
	RelResourceSync = "resourcesync"
)

// Namespaces. Extension attributes of ours are in NamespaceBridge (prefix rsb).
const (
	NamespaceSitemap = "http://www.sitemaps.org/schemas/sitemap/0.9"
	NamespaceRS      = "http://www.openarchives.org/rs/terms/"
	NamespaceBridge  = "urn:rsbridge:terms"
)

// Names of our extension attributes (namespace NamespaceBridge).
const (
	ExtSequence   = "sequence"   // root rs:md: position in the log that the document reaches; entry rs:md: sequence of the change
	ExtGraph      = "graph"      // entry rs:md: "sha-256:HEX", graph digest of the wire form; its presence says that blank-node labels are wire names
	ExtGeneration = "generation" // root rs:md: number of the publication
	ExtBase       = "base"       // rs:ln patch: "sha-256:HEX" of the representation (JSON Patch) or graph (RDF Patch) it applies to
	ExtResult     = "result"     // rs:ln patch: what it makes
)

// Hashes is a hash attribute. Known algorithms are normalized to lower-case hex.
type Hashes struct {
	MD5, SHA1, SHA256 string   // hex, "" if absent
	Other             []string // tokens of unknown algorithms, as written
}

// Meta is rs:md. Zero values are absent; Length is -1 when absent.
type Meta struct {
	Capability                           Capability
	At, Completed, From, Until, Modified time.Time
	Change                               string // created, updated, deleted
	DateTime                             time.Time
	Encoding, Path, Type                 string
	Hash                                 Hashes
	Length                               int64
	Ext                                  map[string]string // attributes in NamespaceBridge by local name
}

// Link is rs:ln. Length -1 and Pri 0 mean absent.
type Link struct {
	Rel, Href, Type, Encoding, Path, Profile string
	Hash                                     Hashes
	Length                                   int64
	Modified                                 time.Time
	Pri                                      int
	Ext                                      map[string]string
}

// Head is everything of a document but its entries.
type Head struct {
	Index bool // sitemapindex
	Meta  Meta
	Links []Link // href resolved against the document's address
	// Reader only:
	Dialect     string   // "1.1", "1.0", "0.9", "0.6", "0.5", "dlib", "sitemap" ...
	LegacyLinks bool     // section 4.2, step 3
	Warnings    []string // leniencies used, at most 100
}

// Parent, IndexURL: the links by the dialect's rules (4.2 step 3).
func (h *Head) Parent() string          { panic("stub") }
func (h *Head) IndexURL() string        { panic("stub") }
func (h *Head) Link(rel string) string  { panic("stub") } // href of the first, or ""
func (h *Head) Closed() bool            { panic("stub") } // until present and not legacy
func (h *Head) SnapshotTime() time.Time { panic("stub") } // step 4

// Entry is a url or sitemap element.
type Entry struct {
	Loc        string
	LastMod    time.Time
	ChangeFreq string
	Priority   string
	HasMeta    bool // reader: rs:md was there; writer: written when true
	Meta       Meta
	Links      []Link
	Line       int // reader only
}

func (e *Entry) Link(rel string) *Link { panic("stub") } // first, or nil

// ReaderOptions bound and steer reading; zero values are sensible.
type ReaderOptions struct {
	BaseURL       string // the document's address: relative loc and href are resolved against it
	Strict        bool   // refuse what 1.1 does not allow, instead of warning
	MaxBytes      int64  // default 4 GiB
	MaxEntries    int64  // default 50,000,000
	MaxEntryLinks int    // default 1,000
}

// Reader streams a document of any dialect from the D-Lib form and 0.5 to 1.1
// in constant memory.
type Reader struct{}

// NewReader reads up to the first entry. Root elements after entries are
// accepted (lenient) and show in Head once Next has returned io.EOF.
func NewReader(r io.Reader, o ReaderOptions) (*Reader, error) { panic("stub") }
func (r *Reader) Head() *Head                                 { panic("stub") }
func (r *Reader) Next() (*Entry, error)                       { panic("stub") } // io.EOF at the end; the entry is the caller's

// ChangeTime of an entry is decided per document (4.2 step 6): known after the
// whole document was read, or from the dialect: the reader gives datetime if
// the entry has it, else lastmod for documents before 1.1.
func (r *Reader) ChangeTime(e *Entry) time.Time { panic("stub") }

// Writer writes a 1.1 document: root links, root rs:md, entries in schema order.
type Writer struct{}

func NewWriter(w io.Writer, h Head) (*Writer, error) { panic("stub") }
func (w *Writer) Write(e *Entry) error               { panic("stub") }
func (w *Writer) Close() error                       { panic("stub") } // ends the document; does not close the io.Writer
func (w *Writer) Count() int                         { panic("stub") }

// FormatTime writes UTC with microseconds, fraction left out when zero; ParseTime reads any W3C Datetime, leniently when asked.
func FormatTime(t time.Time) string                       { panic("stub") }
func ParseTime(s string, lenient bool) (time.Time, error) { panic("stub") }

func ParseHashes(s string) (Hashes, error) { panic("stub") } // hex and legacy base64 MD5
func (h Hashes) String() string            { panic("stub") }
func (h Hashes) IsZero() bool              { panic("stub") }

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
