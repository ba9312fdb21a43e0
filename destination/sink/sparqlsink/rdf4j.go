package sparqlsink

import (
	"fmt"
	"slices"
	"strings"
)

// rdf4j is RDF4J and its kin, known by their addresses.
type rdf4j struct{ common }

func (rdf4j) traits() traits {
	t := common{}.traits()
	// An upload is held as objects until its commit: twice as large, each triple takes longer.
	t.bulkTriples, t.packs = 25_000, false
	// Its native store writes a graph's name as Java does, 6 bytes for a letter of 4, and has
	// room for 65535. After a longer one no write passes until a restart.
	t.longestGraph = 65535 * 2 / 3
	return t
}

// removal compares strings: RDF4J takes language tags for the same in any case and holds
// them apart, and looks for "a"@en-US by the "a"@en-us it met elsewhere.
func (rdf4j) removal(m *Mirror, ops []updateOp) (string, []updateOp) {
	if !slices.Contains(m.Layout.NormalForm.Rules, "language-case") {
		return "", ops
	}
	var b []byte
	rest := make([]updateOp, 0, len(ops))
	for _, op := range ops {
		graph, object := m.graphFor(op.st), string(op.st.Triple.O)
		end := strings.LastIndexByte(object, '"') + 1
		lang, tagged := strings.CutPrefix(object[end:], "@")
		if op.kind != 'd' || !tagged || end == 0 || graph == "" { // without a graph all would be meant
			rest = append(rest, op)
			continue
		}
		b = fmt.Appendf(b, "(<%s> %s %s ", graph, op.st.Triple.S, op.st.Triple.P)
		b = fmt.Appendf(appendObject(b, object[:end]), " \"%s\")\n", strings.ToLower(lang))
	}
	if len(b) == 0 {
		return "", ops
	}
	return fmt.Sprintf("DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { VALUES (?g ?s ?p ?v ?l) {\n%s} GRAPH ?g { ?s ?p ?o } FILTER(STR(?o) = ?v && LCASE(LANG(?o)) = ?l) } ;\n", b), rest
}
