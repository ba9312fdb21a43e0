package sparql

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Manners describe a store's answers. A probe for work does not need them; an administrator does.
type Manners struct {
	// Ways of asking, each "ok" or why not.
	Get    string `json:"get"`
	Form   string `json:"form"`
	Direct string `json:"direct"`
	// Authentication is the scheme asked for, "" for none; Authenticated tells whether credentials
	// were sent.
	Authentication string `json:"authentication"`
	Authenticated  bool   `json:"authenticated"`
	Gzip           bool   `json:"gzip"` // answers are compressed when asked for
	// Describe is the result of DESCRIBE for one entity: "cbd", "symmetric" (inbound triples too),
	// "direct" (no blank nodes to follow, or not followed), "nothing", or the reason why it is
	// unknown. Without inbound triples "symmetric" cannot be told apart, and it says so.
	Describe   string `json:"describe"`
	GraphStore string `json:"graph_store"` // "ok", "no address", or why not
}

// Manners asks the store a few small questions about graphs (nil: the default
// graph, "*": all). Nothing is written.
func (c *Client) Manners(ctx context.Context, graphs []string) Manners {
	m := Manners{Authenticated: c.conn.endpoint.Username != ""}
	const ask = "ASK { <urn:rsbridge:probe:a> <urn:rsbridge:probe:b> <urn:rsbridge:probe:c> }"
	form := url.Values{"query": {ask}}.Encode()
	join := "?"
	if strings.Contains(c.conn.endpoint.Query, "?") {
		join = "&"
	}
	m.Get = c.conn.tryAsk(ctx, &m, http.MethodGet, c.conn.endpoint.Query+join+form, "", "")
	m.Form = c.conn.tryAsk(ctx, &m, http.MethodPost, c.conn.endpoint.Query, formType, form)
	m.Direct = c.conn.tryAsk(ctx, &m, http.MethodPost, c.conn.endpoint.Query, queryType, ask)
	p := &prober{c: c}
	if err := p.scope(graphs); err == nil && !m.Gzip { // RDF4J compresses answers to SELECT
		rows := "SELECT * WHERE { " + p.pattern + " } LIMIT 1000"
		form := url.Values{"query": {rows}}.Encode()
		switch {
		case m.Direct == "ok":
			c.conn.tryAsk(ctx, &m, http.MethodPost, c.conn.endpoint.Query, queryType, rows)
		case m.Form == "ok":
			c.conn.tryAsk(ctx, &m, http.MethodPost, c.conn.endpoint.Query, formType, form)
		default:
			c.conn.tryAsk(ctx, &m, http.MethodGet, c.conn.endpoint.Query+join+form, "", "")
		}
	}
	m.Describe = c.describes(ctx, graphs)
	m.GraphStore = c.tryGraphStore(ctx, &m)
	return m
}

// tryAsk sends one query in one way.
func (c *connection) tryAsk(ctx context.Context, m *Manners, method, address, contentType, body string) string {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		mayRepeat(req)
		req.Header.Set("Accept", "application/sparql-results+json")
		req.Header.Set("Accept-Encoding", "gzip")
		c.auth.sign(req)
		res, err := c.http.Do(req)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Sprintf("no answer within %v", stepTime)
			}
			return err.Error()
		}
		head, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status counts
		res.Body.Close()
		if scheme, _, _ := strings.Cut(res.Header.Get("WWW-Authenticate"), " "); scheme != "" {
			m.Authentication = scheme
		}
		if res.StatusCode == http.StatusUnauthorized && try < 2 && c.auth.learn(res) {
			continue
		}
		if wait := retryAfter(res.Header.Get("Retry-After"), time.Now()); wait > 0 && try < toldRetries && comesBefore(ctx, wait) && (res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests) {
			time.Sleep(wait)
			continue
		}
		packed := res.Header.Get("Content-Encoding") != ""
		m.Gzip = m.Gzip || packed
		switch {
		case res.StatusCode == http.StatusOK:
			if scheme, _, _ := strings.Cut(req.Header.Get("Authorization"), " "); scheme != "" {
				m.Authentication = scheme
			}
			return "ok"
		case packed:
			return res.Status
		}
		text := string(bytes.TrimSpace(head))
		return fmt.Sprintf("%s: %.100s", res.Status, strings.Join(strings.Fields(text), " "))
	}
}

// describes finds out the meaning of DESCRIBE, by an entity with inbound triples.
func (c *Client) describes(ctx context.Context, graphs []string) string {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), stepTime)
	defer cancel()
	entity, graph, led, err := c.someEntity(ctx, graphs)
	if err != nil {
		return err.Error()
	}
	if entity == "" {
		return "not known: there is no entity"
	}
	what, err := c.describe(ctx, "DESCRIBE "+entity, entity)
	if err == nil && what == "nothing" && graph != "" { // Oxigraph looks into the default graph alone
		what, err = c.describe(ctx, "DESCRIBE "+entity+" FROM "+graph, entity)
	}
	if err != nil {
		return err.Error()
	}
	if !led && what != "nothing" {
		what += ", or symmetric: nothing leads to an entity here"
	}
	return what
}

