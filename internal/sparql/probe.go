package sparql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// sampleSize is one more than the usual row limit of stores.
const sampleSize = 10_001

// stepTime bounds each step of a probe, writeTime the first write: no mirror can do without it, and the store
// may be busy.
const (
	stepTime  = 10 * time.Second
	writeTime = time.Minute
)

// graphStoreTime is the longest wait for the first triples of a Graph Store, if there is another
// way.
const graphStoreTime = 2 * time.Second

// prober is one run of Probe.
type prober struct {
	c       *Client
	caps    Capabilities
	pattern string // the triples to read
	graph   string // the one graph to read, "" the default graph
	single  bool   // it is one graph
	brief   bool   // leave out readings known to be slower, and findings for people
	speed   bool   // measure writing

	size      int64 // of the sample
	uncounted bool  // it is not known how many triples the sample has
	broken    bool  // a way of reading did not give it whole
}

// Probe finds out the abilities of the store. It reads at most some ten thousand triples several
// times. With ProbeOptions.Write it writes into a graph urn:rsbridge:probe:TIME:RANDOM. It removes
// this graph, and those of killed probes. An error means that not even a simple query was answered;
// any other failure is a finding.
func (c *Client) Probe(ctx context.Context, o ProbeOptions) (Capabilities, error) {
	p := &prober{c: c, speed: o.Speed, brief: o.Brief, size: sampleSize}
	if err := p.scope(o.Graphs); err != nil {
		return p.caps, err
	}
	if err := p.greet(ctx); err != nil {
		return p.caps, fmt.Errorf("probe: %w", err)
	}
	quick := context.WithValue(ctx, onceKey{}, true)
	if !p.brief || p.graph == "" { // of one named graph nobody needs to know
		p.step(quick, "union default graph", p.unionDefault)
	}
	if p.uncounted = p.brief && p.table(); !p.uncounted { // else the sample is read first: a full one needs no count
		p.step(quick, "row limit", p.rowLimit)
	}
	p.readings(quick)
	for len(p.caps.Readings) == 0 && p.broken && p.size > 100 { // long answers break off: a reading in parts needs none
		p.caps.BreaksOff = min(p.size, max(p.caps.Sample, 1))
		p.size, p.broken = p.size/10, false
		p.step(quick, "row limit", p.rowLimit)
		p.readings(quick)
	}
	if (o.Write || o.Speed) && !o.Brief { // for people: a scan does not rely on labels
		p.step(quick, "labels", func(ctx context.Context) error {
			// A store without blank nodes goes through all of its triples here.
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			return p.stableLabels(ctx)
		})
	}
	p.step(quick, "values", p.valuesLimit)
	write := o.Write && c.conn.endpoint.Update != ""
	if write || !p.brief {
		p.step(quick, "scratch graphs", func(ctx context.Context) error { return p.leftovers(ctx, write) })
	}
	if write {
		p.write(ctx)
	}
	p.caps.Sample = max(0, p.caps.Sample) // -1: not counted
	return p.caps, context.Cause(ctx)
}

// step runs one part of the probe within its time; a failure is only logged.
func (p *prober) step(ctx context.Context, what string, f func(context.Context) error) {
	p.within(ctx, stepTime, what, f)
}

func (p *prober) within(ctx context.Context, bound time.Duration, what string, f func(context.Context) error) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if err := f(ctx); err != nil {
		p.c.conn.log.Info("probe: a step did not work", "step", what, "err", err)
		if momentary(err) && !slices.Contains(p.caps.Unanswered, what) {
			p.caps.Unanswered = append(p.caps.Unanswered, what)
		}
	}
}

