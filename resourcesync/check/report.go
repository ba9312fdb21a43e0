package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Severities of findings.
const (
	SeverityError   = "E" // a must of the specification is violated
	SeverityWarning = "W" // a should
	SeverityInfo    = "I" // advice
)

// Finding is one broken rule; docs/reference/rules.md has them all.
type Finding struct {
	Rule     int    `json:"rule"`
	Severity string `json:"severity"`       // E, W, I
	Line     int    `json:"line"`           // from 1; 0: the document as a whole
	Message  string `json:"message"`        // with the offending text and the right one
	More     int    `json:"more,omitempty"` // so many findings are left out, and this one stands for them
}

// Count is how many findings it is.
func (f Finding) Count() int { return max(f.More, 1) }

// String gives "E30 line 4: message".
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s%d: %s", f.Severity, f.Rule, f.Message)
	}
	return fmt.Sprintf("%s%d line %d: %s", f.Severity, f.Rule, f.Line, f.Message)
}

// report collects the findings of one document: most of each rule and severity in full.
type report struct {
	version string // of the specification, "" for the last
	strict  bool   // warnings are errors
	most    int

	findings []Finding
	counts   map[grade]int
}

// grade is what findings are counted by.
type grade struct {
	rule     int
	severity string
}

func newReport(version string, strict bool, most int) report {
	return report{version: version, strict: strict, most: most, counts: map[grade]int{}}
}

// since tells whether the version is this one or a later one.
func (r *report) since(version string) bool { return r.version == "" || r.version >= version }

func (r *report) add(rule int, severity string, line int, format string, args ...any) {
	if rule == 11 && !r.since("1.0") {
		return // the older dialect is meant
	}
	if r.strict && severity == SeverityWarning {
		severity = SeverityError
	}
	g := grade{rule, severity}
	if r.counts[g]++; r.counts[g] > r.most {
		return
	}
	r.findings = append(r.findings, Finding{Rule: rule, Severity: severity, Line: line, Message: webguard.MaskedText(fmt.Sprintf(format, args...))})
}

// summarize tells how many findings were left out.
func (r *report) summarize() {
	byRule := func(a, b grade) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.severity, b.severity))
	}
	for _, g := range slices.SortedFunc(maps.Keys(r.counts), byRule) {
		if n := r.counts[g] - r.most; n > 0 {
			r.findings = append(r.findings, Finding{Rule: g.rule, Severity: g.severity, More: n, Message: fmt.Sprintf("and %d more findings of this rule", n)})
		}
	}
}
