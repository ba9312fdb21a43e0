package sparql

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The graphs that rsbridge writes for its own bookkeeping. Everything else,
// graphs that a mirror with one graph for each entity names
// urn:rsbridge:component:... included, is data.
const (
	ownNamespace  = "urn:rsbridge:"
	ownState      = "urn:rsbridge:state"    // what a destination notes in its mirror; with a suffix too
	ownSimulation = "urn:rsbridge:simulate" // how far a simulation is
	ownProbes     = "urn:rsbridge:probe:"   // scratch graphs of probes
	ownStates     = "urn:rsbridge:state:"   // of a destination without SPARQL Update
)

// ScratchGraph names a graph for a probe to write into, with the time: one that was
// left when a probe was killed can so be told from that of one which runs. ScratchMark
// is to be written into it with the first of what is.
func ScratchGraph(now time.Time) string {
	return ownProbes + now.UTC().Format(scratchTime) + ":" + rand.Text()
}

// ScratchMark is the triple by which scratch graphs are found.
var ScratchMark = rdfres.Triple{S: rdfres.NewIRI(ownProbes + "scratch"), P: rdfres.NewIRI(ownProbes + "p"), O: rdfres.NewLiteral("scratch", "", "")}

const scratchTime = "20060102T150405Z"

// isLeft tells of a scratch graph whether its probe has ended, whatever clock it went by.
// One that tells no time is of an earlier version.
func isLeft(graph string, now time.Time) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(graph, ownProbes), ":")
	began, err := time.Parse(scratchTime, name)
	return err != nil || now.Sub(began) > time.Hour
}

// IsOwnGraph tells whether a graph is of rsbridge's own bookkeeping, so that it
// is never published and no resource may be mirrored into it.
func IsOwnGraph(graph string) bool {
	return graph == ownState || graph == ownSimulation ||
		strings.HasPrefix(graph, ownProbes) || strings.HasPrefix(graph, ownStates)
}

// OwnGraph is IsOwnGraph as a SPARQL expression over a variable that is bound to
// the name of a graph, such as ?g. One comparison decides for nearly all graphs.
func OwnGraph(variable string) string {
	name := "STR(" + variable + ")"
	return "(STRSTARTS(" + name + ", \"" + ownNamespace + "\") && (" + variable + " = <" + ownState + "> || " +
		variable + " = <" + ownSimulation + "> || STRSTARTS(" + name + ", \"" + ownStates + "\") || STRSTARTS(" + name + ", \"" + ownProbes + "\")))"
}
