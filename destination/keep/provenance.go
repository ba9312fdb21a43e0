package keep

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// With Config.Provenance the mirror itself has the origin and time of each description, in the
// state graph and never among the data. The subject is urn:rsbridge:description: + the number
// of the destination's mark + : + the hash of the location. All of it follows from the record:
// it is written, replaced and removed with the data, and an audit knows its right value.
const (
	descriptionPrefix = "urn:rsbridge:description:"

	predDigest  = sink.PropPrefix + "digest"
	predTopic   = "http://xmlns.com/foaf/0.1/primaryTopic"
	predDerived = "http://www.w3.org/ns/prov#wasDerivedFrom"
	predPrimary = "http://www.w3.org/ns/prov#hadPrimarySource"
	predSource  = "http://purl.org/dc/terms/source"
	predWhen    = "http://purl.org/dc/terms/modified"

	xsdDateTime = "http://www.w3.org/2001/XMLSchema#dateTime"

	ProvenanceTriples = 7 // of one description, at most
)

// DescriptionOf names the description of a resource in the provenance.
func (stand *Standing) DescriptionOf(loc ledger.Hash) string {
	return descriptionPrefix + strings.TrimPrefix(stand.Mirror.Mark, sink.MarkPrefix) + ":" + hex.EncodeToString(loc[:])
}

// ProvenanceOf is the provenance of a recorded description, nothing for one without triples. A
// triple the store would change is left out.
func (stand *Standing) ProvenanceOf(loc ledger.Hash, r *ledger.Record, source string) []sink.Statement {
	if source == "" || r == nil || r.Triples == 0 {
		return nil
	}
	subject := rdfres.NewIRI(stand.DescriptionOf(loc))
	var out []sink.Statement
	add := func(predicate string, o rdfres.Term) {
		t := rdfres.Triple{S: subject, P: rdfres.NewIRI(predicate), O: o}
		if sink.CheckTerm(string(o)) != nil {
			return
		}
		n := stand.Mirror.Layout.NormalForm.Triple(t)
		st := sink.Statement{Triple: t, Graph: sink.StateGraph, Subject: sink.SubjectHash(sink.StateGraph, n.S), Hash: sink.TripleHash(sink.StateGraph, n), Rewritten: n != t}
		if stand.Mirror.Exact(&st) {
			out = append(out, st)
		}
	}
	add(sink.PropPrefix+"keptBy", rdfres.NewIRI(stand.Mirror.Mark))
	add(predDerived, rdfres.NewIRI(r.Loc))
	add(predSource, rdfres.NewIRI(source))
	if r.Entity != "" {
		add(predTopic, rdfres.NewIRI(r.Entity))
	}
	when := r.Time
	if when.IsZero() {
		when = r.LastMod
	}
	if !when.IsZero() {
		add(predWhen, rdfres.NewLiteral(when.UTC().Format(time.RFC3339Nano), "", xsdDateTime))
	}
	if !r.Graph.IsZero() {
		add(predDigest, rdfres.NewLiteral("sha-256:"+r.Graph.String(), "", ""))
	}
	if r.Via != "" {
		add(predPrimary, rdfres.NewIRI(r.Via))
	}
	return out
}
