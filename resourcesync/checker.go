package resourcesync

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Fetched is what an address gave.
type Fetched struct {
	URL             string // where it came from in the end; "" if there was no redirection
	Status          int    // of HTTP; 200 for a file
	ContentType     string
	ContentEncoding string
	ContentLength   int64    // -1 if unknown
	LastModified    string   // the HTTP header
	Links           []string // the values of the Link headers
	Body            io.ReadCloser
}

// CheckerOptions of NewChecker; only Fetch is needed.
type CheckerOptions struct {
	// Fetch gets an address, without content coding (or decoded). An answer that
	// is no success is no error; it is given with its status. The Checker closes
	// the body.
	Fetch func(ctx context.Context, url string) (*Fetched, error)

	Strict     bool      // as in ValidateOptions
	Now        time.Time // as in ValidateOptions
	MaxPerRule int       // as in ValidateOptions

	MaxDocuments int    // documents read by one Check; default 100,000
	SkipPackages bool   // packages are not fetched: rules 73 to 75, 78, 79, 81 are left out
	Sample       int    // resources of each set that are fetched for rules 67 and 106 to 112; default 0
	TempDir      string // where packages are kept while they are checked; default the system's
	Package      PackageOptions

	// Progress is called before each document is read; may be nil.
	Progress func(location string)
}

// Report is what was found in one document.
type Report struct {
	Location   string // of a manifest in a package: ADDRESS!/manifest.xml
	Capability Capability
	Index      bool
	Dialect    string
	Entries    int64
	Findings   []Finding
}