func (p *prober) scope(graphs []string) error {
	p.pattern, p.single = "?s ?p ?o", true
	switch {
	case len(graphs) == 1 && graphs[0] != "*" && graphs[0] != "":
		g, err := EscapeIRI(graphs[0])
		if err != nil {
			return err
		}
		p.graph, p.pattern = graphs[0], "GRAPH "+g+" { ?s ?p ?o }"
	case len(graphs) > 0:
		var list []string
		for _, graph := range graphs {
			if graph == "*" {
				list = nil
				break
			}
			g, err := EscapeIRI(graph)
			if err != nil {
				return err
			}
			list = append(list, g)
		}
		p.single, p.pattern = false, "GRAPH ?g { ?s ?p ?o } FILTER(!"+OwnGraph("?g")+")"
		if list != nil {
			p.pattern = "VALUES ?g { " + strings.Join(list, " ") + " } GRAPH ?g { ?s ?p ?o }"
		}
	}
	return nil
}

var versionPattern = regexp.MustCompile(`^[^0-9]*?([0-9]+(?:\.[0-9]+)*[-0-9A-Za-z.]*)`)

// greet sends the first query: does the store answer, and which product is it? Planning a query of
// everything takes RDF4J 0.1 s for a million triples.
func (p *prober) greet(ctx context.Context) error {
	pattern := p.pattern
	if p.c.LikeRDF4J() {
		pattern = "VALUES ?s { 1 }"
	}
	header, err := p.passes(ctx, "sample", map[string]any{"Pattern": pattern, "Limit": 1})
	if err == nil {
		p.caps.Product, p.caps.Version = product(header)
	}
	return err
}

// passes asks one of the probes and reads its answer to the end.
func (p *prober) passes(ctx context.Context, name string, data map[string]any) (http.Header, error) {
	q, err := probes.Prepare(name, data)
	if err != nil {
		return nil, err
	}
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return nil, err
	}
	for _, err := range sol.Rows {
		if err != nil {
			return nil, err
		}
	}
	return sol.Header, nil
}

// Who asks the store one small question and reads its name and version from the answer.
func (c *Client) Who(ctx context.Context) (product, version string, err error) {
	p := &prober{c: c, pattern: "?s ?p ?o"}
	err = p.greet(context.WithValue(ctx, onceKey{}, true))
	return p.caps.Product, p.caps.Version, err
}

// product reads the product's name from the headers.
func product(h http.Header) (name, version string) {
	server := h.Get("Server")
	if h.Get("Fuseki-Request-Id") != "" && !strings.Contains(server, "Fuseki") {
		server = "Fuseki " + server
	}
	if m := versionPattern.FindStringSubmatch(server); m != nil {
		version = m[1]
	}
	// GraphDB names RDF4J too, since it is made of it.
	for _, known := range []string{"Virtuoso", "Fuseki", "Oxigraph", "GraphDB", "RDF4J", "Blazegraph", "Stardog", "QLever", "rsbridge"} {
		if strings.Contains(strings.ToLower(server), strings.ToLower(known)) {
			return known, version
		}
	}
	name, _, _ = strings.Cut(server, "/")
	name, _, _ = strings.Cut(name, " ")
	return name, version
}

// ShowsUnion tells whether the default graph shows the triples of named graphs too, by a sample of
// the present content. The answer for a store without named graphs is no. product is the store's
// name.
func (c *Client) ShowsUnion(ctx context.Context, product string) (bool, error) {
	p := &prober{c: c}
	p.caps.Product = product
	err := p.unionDefault(ctx)
	return p.caps.UnionDefault, err
}

// NamedGraphs are at most so many of the named graphs with content, none of rsbridge's own.
func (c *Client) NamedGraphs(ctx context.Context, most int) (graphs []string, err error) {
	graphs, err = c.iris(ctx, fmt.Sprintf("SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } FILTER(isIRI(?g) && !%s) } LIMIT %d", OwnGraph("?g"), most))
	if err != nil {
		return nil, fmt.Errorf("list the named graphs: %w", err)
	}
	slices.Sort(graphs)
	return graphs, nil
}

// EmptyGraphs are the empty ones of some named graphs.
func (c *Client) EmptyGraphs(ctx context.Context, graphs []string) (empty []string, err error) {
	for part := range slices.Chunk(graphs, 50) {
		values := ""
		for _, graph := range part {
			g, err := EscapeIRI(graph)
			if err != nil {
				return nil, err
			}
			values += g + " "
		}
		some, err := c.iris(ctx, "SELECT ?g WHERE { VALUES ?g { "+values+"} FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } } }")
		if err != nil {
			return nil, fmt.Errorf("look which graphs hold something: %w", err)
		}
		empty = append(empty, some...)
	}
	return empty, nil
}

