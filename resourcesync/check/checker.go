package check

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Fetched is the answer of an address.
type Fetched struct {
	URL             string // the address in the end; "" without redirection
	Status          int    // of HTTP; 200 for a file
	ContentType     string
	ContentEncoding string
	ContentLength   int64    // -1 if unknown
	LastModified    string   // the HTTP header
	Links           []string // the values of the Link headers
	Body            io.ReadCloser
	Shown           func(document io.Reader) io.Reader // makes of Body, as it came, what may be printed; nil: that is it
}

// document is the body of an answer that is read as a document. Promises are of Body itself.
func (f *Fetched) document() io.Reader {
	if f.Shown == nil {
		return f.Body
	}
	return f.Shown(f.Body)
}

// CheckerOptions of NewChecker; only Fetch is needed.
type CheckerOptions struct {
	// Fetch gets an address, without content coding (or decoded). A failure told by HTTP
	// is no error; it is given with its status. The Checker closes
	// the body.
	Fetch func(ctx context.Context, url string) (*Fetched, error)

	Strict     bool      // as in ValidateOptions
	Now        time.Time // as in ValidateOptions
	Version    string    // as in ValidateOptions
	MaxPerRule int       // as in ValidateOptions

	MaxDocuments int    // documents read by one Check; default 100,000
	SkipPackages bool   // packages are not fetched: rules 73 to 75, 78, 79, 81 are left out
	Sample       int    // resources of each set to fetch for rules 67, 70, 106 to 112, 124 and 128; default 0
	TempDir      string // for packages while they are checked; default the system's
	Package      resourcesync.PackageOptions

	// Allowed refuses the addresses of hosts out of reach, for rule 129; nil: none.
	Allowed func(*url.URL) error
	// Progress is called before each document is read; may be nil.
	Progress func(location string)
}

// Report holds the findings in one document.
type Report struct {
	Location   string // of a manifest in a package: ADDRESS!/manifest.xml
	Capability resourcesync.Capability
	Index      bool
	Dialect    string
	Entries    int64
	Findings   []Finding
}

// Checker checks the rules between documents: it walks a source from any of its
// documents down, validates each document on the way, and reads the targets of up and
// index. A second Check on the same Checker also compares with the first one (rules 95
// and 96).
//
// Rules covered beside the offline ones: 32, 35 to 37, 63, 64, 66 to 68 across
// parts, 70, 73 to 75, 78, 79, 81, 88, 90, 95 to 97, 106 to 112, 114, 117, 121, 123, 124, 126 across parts, 128, 129.
//
// Memory: the entries of indexes and the like are kept, at most 100,000 for each;
// addresses of resources for rules 64 and 68 are kept for at most 500,000
// resources of a set. Beyond, these rules are left out, and a finding says so.
type Checker struct {
	o      CheckerOptions
	docs   map[string]*seen
	read   []*seen   // with a report, in the order of the walk
	cover  *coverage // of the current set
	memory map[string]memory
	random *rand.Rand
}

// NewChecker makes a Checker.
func NewChecker(o CheckerOptions) *Checker {
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 100_000
	}
	if o.MaxPerRule == 0 {
		o.MaxPerRule = 100
	}
	return &Checker{o: o, memory: map[string]memory{}}
}

// seen is kept of a document.
type seen struct {
	location string
	resolved string // address of the answer, which a redirect may have led to
	head     resourcesync.Head
	entries  []seenEntry
	count    int64
	problem  string  // why it cannot be used, if so
	report   *Report // by itself
	context  report  // findings of rules between documents
	archived bool    // reached through an archive
	numbers  numbers // of its changes
	walked   bool
}

// seenEntry is kept of an entry with the address of a document.
type seenEntry struct {
	loc, contents, hub, index string
	meta                      resourcesync.Meta
	line                      int
}

const maxKeptEntries = 100_000

// leads says whether the entries of a document are documents or packages.
func leads(h *resourcesync.Head) bool {
	c := h.Meta.Capability
	return h.Index || c == resourcesync.Description || c == resourcesync.CapabilityList || c == resourcesync.ResourceDump || c == resourcesync.ChangeDump || c.Archive() || c == resourcesync.FrameworkNotification
}