// describe is the result of one DESCRIBE of an entity.
func (c *Client) describe(ctx context.Context, q, entity string) (string, error) {
	var direct, leading, nested int
	for t, err := range c.Construct(ctx, q) {
		if err != nil {
			return "", err
		}
		switch {
		case string(t.S) == entity:
			direct++
		case string(t.O) == entity:
			leading++
		case strings.HasPrefix(string(t.S), "_:"):
			nested++
		}
	}
	switch {
	case direct+leading+nested == 0:
		return "nothing", nil
	case leading > 0:
		return "symmetric", nil
	case nested > 0:
		return "cbd", nil
	}
	return "direct", nil
}

// someEntity finds an IRI in subject position, best one with inbound triples and with a blank node;
// "" without any. graph is its graph, "" the default graph.
func (c *Client) someEntity(ctx context.Context, graphs []string) (iri, graph string, led bool, err error) {
	in, what := "%s", "?s"
	if len(graphs) == 1 && graphs[0] != "*" {
		if graph, err = EscapeIRI(graphs[0]); err != nil {
			return "", "", false, err
		}
		in = "GRAPH " + graph + " { %s }"
	} else if len(graphs) > 0 {
		in, what = "GRAPH ?g { %s } FILTER(!"+OwnGraph("?g")+")", "?s ?g"
	}
	for i, pattern := range []string{"?a ?p ?s . ?s ?q ?b FILTER(isIRI(?s) && isBlank(?b))", "?a ?p ?s . ?s ?q ?b FILTER(isIRI(?s))",
		"?s ?q ?b FILTER(isIRI(?s) && isBlank(?b))", "?s ?q ?b FILTER(isIRI(?s))"} {
		short, cancel := context.WithTimeout(ctx, stepTime/4)
		sol, err := c.SelectAs(short, "SELECT "+what+" WHERE { "+strings.Replace(in, "%s", pattern, 1)+" } LIMIT 1", ReadSelectJSON)
		if err == nil {
			for row, rerr := range sol.Rows {
				if err = rerr; err == nil {
					iri, err = EscapeTerm(row[0])
				}
				if err == nil && len(row) == 2 {
					graph, err = EscapeTerm(row[1])
				}
			}
		}
		cancel()
		if iri != "" {
			return iri, graph, i < 2, nil
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return "", "", false, err
		}
	}
	return "", "", false, nil
}

const noAddress = "no address"

// tryGraphStore asks for a missing graph. If the answer is 404, it checks that the always present
// default graph has another.
func (c *Client) tryGraphStore(ctx context.Context, m *Manners) string {
	if c.conn.endpoint.GraphStore == "" {
		return noAddress
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), stepTime)
	defer cancel()
	const nothing = "urn:rsbridge:probe:nothing"
	err := c.StreamGraph(ctx, nothing, func(_, _, _ []byte) error { return nil })
	for _, ask := range []struct{ method, graph string }{{http.MethodGet, nothing}, {http.MethodHead, ""}} { // the default graph may be large
		var at string
		if err == nil {
			at, err = c.graphURL(ask.graph)
		}
		if err != nil {
			return err.Error()
		}
		if said := c.conn.tryAsk(ctx, m, ask.method, at, "", ""); !strings.HasPrefix(said, "404 ") {
			return "ok"
		}
	}
	return "404 for every graph, also the default one: it may be no address of a Graph Store"
}

// Advice are rsbridge's adaptations to a store, and changes its administrator could make.
type Advice struct {
	Will  []string `json:"will"`
	Could []string `json:"could"`
}