func (c *Client) iris(ctx context.Context, query string) (out []string, err error) {
	sol, err := c.SelectAs(ctx, query, ReadSelectJSON)
	if err != nil {
		return nil, err
	}
	for row, err := range sol.Rows {
		if err != nil {
			return nil, err
		}
		out = append(out, row[0].IRI())
	}
	return out, nil
}

// KnownUnion tells of products with a fixed answer whether their default graph shows the named
// graphs (unless the address names another, found only by a look).
func KnownUnion(product string) (union, known bool) {
	switch product {
	case "RDF4J", "GraphDB", "Virtuoso":
		return true, true
	case "rsbridge":
		return false, true
	}
	return false, false
}

// unionDefault looks whether triples of named graphs stand in the default graph too. A few may do
// so by chance: all of a sample must. A named graph may also be a copy of the default graph, like a
// mirror in the same store. The bookkeeping of rsbridge tells this apart, since nobody copies it.
func (p *prober) unionDefault(ctx context.Context) error {
	always, known := KnownUnion(p.caps.Product)
	if known && !always {
		return nil
	}
	parts, rows, err := p.someNamed(ctx, "", false)
	if err == nil && len(parts) == 0 && rows == namedSample { // Oxigraph gives blank nodes first
		parts, _, err = p.someNamed(ctx, "FILTER(isIRI(?s) && !isBlank(?o)) ", false)
	}
	if err == nil && len(parts) == 0 && rows > 0 { // all of them have blank nodes
		parts, _, err = p.someNamed(ctx, "", true)
		for i := 0; err == nil && i < min(len(parts), 5) && (i == 0 || p.caps.UnionDefault); i++ { // one by one: nothing joins them
			p.caps.UnionDefault, err = p.inDefault(ctx, parts[i:i+1])
		}
	} else if err == nil {
		p.caps.UnionDefault, err = p.inDefault(ctx, parts)
	}
	if err != nil || known || !p.caps.UnionDefault {
		return err
	}
	if parts, _, err = p.someNamed(ctx, "FILTER("+OwnGraph("?g")+") ", false); err == nil && len(parts) > 0 {
		p.caps.UnionDefault, err = p.inDefault(ctx, parts)
	}
	return err
}

// inDefault tells whether all of some triples stand in the default graph.
func (p *prober) inDefault(ctx context.Context, parts []string) (bool, error) {
	if len(parts) == 0 {
		return false, nil
	}
	q, err := probes.Prepare("ask", map[string]any{"Pattern": strings.Join(parts, " ")})
	if err != nil {
		return false, err
	}
	return p.c.Ask(ctx, q)
}

const namedSample = 200

// someNamed gives some triples of named graphs fit for a query, from as many rows; with blanks also
// those with blank nodes, a variable in the place of each.
func (p *prober) someNamed(ctx context.Context, filter string, blanks bool) (parts []string, rows int, err error) {
	q, err := probes.Prepare("sample-named", map[string]any{"Limit": namedSample, "Filter": filter})
	if err != nil {
		return nil, 0, err
	}
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return nil, 0, err
	}
	graphs := map[string]int{}
	for row, err := range sol.Rows {
		if err != nil {
			return nil, rows, err
		}
		if rows++; len(row) != 4 {
			sol.Close()
			return nil, rows, errors.New("the answer has not four columns")
		}
		g := row[0].IRI()
		if graphs[g] >= 5 || len(parts) >= 30 {
			continue
		}
		var t [3]string
		ok := true
		for i := range t {
			var err error
			switch term := row[i+1]; {
			case term.Kind() == rdfres.KindIRI:
				t[i], err = NameIRI(term.IRI())
			case blanks && term.Kind() == rdfres.KindBlank:
				t[i] = fmt.Sprintf("?b%d_%d", rows, i)
			default:
				t[i], err = EscapeTerm(term)
			}
			ok = ok && err == nil
		}
		if line := strings.Join(t[:], " ") + " ."; ok && !slices.Contains(parts, line) {
			graphs[g]++
			parts = append(parts, line)
		}
	}
	return parts, rows, nil
}

