package resourcesync

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Finding is one rule that a document breaks (dossier, section 6).
type Finding struct {
	Rule     int    `json:"rule"`
	Severity string `json:"severity"` // E, W, I
	Line     int    `json:"line"`     // from 1; 0: the document as a whole
	Message  string `json:"message"`  // with the offending text and what would be right
}

// String gives "E30 line 4: message".
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s%d: %s", f.Severity, f.Rule, f.Message)
	}
	return fmt.Sprintf("%s%d line %d: %s", f.Severity, f.Rule, f.Line, f.Message)
}

// ValidateOptions of Validate; zero values are sensible.
type ValidateOptions struct {
	Location string    // the document's address
	Strict   bool      // warnings are errors
	Now      time.Time // for rule 27; zero: that rule is not checked
	Version  string    // of the specification, one of Versions; "" is the last of them

	MaxPerRule int // findings of one rule in full, the rest is counted; default 100
	// Entry is called with each entry, as the lenient Reader would give it; an
	// error of it ends the validation. The entry is used again afterwards.
	Entry func(h *Head, e *Entry) error
}

// Versions of the specification that documents can be held against.
var Versions = []string{"0.9", "1.0", "1.1"}

// Validate checks one document against the offline rules of the framework,
// streaming: its memory is bounded (what needs all entries at once, rules 68, 80,
// 94 and 104, looks at the first 1,000,000 and says so).
//
// It checks against 1.1, archives 0.9.1 and notification 1.0.1, where Version names no
// other. Documents of older dialects get findings for what has changed since (rule 11
// names the dialect). Of 0.9 and 1.0 the times and the links between documents are held
// to what these versions say. Rules are checked as in the dossier, with these decisions: what
// cannot be read to its end (not well-formed, not in UTF-8, with a DTD) ends with
// an E under rule 1 or 2, as the rest of it was not seen; rule 77 is a W for
// changedump-manifest, where type is strongly recommended, and an I for
// resourcedump-manifest; rule 15 checks what the XML Schemas want beyond the text
// without a schema processor.
//
// err is only for a document that could not be read for another reason than its
// content, and for an error of Entry; the findings so far are returned with it.
func Validate(r io.Reader, o ValidateOptions) (h Head, findings []Finding, err error) {
	if o.MaxPerRule == 0 {
		o.MaxPerRule = 100
	}
	r, slips := inXML(r, 0)
	s := newScanner(r, o.Location, 0, 256<<10)
	v := &validator{o: o, s: s, d: decoder{s: s, base: o.Location}, counts: map[int]int{}}
	for _, s := range slips {
		v.add(s.rule, SeverityError, 1, "%s", s.text)
	}
	if len(slips) == 0 || !slips[len(slips)-1].feed {
		err = v.document()
	}
	var de *DocumentError
	switch {
	case v.stopped != nil:
		err = v.stopped
	case errors.As(err, &de) && (errors.Is(err, ErrSyntax) || errors.Is(err, ErrLimit) || errors.Is(err, ErrInvalid)):
		rule := 1
		if errors.Is(err, errNotRead) {
			rule = 2
		}
		v.add(rule, SeverityError, de.Line, "%s; the document was checked no further", de.Message)
		err = nil
	}
	v.summarize()
	return v.head, v.findings, err
}

// validator goes through a document once.
type validator struct {
	o    ValidateOptions
	s    *scanner
	d    decoder // makes Head and Entry, silently
	head Head

	ns       nsID
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

	findings []Finding
	counts   map[int]int
	stopped  error // of ValidateOptions.Entry
}

// since tells whether the version that is meant has what came with a later one.
func (v *validator) since(version string) bool { return v.o.Version == "" || v.o.Version >= version }

func (v *validator) add(rule int, severity string, line int, format string, args ...any) {
	if rule == 11 && !v.since("1.0") {
		return // it is the older dialect that is meant
	}
	v.counts[rule]++
	if v.counts[rule] > v.o.MaxPerRule {
		return
	}
	if v.o.Strict && severity == SeverityWarning {
		severity = SeverityError
	}
	v.findings = append(v.findings, Finding{Rule: rule, Severity: severity, Line: line, Message: fmt.Sprintf(format, args...)})
}