// Check walks the source from the document at location and reports on every
// document, in the order of the walk. The address of a page leads to the
// source as it does for Explore: by the well-known address, and by Link headers and links
// of the page (specification, section 6.3). err tells of a first
// document without an answer, or of the end of ctx; the reports so far are returned
// with it.
func (c *Checker) Check(ctx context.Context, location string) ([]Report, error) {
	c.docs = map[string]*seen{}
	c.read = nil
	c.cover = newCoverage()
	c.random = rand.New(rand.NewPCG(1, 2))
	err := c.check(ctx, location)
	out := make([]Report, len(c.read))
	for i, d := range c.read {
		d.context.summarize()
		out[i] = *d.report
		out[i].Findings = append(out[i].Findings, d.context.findings...)
		out[i].Location = webguard.MaskedText(out[i].Location)
	}
	return out, err
}

func (c *Checker) check(ctx context.Context, location string) error {
	locations := []string{location}
	start := c.open(location)
	got, err := c.o.Fetch(ctx, location)
	if ways, ok, werr := Ways(ctx, c.o.Fetch, location, got, err); ok {
		got.Body.Close()
		delete(c.docs, location)
		if locations = ways; werr != nil {
			return fmt.Errorf("resourcesync: checking %s: %w", clip(location), werr)
		}
	} else if err := c.take(ctx, start, got, err); err != nil {
		return err
	}
	var starts []*seen
	for _, location := range locations {
		start, err := c.document(ctx, location)
		if err == nil && start.problem != "" && start.report == nil {
			err = fmt.Errorf("resourcesync: checking %s: %s", clip(location), start.problem)
		}
		if err == nil {
			err = c.walk(ctx, start)
		}
		if err != nil {
			return err
		}
		starts = append(starts, start)
	}
	if err := c.navigation(ctx); err != nil {
		return err
	}
	for _, start := range starts {
		if err := c.alone(ctx, start); err != nil {
			return err
		}
		if start.head.Meta.Capability == resourcesync.Description {
			if err := c.wellKnown(ctx, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone ends the walk of a document below no Capability List of this walk.
func (c *Checker) alone(ctx context.Context, d *seen) error {
	if d.report == nil || c.cover.offered+len(c.cover.dumped) == 0 {
		return nil
	}
	if k := d.head.Meta.Capability; d.head.Parent() == "" && k != resourcesync.Description && k != resourcesync.CapabilityList {
		c.find(d, 36, SeverityInfo, 0, "no up link leads to its Capability List: it was checked alone, and mirrors that begin at it do not find the source's other documents")
	}
	c.covers(d)
	err := c.live(ctx, d)
	c.cover = newCoverage()
	return err
}

// Ways are the documents that a page for people leads to, the well-known address first, at least one without an error.
// got and err are what get gave for location. page: it is such a page, or the root of a site without one; else got
// may be read from its beginning.
func Ways(ctx context.Context, get func(ctx context.Context, url string) (*Fetched, error), location string, got *Fetched, err error) (ways []string, page bool, _ error) {
	text, page := pageOf(location, got, err)
	if !page {
		return nil, false, nil
	}
	ways, err = fetch(get).ways(ctx, cmp.Or(got.URL, location), got.Links, text)
	if err != nil && got.Status != 200 {
		err = fmt.Errorf("it cannot be fetched: status %d, and %w", got.Status, err)
	}
	return ways, true, err
}

// pageOf gives the page for people that an address answers with. The root of a site may
// have none.
func pageOf(location string, got *Fetched, err error) (page []byte, ok bool) {
	if err != nil || !onWeb(location) {
		return nil, false
	}
	if got.Status != 200 {
		u, err := url.Parse(location)
		return nil, err == nil && strings.Trim(u.Path, "/") == ""
	}
	in := bufio.NewReader(got.Body)
	begin, _ := in.Peek(512) // a failure comes again with the read below
	got.Body = struct {
		io.Reader
		io.Closer
	}{in, got.Body}
	if !strings.HasPrefix(http.DetectContentType(begin), "text/html") && resourcesync.NormalizeType(got.ContentType) != "application/xhtml+xml" {
		return nil, false
	}
	page, _ = io.ReadAll(io.LimitReader(got.document(), maxPage))
	return page, true
}

// find adds a finding of a context rule to a document's report.
func (c *Checker) find(d *seen, rule int, severity string, line int, format string, args ...any) {
	if d.report != nil {
		d.context.add(rule, severity, line, format, args...)
	}
}

func (c *Checker) context() report { return newReport(c.o.Version, c.o.Strict, c.o.MaxPerRule) }

// document fetches and validates a document once. Its error is ctx's.
func (c *Checker) document(ctx context.Context, location string) (*seen, error) {
	if d := c.docs[location]; d != nil {
		return d, nil
	}
	if len(c.docs) >= c.o.MaxDocuments {
		d := &seen{location: location, context: c.context(), problem: fmt.Sprintf("it was not read, since %d documents were", c.o.MaxDocuments)}
		c.docs[location] = d
		return d, nil
	}
	d := c.open(location)
	got, err := c.o.Fetch(ctx, location)
	return d, c.take(ctx, d, got, err)
}

// open begins with a new document.
func (c *Checker) open(location string) *seen {
	d := &seen{location: location, context: c.context()}
	c.docs[location] = d
	if c.o.Progress != nil {
		c.o.Progress(location)
	}
	return d
}

// take validates the answer of a document. Its error is ctx's.
func (c *Checker) take(ctx context.Context, d *seen, got *Fetched, err error) error {
	if err == nil {
		defer got.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.problem = "it cannot be fetched: " + err.Error()
		return nil
	case got.Status != 200:
		d.problem = fmt.Sprintf("it cannot be fetched: status %d", got.Status)
		return nil
	}
	d.resolved = cmp.Or(got.URL, d.location)
	c.validate(d, got.document(), d.resolved, got.ContentType)
	return ctx.Err()
}

// validate reads a document into d.
func (c *Checker) validate(d *seen, body io.Reader, base, contentType string) {
	d.report = &Report{Location: d.location}
	c.read = append(c.read, d)
	digest := newRunning(c.memory[d.location])
	away := elsewhere{allowed: c.o.Allowed}
	away.list, _ = url.Parse(base)
	o := ValidateOptions{
		Version:  c.o.Version,
		Location: base, ContentType: contentType, Strict: c.o.Strict, Now: c.o.Now, MaxPerRule: c.o.MaxPerRule,
		Entry: func(h *resourcesync.Head, e *resourcesync.Entry) error {
			d.count++
			d.keep(h, e)
			if h.Meta.Capability.Changes() && !h.Index {
				digest.add(e)
				d.numbers.add(e)
			}
			if !leads(h) {
				away.add(e)
			}
			c.cover.add(h, e, c.o.Sample, c.random)
			return nil
		},
	}
	h, findings, err := Validate(body, o)
	d.head = h
	r := d.report
	r.Capability, r.Index, r.Dialect, r.Entries, r.Findings = h.Meta.Capability, h.Index, h.Dialect, d.count, findings
	if err != nil {
		d.problem = webguard.MaskedText(err.Error())
		r.Findings = append(r.Findings, Finding{Rule: 1, Severity: SeverityError, Message: d.problem})
	}
	for _, f := range findings {
		if f.Severity == SeverityError && (f.Rule == 1 || f.Rule == 2 || f.Rule == 3) {
			d.problem = f.Message
		}
	}
	away.tell(c, d)
	c.cover.root(&h, d.problem != "")
	if d.problem == "" && h.Meta.Capability.Changes() && !h.Index {
		c.remember(d, digest)
	}
}

func (d *seen) keep(h *resourcesync.Head, e *resourcesync.Entry) {
	if !leads(h) || len(d.entries) >= maxKeptEntries {
		return
	}
	kept := seenEntry{loc: e.Loc, meta: e.Meta, line: e.Line}
	if l := e.Link(resourcesync.RelContents); l != nil {
		kept.contents = l.Href
	}
	if l := e.Link(resourcesync.RelHub); l != nil {
		kept.hub = l.Href
	}
	if l := e.Link(resourcesync.RelIndex); l != nil {
		kept.index = l.Href
	}
	d.entries = append(d.entries, kept)
}

// walk goes down from a document.
func (c *Checker) walk(ctx context.Context, d *seen) error {
	if d.walked || d.problem != "" {
		return nil
	}
	d.walked = true
	if err := c.nextPage(ctx, d); err != nil {
		return err
	}
	switch k := d.head.Meta.Capability; {
	case k == resourcesync.Description || d.head.Index:
		return c.walkParts(ctx, d)
	case k == resourcesync.CapabilityList:
		return c.walkSet(ctx, d)
	case k == resourcesync.ResourceDump || k == resourcesync.ChangeDump:
		return c.walkDump(ctx, d)
	case k.Archive():
		return c.walkArchive(ctx, d)
	case k == resourcesync.FrameworkNotification:
		return c.walkNotification(ctx, d)
	}
	return nil
}