// rowLimit looks for an answer shorter than the store's own count.
func (p *prober) rowLimit(ctx context.Context) error {
	p.caps.RowLimit = p.c.MaxRows()
	p.caps.Sample = -1
	n, err := p.countSample(ctx)
	if err != nil {
		return err
	}
	p.caps.Sample = n
	return nil
}

// countSample counts the sample, anew for each comparison: the store may be
// written to while it is probed.
func (p *prober) countSample(ctx context.Context) (int64, error) {
	q, err := probes.Prepare("sample-count", map[string]any{"Pattern": p.pattern, "Limit": p.size})
	if err != nil {
		return 0, err
	}
	return p.c.Count(ctx, q)
}

// agrees reads the sample in one way and compares it with the counts taken before and after. Writes
// by others change the counts, so a difference is looked at again. If the counts go on changing,
// the way is taken as it is, since every scan is compared with counts of its own.
func (p *prober) agrees(ctx context.Context, r Reading, read func(context.Context, TripleFunc) error) (speed float64, err error) {
	last, moved := int64(-1), false
	for range 3 {
		start := time.Now()
		var rows int64
		err := read(ctx, func(_, _, _ []byte) error {
			if rows++; rows >= p.size {
				return errStop
			}
			return nil
		})
		slow := errors.Is(err, context.DeadlineExceeded)
		if err != nil && !slow && !errors.Is(err, errStop) {
			return 0, err
		}
		speed = max(speed, float64(rows)/max(time.Since(start).Seconds(), 1e-6))
		if p.uncounted {
			p.uncounted = false
			if p.caps.RowLimit = p.c.MaxRows(); rows >= sampleSize { // as many as were asked for
				p.caps.Sample = rows
				return speed, nil
			}
			if p.caps.Sample, err = p.countSample(ctx); err != nil {
				return 0, err
			}
		}
		before := p.caps.Sample
		if before < 0 || rows == before || slow { // slow is not wrong
			return speed, nil
		}
		after, err := p.countSample(ctx)
		if err != nil {
			return 0, err
		}
		p.caps.Sample = after
		moved = moved || before != after
		if rows >= min(before, after) && rows <= max(before, after) {
			return speed, nil
		}
		if rows > 0 && rows < min(before, after) && rows == last && r != ReadGraphStore {
			// The store has more, said nothing, and did it twice.
			if limit := p.caps.RowLimit; limit == 0 || rows < limit {
				p.caps.RowLimit = rows
			}
			return speed, nil
		}
		last = rows
	}
	if moved {
		return speed, nil
	}
	return 0, fmt.Errorf("gave %d triples of %d", last, p.caps.Sample)
}

