package destination

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Names in the state graph of a mirror. The subject is the mark of a
// destination, made once; its properties are the checkpoint.
const (
	markPrefix = "urn:rsbridge:mirror:"
	propPrefix = "urn:rsbridge:terms#"
)

// checkpoint is what state and mirror both carry.
type checkpoint struct {
	Generation string
	Writer     string
	Phase      string
	Sequence   string
	Graph      string
	Name       string
	Source     string
	Time       string
}

func (c *checkpoint) pairs() [][2]string {
	return [][2]string{{"generation", c.Generation}, {"writer", c.Writer}, {"phase", c.Phase}, {"sequence", c.Sequence}, {"graph", c.Graph}, {"name", c.Name}, {"source", c.Source}, {"time", c.Time}}
}

func (c *checkpoint) set(name, value string) {
	switch name {
	case "generation":
		c.Generation = value
	case "writer":
		c.Writer = value
	case "phase":
		c.Phase = value
	case "sequence":
		c.Sequence = value
	case "graph":
		c.Graph = value
	case "name":
		c.Name = value
	case "source":
		c.Source = value
	case "time":
		c.Time = value
	}
}

// isOf tells whether it is of the last write that is recorded.
func (c *checkpoint) isOf(m *meta) bool {
	return c.Generation == fmt.Sprint(m.Generation) && c.Writer == m.Writer
}

// triples are the checkpoint as it stands in the mirror. All values are plain
// strings, which no store rewrites.
func (c *checkpoint) triples(mark string) []rdfres.Triple {
	var ts []rdfres.Triple
	for _, p := range c.pairs() {
		if p[1] != "" {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(mark), P: rdfres.NewIRI(propPrefix + p[0]), O: rdfres.NewLiteral(p[1], "", "")})
		}
	}
	return ts
}

// plan is what one batch writes.
type plan struct {
	deletes []statement
	inserts []statement
	drops   []string // per-entity graphs that go whole, with their ownership
	owns    []string // per-entity graphs that are ours from now on
	frees   []string // those that are not any more, and stay
	clears  []string // subjects of the state graph that go with all that is told of them
	apart   bool     // what comes is to the store the same as something that goes
}

func (p *plan) empty() bool { return len(p.deletes)+len(p.inserts)+len(p.drops)+len(p.clears) == 0 }

// mirror writes into the target store.
type mirror struct {
	client *sparql.Client
	caps   sparql.Capabilities
	iris   iriRewrites
	server string // how the store named itself in the last answer that was looked at
	lay    layout
	mark   string
	limit  int           // triples of one update request; adapts
	most   int           // that it may become
	passed int           // triples of an update that went well
	pace   int           // triples that it would have taken in compactTime, by the last upload; 0 unknown
	quick  time.Duration // an update that took less may be followed by a larger one
	cutAt  int64         // rows after which an answer was seen to end; 0 none
	log    *slog.Logger
	fault  func(point string) error // tests: called before and after a write
}

// What a store takes in one update is learned from what is written there: from
// the first of them twice as many each time, as long as that is quick.
const (
	sureUpdateTriples  = 1_000 // whatever goes wrong with these is not for their number
	firstUpdateTriples = 5_000
	mostUpdateTriples  = 20_000
	quickUpdate        = time.Second / 2
	maxUpdateBytes     = 8 << 20
)

func (m *mirror) setLimit() {
	m.limit, m.most, m.passed = firstUpdateTriples, mostUpdateTriples, sureUpdateTriples
	if n := m.caps.UpdateTriples; n > 0 { // an earlier version has tried it
		m.limit = min(n, 50_000)
		m.most, m.passed = m.limit, m.limit
	}
}

// grow makes updates larger after one of n triples was taken quickly, and never as
// large as one that was refused.
func (m *mirror) grow(n int, took time.Duration) {
	m.passed = max(m.passed, n)
	if took < m.quick && n >= m.limit/2 {
		m.limit = min(2*m.limit, max(m.most, m.limit))
	}
}

func (m *mirror) gspOnly() bool { return m.client.Endpoint().Update == "" }

// canBulk tells whether large inserts may go through the Graph Store Protocol.
func (m *mirror) canBulk() bool {
	return !m.lay.perEntity && m.client.Endpoint().GraphStore != "" && !m.iris.Dead
}

// postBatches bounds one Graph Store POST, by what a batch is there: a resource may
// have a million triples, which many stores do not take in the time that they are
// given for an answer.
const postBatches = 2

