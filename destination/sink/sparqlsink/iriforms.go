package sparqlsink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Stores change IRIs on some ways of writing. Jena resolves every IRI of a SPARQL update:
// <http://x/a/./b> becomes <http://x/a/b>, another entity's. In N-Triples by the Graph Store
// Protocol it stays. A probe finds out once. IRIs changed by updates are inserted by the
// Graph Store Protocol and deleted by comparing strings. IRIs changed on all ways fail, and
// are never written.

// iriForm is a kind of IRI some software takes for another spelling.
type iriForm struct {
	name   string
	probes []string
	has    func(iri string) bool
}

var iriForms = []iriForm{
	{"dot-segments", []string{"http://rsbridge.invalid/a/./b", "http://rsbridge.invalid/a/c/../d", "http://rsbridge.invalid/e/..", "urn:rsbridge:probe:f/./g"}, func(iri string) bool {
		if !strings.Contains(iri, "/.") {
			return false
		}
		path, _, _ := strings.Cut(iri, "#")
		path, _, _ = strings.Cut(path, "?")
		return strings.Contains(path, "/./") || strings.Contains(path, "/../") || strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")
	}},
	{"scheme-case", []string{"HTTP://rsbridge.invalid/scheme"}, func(iri string) bool {
		scheme, _, _ := strings.Cut(iri, ":")
		return scheme != strings.ToLower(scheme)
	}},
	{"host-case", []string{"http://RSBRIDGE.invalid/host"}, func(iri string) bool {
		a := iriAuthority(iri)
		return a != strings.ToLower(a)
	}},
	{"port", []string{"http://rsbridge.invalid:80/port", "https://rsbridge.invalid:/port"}, func(iri string) bool {
		a := iriAuthority(iri)
		return strings.HasSuffix(a, ":80") || strings.HasSuffix(a, ":443") || strings.HasSuffix(a, ":")
	}},
	{"empty-path", []string{"http://rsbridge.invalid"}, func(iri string) bool {
		a := iriAuthority(iri)
		return a != "" && strings.HasSuffix(iri, "//"+a)
	}},
	{"percent", []string{"http://rsbridge.invalid/%c3%a9", "http://rsbridge.invalid/%41", "http://rsbridge.invalid/%2E/p"}, func(iri string) bool { return strings.Contains(iri, "%") }},
	{"unicode", []string{"http://rsbridge.invalid/e\u0301"}, func(iri string) bool {
		return strings.ContainsFunc(iri, func(r rune) bool { return r > 0x7f })
	}},
}