// readings measures the ways of reading and orders them.
func (p *prober) readings(ctx context.Context) {
	p.caps.Speed, p.caps.Failed = map[Reading]float64{}, map[Reading]error{}
	try := func(r Reading, read func(context.Context, TripleFunc) error) {
		p.step(ctx, string(r), func(ctx context.Context) error {
			speed, err := p.agrees(ctx, r, read)
			if err != nil {
				p.broken = p.broken || IsTooLarge(err)
				p.caps.Failed[r] = err
				return err
			}
			if !slices.Contains(p.caps.Readings, r) {
				p.caps.Readings = append(p.caps.Readings, r)
			}
			p.caps.Speed[r] = max(p.caps.Speed[r], speed)
			return nil
		})
	}
	data := map[string]any{"Pattern": p.pattern, "Limit": p.size}
	sel, err1 := probes.Prepare("sample", data)
	con, err2 := probes.Prepare("sample-construct", data)
	if err := errors.Join(err1, err2); err != nil {
		p.c.conn.log.Error("probe", "err", err)
		return
	}
	rdf4j, table := p.c.LikeRDF4J(), p.table()
	readTable := func(ctx context.Context, fn TripleFunc) error {
		return p.c.StreamSelect(ctx, sel, ReadSelectBinary, fn)
	}
	// The Graph Store and CONSTRUCT give a triple of several graphs once, and the
	// counts have it for each of them.
	oneGraph := p.single && !(p.graph == "" && p.caps.UnionDefault)
	graphStore := p.c.conn.endpoint.GraphStore != "" && oneGraph
	var last []Reading // not tried
	defer func() {
		if m := p.c.MaxRows(); m > 0 && (p.caps.RowLimit == 0 || m < p.caps.RowLimit) {
			p.caps.RowLimit = m
		}
		for _, r := range last {
			if !slices.Contains(p.caps.Readings, r) {
				p.caps.Readings = append(p.caps.Readings, r)
			}
		}
	}()
	if p.uncounted {
		if try(ReadSelectBinary, readTable); p.uncounted || len(p.caps.Readings) == 0 && p.caps.Sample <= 0 {
			p.uncounted = false
			p.step(ctx, "row limit", p.rowLimit)
		}
		if len(p.caps.Readings) > 0 && p.caps.RowLimit == 0 && p.caps.Sample >= sampleSize {
			if last = append(last, ReadSelectJSON); oneGraph {
				last = append(last, ReadConstruct)
			}
			if graphStore {
				last = append(last, ReadGraphStore)
			}
			return
		}
	}
	began := time.Now()
	for range 2 { // the better of two: the first warms the store up
		if table { // first, if the sample is too small to choose
			try(ReadSelectBinary, readTable)
		}
		try(ReadSelectTSV, func(ctx context.Context, fn TripleFunc) error { return p.c.StreamSelect(ctx, sel, ReadSelectTSV, fn) })
		if oneGraph {
			try(ReadConstruct, func(ctx context.Context, fn TripleFunc) error { return p.c.StreamConstruct(ctx, con, fn) })
		}
		structured := ReadSelectJSON
		if p.c.xml.Load() {
			structured = ReadSelectXML
		}
		try(structured, func(ctx context.Context, fn TripleFunc) error { return p.c.StreamSelect(ctx, sel, structured, fn) })
		switch {
		case !graphStore:
		case rdf4j && p.caps.Sample >= sampleSize && len(p.caps.Readings) > 0:
			// It makes the whole graph before it sends the first triple, and goes on
			// when nobody listens any more: ten seconds for a million.
			last = append(last[:0], ReadGraphStore)
		default:
			try(ReadGraphStore, func(ctx context.Context, fn TripleFunc) error {
				if len(p.caps.Readings) > 0 {
					// There is no asking for a part.
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, graphStoreTime)
					defer cancel()
				}
				return p.c.StreamGraph(ctx, p.graph, fn)
			})
		}
		if p.caps.Sample < 2000 || time.Since(began) > 2*time.Second {
			break
		}
	}
	// On a small sample only the latency is measured: the usual order stays. On a large one latency
	// still weighs more than in a whole graph: the usually faster way gets a bonus.
	if p.caps.Sample >= 2000 {
		usual := p.c.usual(p.caps.Product)
		slices.SortStableFunc(p.caps.Readings, func(a, b Reading) int {
			return cmp.Compare(p.caps.Speed[b]*usual[b], p.caps.Speed[a]*usual[a])
		})
	}
}

// table tells whether the store may have RDF4J's binary results.
func (p *prober) table() bool {
	return p.c.LikeRDF4J() && p.caps.Product != "GraphDB" && !p.c.noTable.Load() // of its literals is not known whether "a"@en and "a"@EN are one
}

// LikeRDF4J tells whether the address is of the form of RDF4J: that store names only Jetty.
func (c *Client) LikeRDF4J() bool { return strings.Contains(c.conn.endpoint.Query, "/repositories/") }

// Behind is the product behind a web server: RDF4J behind Jetty, in no told version. Others are as they say.
func (c *Client) Behind(product, version string) (name, of string) {
	if strings.HasPrefix(product, "Jetty") && c.LikeRDF4J() {
		return "RDF4J", ""
	}
	return product, version
}

