package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// ValidateOptions of Validate; zero values are sensible.
type ValidateOptions struct {
	Location    string    // the document's address
	ContentType string    // of the header that came with it, for its charset
	Strict      bool      // warnings are errors
	Now         time.Time // for rule 27; zero: it is not checked
	Version     string    // of the specification, one of Versions; "" is the last of them

	MaxPerRule int // findings of one rule and severity in full, the rest is counted; default 100
	// Entry is called with each entry, as the lenient Reader would give it; an
	// error of it ends the validation. The entry is used again afterwards.
	Entry func(h *resourcesync.Head, e *resourcesync.Entry) error
}

// Versions of the specification, for ValidateOptions.
var Versions = []string{"0.9", "1.0", "1.1"}

// Validate checks one document against the offline rules of the framework,
// streaming: its memory is bounded (rules about all entries at once, 68, 80,
// 94 and 104, looks at the first 1,000,000 and says so).
//
// It checks against 1.1, archives 0.9.1 and notification 1.0.1, unless Version names
// another. Documents of older dialects get findings for later changes (rule 11
// names the dialect). Of 0.9 and 1.0 the times and the links between documents are held
// to these versions. The rules are in docs/reference/rules.md, with these decisions: what
// cannot be read to its end (not well-formed, not in UTF-8, with a DTD) ends with
// an E under rule 1 or 2, as the rest of it was not seen; rule 77 is a W for
// changedump-manifest, where type is strongly recommended, and an I for
// resourcedump-manifest; rule 15 checks the XML Schemas' demands beyond the text
// without a schema processor.
//
// err is only for a document not read for another reason than its
// content, and for an error of Entry; the findings so far are returned with it.
func Validate(r io.Reader, o ValidateOptions) (h resourcesync.Head, findings []Finding, err error) {
	if o.MaxPerRule == 0 {
		o.MaxPerRule = 100
	}
	v := newValidator(o)
	body, err := unpacked(r)
	if err != nil {
		v.report.add(2, SeverityError, 1, "%v", err)
		return v.head, v.report.findings, nil
	}
	var slips []resourcesync.Slip
	v.s, slips, err = resourcesync.NewParser(body, o.Location, o.ContentType, v.slip)
	for _, s := range slips {
		v.report.add(s.Rule, SeverityError, 1, "%s", s.Text)
	}
	if err == nil && (len(slips) == 0 || !slips[len(slips)-1].Feed) {
		err = v.document()
	}
	var de *resourcesync.DocumentError
	switch {
	case v.stopped != nil:
		err = v.stopped
	case errors.As(err, &de) && (errors.Is(err, resourcesync.ErrSyntax) || errors.Is(err, resourcesync.ErrLimit) || errors.Is(err, resourcesync.ErrInvalid)):
		rule := 1
		if errors.Is(err, xmlscan.ErrNotRead) {
			rule = 2
		}
		v.report.add(rule, SeverityError, de.Line, "%s; the document was checked no further", de.Message)
		err = nil
	}
	v.report.summarize()
	return v.head, v.report.findings, err
}

// unpacked gives a document without the gzip that the Sitemap protocol allows.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReader(r)
	if begin, _ := in.Peek(2); string(begin) != "\x1f\x8b" {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("it begins as gzip and is none: %w", err)
	}
	return bufio.NewReader(z), nil
}

// validator goes through a document once.
type validator struct {
	o    ValidateOptions
	s    *resourcesync.Parser
	head resourcesync.Head

	ns       xmlscan.Space
	uri      string
	metas    int // rs:md at the root
	metaLine int
	first    bool // an entry was seen
	entries  int64
	late     bool // a root element after an entry was reported

	sawDLib, wasResourceSync bool

	entry entryState
	seq   sequenceState
	pairs pairState

	report  report
	stopped error // of ValidateOptions.Entry
}

func newValidator(o ValidateOptions) *validator {
	v := &validator{o: o, report: newReport(o.Version, o.Strict, o.MaxPerRule)}
	v.seq.report = &v.report
	return v
}

// slip reports a slip that a Reader forgives.
func (v *validator) slip(kind error, message string) {
	if errors.Is(kind, xmlscan.ErrNotRead) {
		v.report.add(2, SeverityWarning, v.s.Line(), "%s; many destinations refuse it", message)
		return
	}
	v.report.add(1, SeverityError, v.s.Line(), "%s", message)
}

