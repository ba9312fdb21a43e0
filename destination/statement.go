package destination

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"crypto/sha256"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// stateGraph holds what rsbridge itself writes into a mirror.
const stateGraph = "urn:rsbridge:state"

// statement is one triple as it is sent to the mirror, named by hashes of what
// the store makes of it (its normal form).
type statement struct {
	triple rdfres.Triple // blank nodes skolemized
	graph  string        // per-entity: the graph; "" in a single graph
	subj   ledger.Hash
	hash   ledger.Hash
	normal bool // the normal form differs from triple
	shown  bool // read from the mirror: not the form that was written, perhaps
}

// layout says where and how resources stand in the mirror.
type layout struct {
	perEntity bool
	graph     string // single: "" is the default graph
	template  string // per-entity
	authority string
	nf        rdfres.NormalForm
}

// graphOf is the graph of an entity's statements.
func (l *layout) graphOf(entity string) (string, error) {
	if !l.perEntity {
		return l.graph, nil
	}
	g := strings.ReplaceAll(l.template, "{entity}", entity)
	if err := safeIRI("<" + g + ">"); err != nil {
		return "", fmt.Errorf("graph of %s: %w", shorten(entity), err)
	}
	if sparql.IsOwnGraph(g) {
		return "", fmt.Errorf("graph %s of entity %s is one of rsbridge's own; change graph_iri", shorten(g), shorten(entity))
	}
	return g, nil
}

// statements turns a wire form into what the mirror gets, without doubles in
// its normal form.
func (l *layout) statements(entity string, ts []rdfres.Triple) ([]statement, error) {
	graph := ""
	if l.perEntity {
		g, err := l.graphOf(entity)
		if err != nil {
			return nil, err
		}
		graph = g
	}
	out := make([]statement, 0, len(ts))
	var subject rdfres.Term
	var subj ledger.Hash
	for _, t := range ts {
		m := rdfres.Triple{S: rdfres.Skolemize(t.S, l.authority), P: t.P, O: rdfres.Skolemize(t.O, l.authority)}
		if m.S.Kind() != rdfres.KindIRI || m.O.Kind() == rdfres.KindBlank {
			return nil, fmt.Errorf("blank node %s has no skolem IRI with authority %q", t.S, l.authority)
		}
		n := l.nf.Triple(m)
		if n.S != subject || len(out) == 0 {
			subject, subj = n.S, subjectHash(graph, n.S)
		}
		out = append(out, statement{triple: m, graph: graph, subj: subj, hash: tripleHash(graph, n), normal: n != m})
	}
	sortByHash(out)
	return slices.CompactFunc(out, func(a, b statement) bool { return a.hash == b.hash }), nil
}

// sortByHash sorts statements by their hashes, and those of equal hashes as they come. Each
// is moved once: they are large, and a description has few.
func sortByHash(sts []statement) {
	type place struct {
		hash ledger.Hash
		at   int
	}
	var few [32]place
	order := few[:0]
	for i := range sts {
		order = append(order, place{sts[i].hash, i})
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.at, b.at))
	})
	for i := range order {
		at := order[i].at
		for at < i { // that one has been moved away from there
			at = order[at].at
		}
		sts[i], sts[at] = sts[at], sts[i]
		order[i].at = at
	}
}

// otherForms are those in which a statement may stand in the store too: when what
// the store gave back was loaded again, as a backup in N-Quads is, it is no longer
// the form that was written. TDB2 shows the decimal 1 as 1.0 and 7.50 as 7.5, and does
// not find the one by the other, nor by a variable.
func (l *layout) otherForms(st *statement) (out []rdfres.Triple) {
	n := l.nf.Triple(st.triple)
	if st.normal {
		out = append(out, n)
	}
	lexical, ok := strings.CutSuffix(string(n.O), `"^^<http://www.w3.org/2001/XMLSchema#decimal>`)
	if !ok || !slices.Contains(l.nf.Rules, "decimal-47bit") {
		return out
	}
	value, zeros := n.O, 0
	if lexical = lexical[1:]; !strings.Contains(lexical, ".") {
		lexical, zeros = lexical+".", 1
	}
	if st.shown {
		zeros = 15
	}
	for range zeros {
		lexical += "0"
		if n.O = rdfres.NewLiteral(lexical, "", "http://www.w3.org/2001/XMLSchema#decimal"); l.nf.Term(n.O) != value {
			break // beyond 47 bits it is another literal
		}
		out = append(out, n)
	}
	return out
}

func subjectHash(graph string, s rdfres.Term) ledger.Hash {
	if graph == "" {
		return ledger.HashOf(string(s))
	}
	return ledger.HashOf(graph + "\x00" + string(s))
}

// tripleHash names a triple (in normal form) within a space.
func tripleHash(graph string, t rdfres.Triple) ledger.Hash {
	b := make([]byte, 0, 256)
	if graph != "" {
		b = append(append(b, graph...), 0)
	}
	return ledger.HashBytes(t.AppendLine(b))
}

// normalDigest is SHA-256 over the sorted statement hashes of a resource.
func normalDigest(sts []statement) rdfres.Digest {
	h := sha256.New()
	for i := range sts {
		h.Write(sts[i].hash[:])
	}
	var d rdfres.Digest
	h.Sum(d[:0])
	return d
}

// bySubject groups the hashes of a resource's statements for the ownership
// index. The statements are sorted by hash, so each group is too.
func bySubject(sts []statement) []ledger.Owned {
	var all []ledger.Owned
	at := make(map[ledger.Hash]int, 4)
	for i := range sts {
		n, known := at[sts[i].subj]
		if !known {
			n = len(all)
			at[sts[i].subj] = n
			all = append(all, ledger.Owned{Subject: sts[i].subj})
		}
		all[n].Hashes = append(all[n].Hashes, sts[i].hash[:]...)
	}
	return all
}

// appendSPARQL writes a statement for an update. Canonical N-Triples is SPARQL,
// but for one trap: some engines undo \u escapes before they parse, so a
// backslash in a literal must not be followed by a u.
func appendSPARQL(b []byte, t rdfres.Triple) []byte {
	b = append(append(append(b, t.S...), ' '), t.P...)
	b = append(b, ' ')
	b = appendObject(b, string(t.O))
	return append(b, " .\n"...)
}

func appendObject(b []byte, o string) []byte {
	if !strings.HasPrefix(o, `"`) || !strings.Contains(o, `\\u`) && !strings.Contains(o, `\\U`) {
		return append(b, o...)
	}
	end := strings.LastIndexByte(o, '"')
	for i := 0; i < end; i++ {
		if o[i] == '\\' && i+1 < end {
			b = append(b, o[i], o[i+1])
			i++
			if o[i] == '\\' && i+1 < end && (o[i+1] == 'u' || o[i+1] == 'U') {
				b = fmt.Appendf(b, `\u%04X`, o[i+1])
				i++
			}
			continue
		}
		b = append(b, o[i])
	}
	return append(b, o[end:]...)
}
