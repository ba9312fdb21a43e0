package sparql

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Limits are the limits of a store: an administrator could change them.
type Limits struct {
	// DirectBody and FormBody are the bytes of the largest query answered, sent as it is and as a
	// form. The probe stops at 4,000,000; 0: not even a small one.
	DirectBody int `json:"direct_body"`
	FormBody   int `json:"form_body"`
	// Sorted is the number of rows returned sorted, SortSeconds the time; SortError is the reason
	// why not all were. The probe sorts at most 20,001 rows, then 10,000 and 1,000.
	Sorted      int64   `json:"sorted"`
	SortSeconds float64 `json:"sort_seconds"`
	SortError   string  `json:"sort_error,omitempty"`
	// Formats are the formats of answers by name, each "ok" or the format received instead: json,
	// xml, csv, tsv of SELECT; ntriples, turtle, jsonld, rdfxml of CONSTRUCT; nquads of all graphs
	// from the Graph Store address.
	Formats map[string]string `json:"formats"`
}

const (
	sortRows = 20_001
	bodyMost = 4_000_000
)

// Limits asks the store for them: some bounded questions about graphs (nil: the
// default graph, "*": all). Nothing is written.
func (c *Client) Limits(ctx context.Context, graphs []string, m Manners) Limits {
	p := &prober{c: c}
	l := Limits{Formats: map[string]string{}}
	if err := p.scope(graphs); err != nil {
		l.SortError = err.Error()
		return l
	}
	quick := context.WithValue(ctx, onceKey{}, true)
	p.step(quick, "sorting", func(ctx context.Context) error { return p.sorting(ctx, &l) })
	if m.Form == "ok" {
		l.FormBody = c.largestQuery(quick, formType, func(q string) string { return url.Values{"query": {q}}.Encode() })
	}
	if m.Direct == "ok" {
		l.DirectBody = c.largestQuery(quick, queryType, func(q string) string { return q })
	}
	p.formats(quick, &l)
	return l
}

// sorting has some rows sorted, fewer of them after a refusal.
func (p *prober) sorting(ctx context.Context, l *Limits) (err error) {
	for _, n := range []int64{sortRows, 10_000, 1_000} {
		if l.Sorted, l.SortSeconds, err = p.sorted(ctx, n); err == nil {
			return nil
		}
		if l.SortError == "" {
			l.SortError = shortError(err)
		}
		l.Sorted = 0
	}
	return err
}

func (p *prober) sorted(ctx context.Context, most int64) (rows int64, seconds float64, err error) {
	q, err := probes.Prepare("sorted", map[string]any{"Pattern": p.pattern, "Limit": most})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return 0, 0, err
	}
	last := ""
	var wrong error
	for row, err := range sol.Rows {
		if err != nil {
			return rows, 0, err
		}
		rows++
		s := row[0].IRI()
		if s != "" && last > s && isASCII(last) && isASCII(s) { // beyond ASCII some stores do not sort by bytes
			wrong = fmt.Errorf("row %d is out of order: %s comes after %s", rows, clip([]byte(s)), clip([]byte(last)))
		}
		last = cmp.Or(s, last)
	}
	if wrong != nil {
		return 0, 0, wrong
	}
	return rows, time.Since(began).Seconds(), nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

func shortError(err error) string {
	var e *Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %v", stepTime)
	case errors.As(err, &e):
		text := err.Error()
		return strings.Join(strings.Fields(text[:min(len(text), 200)]), " ")
	}
	return err.Error()
}

