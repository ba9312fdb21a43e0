package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Node is one document of a source and its targets, as Explore finds them.
// Times are nil if the document names none.
type Node struct {
	Location  string `json:"location"`
	Redirect  string `json:"redirect,omitempty"`  // the address of the answer, if that is another one
	Announced string `json:"announced,omitempty"` // capability by its parent
	// Kind is the capability of the document; "sitemap" for one without,
	// "page" for a page with links to documents, "package" for a ZIP file (not
	// fetched), "topic" for a channel of notifications, "" for a failure.
	Kind    string `json:"kind"`
	Index   bool   `json:"index,omitempty"`
	Dialect string `json:"dialect,omitempty"`
	Bytes   int64  `json:"bytes"`           // of the document, unpacked; of a package as announced
	Entries int64  `json:"entries"`         // on all its pages
	Pages   int    `json:"pages,omitempty"` // of a document with next links

	At        *time.Time `json:"at,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	From      *time.Time `json:"from,omitempty"`
	Until     *time.Time `json:"until,omitempty"`
	Open      bool       `json:"open,omitempty"` // a change document still growing

	Up          string `json:"up,omitempty"`          // the document above, as it says
	IndexOf     string `json:"index_of,omitempty"`    // the index above, as it says
	DescribedBy string `json:"describedby,omitempty"` // of the set or the source

	Resources *Resources `json:"resources,omitempty"` // sum of the entries, of lists of resources

	Warnings []string `json:"warnings,omitempty"` // slips forgiven while it was read
	Faults   []string `json:"faults,omitempty"`   // reasons why it cannot be used, or is not as announced
	Note     string   `json:"note,omitempty"`     // why nothing is told, if that is no fault
	Children []*Node  `json:"children,omitempty"`
	Skipped  int64    `json:"skipped,omitempty"` // targets not read: too deep, too many
}

// Resources sums up the entries of a list.
type Resources struct {
	Bytes   int64            `json:"bytes"`   // of those with a length
	Sized   int64            `json:"sized"`   // how many do
	Hashed  map[string]int64 `json:"hashed"`  // how many have a hash, by algorithm
	Changes map[string]int64 `json:"changes"` // by kind: created, updated, deleted
	Types   map[string]int64 `json:"types"`   // by media type, the first 50; others under "other"
	Links   map[string]int64 `json:"links"`   // links of entries by relation, the first 50; others under "other"
	// Elsewhere counts resources at addresses out of reach, by host, or by scheme if it is none of
	// the web; the first 50, others under "other".
	Elsewhere map[string]int64 `json:"elsewhere,omitempty"`
	Oldest    *time.Time       `json:"oldest,omitempty"`
	Newest    *time.Time       `json:"newest,omitempty"` // change times of entries, or lastmod
}

// ExploreOptions of Explore; only Fetch is needed.
type ExploreOptions struct {
	// Fetch gets an address, as in CheckerOptions.
	Fetch func(ctx context.Context, url string) (*Fetched, error)
	// Depth is how many links down documents are read; 0: only the document at the
	// address, less than 0: all.
	Depth        int
	MaxDocuments int   // documents read; default 1000
	MaxChildren  int   // told of one document; default 1000
	MaxBytes     int64 // of one document, unpacked; default 1 GiB
	// Allowed refuses the addresses of hosts out of reach; nil: none.
	Allowed func(*url.URL) error
	// Progress is called before each document is read; may be nil.
	Progress func(location string)
}

type explorer struct {
	o    ExploreOptions
	read int
	seen map[string]bool

	failed error // why the last document is none
}

// Explore walks a source from an address down and tells its offer. The address is of any
// document, of a site, or of a page with links to one. Every document is streamed; memory
// does not grow with the entries of lists. Failures are told in Faults, and the walk goes
// on. err is for an address at which nothing of ResourceSync was
// found, and for the end of ctx; the tree so far is returned with it.
func Explore(ctx context.Context, address string, o ExploreOptions) (*Node, error) {
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 1000
	}
	if o.MaxChildren == 0 {
		o.MaxChildren = 1000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	x := &explorer{o: o, seen: map[string]bool{}}
	n := &Node{Location: address}
	err := x.start(ctx, n)
	if err == nil {
		err = ctx.Err()
	}
	n.mask()
	return n, err
}

// mask hides the secrets of the addresses that a source names.
func (n *Node) mask() {
	for _, text := range []*string{&n.Location, &n.Up, &n.IndexOf, &n.DescribedBy, &n.Note} {
		*text = webguard.MaskedText(*text)
	}
	for _, texts := range [][]string{n.Warnings, n.Faults} {
		for i, text := range texts {
			texts[i] = webguard.MaskedText(text)
		}
	}
	for _, c := range n.Children {
		c.mask()
	}
}

// lead is an entry with the address of another document.
type lead struct {
	loc  string
	want resourcesync.Capability
	kind string // "package", "topic": told, not read
	meta resourcesync.Meta
}

// document reads the document of a node and goes on to its targets.
// dialect and want are those of the parent; part: that is an index.
func (x *explorer) document(ctx context.Context, n *Node, part bool, want resourcesync.Capability, dialect string, depth int) {
	if x.read++; x.o.Progress != nil {
		x.o.Progress(n.Location)
	}
	x.seen[n.Location] = true
	got, err := x.o.Fetch(ctx, n.Location)
	if err != nil {
		n.Faults = append(n.Faults, err.Error())
		return
	}
	defer got.Body.Close()
	if got.Status != 200 {
		n.Faults = append(n.Faults, fmt.Sprintf("it cannot be fetched: status %d", got.Status))
		return
	}
	body, err := x.body(n, got)
	if err != nil {
		n.Faults = append(n.Faults, err.Error())
		return
	}
	leads := x.parse(ctx, n, got, body, part, want, dialect)
	got.Body.Close()
	x.follow(ctx, n, leads, depth)
}

// page opens a further page of a document. Its bytes count as the document's.
func (x *explorer) page(ctx context.Context, n *Node, got *Fetched, address string) (*resourcesync.Page, error) {
	if x.read++; x.read > x.o.MaxDocuments {
		return nil, fmt.Errorf("its page %s was not read, since %d documents were", clip(address), x.o.MaxDocuments)
	}
	if x.o.Progress != nil {
		x.o.Progress(address)
	}
	next, err := x.o.Fetch(ctx, address)
	if err == nil && next.Status != 200 {
		next.Body.Close()
		err = fmt.Errorf("status %d", next.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("its page %s cannot be fetched: %w", clip(address), err)
	}
	got.Body.Close() // of the page before
	*got = *next
	before := *n
	body, err := x.body(n, got)
	n.Redirect = before.Redirect
	if err != nil {
		return nil, err
	}
	n.Pages = max(n.Pages, 1) + 1
	url := cmp.Or(got.URL, address)
	return &resourcesync.Page{URL: url, ContentType: got.ContentType, Next: resourcesync.HeaderNext(got.Links, url), Body: body}, nil
}

// body gives the bytes of an answer, unpacked when they are gzip, counted and
// bounded.
func (x *explorer) body(n *Node, got *Fetched) (io.Reader, error) {
	if got.URL != "" && got.URL != n.Location {
		n.Redirect = got.URL
		x.seen[got.URL] = true
	}
	r, err := unpacked(got.document())
	if err != nil {
		return nil, err
	}
	if begin, _ := r.Peek(4); string(begin) == "PK\x03\x04" {
		n.Kind = "package"
		return nil, errors.New("it is a ZIP package; give the address of the document that lists it")
	}
	return &countingReader{r: r, n: &n.Bytes, most: x.o.MaxBytes}, nil
}

type countingReader struct {
	r    io.Reader
	n    *int64
	most int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	k, err := c.r.Read(p)
	if *c.n += int64(k); *c.n > c.most {
		return 0, fmt.Errorf("it has more than %d bytes", c.most)
	}
	return k, err
}

// base is the base of relative addresses in a node's document.
func (n *Node) base() string {
	if n.Redirect != "" {
		return n.Redirect
	}
	return n.Location
}

// parse reads a document into a node and gives its targets.
func (x *explorer) parse(ctx context.Context, n *Node, got *Fetched, body io.Reader, part bool, want resourcesync.Capability, dialect string) (leads []lead) {
	r, err := resourcesync.NewReader(body, resourcesync.ReaderOptions{BaseURL: n.base(), ContentType: got.ContentType, Dialect: dialect, MaxBytes: x.o.MaxBytes, KeepFaulty: true, Part: part, Next: resourcesync.HeaderNext(got.Links, n.base()),
		Page: func(address string) (*resourcesync.Page, error) { return x.page(ctx, n, got, address) }})
	if err != nil {
		n.Faults = append(n.Faults, err.Error())
		x.failed = err
		return nil
	}
	h := r.Head()
	n.root(h)
	if n.Kind == "" {
		n.Kind = "sitemap"
	}
	if want != "" && h.Meta.Capability != want && !(h.Feed && want == resourcesync.ResourceList) { // a feed is told in the warnings
		n.Faults = append(n.Faults, fmt.Sprintf("it is announced as %s and is %s", want, n.Kind))
	}
	k := h.Meta.Capability
	leading := h.Index || k == resourcesync.Description || k == resourcesync.CapabilityList || k == resourcesync.ResourceDump || k == resourcesync.ChangeDump || k.Archive() || k == resourcesync.FrameworkNotification
	if !leading {
		n.Resources = &Resources{Hashed: map[string]int64{}, Changes: map[string]int64{}, Types: map[string]int64{}, Links: map[string]int64{}, Elsewhere: map[string]int64{}}
	}
	var e resourcesync.Entry
	faulty, wrong := int64(0), int64(0)
	for {
		if err = r.NextInto(&e); err != nil {
			break
		}
		n.Entries++
		if len(e.Faults) > 0 {
			if faulty++; faulty <= maxFaulty {
				n.Faults = append(n.Faults, fmt.Sprintf("line %d: %s", e.Line, strings.Join(e.Faults, "; ")))
			}
		}
		if why := misplaced(h, &e); why != "" {
			if wrong++; wrong <= maxFaulty {
				n.Faults = append(n.Faults, fmt.Sprintf("line %d: %s", e.Line, why))
			}
		}
		if !leading {
			n.Resources.add(r, &e)
			if where := x.elsewhere(e.Loc); where != "" {
				tally(n.Resources.Elsewhere, where)
			}
			continue
		}
		if e.Loc == "" {
			continue // told
		}
		if len(leads) < x.o.MaxChildren {
			leads = append(leads, leadOf(h, &e))
		} else {
			n.Skipped++
		}
	}
	if err != io.EOF {
		n.Faults = append(n.Faults, err.Error())
	}
	if faulty > maxFaulty {
		n.Faults = append(n.Faults, fmt.Sprintf("and %d more entries with faults", faulty-maxFaulty))
	}
	if wrong > maxFaulty {
		n.Faults = append(n.Faults, fmt.Sprintf("and %d more entries in a wrong place", wrong-maxFaulty))
	}
	n.root(h)
	n.Warnings = h.Warnings
	if n.Pages > 0 {
		n.Warnings = append(n.Warnings, fmt.Sprintf("it is in %d pages, joined by next links, which most destinations do not follow: it should be an index", n.Pages))
	}
	return leads
}

// misplaced tells why an entry cannot be used in its document, "" if it can.
func misplaced(h *resourcesync.Head, e *resourcesync.Entry) string {
	switch k := h.Meta.Capability; {
	case h.Index || e.Loc == "" || k.Notification():
	case k == resourcesync.CapabilityList && e.Meta.Capability == "":
		return fmt.Sprintf("the entry %s does not tell its capability", clip(e.Loc))
	case (k == "" || k == resourcesync.ResourceList || k == resourcesync.ChangeList || k.Manifest()) && e.Meta.Capability != "":
		return fmt.Sprintf("the entry %s leads to a document of capability %q, and to no resource", clip(e.Loc), clip(string(e.Meta.Capability)))
	}
	return ""
}

// root tells of the root of a document.
func (n *Node) root(h *resourcesync.Head) {
	m := &h.Meta
	if m.Capability != "" {
		n.Kind = string(m.Capability)
	}
	n.Index, n.Dialect = h.Index, h.Dialect
	n.At, n.Completed, n.From, n.Until = timeOf(m.At), timeOf(m.Completed), timeOf(m.From), timeOf(m.Until)
	if n.At == nil && n.From == nil {
		n.At = timeOf(h.SnapshotTime())
	}
	n.Open = m.Capability.Changes() && !h.Closed()
	n.Up, n.IndexOf, n.DescribedBy = h.Parent(), h.IndexURL(), h.Link(resourcesync.RelDescribedBy)
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// leadOf gives the target of an entry.
func leadOf(h *resourcesync.Head, e *resourcesync.Entry) lead {
	l := lead{loc: e.Loc, meta: e.Meta}
	switch k := h.Meta.Capability; {
	case h.Index:
		l.want = k
	case k == resourcesync.Description:
		l.want = resourcesync.CapabilityList
	case k == resourcesync.CapabilityList && e.Meta.Capability.Notification():
		l.kind, l.want = "topic", e.Meta.Capability
	case k == resourcesync.CapabilityList, k == resourcesync.FrameworkNotification:
		l.want = e.Meta.Capability
	case k == resourcesync.ResourceDump, k == resourcesync.ChangeDump:
		l.kind = "package"
	default:
		l.want = k.Archived()
	}
	return l
}

// follow reads the targets of a node.
func (x *explorer) follow(ctx context.Context, n *Node, leads []lead, depth int) {
	for i := range leads {
		l := &leads[i]
		c := &Node{Location: l.loc, Announced: string(l.want)}
		switch {
		case ctx.Err() != nil:
			n.Skipped++
			continue
		case l.kind != "":
			c.Kind, c.Bytes = l.kind, max(l.meta.Length, 0)
			c.At, c.Completed, c.From, c.Until = timeOf(l.meta.At), timeOf(l.meta.Completed), timeOf(l.meta.From), timeOf(l.meta.Until)
		case x.seen[l.loc] && n.Kind == "page":
			continue
		case x.seen[l.loc]:
			c.Note = "it is told above"
		case depth == 0 || x.read >= x.o.MaxDocuments:
			n.Skipped++
			if i >= 20 { // an example is enough
				continue
			}
			c.Note = "it was not read"
		case !onWeb(l.loc):
			c.Note = "it is no address of the web"
		default:
			x.document(ctx, c, n.Index, l.want, n.Dialect, depth-1)
		}
		n.Children = append(n.Children, c)
	}
}

// onWeb tells whether an address can be fetched; a relative one comes from a
// document given as a file.
func onWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "" || u.Scheme == "http" || u.Scheme == "https")
}

const maxFaulty = 10 // entries with faults of one document, told by line

const maxKinds = 50 // types and relations told by name

func tally(m map[string]int64, key string) {
	if _, ok := m[key]; !ok && len(m) >= maxKinds {
		key = "other"
	}
	m[key]++
}

// elsewhere names the host of an address out of reach, or a scheme of no web as "ftp:"; "" for all others.
func (x *explorer) elsewhere(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme == "": // told, or of a file
		return ""
	case u.Scheme != "http" && u.Scheme != "https":
		return u.Scheme + ":"
	case x.o.Allowed != nil && x.o.Allowed(u) != nil:
		return u.Host
	}
	return ""
}

// add counts an entry in.
func (s *Resources) add(r *resourcesync.Reader, e *resourcesync.Entry) {
	if e.Meta.Length >= 0 && e.HasMeta {
		s.Bytes += e.Meta.Length
		s.Sized++
	}
	for _, word := range strings.Fields(e.Meta.Hash.String()) {
		name, _, _ := strings.Cut(word, ":")
		tally(s.Hashed, name)
	}
	if e.Meta.Change != "" {
		tally(s.Changes, e.Meta.Change)
	}
	if e.Meta.Type != "" {
		tally(s.Types, resourcesync.NormalizeType(e.Meta.Type))
	}
	for i := range e.Links {
		tally(s.Links, e.Links[i].Rel)
	}
	t := e.LastMod
	if c := r.ChangeTime(e); !c.IsZero() {
		t = c
	}
	if t.IsZero() {
		return
	}
	if s.Oldest == nil || t.Before(*s.Oldest) {
		s.Oldest = &t
	}
	if s.Newest == nil || t.After(*s.Newest) {
		s.Newest = &t
	}
}
