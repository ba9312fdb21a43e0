package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	Severity string `json:"severity"` // E, W, I
	Line     int    `json:"line"`     // from 1; 0: the document as a whole
	Message  string `json:"message"`  // with the offending text and the right one
}

// String gives "E30 line 4: message".
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s%d: %s", f.Severity, f.Rule, f.Message)
	}
	return fmt.Sprintf("%s%d line %d: %s", f.Severity, f.Rule, f.Line, f.Message)
}

// report collects the findings of one document: most of each rule in full.
type report struct {
	version string // of the specification, "" for the last
	strict  bool   // warnings are errors
	most    int

	findings []Finding
	counts   map[int]int
	highest  map[int]string // severity of the findings left out
}

// since tells whether the version is this one or a later one.
func (r *report) since(version string) bool { return r.version == "" || r.version >= version }

func (r *report) add(rule int, severity string, line int, format string, args ...any) {
	if rule == 11 && !r.since("1.0") {
		return // the older dialect is meant
	}
	r.counts[rule]++
	if r.strict && severity == SeverityWarning {
		severity = SeverityError
	}
	if r.counts[rule] > r.most {
		if strings.Index("IWE", severity) >= strings.Index("IWE", r.highest[rule]) {
			r.highest[rule] = severity
		}
		return
	}
	r.findings = append(r.findings, Finding{Rule: rule, Severity: severity, Line: line, Message: webguard.MaskedText(fmt.Sprintf(format, args...))})
}

// summarize tells how many findings were left out.
func (r *report) summarize() {
	for _, rule := range slices.Sorted(maps.Keys(r.highest)) {
		r.findings = append(r.findings, Finding{Rule: rule, Severity: r.highest[rule], Message: fmt.Sprintf("and %d more findings of this rule", r.counts[rule]-r.most)})
	}
}