// summarize tells how many findings were left out.
func (v *validator) summarize() {
	for _, r := range rules {
		if more := v.counts[r.Number] - v.o.MaxPerRule; more > 0 {
			severity := r.Severity
			if v.o.Strict && severity == SeverityWarning {
				severity = SeverityError
			}
			v.findings = append(v.findings, Finding{Rule: r.Number, Severity: severity, Message: fmt.Sprintf("and %d more findings of this rule", more)})
		}
	}
}

func (v *validator) document() error {
	if _, err := v.s.next(); err != nil {
		return err
	}
	if ok, err := v.root(); !ok || err != nil {
		return err
	}
	for {
		tok, err := v.s.next()
		if err != nil {
			return err
		}
		v.strayText()
		if tok == tokenEnd {
			break
		}
		if err := v.rootChild(); err != nil {
			return err
		}
	}
	_, err := v.s.next() // what follows the root
	if err == nil {
		v.endOfDocument()
	}
	return err
}

func (v *validator) strayText() {
	if v.s.stray {
		v.s.stray = false
		v.add(15, SeverityInfo, v.s.tokenLine(), "there is text between the elements; the schemas allow none")
	}
}

// root checks the root's tag; ok is false when nothing further can be said.
func (v *validator) root() (ok bool, err error) {
	n := &v.s.name
	line := v.s.tokenLine()
	local := string(n.local)
	if local != "urlset" && local != "sitemapindex" {
		r := Reader{d: v.d}
		err := r.checkRoot() // names old forms
		var de *DocumentError
		if errors.As(err, &de) {
			v.add(3, SeverityError, line, "%s", de.Message)
			return false, nil
		}
		return false, err
	}
	if n.uri != NamespaceSitemap {
		v.add(3, SeverityError, line, "<%s> is in the namespace %q, want %q", clip(n.raw()), clip(n.uri), NamespaceSitemap)
	}
	v.ns, v.uri = n.ns, n.uri
	v.head.Index = local == "sitemapindex"
	v.head.Meta.Length = -1
	for i := range v.s.attrs {
		if a := &v.s.attrs[i]; a.ns == nsRS || a.ns == nsDLib {
			v.add(9, SeverityError, line, "<%s> has the attribute %s=%q; the root element has no ResourceSync attributes", local, clip(a.raw()), clip(string(a.value)))
		}
	}
	return true, nil
}

// sitemap says whether a name is in the namespace of the root.
func (v *validator) sitemap(n *qname) bool { return n.ns == v.ns && n.uri == v.uri }

func (v *validator) rootChild() error {
	n := &v.s.name
	want := "url"
	if v.head.Index {
		want = "sitemap"
	}
	switch {
	case v.sitemap(n) && string(n.local) == want:
		if !v.first {
			v.first = true
			v.beforeEntries()
		}
		return v.entryElement()
	case v.sitemap(n):
		v.add(4, SeverityError, v.s.tokenLine(), "<%s> inside the root, want <%s>", clip(n.raw()), want)
	case v.rs(n):
		if v.first && !v.late {
			v.late = true
			v.add(14, SeverityInfo, v.s.tokenLine(), "<%s> stands after the first <%s>; the schemas want it before, and entries above it are checked without it", clip(n.raw()), want)
		}
		return v.rootRS()
	}
	return v.s.skip()
}

// rs says whether an element is of ResourceSync, and reports a wrong namespace.
func (v *validator) rs(n *qname) bool {
	local := string(n.local)
	wrong := n.ns == nsDLib || n.uri == namespacePreAlpha || n.ns == nsRS && n.uri != NamespaceRS
	if n.ns != nsRS && !(wrong && (local == "md" || local == "ln")) {
		return false
	}
	if wrong {
		v.sawDLib = v.sawDLib || n.ns == nsDLib
		v.add(8, SeverityError, v.s.tokenLine(), "<%s> is in the namespace %q, want %q", clip(n.raw()), clip(n.uri), NamespaceRS)
	}
	if local != "md" && local != "ln" {
		v.add(8, SeverityError, v.s.tokenLine(), "<%s>: the rs namespace has the elements md and ln only", clip(n.raw()))
	}
	return true
}

// settleHead decides the dialect as the Reader does.
func (v *validator) settleHead() {
	r := Reader{d: v.d, head: v.head, sawMeta: v.metas > 0, sawDLib: v.sawDLib, wasResourceSync: v.wasResourceSync}
	_ = r.settle() // no error where reading is lenient
	v.head = r.head
}