// largestQuery sends longer and longer queries, most of them comment.
func (c *Client) largestQuery(ctx context.Context, contentType string, body func(string) string) (most int) {
	for _, n := range []int{1_000, 10_000, 100_000, 190_000, 300_000, 1_000_000, bodyMost} {
		var b strings.Builder
		for b.Len() < n-100 {
			b.WriteString("# " + strings.Repeat("x", 80) + "\n")
		}
		b.WriteString("ASK { <urn:rsbridge:probe:a> <urn:rsbridge:probe:b> <urn:rsbridge:probe:c> }")
		text := body(b.String())
		var m Manners
		if ctx.Err() != nil || c.conn.tryAsk(ctx, &m, http.MethodPost, c.conn.endpoint.Query, contentType, text) != "ok" {
			return most
		}
		most = len(text)
	}
	return most
}

var formatTypes = []struct{ name, query, accept string }{
	{"json", "sample", jsonType},
	{"xml", "sample", xmlType},
	{"csv", "sample", "text/csv"},
	{"tsv", "sample", tsvType},
	{"ntriples", "sample-construct", "application/n-triples"},
	{"turtle", "sample-construct", "text/turtle"},
	{"jsonld", "sample-construct", "application/ld+json"},
	{"rdfxml", "sample-construct", "application/rdf+xml"},
}

// formats asks for one row or triple in each format.
func (p *prober) formats(ctx context.Context, l *Limits) {
	for _, f := range formatTypes {
		q, err := probes.Prepare(f.query, map[string]any{"Pattern": p.pattern, "Limit": 1})
		if err == nil {
			err = p.step1(ctx, func(ctx context.Context) error {
				return p.c.comesAs(ctx, p.c.queryRequest("query", q, f.accept), f.accept)
			})
		}
		l.Formats[f.name] = "ok"
		if err != nil {
			l.Formats[f.name] = shortError(err)
		}
	}
	if p.c.tsv.Load() == 2 && l.Formats["tsv"] == "ok" {
		l.Formats["tsv"] = "not the W3C form: what strings and numbers were cannot be told"
	}
	if p.c.conn.endpoint.GraphStore != "" {
		err := p.step1(ctx, func(ctx context.Context) error {
			return p.c.comesAs(ctx, request{op: "read all", method: http.MethodGet, url: p.c.conn.endpoint.GraphStore, accept: "application/n-quads"}, "application/n-quads")
		})
		l.Formats["nquads"] = "ok"
		if err != nil {
			l.Formats["nquads"] = shortError(err)
		}
	}
}

// step1 bounds the time of a question.
func (p *prober) step1(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	return f(ctx)
}

// comesAs sends a request and looks at the media type of the answer; the rest of
// it is not read.
func (c *Client) comesAs(ctx context.Context, r request, want string) error {
	send := c.conn.send
	if r.query != "" {
		send = c.conn.sendQuery
	}
	return c.conn.retry(ctx, func() error {
		res, err := send(ctx, r)
		if err != nil {
			return err
		}
		defer res.Close()
		if res.mediaType != want {
			got, _, err := mime.ParseMediaType(res.header.Get("Content-Type"))
			if err != nil {
				got = "no type"
			}
			return fmt.Errorf("%s came", got)
		}
		return nil
	})
}

// writeSpeed writes some thousand triples into the scratch graph in each way and
// notes how many a second the store took.
func (p *prober) writeSpeed(ctx context.Context, scratch string) error {
	p.caps.WriteSpeed = map[string]float64{}
	made := 0
	triples := func(n int) string {
		var b strings.Builder
		for range n {
			made++
			fmt.Fprintf(&b, "<urn:rsbridge:probe:speed:%d> <urn:rsbridge:probe:p> \"%d\" .\n", made/10, made)
		}
		return b.String()
	}
	for _, n := range []int{10, 100, 1000} {
		if n > 10 && n > p.caps.UpdateTriples {
			break
		}
		began, total := time.Now(), 0
		for range 5 {
			if err := p.prepared(ctx, "insert", map[string]any{"Graph": scratch, "Data": triples(n)}); err != nil {
				return err
			}
			if total += n; time.Since(began) > time.Second {
				break
			}
		}
		p.caps.WriteSpeed[fmt.Sprintf("insert-%d", n)] = float64(total) / time.Since(began).Seconds()
	}
	if p.c.conn.endpoint.GraphStore == "" {
		return nil
	}
	const n = 5000
	began := time.Now()
	err := whole(ctx, func(ctx context.Context) error {
		return p.c.PostGraph(ctx, strings.Trim(scratch, "<>"), rdfres.NTriples, Body([]byte(triples(n))))
	})
	if err != nil {
		return err
	}
	p.caps.WriteSpeed["graph-store"] = n / time.Since(began).Seconds()
	return nil
}

