package resourcesync

import (
	"io"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// ReaderOptions bound and steer reading; zero values are sensible.
type ReaderOptions struct {
	BaseURL       string // the document's address: relative loc and href are resolved against it
	Strict        bool   // refuse forms not allowed by 1.1 instead of warning (Validate looks closer)
	ContentType   string // header of the response, for its charset
	MaxBytes      int64  // default 4 GiB
	MaxEntries    int64  // default 50,000,000
	MaxEntryLinks int    // links of one entry, or of the root; default 1,000
	MaxValueBytes int    // one attribute or text; default 256 KiB
	KeepFaulty    bool   // an entry without a loc, or with two, is given with its Faults instead of ending the document

	Warn func(text string) // told each warning when it comes up; may be nil

	// Part tells that the document is named by an index. A urlset is then no index itself, whatever
	// its entries say.
	Part bool

	// Expect is the capability of a document without rs:md at its root. A plain Sitemap is read as
	// a Resource List with Expect: ResourceList.
	Expect Capability
	// Dialect is the dialect of the referring document. It decides for a document without links of
	// its own (see Head.Closed).
	Dialect string

	// Page opens a further page of the document, named in its root by a link of the relation next.
	// The entries of all pages are read as those of one document. A nil Page ends the document all
	// the same. Without this function only the first page is read. Next is the second page, if a
	// header names it.
	Page func(address string) (*Page, error)
	Next string
}

func (o *ReaderOptions) defaults() {
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 30
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 50_000_000
	}
	if o.MaxEntryLinks == 0 {
		o.MaxEntryLinks = 1000
	}
	if o.MaxValueBytes == 0 {
		o.MaxValueBytes = 256 << 10
	}
}

// Reader streams a document of any dialect from the D-Lib form and 0.5 to 1.1
// in constant memory. It leaves to the caller questions of several documents (is the
// target of up the index?) and of several passes (lists in reverse order, see
// Order).
//
// Its errors are of type *DocumentError, with the document's address and line.
type Reader struct {
	o    ReaderOptions
	d    decoder
	head Head
	ns   xmlscan.Space // of urlset, url, loc ...: the Sitemap namespace, or none
	uri  string        // the same, by name

	signs Signs
	times times

	atEntry bool // the start tag of an entry was read
	ended   bool
	entries int64
	links   int // of the entry before, a guess for the next
	err     error

	passLinks func(*Meta) bool // see PassLinks

	parts func() (*Reader, error) // manifests of an index of manifests, or further pages
	part  *Reader

	page  *pageReader
	pages map[[32]byte]bool // addresses of pages, hashed

	sitemaps bool    // the root is sitemapindex
	ahead    []Entry // the first entries, read with the root
	aheadErr error   // after them
}