// bulk adds statements by Graph Store POST: additive, so it can be repeated. ready is
// what uploads has made of them ahead, nil if nothing.
func (m *mirror) bulk(ctx context.Context, sts []statement, ready []*sparql.Upload) error {
	if err := m.inject("before"); err != nil {
		return err
	}
	for part := range slices.Chunk(sts, postBatches*m.bulkTriples()) {
		if ready == nil {
			ready = m.uploads(part)
		}
		for _, u := range ready {
			if err := m.client.Post(ctx, u); err != nil {
				return err
			}
		}
		ready = nil
	}
	return m.inject("after")
}

// uploads are what is posted for some statements; nil for more than go at once.
func (m *mirror) uploads(sts []statement) (ups []*sparql.Upload) {
	if len(sts) > postBatches*m.bulkTriples() {
		return nil
	}
	for _, graph := range []string{m.lay.graph, stateGraph} {
		of := func(st statement) bool { return (st.graph == stateGraph) == (graph == stateGraph) }
		if slices.ContainsFunc(sts, of) {
			ups = append(ups, m.client.NewUpload(graph, func(yield func(rdfres.Triple) bool) {
				for i := range sts {
					if of(sts[i]) && !yield(sts[i].triple) {
						return
					}
				}
			}))
		}
	}
	return ups
}

func (m *mirror) inject(point string) error {
	if m.fault != nil {
		return m.fault(point)
	}
	return nil
}

// write carries out a plan and then sets the checkpoint: in the same request
// when everything fits into one, in the last one otherwise. Every request can be
// repeated. A request that the store refuses is halved until it is taken or only
// one triple is left.
func (m *mirror) write(ctx context.Context, p *plan, cp *checkpoint) error {
	if err := m.inject("before"); err != nil {
		return err
	}
	var err error
	switch {
	case m.gspOnly():
		err = m.writeGraphs(ctx, p, cp)
	case p.apart && !m.caps.Transactional: // in one request Virtuoso leaves what stood there
		err = m.writeApart(ctx, p, cp)
	default:
		err = m.writeUpdates(ctx, p, cp)
	}
	if errors.Is(err, errUnconfirmed) && len(p.deletes) > 0 && len(p.inserts) > 0 {
		err = m.writeApart(ctx, p, cp)
	}
	if err != nil {
		return err
	}
	return m.inject("after")
}

// writeApart writes a plan in two steps that are confirmed each: a store that
// makes of a literal that it is given the very form that is to be removed has
// done what it was told, and the next audit finds it rewritten.
func (m *mirror) writeApart(ctx context.Context, p *plan, cp *checkpoint) error {
	first := *p
	first.inserts = nil
	if err := m.writeUpdates(ctx, &first, nil); err != nil {
		return err
	}
	return m.writeUpdates(ctx, &plan{inserts: p.inserts}, cp)
}

type updateOp struct {
	kind byte // d, i
	st   *statement
}