// Checker checks the rules between documents: it walks a source from any of its
// documents down, validates each document on the way, and reads what up and
// index lead to. One Check after the other on the same Checker also compares what
// is seen then with what was seen before (rules 95 and 96).
//
// Rules covered beside the offline ones: 32, 35 to 37, 63, 64, 66 to 68 across
// parts, 70, 73 to 75, 78, 79, 81, 88, 90, 95 to 97, 106 to 112, 114, 117, 121, 123. For
// messages that are sent there are CheckDelivery (122), CheckSuccession (119) and
// CheckLease (124).
//
// Memory: of documents that lead to others the entries are kept, at most 100,000 for each;
// addresses of resources for rules 64 and 68 are kept for at most 500,000
// resources of a set, beyond which these rules are left out with a finding that
// says so.
type Checker struct {
	o       CheckerOptions
	docs    map[string]*seen
	reports []*Report
	cover   *coverage // of the set that is being walked
	memory  map[string]memory
	random  *rand.Rand
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

// seen is what is kept of a document.
type seen struct {
	location string
	head     Head
	entries  []seenEntry
	count    int64
	problem  string // why it cannot be used, if so
	report   *Report
	archived bool // reached through an archive
	walked   bool
	counts   map[int]int
}

// seenEntry is what is kept of an entry that leads to a document.
type seenEntry struct {
	loc, contents, hub, index string
	meta                      Meta
	line                      int
}

const maxKeptEntries = 100_000

// leads says whether the entries of a document are documents or packages.
func leads(h *Head) bool {
	c := h.Meta.Capability
	return h.Index || c == Description || c == CapabilityList || c == ResourceDump || c == ChangeDump || c.Archive() || c == FrameworkNotification
}

// Check walks the source from the document at location and reports on every
// document that it read, in the order of the walk. err says that the first
// document could not be had, or that ctx has ended; the reports so far are
// returned with it.
func (c *Checker) Check(ctx context.Context, location string) ([]Report, error) {
	c.docs = map[string]*seen{}
	c.reports = nil
	c.cover = newCoverage()
	c.random = rand.New(rand.NewPCG(1, 2))
	start, err := c.document(ctx, location)
	if err == nil && start.problem != "" && start.report == nil {
		err = fmt.Errorf("resourcesync: checking %s: %s", clip(location), start.problem)
	}
	if err == nil {
		err = c.walk(ctx, start)
	}
	if err == nil {
		err = c.navigation(ctx)
	}
	if err == nil && start.head.Meta.Capability == Description {
		err = c.wellKnown(ctx, start)
	}
	out := make([]Report, len(c.reports))
	for i, r := range c.reports {
		out[i] = *r
	}
	return out, err
}

// find adds a finding of a context rule to a document's report.
func (c *Checker) find(d *seen, rule int, severity string, line int, format string, args ...any) {
	if d.report == nil {
		return
	}
	if d.counts[rule]++; d.counts[rule] > c.o.MaxPerRule {
		return
	}
	if c.o.Strict && severity == SeverityWarning {
		severity = SeverityError
	}
	d.report.Findings = append(d.report.Findings, Finding{Rule: rule, Severity: severity, Line: line, Message: fmt.Sprintf(format, args...)})
}

// document fetches and validates a document once. Its error is that of ctx.
func (c *Checker) document(ctx context.Context, location string) (*seen, error) {
	if d := c.docs[location]; d != nil {
		return d, nil
	}
	d := &seen{location: location, counts: map[int]int{}}
	c.docs[location] = d
	if len(c.docs) > c.o.MaxDocuments {
		d.problem = fmt.Sprintf("it was not read, since %d documents were", c.o.MaxDocuments)
		return d, nil
	}
	if c.o.Progress != nil {
		c.o.Progress(location)
	}
	got, err := c.o.Fetch(ctx, location)
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	if err != nil {
		d.problem = "it cannot be fetched: " + err.Error()
		return d, nil
	}
	defer got.Body.Close()
	if got.Status != 200 {
		d.problem = fmt.Sprintf("it cannot be fetched: status %d", got.Status)
		return d, nil
	}
	base := got.URL
	if base == "" {
		base = location
	}
	c.validate(d, got.Body, base)
	return d, ctx.Err()
}

// validate reads a document into d.
func (c *Checker) validate(d *seen, body io.Reader, base string) {
	d.report = &Report{Location: d.location}
	c.reports = append(c.reports, d.report)
	digest := newRunning(c.memory[d.location])
	o := ValidateOptions{
		Location: base, Strict: c.o.Strict, Now: c.o.Now, MaxPerRule: c.o.MaxPerRule,
		Entry: func(h *Head, e *Entry) error {
			d.count++
			d.keep(h, e)
			if h.Meta.Capability.Changes() && !h.Index {
				digest.add(e)
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
		d.problem = err.Error()
		r.Findings = append(r.Findings, Finding{Rule: 1, Severity: SeverityError, Message: d.problem})
	}
	for _, f := range findings {
		if f.Severity == SeverityError && (f.Rule == 1 || f.Rule == 2 || f.Rule == 3) {
			d.problem = f.Message
		}
	}
	c.cover.root(&h, d.problem != "")
	if d.problem == "" && h.Meta.Capability.Changes() && !h.Index {
		c.remember(d, digest)
	}
}

func (d *seen) keep(h *Head, e *Entry) {
	if !leads(h) || len(d.entries) >= maxKeptEntries {
		return
	}
	kept := seenEntry{loc: e.Loc, meta: e.Meta, line: e.Line}
	if l := e.Link(RelContents); l != nil {
		kept.contents = l.Href
	}
	if l := e.Link(RelHub); l != nil {
		kept.hub = l.Href
	}
	if l := e.Link(RelIndex); l != nil {
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
	switch k := d.head.Meta.Capability; {
	case k == Description || d.head.Index:
		return c.walkParts(ctx, d)
	case k == CapabilityList:
		return c.walkSet(ctx, d)
	case k == ResourceDump || k == ChangeDump:
		return c.walkDump(ctx, d)
	case k.Archive():
		return c.walkArchive(ctx, d)
	case k == FrameworkNotification:
		return c.walkNotification(ctx, d)
	}
	return nil
}