// usual is how much faster than on a sample each way has been on whole graphs of a
// million triples, in proportion.
func (c *Client) usual(product string) map[Reading]float64 {
	switch {
	case strings.Contains(product, "Fuseki"):
		return map[Reading]float64{ReadGraphStore: 4, ReadSelectTSV: 1.2, ReadConstruct: 1.6, ReadSelectJSON: 0.5}
	case c.LikeRDF4J():
		return map[Reading]float64{ReadGraphStore: 1, ReadSelectTSV: 2, ReadConstruct: 1, ReadSelectJSON: 1.5, ReadSelectBinary: 2}
	case strings.HasPrefix(product, "rsbridge"): // all ways cost it the same, and lines cost a scan a sixth less than a table
		return map[Reading]float64{ReadGraphStore: 1.5, ReadConstruct: 1.5, ReadSelectTSV: 1, ReadSelectJSON: 0.7}
	}
	return map[Reading]float64{ReadGraphStore: 1.2, ReadSelectTSV: 1.2, ReadConstruct: 1, ReadSelectJSON: 0.9}
}

// stableLabels asks for blank nodes twice, in another order and number, and compares their labels.
// Stores with labels numbered anew in each answer are found by a node that does not come first.
func (p *prober) stableLabels(ctx context.Context) error {
	q, err := probes.Prepare("blanks", map[string]any{"Pattern": p.pattern})
	if err != nil {
		return err
	}
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return err
	}
	type node struct{ s, p, o string }
	var nodes []node
	for row, err := range sol.Rows {
		if err != nil {
			return err
		}
		pr, err1 := EscapeTerm(row[1])
		o, err2 := EscapeTerm(row[2])
		if err1 == nil && err2 == nil && !slices.ContainsFunc(nodes, func(n node) bool { return n.s == string(row[0]) }) {
			nodes = append(nodes, node{string(row[0]), pr, o})
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	seen := 0
	for i := len(nodes) - 1; i >= 1 && seen < 3; i-- {
		q, err := probes.Prepare("blank-of", map[string]any{"Pattern": strings.NewReplacer("?p", nodes[i].p, "?o", nodes[i].o).Replace(p.pattern) + " FILTER(isBlank(?s))"})
		if err != nil {
			return err
		}
		sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
		if err != nil {
			return err
		}
		var found []string
		for row, err := range sol.Rows {
			if err != nil {
				return err
			}
			if found = append(found, string(row[0])); len(found) > 1 {
				break
			}
		}
		if len(found) != 1 {
			continue // not this node alone: says nothing
		}
		if found[0] != nodes[i].s {
			return nil
		}
		seen++
	}
	p.caps.StableLabels = seen > 0
	return nil
}

// valuesSizes are tried one after the other, until one is refused.
var valuesSizes = []int{50, 200, 1000, 5000}

// valuesLimit finds the most IRIs of a VALUES. A store known to take the most is tried with that
// first; our own has no limit.
func (p *prober) valuesLimit(ctx context.Context) error {
	sizes := valuesSizes
	last := len(sizes) - 1
	if p.brief && p.caps.Product == "rsbridge" {
		p.caps.ValuesLimit = sizes[last]
		return nil
	}
	if p.brief && (p.c.LikeRDF4J() || slices.Contains([]string{"Oxigraph", "Fuseki", "RDF4J"}, p.caps.Product)) {
		if p.takesValues(ctx, sizes[last]) == nil {
			p.caps.ValuesLimit = sizes[last]
			return nil
		}
		sizes = sizes[:last]
	}
	for _, n := range sizes {
		if err := p.takesValues(ctx, n); err != nil {
			return err
		}
		p.caps.ValuesLimit = n
	}
	return nil
}

func (p *prober) takesValues(ctx context.Context, n int) error {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<urn:rsbridge:probe:value:%d> ", i)
	}
	_, err := p.passes(ctx, "values", map[string]any{"Values": b.String(), "Pattern": p.pattern})
	return err
}