// NewReader reads up to the first entry. Root elements after entries are
// accepted and show in Head once Next has returned io.EOF.
func NewReader(r io.Reader, o ReaderOptions) (*Reader, error) {
	o.defaults()
	out := &Reader{o: o}
	r, slips, err := inXML(r, o.BaseURL, o.ContentType, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	var slip func(error, string)
	if !o.Strict {
		slip = func(_ error, message string) { _ = out.d.lapse(message, "%s", message) }
	}
	out.d = decoder{
		s:      newScanner(r, o.BaseURL, o.MaxBytes, o.MaxValueBytes, slip),
		strict: o.Strict, base: o.BaseURL, warn: warnings{tell: o.Warn},
	}
	if _, err := out.d.s.Next(); err != nil { // the first token is always a start tag
		return nil, err
	}
	for _, s := range slips {
		if o.Strict {
			return nil, out.d.s.Fail(ErrInvalid, s.Text)
		}
		out.d.warn.add(s.Text, 1, "%s", s.Text)
		out.head.Feed = out.head.Feed || s.Feed
	}
	if err := out.checkRoot(); err != nil {
		return nil, err
	}
	if err := out.toEntry(); err != nil {
		return nil, err
	}
	if err := out.settleHead(); err != nil {
		return nil, err
	}
	out.peek()
	return out, nil
}

// ReadHead reads the root of a document and stops at the first entry; of a long
// list only the first few KB are taken from r.
func ReadHead(r io.Reader, o ReaderOptions) (Head, error) {
	rd, err := NewReader(r, o)
	if err != nil {
		return Head{}, err
	}
	return rd.head, nil
}

// Head gives the root. Warnings grow while entries are read.
func (r *Reader) Head() *Head { return &r.head }

// Count gives the number of entries read so far.
func (r *Reader) Count() int64 { return r.entries }

// BytesRead gives the number of bytes taken from the underlying reader so far.
func (r *Reader) BytesRead() int64 { return r.d.s.BytesRead() }

// Next gives the next entry, and io.EOF after the last one of a complete document. The entry is the
// caller's.
func (r *Reader) Next() (*Entry, error) {
	e := new(Entry)
	if err := r.NextInto(e); err != nil {
		return nil, err
	}
	return e, nil
}

// NextInto is Next into a reused entry; the room of its Links is reused too. After an error the
// entry is undefined.
func (r *Reader) NextInto(e *Entry) error {
	if r.err != nil {
		return r.err
	}
	if r.parts == nil {
		r.err = r.nextInto(e)
		if r.err == io.EOF && r.o.Page != nil {
			r.parts, r.err = r.turn, nil
		}
	}
	if r.parts != nil && r.err == nil {
		r.err = r.nextOfParts(e)
	}
	return r.err
}

// PassLinks leaves out the links of entries chosen by pass from their rs:md. It skips links behind
// the rs:md written as empty elements, fast and unread. The first entry is read with the root and
// keeps its links.
func (r *Reader) PassLinks(pass func(*Meta) bool) { r.passLinks = pass }

func (r *Reader) nextInto(e *Entry) error {
	if len(r.ahead) > 0 {
		*e, r.ahead = r.ahead[0], r.ahead[1:]
		return r.count(e)
	}
	if r.aheadErr != nil {
		return r.aheadErr
	}
	if !r.atEntry && !r.ended {
		if err := r.toEntry(); err != nil {
			return err
		}
	}
	if r.ended {
		if err := r.settleHead(); err != nil {
			return err
		}
		r.d.warn.settle()
		r.head.Warnings = r.d.warn.list
		return io.EOF
	}
	if err := r.own(e); err != nil {
		return err
	}
	return r.count(e)
}

// own reads the entry after its start tag.
func (r *Reader) own(e *Entry) error {
	r.atEntry = false
	*e = Entry{Links: e.Links[:0]}
	return r.entry(e)
}

// count counts an entry for the caller.
func (r *Reader) count(e *Entry) error {
	if r.entries++; r.entries > r.o.MaxEntries {
		return r.d.s.Failf(ErrLimit, "the document has more than %d entries", r.o.MaxEntries)
	}
	e.Number = r.entries
	r.times.track(e)
	r.head.Warnings = r.d.warn.list
	return nil
}

// nextOfParts goes through manifests or pages one after the other.
func (r *Reader) nextOfParts(e *Entry) error {
	for {
		if r.part == nil {
			part, err := r.parts()
			if err != nil {
				return err
			}
			r.part = part
		}
		err := r.part.NextInto(e)
		if err == nil {
			return r.count(e)
		}
		if err != io.EOF {
			return err
		}
		r.head.Warnings = append(r.head.Warnings, r.part.head.Warnings...)
		if len(r.head.Warnings) > maxWarnings {
			r.head.Warnings = r.head.Warnings[:maxWarnings]
		}
		r.part = nil
	}
}

// toEntry reads root elements up to the start tag of an entry, or to the end.
func (r *Reader) toEntry() error {
	s := r.d.s
	for {
		tok, err := r.d.next()
		if err != nil {
			return err
		}
		if tok == xmlscan.End {
			r.ended = true
			_, err := s.Next() // nothing but comments may follow
			return err
		}
		switch n := &s.Name; {
		case r.sitemap(n):
			entry, err := r.rootChild(string(n.Local))
			if entry || err != nil {
				r.atEntry = entry
				return err
			}
		case n.Space == SpaceRS || n.Space == SpaceDLib:
			r.signs.DLib = r.signs.DLib || n.Space == SpaceDLib
			if err := r.rootRS(); err != nil {
				return err
			}
		case n.URI == namespaceXHTML && string(n.Local) == "meta":
			return r.refuse01("xhtml:meta at the root")
		default:
			if err := s.Skip(); err != nil {
				return err
			}
		}
	}
}

// rootChild looks at an element of the Sitemap namespace below the root.
func (r *Reader) rootChild(local string) (entry bool, err error) {
	s := r.d.s
	want, root := "url", "urlset"
	if r.sitemaps {
		want, root = "sitemap", "sitemapindex"
	}
	switch local {
	case want:
		return true, nil
	case "url", "sitemap", "urlset", "sitemapindex":
		return false, s.Failf(ErrInvalid, "<%s> inside <%s>, want <%s>", local, root, want)
	}
	if err := r.d.lapse("unknown element", "the unknown element <%s> in <%s> is left out", clip(s.Name.Raw()), root); err != nil {
		return false, err
	}
	return false, s.Skip()
}

// rootRS reads an rs:md or rs:ln of the root.
func (r *Reader) rootRS() error {
	s := r.d.s
	if err := r.rsNamespace(); err != nil {
		return err
	}
	switch string(s.Name.Local) {
	case "md":
		if r.signs.Meta {
			if err := r.d.lapse("second rs:md", "the root has more than one rs:md; the first counts"); err != nil {
				return err
			}
			break
		}
		r.signs.Meta = true
		if err := r.d.meta(s.Attrs, &r.head.Meta); err != nil {
			return err
		}
		if err := r.mapCapability(); err != nil {
			return err
		}
	case "ln":
		if len(r.head.Links) == r.o.MaxEntryLinks {
			return s.Failf(ErrLimit, "the root has more than %d rs:ln", r.o.MaxEntryLinks)
		}
		var l Link
		ok, err := r.d.link(s.Attrs, &l)
		if err != nil {
			return err
		}
		if ok {
			r.head.Links = append(r.head.Links, l)
		}
	default:
		if err := r.unknownRS(); err != nil {
			return err
		}
	}
	return s.Skip()
}

func (r *Reader) rsNamespace() error {
	if n := &r.d.s.Name; n.Space == SpaceRS && n.URI != NamespaceRS {
		return r.d.lapse("rs namespace", "<%s> is in the namespace %q, want %q", clip(n.Raw()), clip(n.URI), NamespaceRS)
	}
	return nil
}

// unknownRS looks at other elements of the rs namespace than md and ln.
func (r *Reader) unknownRS() error {
	s := r.d.s
	switch local := string(s.Name.Local); local {
	case "fixity", "size", "mimetype", "contentencoding", "path":
		return r.refuse01("element rs:" + local)
	}
	return r.d.lapse("unknown element", "the unknown element <%s> is left out", clip(s.Name.Raw()))
}

// settleHead ends the work on the root, as far as it is known.
func (r *Reader) settleHead() error {
	h := &r.head
	if !r.signs.Meta {
		h.Meta.Length = -1
		h.Meta.Capability = r.o.Expect
		if r.d.warn.counts["no rs:md"] == nil && (r.ended || !r.d.strict) { // strictly, it may still come
			if err := r.d.lapse("no rs:md", "the root has no rs:md; the document is read as a plain Sitemap"); err != nil {
				return err
			}
		}
	}
	if err := r.settle(); err != nil {
		return err
	}
	if r.d.strict && r.signs.Meta {
		if err := checkHead(h); err != nil {
			return r.d.s.Fail(ErrInvalid, err.Error())
		}
	}
	h.Warnings = r.d.warn.list
	return nil
}

// ChangeTime gives the time of the change in an entry of a change document: its datetime; else, if
// no entry of the document has one (1.0 and before), its lastmod; else zero: then only its position
// is known.
//
// Only after the end of the document it is certain that no entry has a datetime. Until then the
// entries read so far decide: the answer for entries before the first datetime may change from
// lastmod to zero.
func (r *Reader) ChangeTime(e *Entry) time.Time {
	if !e.Meta.DateTime.IsZero() {
		return e.Meta.DateTime
	}
	if r.times.sawDateTime && !r.head.LegacyLinks {
		return time.Time{}
	}
	return e.LastMod
}