func (v *validator) document() error {
	if _, err := v.s.Next(); err != nil {
		return err
	}
	if ok, err := v.root(); !ok || err != nil {
		return err
	}
	for {
		tok, err := v.s.Next()
		if err != nil {
			return err
		}
		v.strayText()
		if tok == xmlscan.End {
			break
		}
		if err := v.rootChild(); err != nil {
			return err
		}
	}
	_, err := v.s.Next() // behind the root
	if err == nil {
		v.endOfDocument()
	}
	return err
}

func (v *validator) strayText() {
	if v.s.Stray {
		v.s.Stray = false
		v.report.add(15, SeverityInfo, v.s.Line(), "there is text between the elements; the schemas allow none")
	}
}

// root checks the root's tag; ok is false when nothing further can be said.
func (v *validator) root() (ok bool, err error) {
	n := &v.s.Name
	line := v.s.Line()
	local := string(n.Local)
	if local != "urlset" && local != "sitemapindex" {
		err := v.s.CheckRoot() // names old forms
		var de *resourcesync.DocumentError
		if errors.As(err, &de) {
			v.report.add(3, SeverityError, line, "%s", de.Message)
			return false, nil
		}
		return false, err
	}
	if n.URI != resourcesync.NamespaceSitemap {
		v.report.add(3, SeverityError, line, "<%s> is in the namespace %q, want %q", clip(n.Raw()), clip(n.URI), resourcesync.NamespaceSitemap)
	}
	v.ns, v.uri = n.Space, n.URI
	v.head.Index = local == "sitemapindex"
	v.head.Meta.Length = -1
	for i := range v.s.Attrs {
		if a := &v.s.Attrs[i]; a.Space == resourcesync.SpaceRS || a.Space == resourcesync.SpaceDLib {
			v.report.add(9, SeverityError, line, "<%s> has the attribute %s=%q; the root element has no ResourceSync attributes", local, clip(a.Raw()), clip(string(a.Value)))
		}
	}
	return true, nil
}

// sitemap says whether a name is in the namespace of the root.
func (v *validator) sitemap(n *xmlscan.Name) bool { return n.Space == v.ns && n.URI == v.uri }

func (v *validator) rootChild() error {
	n := &v.s.Name
	want := "url"
	if v.head.Index {
		want = "sitemap"
	}
	switch {
	case v.sitemap(n) && string(n.Local) == want:
		if !v.first {
			v.first = true
			v.beforeEntries()
		}
		return v.entryElement()
	case v.sitemap(n):
		v.report.add(4, SeverityError, v.s.Line(), "<%s> inside the root, want <%s>", clip(n.Raw()), want)
	case v.rs(n):
		if v.first && !v.late {
			v.late = true
			v.report.add(14, SeverityInfo, v.s.Line(), "<%s> stands after the first <%s>; the schemas want it before, and entries above it are checked without it", clip(n.Raw()), want)
		}
		return v.rootRS()
	}
	return v.s.Skip()
}

// rs says whether an element is of ResourceSync, and reports a wrong namespace.
func (v *validator) rs(n *xmlscan.Name) bool {
	local := string(n.Local)
	wrong := n.Space == resourcesync.SpaceDLib || n.Space == resourcesync.SpacePreAlpha || n.Space == resourcesync.SpaceRS && n.URI != resourcesync.NamespaceRS
	if n.Space != resourcesync.SpaceRS && !(wrong && (local == "md" || local == "ln")) {
		return false
	}
	if wrong {
		v.sawDLib = v.sawDLib || n.Space == resourcesync.SpaceDLib
		v.report.add(8, SeverityError, v.s.Line(), "<%s> is in the namespace %q, want %q", clip(n.Raw()), clip(n.URI), resourcesync.NamespaceRS)
	}
	if local != "md" && local != "ln" {
		v.report.add(8, SeverityError, v.s.Line(), "<%s>: the rs namespace has the elements md and ln only", clip(n.Raw()))
	}
	return true
}

// settleHead decides the dialect as the Reader does.
func (v *validator) settleHead() {
	v.s.Settle(&v.head, resourcesync.Signs{Meta: v.metas > 0, DLib: v.sawDLib, WasResourceSync: v.wasResourceSync})
}