// readSpeed describes some entities by batches and one by one, and notes how many
// triples a second came.
func (p *prober) readSpeed(ctx context.Context, most int) (map[string]float64, error) {
	q, err := probes.Prepare("subjects", map[string]any{"Pattern": p.pattern, "Limit": min(1000, most)})
	if err != nil {
		return nil, err
	}
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return nil, err
	}
	var subjects []string
	for row, err := range sol.Rows {
		if err != nil {
			return nil, err
		}
		if iri, err := EscapeIRI(row[0].IRI()); err == nil && iri != "<>" {
			subjects = append(subjects, iri)
		}
	}
	out := map[string]float64{}
	for _, b := range []struct {
		name      string
		size, all int
	}{{"one-by-one", 1, 20}, {"batch-50", 50, 200}, {"batch-200", 200, 1000}, {"batch-1000", 1000, 1000}} {
		if b.size > 1 && len(subjects) < b.size {
			break
		}
		rows, began := 0, time.Now()
		for from := 0; from < min(b.all, len(subjects)); from += b.size {
			part := subjects[from:min(from+b.size, len(subjects))]
			q, err := probes.Prepare("batch", map[string]any{"Values": strings.Join(part, " "), "Pattern": p.pattern, "Limit": 10 * sampleSize})
			if err != nil {
				return out, err
			}
			err = p.c.StreamSelect(ctx, q, p.caps.SelectReading(), func(_, _, _ []byte) error {
				rows++
				return nil
			})
			if err != nil {
				return out, err
			}
			if time.Since(began) > stepTime/8 {
				break
			}
		}
		if rows > 0 {
			out[b.name] = float64(rows) / time.Since(began).Seconds()
		}
	}
	return out, nil
}

// advise draws conclusions from the limits.
func (l Limits) advise(c Capabilities, m Manners, will, could func(string, ...any)) {
	will("sort by itself, on disk: no question of a scan asks the store for an order")
	switch {
	case l.SortError != "" && c.Product == "Virtuoso":
		could("raise MaxSortedTopRows in virtuoso.ini for others who page through sorted answers; rsbridge does not")
	case l.SortError != "":
		could("look why it does not sort %d rows (%s), if others need that", sortRows, l.SortError)
	}
	if tsv, asked := l.Formats["tsv"]; asked && tsv != "ok" {
		will("read SELECT as JSON: TSV %s", tsv)
	}
	switch {
	case m.Direct == "ok":
		will("send queries as they are (application/sparql-query), which has no limit up to %d bytes", l.DirectBody)
	case l.FormBody > 0:
		will("send queries as forms of at most some %d bytes", l.FormBody)
	case m.Get == "ok":
		will("send queries by GET, in their address: batches are as small as that makes them")
		could("let queries be sent by POST: an address holds some thousand bytes only")
	}
	if m.Direct != "ok" && l.FormBody > 0 && l.FormBody < bodyMost {
		could("raise the limit of form bodies (now between %d bytes and the next size), or let application/sparql-query be answered", l.FormBody)
	}
	if m.Direct == "ok" && l.DirectBody < bodyMost {
		could("raise the limit of request bodies (%d bytes passed): larger batches are faster", l.DirectBody)
	}
	if !c.StableLabels {
		will("read what hangs on blank nodes in one answer: their labels were not seen to hold longer")
	}
}