func (m *mirror) writeUpdates(ctx context.Context, p *plan, cp *checkpoint) error {
	ops := make([]updateOp, 0, len(p.deletes)+len(p.inserts)+len(p.owns))
	for i := range p.deletes {
		ops = append(ops, updateOp{'d', &p.deletes[i]})
	}
	for i := range p.inserts {
		ops = append(ops, updateOp{'i', &p.inserts[i]})
	}
	for _, g := range p.owns {
		st := m.ownership(g)
		ops = append(ops, updateOp{'i', &st})
	}
	slices.SortStableFunc(ops, func(a, b updateOp) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind) // deletes first
		}
		if own := a.st.graph == stateGraph; own != (b.st.graph == stateGraph) { // a name without a graph, and never a graph without
			if own {
				return -1
			}
			return 1
		}
		return strings.Compare(a.st.graph, b.st.graph)
	})
	ops, err := m.asShown(ctx, ops)
	if err != nil {
		return err
	}
	var drops []string
	var posts []*statement
	var removes, free []string
	disown := func(g string) {
		if st := m.ownership(g); m.odd(&st) == "" {
			free = append(free, g)
		} else if m.canOwn(g) {
			removes = append(removes, m.oddDelete(&st))
		}
	}
	for _, g := range p.drops {
		disown(g)
		if changes(m.iris.Update, g) {
			if err := m.client.DeleteGraph(ctx, g); err != nil {
				return err
			}
			continue
		}
		drops = append(drops, "DROP SILENT GRAPH <"+g+"> ;\n")
	}
	for _, s := range p.clears {
		drops = append(drops, "DELETE WHERE { GRAPH <"+stateGraph+"> { <"+s+"> ?p ?o } } ;\n")
	}
	for _, g := range p.frees {
		disown(g)
	}
	if text := m.disownText(free); text != "" {
		drops = append(drops, text)
	}
	check := m.checkpointText(cp)
	if len(m.iris.Update) > 0 || slices.ContainsFunc(ops, func(op updateOp) bool { return op.kind == 'd' && (op.st.hasBlank() || m.byText(op.st)) }) {
		ops = slices.DeleteFunc(ops, func(op updateOp) bool {
			switch {
			case op.kind == 'd' && (op.st.hasBlank() || m.byText(op.st) || m.odd(op.st) != ""):
				removes = append(removes, m.oddDelete(op.st))
			case m.odd(op.st) != "":
				posts = append(posts, op.st)
			default:
				return false
			}
			return true
		})
	}
	slices.Sort(removes)
	for part := range slices.Chunk(slices.Compact(removes), 50) {
		if err := m.client.Update(ctx, strings.Join(part, " ;\n")); err != nil {
			return err
		}
	}
	separate := !m.caps.Transactional || len(posts) > 0 // data first, checkpoint last
	for m.iris.virtuoso && len(drops) > virtuosoOperations {
		if err := m.request(ctx, strings.Join(drops[:virtuosoOperations], ""), nil, ""); err != nil {
			return err
		}
		drops = drops[virtuosoOperations:]
	}
	for len(ops) > 0 || len(drops) > 0 {
		n, size, operations := 0, 0, len(drops)
		for n < len(ops) && n < m.limit && size < maxUpdateBytes {
			if m.alone(ops[n]) && (n == 0 || m.graphFor(ops[n].st) != m.graphFor(ops[n-1].st)) {
				if operations++; operations > virtuosoOperations {
					break
				}
			}
			t := ops[n].st.triple
			size += len(t.S) + len(t.P) + len(t.O)
			n++
		}
		tail := ""
		if n == len(ops) && !separate {
			tail = check
		}
		if err := m.request(ctx, strings.Join(drops, ""), ops[:n], tail); err != nil {
			return err
		}
		if tail != "" {
			check = ""
		}
		ops, drops = ops[n:], nil
	}
	if err := m.post(ctx, posts); err != nil {
		return err
	}
	if err := m.confirm(ctx, p); err != nil {
		return err
	}
	if check != "" {
		if err := m.client.Update(ctx, check); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

// request sends ops as one update, in halves where the store refuses it whole.
func (m *mirror) request(ctx context.Context, drops string, ops []updateOp, tail string) error {
	text := m.updateText(drops, ops, tail)
	began := time.Now()
	err := m.client.Update(ctx, text)
	if err == nil {
		m.grow(len(ops), time.Since(began))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if len(ops) <= 1 || !m.tooMuch(err, len(ops)) {
		if len(ops) == 1 && refusal(err) {
			return fmt.Errorf("%w: %s: %w", errRefused, shorten(strings.TrimSpace(string(ops[0].st.triple.AppendLine(nil)))), err)
		}
		return err
	}
	half := len(ops) / 2
	m.log.Info("mirror: update refused, trying halves", "triples", len(ops), "error", err)
	if err := m.request(ctx, drops, ops[:half], ""); err != nil {
		return err
	}
	if err := m.request(ctx, "", ops[half:], tail); err != nil {
		return err
	}
	m.limit = max(100, min(m.limit, half))
	m.most = m.limit
	return nil
}

// errRefused says that the store does not take a triple, whatever comes with it.
var errRefused = errors.New("the mirror refuses a triple")

// refusal tells an answer about the content of a request from a store that is
// down, busy or locked.
func refusal(err error) bool {
	var e *sparql.Error
	if !errors.As(err, &e) || e.Status == 0 {
		return false
	}
	switch e.Status {
	case 401, 403, 404, 405, 407, 408, 409, 423, 425, 429, 501, 502, 503, 504, 507:
		return false
	}
	return e.Status >= 400
}

// tooMuch tells whether an update of n triples may do in halves: where the store has
// refused it, and where it came to nothing and is larger than all that went well.
func (m *mirror) tooMuch(err error, n int) bool {
	var e *sparql.Error
	if n > m.passed && errors.As(err, &e) {
		switch e.Status {
		case 0:
			return sparql.IsStalled(err) // not where nobody listens
		case 408, 502, 503, 504:
			return true
		}
	}
	return refusal(err)
}

func (m *mirror) updateText(drops string, ops []updateOp, tail string) string {
	var b bytes.Buffer
	b.WriteString(drops)
	text, ops := m.anyCase(ops)
	b.WriteString(text)
	var line []byte
	for i := 0; i < len(ops); {
		kind := ops[i].kind
		if kind == 'd' {
			b.WriteString("DELETE DATA { ")
		} else {
			b.WriteString("INSERT DATA { ")
		}
		for i < len(ops) && ops[i].kind == kind {
			graph := m.graphFor(ops[i].st)
			if graph != "" {
				b.WriteString("GRAPH <" + graph + "> {\n")
			} else {
				b.WriteByte('\n')
			}
			for ; i < len(ops) && ops[i].kind == kind && m.graphFor(ops[i].st) == graph; i++ {
				st := ops[i].st
				line = appendSPARQL(line[:0], st.triple)
				b.Write(line)
				if kind == 'd' {
					for _, t := range m.lay.otherForms(st) {
						line = appendSPARQL(line[:0], t)
						b.Write(line)
					}
				}
			}
			if graph != "" {
				b.WriteString("} ")
			}
			if m.alone(ops[i-1]) {
				break
			}
		}
		b.WriteString("} ;\n")
	}
	b.WriteString(tail)
	return strings.TrimSuffix(strings.TrimRight(b.String(), "\n "), ";")
}

// anyCase is an update that removes what DELETE DATA does not find in an RDF4J, by
// comparing strings, and the operations that are left: it takes language tags for the
// same in any case and holds them apart, so that it looks for "a"@en-US by what it
// has met of "a"@en-us elsewhere.
func (m *mirror) anyCase(ops []updateOp) (string, []updateOp) {
	if !m.client.LikeRDF4J() || !slices.Contains(m.lay.nf.Rules, "language-case") {
		return "", ops
	}
	var b []byte
	rest := make([]updateOp, 0, len(ops))
	for _, op := range ops {
		graph, object := m.graphFor(op.st), string(op.st.triple.O)
		end := strings.LastIndexByte(object, '"') + 1
		lang, tagged := strings.CutPrefix(object[end:], "@")
		if op.kind != 'd' || !tagged || end == 0 || graph == "" { // without a graph all would be meant
			rest = append(rest, op)
			continue
		}
		b = fmt.Appendf(b, "(<%s> %s %s ", graph, op.st.triple.S, op.st.triple.P)
		b = fmt.Appendf(appendObject(b, object[:end]), " \"%s\")\n", strings.ToLower(lang))
	}
	if len(b) == 0 {
		return "", ops
	}
	return fmt.Sprintf("DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { VALUES (?g ?s ?p ?v ?l) {\n%s} GRAPH ?g { ?s ?p ?o } FILTER(STR(?o) = ?v && LCASE(LANG(?o)) = ?l) } ;\n", b), rest
}

func (m *mirror) graphFor(st *statement) string {
	if m.lay.perEntity || st.graph == stateGraph {
		return st.graph
	}
	return m.lay.graph
}

func (m *mirror) checkpointText(cp *checkpoint) string {
	if cp == nil {
		return ""
	}
	var b []byte
	b = fmt.Appendf(b, "DELETE WHERE { GRAPH <%s> { <%s> ?p ?o } } ;\nINSERT DATA { GRAPH <%s> {\n", stateGraph, m.mark, stateGraph)
	for _, t := range cp.triples(m.mark) {
		b = appendSPARQL(b, t)
	}
	return string(append(b, "} }"...))
}

// writeGraphs is write for a store that has the Graph Store Protocol only, with
// a graph for each entity. A single graph is put whole at the end of a run.
func (m *mirror) writeGraphs(ctx context.Context, p *plan, cp *checkpoint) error {
	for _, g := range p.drops {
		if err := m.client.DeleteGraph(ctx, g); err != nil {
			return err
		}
	}
	return m.putCheckpoint(ctx, cp)
}

func (m *mirror) putCheckpoint(ctx context.Context, cp *checkpoint) error {
	if cp == nil {
		return nil
	}
	text := appendLines(nil, cp.triples(m.mark))
	return m.client.PutGraph(ctx, stateGraph+":"+strings.TrimPrefix(m.mark, markPrefix), rdfres.NTriples, sparql.Body(text))
}

// readCheckpoint reads what the mirror says of itself; nil when it says nothing.
func (m *mirror) readCheckpoint(ctx context.Context) (*checkpoint, error) {
	cp, found := &checkpoint{}, false
	take := func(p, o rdfres.Term) {
		if name, ok := strings.CutPrefix(p.IRI(), propPrefix); ok && o.Kind() == rdfres.KindLiteral {
			lex, _, _ := o.Literal()
			cp.set(name, lex)
			found = true
		}
	}
	if m.gspOnly() {
		for t, err := range m.client.GetGraph(ctx, stateGraph+":"+strings.TrimPrefix(m.mark, markPrefix)) {
			if err != nil {
				return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
			}
			take(t.P, t.O)
		}
	} else {
		s, err := m.client.Select(ctx, fmt.Sprintf("SELECT ?p ?o WHERE { GRAPH <%s> { <%s> ?p ?o } }", stateGraph, m.mark))
		if err != nil {
			return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
		}
		m.server = serverOf(s.Header)
		for row, err := range s.Rows {
			if err != nil {
				return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
			}
			if len(row) == 2 {
				take(row[0], row[1])
			}
		}
	}
	if !found {
		return nil, nil
	}
	return cp, nil
}

// otherMarks are the checkpoints of other destinations over the same graph, or in the same
// file.
func (m *mirror) otherMarks(ctx context.Context, graph string) (map[string]*checkpoint, error) {
	all := map[string]*checkpoint{}
	take := func(mark, p, o rdfres.Term) {
		if !strings.HasPrefix(mark.IRI(), markPrefix) || mark.IRI() == m.mark {
			return
		}
		c := all[mark.IRI()]
		if c == nil {
			c = &checkpoint{}
			all[mark.IRI()] = c
		}
		if lex, _, _ := o.Literal(); lex != "" {
			c.set(strings.TrimPrefix(p.IRI(), propPrefix), lex)
		}
	}
	if m.gspOnly() { // of files all are in one graph too, a store has each in one of its own, and no list
		for t, err := range m.client.GetGraph(ctx, stateGraph) {
			if err != nil {
				return nil, err
			}
			take(t.S, t.P, t.O)
		}
		return all, nil
	}
	g := rdfres.NewLiteral(graph, "", "")
	s, err := m.client.Select(ctx, fmt.Sprintf("SELECT ?m ?p ?o WHERE { GRAPH <%s> { ?m <%sgraph> %s . ?m ?p ?o } }", stateGraph, propPrefix, g))
	if err != nil {
		return nil, err
	}
	for row, err := range s.Rows {
		if err != nil {
			return nil, err
		}
		if len(row) == 3 {
			take(row[0], row[1], row[2])
		}
	}
	return all, nil
}

// virtuosoOwn are the graphs that a new Virtuoso holds.
var virtuosoOwn = []string{"http://www.openlinksw.com/", "http://localuriqaserver/", "http://localhost:8890/", "http://www.w3.org/ns/ldp#", "http://www.w3.org/2002/07/owl#"}

// isEmpty asks whether the graph (per-entity: any graph that the template could
// name, and that is neither one of besides nor rsbridge's nor the store's own) holds
// something.
func (m *mirror) isEmpty(ctx context.Context, besides iter.Seq[string]) (bool, error) {
	if m.lay.perEntity {
		if m.client.Endpoint().Query == "" {
			return true, nil
		}
		filter := "!" + sparql.OwnGraph("?g")
		before, after, _ := strings.Cut(m.lay.template, "{entity}")
		if before != "" {
			filter += " && STRSTARTS(STR(?g), " + sparql.EscapeString(before) + ")"
		}
		if after != "" {
			filter += " && STRENDS(STR(?g), " + sparql.EscapeString(after) + ")"
		}
		for g := range besides {
			filter += " && ?g != <" + g + ">"
		}
		if before+after == "" && (m.caps.Product == "Virtuoso" || strings.HasPrefix(m.server, "Virtuoso")) { // probed or not
			for _, own := range virtuosoOwn {
				filter += " && !STRSTARTS(STR(?g), " + sparql.EscapeString(own) + ")"
			}
		}
		some, err := m.client.Ask(ctx, "ASK { GRAPH ?g { ?s ?p ?o } FILTER("+filter+") }")
		return !some, err
	}
	if m.client.Endpoint().Query != "" {
		q := "ASK { ?s ?p ?o }"
		if m.lay.graph != "" {
			q = "ASK { GRAPH <" + m.lay.graph + "> { ?s ?p ?o } }"
		}
		some, err := m.client.Ask(ctx, q)
		return !some, err
	}
	for _, err := range m.client.GetGraph(ctx, m.lay.graph) {
		return false, err
	}
	return true, nil
}
