package sparqlsink

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Mirror writes into the target store.
type Mirror struct {
	*sink.Place
	Client  *sparql.Client
	Caps    sparql.Capabilities
	IRIs    Rewrites
	dialect dialect
	traits  traits                   // of the dialect
	server  string                   // the store's own name in its last answer
	limit   int                      // triples of one update request; adapts
	most    int                      // bound of limit
	passed  int                      // triples of a successful update
	pace    int                      // triples of longTime, at the speed of the last upload; 0 unknown
	Quick   time.Duration            // after a faster update a larger one may follow
	Fault   func(point string) error // tests: called before and after a write
	reader  *reader
}

// New is a mirror in a store. Nothing is asked of it yet.
func New(client *sparql.Client, place *sink.Place) *Mirror {
	m := &Mirror{Place: place, Client: client, Quick: quickUpdate}
	m.reader = &reader{m: m}
	m.speak(dialectOf(client, ""))
	m.SetLimit()
	return m
}

// The size of updates is learned by writing: each is twice as large as the one before, as
// long as they are quick.
const (
	sureUpdateTriples  = 1_000 // whatever goes wrong with these is not for their number
	firstUpdateTriples = 5_000
	mostUpdateTriples  = 20_000
	quickUpdate        = time.Second / 2
	maxUpdateBytes     = 8 << 20
)

// Limit is how many statements a batch should have.
func (m *Mirror) Limit() int { return m.limit }

// Pace is how many triples of an upload the store took lately in longTime; 0 unknown.
func (m *Mirror) Pace() int { return m.pace }

// SetLimit goes back to the known size of the store's updates.
func (m *Mirror) SetLimit() {
	m.limit, m.most, m.passed = firstUpdateTriples, mostUpdateTriples, sureUpdateTriples
	if n := m.Caps.UpdateTriples; n > 0 { // an earlier version has tried it
		m.limit = min(n, 50_000)
		m.most, m.passed = m.limit, m.limit
	}
}

// grow makes updates larger after one of n triples was taken quickly, and never as
// large as a refused one.
func (m *Mirror) grow(n int, took time.Duration) {
	m.passed = max(m.passed, n)
	if took < m.Quick && n >= m.limit/2 {
		m.limit = min(2*m.limit, max(m.most, m.limit))
	}
}

// PutsGraphs is for stores without updates.
func (m *Mirror) PutsGraphs() bool { return false }

// updates tells of a store with updates.
func (m *Mirror) updates() bool { return m.Client.Endpoint().Update != "" }

// Refused tells an answer about the content of a request from a store out of order.
func (m *Mirror) Refused(err error) bool { return refusal(err) }

// Restore writes graphs without a checkpoint.
func (m *Mirror) Restore(ctx context.Context, b *sink.Batch) error {
	return m.writeUpdates(ctx, b, nil)
}

// CanBulk tells whether large inserts may go through the Graph Store Protocol.
func (m *Mirror) CanBulk() bool {
	return !m.Layout.PerEntity && m.Client.Endpoint().GraphStore != "" && !m.IRIs.Dead
}

// postBatches bounds one Graph Store POST, in batches: a resource may have a million
// triples, too many for one answer of many stores.
const postBatches = 2

// Bulk adds statements by Graph Store POST: additive, so it can be repeated. ready is
// the prepared uploads, nil if nothing.
func (m *Mirror) Bulk(ctx context.Context, sts []sink.Statement, prepared any) error {
	ready, _ := prepared.([]*sparql.Upload)
	if err := m.inject("before"); err != nil {
		return err
	}
	for part := range slices.Chunk(sts, postBatches*m.BulkTriples()) {
		if ready == nil {
			ready = m.uploads(part)
		}
		for _, u := range ready {
			if err := m.Client.Post(ctx, u); err != nil {
				return err
			}
		}
		ready = nil
	}
	return m.inject("after")
}

// Uploads prepares statements for Bulk, nil for too many.
func (m *Mirror) Uploads(sts []sink.Statement) any {
	if ups := m.uploads(sts); ups != nil {
		return ups
	}
	return nil
}

