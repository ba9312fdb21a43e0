package keep

import (
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// With Config.Freshness the mirror itself tells how fresh it is, in the state graph. It is no data, no
// checkpoint and no provenance: audits pass it over, and a lost one is written again.
const (
	predFreshnessOf = sink.PropPrefix + "freshnessOf" // the mark
	predInSync      = sink.PropPrefix + "inSync"
	predSeconds     = sink.PropPrefix + "behindSeconds"
	predChanges     = sink.PropPrefix + "behindChanges"
	predValid       = "http://purl.org/dc/terms/valid"
	predGenerated   = "http://www.w3.org/ns/prov#generatedAtTime"

	xsd = "http://www.w3.org/2001/XMLSchema#"
)

// Freshness is a mirror's word of itself.
type Freshness struct {
	Before  time.Time // it has all changes of the source before then; zero: not known
	InSync  bool
	Seconds *float64 // behind; nil: not known
	Changes *uint64  // the same in changes
}

// EqualBefore is the time before which each change of the source is in the mirror, zero if unknown: the
// begin of the last poll, or the oldest change that is not applied. A mirror of the past is so at its
// time. A failed poll leaves it as it was.
func (m *Meta) EqualBefore() time.Time {
	at := m.At.LastPoll()
	switch {
	case m.Interrupted || m.Stage != ledger.Following || m.Damage != "" || m.CompareMirror != "" || m.CompareSource != "" || m.Recheck.Why != "":
		return time.Time{}
	case m.At.IsPast():
		return m.At.Until()
	case !m.Behind.IsZero() && m.Behind.Before(at):
		return m.Behind
	case m.Behind.IsZero() && !m.InSync && (m.LastError == "" || m.Waits() != ""):
		return time.Time{}
	}
	return at
}

// FreshnessTriples tell the freshness at a time.
func (stand *Standing) FreshnessTriples(f *Freshness, now time.Time) []rdfres.Triple {
	var out []rdfres.Triple
	add := func(predicate string, o rdfres.Term) {
		if sink.CheckTerm(string(o)) == nil {
			out = append(out, rdfres.Triple{S: rdfres.NewIRI(sink.FreshnessOf(stand.Mirror.Mark)), P: rdfres.NewIRI(predicate), O: o})
		}
	}
	moment := func(t time.Time) rdfres.Term {
		return rdfres.NewLiteral(t.UTC().Format(time.RFC3339Nano), "", xsdDateTime)
	}
	add(predFreshnessOf, rdfres.NewIRI(stand.Mirror.Mark))
	add(predSource, rdfres.NewIRI(stand.Config.Source))
	if l := stand.Mirror.Layout; !l.PerEntity && l.Graph != "" {
		add(predTopic, rdfres.NewIRI(l.Graph))
	}
	if !f.Before.IsZero() {
		add(predValid, moment(f.Before))
	}
	add(predInSync, rdfres.NewLiteral(strconv.FormatBool(f.InSync), "", xsd+"boolean"))
	if f.Seconds != nil {
		add(predSeconds, decimal(*f.Seconds))
	}
	if f.Changes != nil {
		add(predChanges, rdfres.NewLiteral(strconv.FormatUint(*f.Changes, 10), "", xsd+"integer"))
	}
	add(predGenerated, moment(now))
	return out
}

// decimal is a number in canonical form: Fuseki 5.5 answers an update that removes any other form, and
// keeps the triple.
func decimal(x float64) rdfres.Term {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return rdfres.NewLiteral(text, "", xsd+"decimal")
}