// Advise draws conclusions from the results of a probe.
func (c Capabilities) Advise(m Manners, l Limits) Advice {
	a := Advice{Will: []string{}, Could: []string{}}
	will := func(format string, args ...any) { a.Will = append(a.Will, fmt.Sprintf(format, args...)) }
	could := func(format string, args ...any) { a.Could = append(a.Could, fmt.Sprintf(format, args...)) }
	switch {
	case len(c.Readings) == 0:
		could("look why no way of reading gives what the store counts: nothing can be scanned")
	case c.Sample == 0:
		will("probe again when there is something to read: the graph is empty now")
	case c.BreaksOff > 0:
		will("read in parts, by %s: answers of %d triples break off in every way", c.Readings[0], c.BreaksOff)
		could("look what ends long answers: a limit of time or size in the store, or in a proxy before it")
	default:
		will("read whole graphs by %s: %.0f triples/s on a sample of %d", c.Readings[0], c.Speed[c.Readings[0]], c.Sample)
	}
	if c.RowLimit > 0 {
		will("read in parts below %d rows: longer answers are cut in silence", c.RowLimit)
		switch c.Product {
		case "Virtuoso":
			could("raise ResultSetMaxRows in virtuoso.ini (now %d): whole graphs in one answer are several times faster", c.RowLimit)
		default:
			could("raise the row limit (now %d): whole graphs in one answer are several times faster", c.RowLimit)
		}
	}
	if c.UnionDefault {
		will("name the graphs that it reads: the default graph shows all named graphs")
	}
	if c.ValuesLimit > 0 {
		will("ask for at most %d entities in one query", c.ValuesLimit)
	}
	l.advise(c, m, will, could)
	if m.Describe == "symmetric" {
		will("not use DESCRIBE: it gives what leads to an entity too")
	} else if strings.HasPrefix(m.Describe, "direct") {
		will("not use DESCRIBE: it was not seen to follow blank nodes")
	}
	for _, g := range c.Scratch.Left {
		could("drop the graph %s, which a probe that was killed has left; doctor --write does, an hour after it", g)
	}
	if !m.Gzip && c.Sample >= 1000 { // short answers are not compressed
		could(CouldCompress)
	}
	if !c.Writable {
		return a
	}
	if c.UpdateTriples > 0 {
		will("write at most %d triples in one INSERT DATA", c.UpdateTriples)
	}
	if c.Product == "Oxigraph" && m.GraphStore == "ok" {
		will("upload by its loader (no_transaction), which takes a quarter of the time of a transaction")
	}
	if c.Transactional {
		will("write data and checkpoint in one request, which is atomic here")
	} else {
		will("write data first and the checkpoint last: requests of several operations are not atomic")
	}
	if len(c.NormalForm.Rules) > 0 {
		will("compare a mirror in the store's normal form, because it rewrites literals: %s", strings.Join(c.NormalForm.Rules, ", "))
	}
	if len(c.Unexplained) > 0 {
		will("report as rewritten what it changes in a way that no rule explains (%d of the probe)", len(c.Unexplained))
	}
	return a
}

// CouldCompress is advice for a store reached over a network.
const CouldCompress = "let answers be compressed, if the store is far away"

// Examination are all findings about a store.
type Examination struct {
	Store     string            `json:"store"`
	Addresses map[string]string `json:"addresses"`
	Product   string            `json:"product"`
	Version   string            `json:"version"`

	Graphs        []string            `json:"graphs,omitempty"` // graphs read; none: the default graph. "*", even unasked, if that is empty
	Outside       Remainder           `json:"outside"`          // outside of the requested graphs, or of those published by the sets of the store
	Readings      []Reading           `json:"readings"`         // working ones, fastest first
	Speed         map[Reading]float64 `json:"speed"`            // triples per second on the sample
	Sample        int64               `json:"sample"`
	BatchSpeed    map[string]float64  `json:"batch_speed"` // triples per second of some entities: one-by-one, batch-50, batch-200, batch-1000
	Found         map[string]string   `json:"found"`       // addresses answering though not given: update, graph_store
	RowLimit      int64               `json:"row_limit"`
	BreaksOff     int64               `json:"breaks_off,omitempty"` // answers of so many triples did, in every way
	UnionDefault  bool                `json:"union_default"`
	ValuesLimit   int                 `json:"values_limit"`
	StableLabels  bool                `json:"stable_labels"`
	Written       bool                `json:"written"` // writing was tried, in a scratch graph
	Writable      bool                `json:"writable"`
	WriteError    string              `json:"write_error,omitempty"` // why nothing could be written
	Removed       []string            `json:"removed,omitempty"`     // scratch graphs of killed probes
	UpdateTriples int                 `json:"update_triples"`
	Transactional bool                `json:"transactional"`
	NormalForm    rdfres.NormalForm   `json:"normal_form"`
	Unexplained   []string            `json:"unexplained"`
	WriteSpeed    map[string]float64  `json:"write_speed,omitempty"` // triples per second by way: insert-10, insert-100, insert-1000, graph-store
	Manners       Manners             `json:"manners"`
	Limits        Limits              `json:"limits"`
	Unanswered    []string            `json:"unanswered,omitempty"` // steps of the probe after a passing failure
	Advice
	Seconds float64 `json:"seconds"`
}