func (m *Mirror) uploads(sts []sink.Statement) (ups []*sparql.Upload) {
	if len(sts) > postBatches*m.BulkTriples() {
		return nil
	}
	for _, graph := range []string{m.Layout.Graph, sink.StateGraph} {
		of := func(st sink.Statement) bool { return (st.Graph == sink.StateGraph) == (graph == sink.StateGraph) }
		if slices.ContainsFunc(sts, of) {
			ups = append(ups, m.Client.NewUpload(graph, func(yield func(rdfres.Triple) bool) {
				for i := range sts {
					if of(sts[i]) && !yield(sts[i].Triple) {
						return
					}
				}
			}))
		}
	}
	return ups
}

func (m *Mirror) inject(point string) error {
	if m.Fault != nil {
		return m.Fault(point)
	}
	return nil
}

// Apply carries out a plan and then sets the checkpoint: in the same request
// when everything fits into one, in the last one otherwise. Every request can be
// repeated. A refused request is halved until it is taken or only
// one triple is left.
func (m *Mirror) Apply(ctx context.Context, p *sink.Batch, cp *sink.Checkpoint) error {
	if p.Nothing() {
		return m.writeCheckpoint(ctx, cp)
	}
	if err := m.inject("before"); err != nil {
		return err
	}
	var err error
	switch {
	case p.Apart && !m.Caps.Transactional: // in one request the former triple may stay
		err = m.writeApart(ctx, p, cp)
	default:
		err = m.writeUpdates(ctx, p, cp)
	}
	if errors.Is(err, sink.ErrUnconfirmed) && len(p.Remove) > 0 && len(p.Add) > 0 {
		err = m.writeApart(ctx, p, cp)
	}
	if err != nil {
		return err
	}
	return m.inject("after")
}

// writeApart writes a plan in two steps, each confirmed: a store may make the very form to
// be removed of an added literal. The next audit finds it rewritten.
func (m *Mirror) writeApart(ctx context.Context, p *sink.Batch, cp *sink.Checkpoint) error {
	first := *p
	first.Add = nil
	if err := m.writeUpdates(ctx, &first, nil); err != nil {
		return err
	}
	return m.writeUpdates(ctx, &sink.Batch{Add: p.Add}, cp)
}

type updateOp struct {
	kind byte // d, i
	st   *sink.Statement
}

