package sink

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// StateGraph is the graph of rsbridge's own statements in a mirror.
const StateGraph = "urn:rsbridge:state"

// Hash names a statement or its subject: the begin of a SHA-256.
type Hash = ledger.Hash

// Statement is one triple as it is sent to a sink, named by hashes of the sink's
// normal form of it.
type Statement struct {
	Triple    rdfres.Triple // blank nodes skolemized
	Graph     string        // per-entity: the graph; "" in a single graph
	Subject   Hash
	Hash      Hash
	Rewritten bool // the normal form differs from Triple
	Recast    bool // and by more than the case of a language tag
	Shown     bool // read from the mirror: perhaps not the form as written
}

// HasBlank tells of a statement of somebody else: in a mirror blank nodes are IRIs.
func (st *Statement) HasBlank() bool {
	return st.Triple.S.Kind() == rdfres.KindBlank || st.Triple.O.Kind() == rdfres.KindBlank
}

// Layout is the place and form of resources in a sink.
type Layout struct {
	PerEntity  bool
	Graph      string // single: "" is the default graph
	Template   string // per-entity: the graph's IRI, with {entity} in it
	Authority  string // scheme and host of skolem IRIs
	NormalForm rdfres.NormalForm
}

// GraphOf is the graph of an entity's statements.
func (l *Layout) GraphOf(entity string) (string, error) {
	if !l.PerEntity {
		return l.Graph, nil
	}
	g := strings.ReplaceAll(l.Template, "{entity}", entity)
	if err := CheckIRI("<" + g + ">"); err != nil {
		return "", fmt.Errorf("graph of %s: %w", clip.Middle(entity), err)
	}
	if IsOwnGraph(g) {
		return "", fmt.Errorf("graph %s of entity %s is one of rsbridge's own; the template of graphs must lead elsewhere", clip.Middle(g), clip.Middle(entity))
	}
	return g, nil
}

// EntityOf is the inverse of GraphOf. A graph of another form is its own entity.
func (l *Layout) EntityOf(graph string) string {
	before, after, _ := strings.Cut(l.Template, "{entity}")
	if strings.Contains(after, "{entity}") || !strings.HasPrefix(graph, before) || !strings.HasSuffix(graph, after) || len(graph) < len(before)+len(after) {
		return graph
	}
	return graph[len(before) : len(graph)-len(after)]
}

// Statements are those of a description, sorted by hash, without doubles in the normal
// form. Blank nodes become skolem IRIs.
func (l *Layout) Statements(entity string, ts []rdfres.Triple) ([]Statement, error) {
	graph := ""
	if l.PerEntity {
		g, err := l.GraphOf(entity)
		if err != nil {
			return nil, err
		}
		graph = g
	}
	out := make([]Statement, 0, len(ts))
	var subject rdfres.Term
	var subj Hash
	for _, t := range ts {
		m := rdfres.Triple{S: rdfres.Skolemize(t.S, l.Authority), P: t.P, O: rdfres.Skolemize(t.O, l.Authority)}
		if m.S.Kind() != rdfres.KindIRI || m.O.Kind() == rdfres.KindBlank {
			return nil, fmt.Errorf("blank node %s has no skolem IRI with authority %q", t.S, l.Authority)
		}
		n := l.NormalForm.Triple(m)
		if n.S != subject || len(out) == 0 {
			subject, subj = n.S, SubjectHash(graph, n.S)
		}
		out = append(out, Statement{Triple: m, Graph: graph, Subject: subj, Hash: TripleHash(graph, n), Rewritten: n != m, Recast: n != m && !tagged(m.O)})
	}
	sortByHash(out)
	last := 0 // of those that stay
	for i := range out {
		switch {
		case i == 0:
		case out[i].Hash == out[last].Hash: // one triple in the sink
			out[last].Recast = out[last].Recast || out[i].Recast
		default:
			last++
			out[last] = out[i]
		}
	}
	return out[:min(len(out), last+1)], nil
}

// Lines are those of a kept representation, as they stand in the mirror.
func (l *Layout) Lines(wire []byte) ([]byte, error) {
	if !HasBlank(wire) && len(l.NormalForm.Rules) == 0 {
		return wire, nil // as it is
	}
	ts, err := ledger.ParseWire(wire)
	if err != nil {
		return nil, err
	}
	sts, err := l.Statements("", ts)
	if err != nil {
		return nil, err
	}
	lines := make([]byte, 0, 2*len(wire))
	for i := range sts {
		lines = sts[i].Triple.AppendLine(lines)
	}
	return lines, nil
}

// tagged tells of a literal with a language tag. Its case says nothing.
func tagged(t rdfres.Term) bool {
	return t.Kind() == rdfres.KindLiteral && t[len(t)-1] != '"' && t[len(t)-1] != '>'
}

// AnyRecast tells of a statement that the sink keeps in a form of its own.
func AnyRecast(sts []Statement) bool {
	return slices.ContainsFunc(sts, func(s Statement) bool { return s.Recast })
}

// sortByHash sorts statements by their hashes, and those of equal hashes as they come. Each
// is moved once: they are large, and a description has few.
func sortByHash(sts []Statement) {
	type place struct {
		hash Hash
		at   int
	}
	var few [32]place
	order := few[:0]
	for i := range sts {
		order = append(order, place{sts[i].Hash, i})
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.at, b.at))
	})
	for i := range order {
		at := order[i].at
		for at < i { // moved away from there
			at = order[at].at
		}
		sts[i], sts[at] = sts[at], sts[i]
		order[i].at = at
	}
}

// SubjectHash names a subject (in normal form) within a space.
func SubjectHash(graph string, s rdfres.Term) Hash {
	if graph == "" {
		return ledger.HashOf(string(s))
	}
	return ledger.HashOf(graph + "\x00" + string(s))
}

// TripleHash names a triple (in normal form) within a space.
func TripleHash(graph string, t rdfres.Triple) Hash {
	b := make([]byte, 0, 256)
	if graph != "" {
		b = append(append(b, graph...), 0)
	}
	return ledger.HashBytes(t.AppendLine(b))
}

// DigestOf is SHA-256 over the sorted statement hashes of a resource.
func DigestOf(sts []Statement) rdfres.Digest {
	h := sha256.New()
	for i := range sts {
		h.Write(sts[i].Hash[:])
	}
	var d rdfres.Digest
	h.Sum(d[:0])
	return d
}

// BySubject groups the hashes of a resource's statements for the ownership
// index. The statements are sorted by hash, so each group is too.
func BySubject(sts []Statement) []ledger.Owned {
	var all []ledger.Owned
	at := make(map[Hash]int, 4)
	for i := range sts {
		n, known := at[sts[i].Subject]
		if !known {
			n = len(all)
			at[sts[i].Subject] = n
			all = append(all, ledger.Owned{Subject: sts[i].Subject})
		}
		all[n].Hashes = append(all[n].Hashes, sts[i].Hash[:]...)
	}
	return all
}
