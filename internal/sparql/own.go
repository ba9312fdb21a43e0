package sparql

import "strings"

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