func (m *Mirror) writeUpdates(ctx context.Context, p *sink.Batch, cp *sink.Checkpoint) error {
	ops := make([]updateOp, 0, len(p.Remove)+len(p.Add)+len(p.OwnGraphs))
	for i := range p.Remove {
		ops = append(ops, updateOp{'d', &p.Remove[i]})
	}
	for i := range p.Add {
		ops = append(ops, updateOp{'i', &p.Add[i]})
	}
	for _, g := range p.OwnGraphs {
		st := m.ownership(g)
		ops = append(ops, updateOp{'i', &st})
	}
	slices.SortStableFunc(ops, func(a, b updateOp) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind) // deletes first
		}
		if own := a.st.Graph == sink.StateGraph; own != (b.st.Graph == sink.StateGraph) { // a name without a graph, and never a graph without
			if own {
				return -1
			}
			return 1
		}
		return strings.Compare(a.st.Graph, b.st.Graph)
	})
	ops, err := m.asShown(ctx, ops)
	if err != nil {
		return err
	}
	var drops []string
	var posts []*sink.Statement
	var removes, free []string
	disown := func(g string) {
		if st := m.ownership(g); m.odd(&st) == "" {
			free = append(free, g)
		} else if m.CanOwn(g) {
			removes = append(removes, m.oddDelete(&st))
		}
	}
	for _, g := range p.DropGraphs {
		disown(g)
		if changes(m.IRIs.Update, g) {
			if err := m.Client.DeleteGraph(ctx, g); err != nil {
				return err
			}
			continue
		}
		drops = append(drops, "DROP SILENT GRAPH <"+g+"> ;\n")
	}
	for _, s := range p.ClearSubjects {
		drops = append(drops, "DELETE WHERE { GRAPH <"+sink.StateGraph+"> { <"+s+"> ?p ?o } } ;\n")
	}
	for _, g := range p.FreeGraphs {
		disown(g)
	}
	if text := m.disownText(free); text != "" {
		drops = append(drops, text)
	}
	check := m.checkpointText(cp)
	if len(m.IRIs.Update) > 0 || slices.ContainsFunc(ops, func(op updateOp) bool { return op.kind == 'd' && (op.st.HasBlank() || m.traits.byText(op.st)) }) {
		ops = slices.DeleteFunc(ops, func(op updateOp) bool {
			switch {
			case op.kind == 'd' && (op.st.HasBlank() || m.traits.byText(op.st) || m.odd(op.st) != ""):
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
		if err := m.Client.Update(ctx, strings.Join(part, " ;\n")); err != nil {
			return err
		}
	}
	separate := !m.Caps.Transactional || len(posts) > 0 // data first, checkpoint last
	most := cmp.Or(m.traits.operations, math.MaxInt)
	for len(drops) > most {
		if err := m.request(ctx, strings.Join(drops[:most], ""), nil, ""); err != nil {
			return err
		}
		drops = drops[most:]
	}
	for len(ops) > 0 || len(drops) > 0 {
		n, size, operations := 0, 0, len(drops)
		for n < len(ops) && n < m.limit && size < maxUpdateBytes {
			if m.traits.alone(ops[n]) && (n == 0 || m.graphFor(ops[n].st) != m.graphFor(ops[n-1].st)) {
				if operations++; operations > most {
					break
				}
			}
			t := ops[n].st.Triple
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
		if err := m.Client.Update(ctx, check); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

// request sends ops as one update, in halves if the store refuses it whole.
func (m *Mirror) request(ctx context.Context, drops string, ops []updateOp, tail string) error {
	text := m.updateText(drops, ops, tail)
	began := time.Now()
	err := m.Client.Update(ctx, text)
	if err == nil {
		m.grow(len(ops), time.Since(began))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if len(ops) <= 1 || !m.tooMuch(err, len(ops)) {
		if len(ops) == 1 && refusal(err) {
			return fmt.Errorf("%w: %s: %w", sink.ErrRefused, clip.Middle(strings.TrimSpace(string(ops[0].st.Triple.AppendLine(nil)))), err)
		}
		return err
	}
	half := len(ops) / 2
	m.Log.Info("mirror: update refused, trying halves", "triples", len(ops), "error", err)
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

// refusal tells an answer about the content of a request from a store
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

// tooMuch tells whether an update of n triples may do in halves: the store has refused it,
// or it failed and is larger than all successful ones.
func (m *Mirror) tooMuch(err error, n int) bool {
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

func (m *Mirror) updateText(drops string, ops []updateOp, tail string) string {
	var b bytes.Buffer
	b.WriteString(drops)
	text, ops := m.dialect.removal(m, ops)
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
				line = appendSPARQL(line[:0], st.Triple)
				b.Write(line)
				if kind == 'd' {
					for _, t := range otherForms(&m.Layout, st) {
						line = appendSPARQL(line[:0], t)
						b.Write(line)
					}
				}
			}
			if graph != "" {
				b.WriteString("} ")
			}
			if m.traits.alone(ops[i-1]) {
				break
			}
		}
		b.WriteString("} ;\n")
	}
	b.WriteString(tail)
	return strings.TrimSuffix(strings.TrimRight(b.String(), "\n "), ";")
}

func (m *Mirror) graphFor(st *sink.Statement) string {
	if m.Layout.PerEntity || st.Graph == sink.StateGraph {
		return st.Graph
	}
	return m.Layout.Graph
}

func (m *Mirror) checkpointText(cp *sink.Checkpoint) string {
	if cp == nil {
		return ""
	}
	var b []byte
	b = fmt.Appendf(b, "DELETE WHERE { GRAPH <%s> { <%s> ?p ?o } } ;\nINSERT DATA { GRAPH <%s> {\n", sink.StateGraph, m.Mark, sink.StateGraph)
	for _, t := range cp.Triples(m.Mark) {
		b = appendSPARQL(b, t)
	}
	return string(append(b, "} }"...))
}

// Checkpoint reads the mirror's own checkpoint, nil for none.
func (m *Mirror) Checkpoint(ctx context.Context) (*sink.Checkpoint, error) {
	s, err := m.Client.Select(ctx, fmt.Sprintf("SELECT ?p ?o WHERE { GRAPH <%s> { <%s> ?p ?o } }", sink.StateGraph, m.Mark))
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
	}
	if m.server = s.Header.Get("Server"); m.Caps.Product == "" {
		m.speak(dialectOf(m.Client, m.server))
	}
	var all checkpoints
	for row, err := range s.Rows {
		if err != nil {
			return nil, fmt.Errorf("read the checkpoint of the mirror: %w", err)
		}
		if len(row) == 2 {
			all.add(rdfres.NewIRI(m.Mark), row[0], row[1])
		}
	}
	return all[m.Mark], nil
}

// checkpoints are some by mark.
type checkpoints map[string]*sink.Checkpoint

func (all *checkpoints) add(mark, p, o rdfres.Term) {
	name, ok := strings.CutPrefix(p.IRI(), sink.PropPrefix)
	if !ok || o.Kind() != rdfres.KindLiteral || !strings.HasPrefix(mark.IRI(), sink.MarkPrefix) {
		return
	}
	if *all == nil {
		*all = checkpoints{}
	}
	c := (*all)[mark.IRI()]
	if c == nil {
		c = &sink.Checkpoint{}
		(*all)[mark.IRI()] = c
	}
	lexical, _, _ := o.Literal()
	c.Set(name, lexical)
}

// Others are the checkpoints of other destinations over the same graph.
func (m *Mirror) Others(ctx context.Context, graph string) (map[string]*sink.Checkpoint, error) {
	s, err := m.Client.Select(ctx, fmt.Sprintf("SELECT ?m ?p ?o WHERE { GRAPH <%s> { ?m <%sgraph> %s . ?m ?p ?o } }", sink.StateGraph, sink.PropPrefix, rdfres.NewLiteral(graph, "", "")))
	if err != nil {
		return nil, err
	}
	var all checkpoints
	for row, err := range s.Rows {
		if err != nil {
			return nil, err
		}
		if len(row) == 3 {
			all.add(row[0], row[1], row[2])
		}
	}
	delete(all, m.Mark)
	return all, nil
}

// IsEmpty asks for anything in the graph. Per-entity it asks for any graph of the template's
// form, without besides, rsbridge's own and the store's own.
func (m *Mirror) IsEmpty(ctx context.Context, besides iter.Seq[string]) (bool, error) {
	if m.Layout.PerEntity {
		if m.Client.Endpoint().Query == "" {
			return true, nil
		}
		filter := "!" + sparql.OwnGraph("?g")
		before, after, _ := strings.Cut(m.Layout.Template, "{entity}")
		if before != "" {
			filter += " && STRSTARTS(STR(?g), " + sparql.EscapeString(before) + ")"
		}
		if after != "" {
			filter += " && STRENDS(STR(?g), " + sparql.EscapeString(after) + ")"
		}
		for g := range besides {
			filter += " && ?g != <" + g + ">"
		}
		if before+after == "" {
			for _, own := range m.traits.ownGraphs {
				filter += " && STR(?g) != " + sparql.EscapeString(own)
			}
		}
		some, err := m.Client.Ask(ctx, "ASK { GRAPH ?g { ?s ?p ?o } FILTER("+filter+") }")
		return !some, err
	}
	if m.Client.Endpoint().Query != "" {
		q := "ASK { ?s ?p ?o }"
		if m.Layout.Graph != "" {
			q = "ASK { GRAPH <" + m.Layout.Graph + "> { ?s ?p ?o } }"
		}
		some, err := m.Client.Ask(ctx, q)
		return !some, err
	}
	for _, err := range m.Client.GetGraph(ctx, m.Layout.Graph) {
		return false, err
	}
	return true, nil
}

// otherForms are further forms of a statement in the store: after a backup in N-Quads was
// loaded, it has the shown form instead of the written one. TDB2 shows the decimal 1 as 1.0
// and 7.50 as 7.5, and finds neither by the other, nor by a variable.
func otherForms(l *sink.Layout, st *sink.Statement) (out []rdfres.Triple) {
	n := l.NormalForm.Triple(st.Triple)
	if st.Rewritten {
		out = append(out, n)
	}
	lexical, ok := strings.CutSuffix(string(n.O), `"^^<http://www.w3.org/2001/XMLSchema#decimal>`)
	if !ok || !slices.Contains(l.NormalForm.Rules, "decimal-47bit") {
		return out
	}
	value, zeros := n.O, 0
	if lexical = lexical[1:]; !strings.Contains(lexical, ".") {
		lexical, zeros = lexical+".", 1
	}
	if st.Shown {
		zeros = 15
	}
	for range zeros {
		lexical += "0"
		if n.O = rdfres.NewLiteral(lexical, "", "http://www.w3.org/2001/XMLSchema#decimal"); l.NormalForm.Term(n.O) != value {
			break // beyond 47 bits it is another literal
		}
		out = append(out, n)
	}
	return out
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