func iriAuthority(iri string) string {
	_, rest, ok := strings.Cut(iri, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// Rewrites are the forms a store changes, by the way of writing.
type Rewrites struct {
	Update []string // SPARQL Update, graph names too
	GSP    []string // Graph Store Protocol, N-Triples
	Graphs []string // Graph Store Protocol, graph names

	Dead bool `json:",omitempty"` // the Graph Store takes no POST, or confirms it and does not write it
}

func (r *Rewrites) some() bool { return len(r.Update)+len(r.GSP)+len(r.Graphs) > 0 }

// String is for the log.
func (r *Rewrites) String() string {
	var all []string
	for _, way := range []struct {
		name  string
		forms []string
	}{{"update", r.Update}, {"graph store", r.GSP}, {"graph names", r.Graphs}} {
		if len(way.forms) > 0 {
			all = append(all, way.name+" changes "+strings.Join(way.forms, ", "))
		}
	}
	if r.Dead {
		all = append(all, "the graph store takes no POST")
	}
	if len(all) == 0 {
		return "kept as they are"
	}
	return strings.Join(all, "; ")
}

func changes(forms []string, iri string) bool {
	for i := range iriForms {
		if len(forms) > 0 && slices.Contains(forms, iriForms[i].name) && iriForms[i].has(iri) {
			return true
		}
	}
	return false
}

// changedTerm gives the IRI of a term in one of the forms.
func changedTerm(forms []string, t rdfres.Term) string {
	s := string(t)
	switch {
	case strings.HasPrefix(s, "<"):
		s = s[1 : len(s)-1]
	case strings.HasPrefix(s, `"`) && strings.HasSuffix(s, ">"):
		s = s[strings.LastIndexByte(s, '<')+1 : len(s)-1]
	default:
		return ""
	}
	if changes(forms, s) {
		return s
	}
	return ""
}

func changedTriple(forms []string, t rdfres.Triple) string {
	if len(forms) == 0 {
		return ""
	}
	for _, x := range [3]rdfres.Term{t.S, t.P, t.O} {
		if iri := changedTerm(forms, x); iri != "" {
			return iri
		}
	}
	return ""
}

// odd gives an IRI of a statement an update would change, "" for none.
func (m *Mirror) odd(st *sink.Statement) string {
	if len(m.IRIs.Update) == 0 {
		return ""
	}
	if g := m.graphFor(st); g != "" && changes(m.IRIs.Update, g) {
		return g
	}
	return changedTriple(m.IRIs.Update, st.Triple)
}

// oddToPost is odd for the Graph Store Protocol.
func (m *Mirror) oddToPost(st *sink.Statement) string {
	if g := m.graphFor(st); g != "" && changes(m.IRIs.Graphs, g) {
		return g
	}
	return changedTriple(m.IRIs.GSP, st.Triple)
}

func (m *Mirror) Postable(sts []sink.Statement) bool {
	if slices.ContainsFunc(sts, func(st sink.Statement) bool { return !m.dialect.uploads(st.Triple.O) }) {
		return false
	}
	return len(m.IRIs.GSP) == 0 || !slices.ContainsFunc(sts, func(st sink.Statement) bool { return m.oddToPost(&st) != "" })
}

// Keeps refuses a statement no way of writing keeps as it is.
func (m *Mirror) Keeps(st *sink.Statement) error {
	if d, ok := m.dialect.(refuser); ok {
		if what, why := d.refuses(m.graphFor(st), st.Triple); why != "" {
			return fmt.Errorf("%w: %s: the store %s (%s) %s", sink.ErrUnusable, what, m.Client.Endpoint().Name, m.Caps.Product, why)
		}
	}
	iri := ""
	if m.updates() {
		if iri = m.odd(st); iri == "" {
			return nil
		}
	}
	if m.Client.Endpoint().GraphStore != "" && !m.IRIs.Dead {
		if iri = m.oddToPost(st); iri == "" {
			return nil
		}
	}
	e := m.Client.Endpoint()
	hint := ""
	if e.GraphStore == "" {
		hint = fmt.Sprintf("; give %s, by which it may keep it", e.Names.Of("graph_store"))
	}
	return fmt.Errorf("%w: the store %s (%s) changes the IRI <%s> when it is written, into one that means another thing%s", sink.ErrUnusable, e.Name, m.Caps.Product, clip.Middle(iri), hint)
}

// Exact tells of a statement neither an update nor an upload changes.
func (m *Mirror) Exact(st *sink.Statement) bool {
	return m.odd(st) == "" && m.Keeps(st) == nil && m.oddToPost(st) == ""
}

// KeepsAll is keeps of each, as far as the store changes anything.
func (m *Mirror) KeepsAll(sts []sink.Statement) error {
	if _, refuses := m.dialect.(refuser); !refuses && !m.IRIs.some() {
		return nil
	}
	for i := range sts {
		if err := m.Keeps(&sts[i]); err != nil {
			return err
		}
	}
	return nil
}

// KeepsGraph refuses the name of a graph too long for the store.
func (m *Mirror) KeepsGraph(graph string) error {
	if most := m.traits.longestGraph; most > 0 && len(graph) > most {
		return fmt.Errorf("%w: the store %s (%s) breaks at a graph's name above %d bytes: %s", sink.ErrUnusable, m.Client.Endpoint().Name, m.Caps.Product, most, clip.Middle(graph))
	}
	return nil
}

// SameValue tells whether the store may have made one literal of the other.
func (m *Mirror) SameValue(a, b rdfres.Term) bool {
	return rdfres.ValueEqual(a, b) || m.dialect.isForm(a, b)
}

// oddDelete is an update for removing a statement by comparing strings: it has no IRI
// for the store to change. Blank nodes have no name in an update, so all similar ones go.
func (m *Mirror) oddDelete(st *sink.Statement) string {
	one := func(t rdfres.Triple) string {
		var filters []string
		term := func(name string, t rdfres.Term) string {
			if t.Kind() == rdfres.KindBlank {
				filters = append(filters, "isBlank("+name+")")
				return name
			}
			iri := changedTerm(m.IRIs.Update, t)
			if t == st.Triple.O && m.traits.byText(st) {
				iri = xmlLiteral
			}
			if iri == "" {
				return string(appendObject(nil, string(t)))
			}
			if s := string(t); strings.HasPrefix(s, `"`) {
				lex := appendObject(nil, s[:strings.LastIndexByte(s, '"')+1])
				filters = append(filters, fmt.Sprintf(`isLiteral(%[1]s) && STR(%[1]s) = %[2]s && STR(DATATYPE(%[1]s)) = "%[3]s"`, name, lex, iri))
			} else {
				filters = append(filters, fmt.Sprintf(`isIRI(%s) && STR(%[1]s) = "%s"`, name, iri))
			}
			return name
		}
		pattern := term("?s", t.S) + " " + term("?p", t.P) + " " + term("?o", t.O)
		if g := m.graphFor(st); g != "" {
			name := "<" + g + ">"
			if changes(m.IRIs.Update, g) {
				name = "?g"
				filters = append(filters, fmt.Sprintf(`STR(?g) = "%s"`, g))
			}
			pattern = "GRAPH " + name + " { " + pattern + " }"
		}
		return fmt.Sprintf("DELETE { %s } WHERE { %[1]s FILTER(%s) }", pattern, strings.Join(filters, " && "))
	}
	text := one(st.Triple)
	if n := m.Layout.NormalForm.Triple(st.Triple); n != st.Triple {
		text += " ;\n" + one(n)
	}
	return text
}

// post inserts statements of any graphs by the Graph Store Protocol.
func (m *Mirror) post(ctx context.Context, sts []*sink.Statement) error {
	for len(sts) > 0 {
		graph := m.graphFor(sts[0])
		var text []byte
		rest := sts[:0:0]
		for _, st := range sts {
			if m.graphFor(st) == graph {
				text = st.Triple.AppendLine(text)
			} else {
				rest = append(rest, st)
			}
		}
		err := m.Client.PostGraph(ctx, graph, rdfres.NTriples, sparql.Body(text))
		if err != nil {
			return err
		}
		sts = rest
	}
	return nil
}

// one carries out a single operation.
func (m *Mirror) one(ctx context.Context, op updateOp) error {
	switch {
	case m.odd(op.st) == "":
		return m.request(ctx, "", []updateOp{op}, "")
	case op.kind == 'd':
		return m.Client.Update(ctx, m.oddDelete(op.st))
	}
	return m.post(ctx, []*sink.Statement{op.st})
}

// refusesPosts tells whether an address cannot be posted to, whatever is posted.
func refusesPosts(err error) bool {
	var e *sparql.Error
	return errors.As(err, &e) && slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, e.Status)
}

// ProbeIRIs finds the forms of IRIs a store changes. It writes some into scratch graphs,
// and removes them. After an error nothing was learned.
func (m *Mirror) ProbeIRIs(caller context.Context) (found Rewrites, err error) {
	ctx, cancel := context.WithTimeout(caller, 30*time.Second)
	defer cancel()
	e := m.Client.Endpoint()
	if e.Query == "" {
		return found, nil
	}
	token := rand.Text()
	property := rdfres.NewIRI("urn:rsbridge:probe:iri:" + token)
	var drop []string
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), time.Minute)
		defer cancel()
		for _, g := range drop {
			derr := errors.New("the store has no address for it")
			if e.GraphStore != "" && !found.Dead {
				derr = m.Client.DeleteGraph(ctx, g)
			}
			if derr != nil && e.Update != "" {
				derr = m.Client.Update(ctx, "DROP SILENT GRAPH <"+g+">")
			}
			if derr != nil {
				m.Log.Warn("probe: the scratch graph could not be removed; drop it by hand", "graph", g, "error", derr)
			}
		}
	}()
	// came reads back the graph and subject of each object.
	came := func() (map[string][2]string, error) {
		s, err := m.Client.Select(ctx, fmt.Sprintf("SELECT ?g ?s ?o WHERE { GRAPH ?g { ?s %s ?o } }", property))
		if err != nil {
			return nil, err
		}
		out := map[string][2]string{}
		for row, err := range s.Rows {
			if err != nil {
				return nil, err
			}
			if len(row) != 3 {
				return nil, errors.New("the store answered with other columns than asked for")
			}
			lex, _, _ := row[2].Literal()
			out[lex] = [2]string{row[0].IRI(), row[1].IRI()}
		}
		return out, nil
	}
	type probe struct{ form, iri, key string }
	var probes []probe
	for _, f := range iriForms {
		for _, iri := range f.probes {
			probes = append(probes, probe{f.name, iri, fmt.Sprint(len(probes))})
		}
	}
	terms := func(way string, send func(graph string, lines []byte) error) (forms []string, err error) {
		graph := sparql.ScratchGraph(time.Now())
		drop = append(drop, graph)
		all := sparql.ScratchMark.AppendLine(nil)
		line := func(p probe) []byte {
			return rdfres.Triple{S: rdfres.NewIRI(p.iri), P: property, O: rdfres.NewLiteral(way+p.key, "", "")}.AppendLine(nil)
		}
		for _, p := range probes {
			all = append(all, line(p)...)
		}
		refused := map[string]bool{} // refused is not changed
		if err := send(graph, all); err != nil {
			if !refusal(err) {
				return nil, err
			}
			for _, p := range probes {
				if err := send(graph, line(p)); err != nil {
					if !refusal(err) {
						return nil, err
					}
					refused[p.key] = true
				}
			}
		}
		got, err := came()
		if err != nil {
			return nil, err
		}
		if len(refused) < len(probes) && !slices.ContainsFunc(probes, func(p probe) bool { return got[way+p.key][1] != "" }) {
			return nil, sink.ErrUnconfirmed
		}
		for _, p := range probes {
			if !refused[p.key] && got[way+p.key][1] != p.iri && !slices.Contains(forms, p.form) {
				forms = append(forms, p.form)
			}
		}
		return forms, nil
	}
	if e.Update != "" {
		if found.Update, err = terms("update", func(graph string, lines []byte) error {
			return m.Client.Update(ctx, "INSERT DATA { GRAPH <"+graph+"> {\n"+string(lines)+"} }")
		}); err != nil {
			return found, err
		}
	}
	if e.GraphStore == "" {
		return found, nil
	}
	post := func(graph string, lines []byte) error {
		return m.Client.PostGraph(ctx, graph, rdfres.NTriples, sparql.Body(lines))
	}
	found.GSP, err = terms("post", post)
	if refusesPosts(err) && e.Update != "" {
		m.Log.Warn("probe: the Graph Store takes no POST; updates are sent instead", "graph_store", e.GraphStore, "error", err)
		found.Dead = true
		return found, nil
	}
	if errors.Is(err, sink.ErrUnconfirmed) && e.Update != "" {
		m.Log.Warn("probe: the store confirms what comes by the Graph Store Protocol, and does not write it; updates are sent instead")
		found.Dead = true
		return found, nil
	}
	if err != nil || len(found.Update) == 0 {
		return found, err
	}
	for _, name := range found.Update { // only forms changed by updates are written so
		i := slices.IndexFunc(iriForms, func(f iriForm) bool { return f.name == name })
		graph := iriForms[i].probes[0] + strings.ToLower(token) // another probe at the same time has its own
		key := "graph" + token + name
		line := rdfres.Triple{S: rdfres.NewIRI("urn:rsbridge:probe:" + token), P: property, O: rdfres.NewLiteral(key, "", "")}.AppendLine(nil)
		if err := post(graph, line); err != nil {
			if !refusal(err) {
				return found, err
			}
			found.Graphs = append(found.Graphs, name)
			continue
		}
		got, err := came()
		if err != nil {
			return found, err
		}
		at := got[key][0]
		if at != "" {
			drop = append(drop, at)
		}
		if at != graph {
			found.Graphs = append(found.Graphs, name)
		}
	}
	return found, nil
}