// Examine probes a store and its manners. o decides about writing.
func (c *Client) Examine(ctx context.Context, o ProbeOptions) (Examination, error) {
	began := time.Now()
	e := c.conn.endpoint
	out := Examination{Store: e.Name, Addresses: map[string]string{"query": redact(e.Query)}, Unexplained: []string{}}
	if e.Update != "" {
		out.Addresses["update"] = redact(e.Update)
	}
	if e.GraphStore != "" {
		out.Addresses["graph_store"] = redact(e.GraphStore)
	}
	o.Speed = true
	var elsewhere string
	o.Graphs, elsewhere = c.whereDataIs(ctx, o.Graphs)
	caps, err := c.Probe(ctx, o)
	if err != nil {
		return out, err
	}
	caps.Product, caps.Version = c.Behind(caps.Product, caps.Version)
	out.Manners = c.Manners(ctx, o.Graphs)
	out.Limits = c.Limits(ctx, o.Graphs, out.Manners)
	out.Found = c.Found(ctx, caps.Product)
	out.BatchSpeed = map[string]float64{}
	p := &prober{c: c, caps: caps}
	if err := p.scope(o.Graphs); err == nil {
		p.step(context.WithValue(ctx, onceKey{}, true), "batches", func(ctx context.Context) (err error) {
			out.BatchSpeed, err = p.readSpeed(ctx, max(caps.ValuesLimit, 50))
			return err
		})
	}
	out.Graphs, out.Removed, out.WriteSpeed, out.Unanswered = o.Graphs, caps.Scratch.Removed, caps.WriteSpeed, p.caps.Unanswered
	out.Product, out.Version, out.Readings, out.Speed, out.Sample = caps.Product, caps.Version, caps.Readings, caps.Speed, caps.Sample
	out.RowLimit, out.BreaksOff, out.UnionDefault, out.ValuesLimit, out.StableLabels = caps.RowLimit, caps.BreaksOff, caps.UnionDefault, caps.ValuesLimit, caps.StableLabels
	out.Written, out.Writable, out.UpdateTriples, out.Transactional = o.Write && e.Update != "", caps.Writable, caps.UpdateTriples, caps.Transactional
	if caps.WriteError != nil {
		out.WriteError = caps.WriteError.Error()
	}
	if out.NormalForm = caps.NormalForm; out.NormalForm.Rules == nil {
		out.NormalForm.Rules = []string{}
	}
	for _, t := range caps.Unexplained {
		out.Unexplained = append(out.Unexplained, fmt.Sprintf("%s %s %s .", t.S, t.P, t.O))
	}
	out.Advice = caps.Advise(out.Manners, out.Limits)
	if best := slices.MaxFunc([]string{"one-by-one", "batch-50", "batch-200", "batch-1000"}, func(a, b string) int {
		return cmp.Compare(out.BatchSpeed[a], out.BatchSpeed[b])
	}); out.BatchSpeed[best] > 0 && best != "one-by-one" {
		out.Will = append(out.Will, fmt.Sprintf("read what hints name by batches that grow: %.0f triples/s by %s, %.0f one by one", out.BatchSpeed[best], best, out.BatchSpeed["one-by-one"]))
	}
	graphStore, update := e.Names.Of("graph_store"), e.Names.Of("update")
	if at := out.Found["graph_store"]; at != "" {
		out.Could = append(out.Could, fmt.Sprintf("give %s %s: it answers there, and is the fastest way into most stores", graphStore, at))
	} else if out.Manners.GraphStore == noAddress {
		out.Could = append(out.Could, fmt.Sprintf("give the Graph Store address (%s): it is the fastest way into most stores", graphStore))
	}
	if at := out.Found["update"]; at != "" {
		out.Could = append(out.Could, fmt.Sprintf("give %s %s: it answers there", update, at))
	}
	if elsewhere != "" {
		out.Could = append(out.Could, elsewhere)
	}
	slices.Sort(out.Could)
	out.Seconds = time.Since(began).Seconds()
	return out, context.Cause(ctx)
}

// whereDataIs gives the graphs to look at: the requested ones. If these are empty it gives others,
// and a sentence about them. Errors of the store show later, when it is read.
func (c *Client) whereDataIs(ctx context.Context, asked []string) (graphs []string, elsewhere string) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), stepTime)
	defer cancel()
	p := &prober{c: c}
	if err := p.scope(asked); err != nil {
		return asked, ""
	}
	if some, err := c.Ask(ctx, "ASK { "+p.pattern+" }"); err != nil || some {
		return asked, ""
	}
	named, err := c.NamedGraphs(ctx, 8)
	if err != nil {
		return asked, ""
	}
	if len(named) > 0 { // the default graph may show them too
		return []string{"*"}, "name the graphs to read (--graph IRI, or \"*\" for all): what was asked for is empty; all this is told of what is in named graphs: " + strings.Join(named, ", ")
	}
	if len(asked) == 0 {
		return asked, ""
	}
	switch some, err := c.Ask(ctx, "ASK { ?s ?p ?o }"); {
	case err != nil || !some:
		return asked, ""
	case asked[0] == "*": // this includes the default graph
		return nil, ""
	}
	return nil, "leave --graph out: what was asked for is empty, and the default graph, of which all this is told, is not"
}
