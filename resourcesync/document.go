package resourcesync

import (
	"strconv"
	"strings"
	"time"
)

// Meta is an rs:md element. Zero values are absent; Length is -1 when absent.
//
// A length of 0 without a hash is absent too, so a Meta literal stays short. An empty
// representation is written with its hash.
type Meta struct {
	Capability                           Capability
	At, Completed, From, Until, Modified time.Time // Modified: read from 0.5, 0.6 and D-Lib documents only, never written
	Change                               string    // Created, Updated, Deleted
	DateTime                             time.Time // when the change happened
	Encoding, Path, Type                 string
	Hash                                 Hashes
	Length                               int64
	Ext                                  map[string]string // attributes in NamespaceBridge by local name
}

// Sequence is the position in the source's log, our own attribute; ok is false without one.
func (m *Meta) Sequence() (sequence uint64, ok bool) {
	n, err := strconv.ParseUint(m.Ext[ExtSequence], 10, 63)
	if err != nil {
		return 0, false
	}
	return n, true
}

// Link is an rs:ln element. Length -1 and Pri 0 mean absent; a length of 0 is
// written only beside a hash, as in Meta.
type Link struct {
	Rel, Href, Type, Encoding, Path, Profile string
	Hash                                     Hashes
	Length                                   int64
	Modified                                 time.Time // of the linked resource
	Pri                                      int       // 1 (first choice) to 999999
	Ext                                      map[string]string
}

// Head is everything of a document but its entries.
type Head struct {
	Index bool // sitemapindex
	Meta  Meta
	Links []Link // href resolved against the document's address
	// Reader only:
	Dialect     string   // see the Dialect constants
	LegacyLinks bool     // links and times have the meaning they had before 0.9.1
	Warnings    []string // leniencies used, one for each kind, at most 100
	Feed        bool     // from Atom or RSS, so perhaps incomplete

	inherited bool // the dialect of a document without links comes from its referrer
}

// Dialects of a read document. 0.5 and 0.6, and 0.9.1 and 1.0, often look the
// same; then the later one is named. A Change List counts as 1.0 once it was
// read to the end and no entry had a datetime.
const (
	DialectDLib    = "dlib"
	Dialect05      = "0.5"
	Dialect06      = "0.6"
	Dialect09      = "0.9"
	Dialect10      = "1.0"
	Dialect11      = "1.1"
	DialectSitemap = "sitemap" // no rs:md at the root
	// DialectSocket is for the Writer: notification 0.8, sent over WebSockets.
	DialectSocket = "notification-0.8"
)

// Link gives the address of the first root link of a relation, or "".
func (h *Head) Link(rel string) string {
	for i := range h.Links {
		if h.Links[i].Rel == rel {
			return h.Links[i].Href
		}
	}
	return ""
}

// Parent gives the address of the document above: the Capability List, or for a Capability List the
// Source Description; "" if there is none. It follows the rules of the document's dialect. A legacy
// document without a named parent gives its up link here and in IndexURL. The caller fetches it: a
// target with the capability of this document is its index.
func (h *Head) Parent() string {
	if !h.LegacyLinks && h.Meta.Capability != CapabilityList {
		return h.Link(RelUp)
	}
	order := [...]string{RelResourceSync, RelTop, RelUp}
	if h.Meta.Capability == CapabilityList {
		order = [...]string{RelUp, RelResourceSync, RelTop}
	}
	for _, rel := range order {
		if s := h.Link(rel); s != "" {
			return s
		}
	}
	return ""
}

// IndexURL gives the address of the document's index, or "", by the rules of the document's dialect
// (before 0.9.1 the link was called up).
func (h *Head) IndexURL() string {
	if h.LegacyLinks && h.Meta.Capability != CapabilityList {
		if s := h.Link(RelUp); s != "" {
			return s
		}
	}
	return h.Link(RelIndex)
}

// Closed tells whether the document will never change again: until is present and has this meaning
// in its dialect. A document without links counts as open, unless ReaderOptions.Dialect names its
// origin's dialect.
func (h *Head) Closed() bool {
	if h.Meta.Until.IsZero() || h.LegacyLinks {
		return false
	}
	return h.inherited || h.navigates()
}

// navigates says whether the root leads to another document of the framework.
func (h *Head) navigates() bool {
	for i := range h.Links {
		switch h.Links[i].Rel {
		case RelUp, RelIndex, RelResourceSync, RelTop:
			return true
		}
	}
	return false
}

// SnapshotTime is the time of the document's state: at, else from (0.9, snapshot documents only),
// else modified (before 0.9), else zero.
func (h *Head) SnapshotTime() time.Time {
	switch m := &h.Meta; {
	case !m.At.IsZero():
		return m.At
	case !m.From.IsZero() && (m.Capability.Snapshot() || m.Capability == ""):
		return m.From
	default:
		return m.Modified
	}
}

// Entry is a url or sitemap element.
type Entry struct {
	Loc        string    // reader: trimmed and resolved against the document's address
	LastMod    time.Time // Last-Modified of the resource; before 1.1 the time of the change
	ChangeFreq string    // always, hourly, daily, weekly, monthly, yearly, never
	Priority   string    // Sitemap protocol only
	HasMeta    bool      // reader: rs:md was there; writer: written when true
	Meta       Meta
	Links      []Link
	Line       int   // reader only: first line of the element, from 1
	Number     int64 // reader only: of the entry, from 1, over all pages

	// Faults are the forgiven faults of this entry, reader only: an unreadable datetime, and with
	// ReaderOptions.KeepFaulty a missing or doubled loc.
	Faults []string
}

// Link gives the first link of a relation, or nil.
func (e *Entry) Link(rel string) *Link {
	for i := range e.Links {
		if e.Links[i].Rel == rel {
			return &e.Links[i]
		}
	}
	return nil
}

// IsPackage says whether the entry of a Change List is in truth a package, as in
// the feeds of CORE: it names no change, and its
// type is an archive's, or it has an interval and a length.
func (e *Entry) IsPackage() bool {
	m := &e.Meta
	if !e.HasMeta || m.Change != "" {
		return false
	}
	return archiveType(m.Type) || m.Type != "" && m.Length >= 0 && !m.From.IsZero() && !m.Until.IsZero()
}

// archiveType tells whether a media type is an archive of files.
func archiveType(s string) bool {
	switch s = NormalizeType(s); s {
	case "application/zip", "application/x-zip-compressed", "application/x-tar", "application/tar",
		"application/gzip", "application/x-gzip", "application/x-gtar", "application/x-xz",
		"application/zstd", "application/x-7z-compressed", "application/x-bzip2":
		return true
	}
	return strings.HasSuffix(s, "+zip")
}
