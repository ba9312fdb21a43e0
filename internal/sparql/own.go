package sparql

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The graphs of rsbridge's own bookkeeping. Everything else is data, also graphs named
// urn:rsbridge:component:... by a mirror with one graph for each entity.
const (
	ownNamespace  = "urn:rsbridge:"
	ownState      = "urn:rsbridge:state"    // notes of a destination in its mirror; with a suffix too
	ownSimulation = "urn:rsbridge:simulate" // how far a simulation is
	ownProbes     = "urn:rsbridge:probe:"   // scratch graphs of probes
	ownStates     = "urn:rsbridge:state:"   // of a destination without SPARQL Update
)

// ScratchGraph names a graph for a probe to write into, with the time. The time tells the graph of
// a killed probe from that of a running one. Write ScratchMark into it with the first triples.
func ScratchGraph(now time.Time) string {
	return ownProbes + now.UTC().Format(scratchTime) + ":" + rand.Text()
}

// ScratchMark is a triple for finding scratch graphs.
var ScratchMark = rdfres.Triple{S: rdfres.NewIRI(ownProbes + "scratch"), P: rdfres.NewIRI(ownProbes + "p"), O: rdfres.NewLiteral("scratch", "", "")}

const scratchTime = "20060102T150405Z"

// isLeft tells whether the probe of a scratch graph has ended, by any clock. A name without a time
// is of an earlier version.
func isLeft(graph string, now time.Time) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(graph, ownProbes), ":")
	began, err := time.Parse(scratchTime, name)
	return err != nil || now.Sub(began) > time.Hour
}

// IsOwnGraph tells whether a graph belongs to rsbridge's own bookkeeping. Such a graph is never
// published, and no resource may be mirrored into it.
func IsOwnGraph(graph string) bool {
	return graph == ownState || graph == ownSimulation ||
		strings.HasPrefix(graph, ownProbes) || strings.HasPrefix(graph, ownStates)
}

// IsOwnNode tells whether an IRI is of what the bookkeeping tells: a mirror, a description,
// a property, or a graph of it.
func IsOwnNode(iri string) bool {
	name, own := strings.CutPrefix(iri, ownNamespace)
	return own && (IsOwnGraph(iri) || strings.HasPrefix(name, "mirror:") || strings.HasPrefix(name, "description:") || strings.HasPrefix(name, "terms#"))
}

// OwnGraph is IsOwnGraph as a SPARQL expression over a variable bound to the name of a graph, such
// as ?g. One comparison decides for nearly all graphs.
func OwnGraph(variable string) string {
	name := "STR(" + variable + ")"
	return "(STRSTARTS(" + name + ", \"" + ownNamespace + "\") && (" + variable + " = <" + ownState + "> || " +
		variable + " = <" + ownSimulation + "> || STRSTARTS(" + name + ", \"" + ownStates + "\") || STRSTARTS(" + name + ", \"" + ownProbes + "\")))"
}
