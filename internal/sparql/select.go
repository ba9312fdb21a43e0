package sparql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	queryType  = "application/sparql-query; charset=utf-8" // RDF4J's default is Latin-1
	updateType = "application/sparql-update; charset=utf-8"
	tsvType    = "text/tab-separated-values"
	jsonType   = "application/sparql-results+json"

	// acceptStructured asks for JSON, and for XML from a store with nothing else.
	acceptStructured = jsonType + ", application/json;q=0.5, " + xmlType + ";q=0.2, application/xml;q=0.1"
)

// Row is one solution; unbound variables are "".
type Row []rdfres.Term

// Solutions are the rows of a SELECT.
type Solutions struct {
	Vars   []string
	Rows   iter.Seq2[Row, error] // one pass; a truncated body ends in an error
	Header http.Header
	close  func()
}

// Close gives the connection back; needed only when Rows is not ranged over.
func (s *Solutions) Close() { s.close() }

// rowReader is common to the readers of all formats.
type rowReader interface {
	next() (Row, error) // io.EOF after the last
}

// Select streams a SELECT: TSV if the store writes the W3C form, else JSON, else XML. Each client
// asks once for the form (faithfulTSV). The row is valid until the next step. A stream being read
// occupies one of the requests of Endpoint.Concurrency. Requests are repeated up to the first row;
// an error after it ends the sequence.
func (c *Client) Select(ctx context.Context, query string) (*Solutions, error) {
	return c.selectAs(ctx, query, "")
}

// SelectAs is Select in a given format: ReadSelectTSV, ReadSelectJSON, ReadSelectBinary.
// A store without JSON answers in XML instead.
// Once an answer was not for the last of them (IsTooLarge), it gives JSON instead.
func (c *Client) SelectAs(ctx context.Context, query string, as Reading) (*Solutions, error) {
	return c.selectAs(ctx, query, as)
}

func (c *Client) selectAs(ctx context.Context, query string, as Reading) (*Solutions, error) {
	var out *Solutions
	err := c.conn.retry(ctx, func() (err error) {
		if (as == "" || as == ReadSelectTSV) && c.tsv.Load() == 0 {
			if err := c.faithfulTSV(ctx); err != nil {
				return err
			}
		}
		if as == ReadSelectTSV && c.tsv.Load() == 2 {
			return &Error{Op: c.conn.op("query"), URL: redact(c.conn.endpoint.Query), Err: errNotW3CTSV}
		}
		as := as
		if as == ReadSelectBinary && c.noTable.Load() {
			as = ReadSelectJSON
		}
		out, err = c.selectOnce(ctx, query, as)
		if as == "" && errors.Is(err, errNotW3CTSV) {
			c.tsv.Store(2)
			out, err = c.selectOnce(ctx, query, ReadSelectJSON)
		} else if errors.Is(err, errNotForTable) { // before the first row
			out, err = c.selectOnce(ctx, query, ReadSelectJSON)
		}
		return err
	})
	return out, err
}

// faithfulTSV finds out whether strings come back as strings: RDF4J writes "12" as 12 and "plain"
// as plain, and nobody can restore them. A store with an error here is read as JSON.
func (c *Client) faithfulTSV(ctx context.Context) error {
	values := []string{`"1.5"`, `"12"`, `"plain"`, `"true"`} // sorted
	sol, err := c.selectOnce(ctx, "SELECT ?v WHERE { VALUES ?v { "+strings.Join(values, " ")+" } }", ReadSelectTSV)
	var e *Error
	if errors.As(err, &e) && e.Temporary || ctx.Err() != nil {
		return err
	}
	faithful := int32(2)
	if err == nil {
		var got []string
		for row, rowErr := range sol.Rows {
			if rowErr != nil {
				break
			}
			got = append(got, strings.Clone(string(row[0]))) // a row lives until the next
		}
		slices.Sort(got)
		if slices.Equal(got, values) {
			faithful = 1
		}
	}
	c.tsv.Store(faithful)
	return nil
}

func (c *Client) selectOnce(ctx context.Context, query string, as Reading) (*Solutions, error) {
	accept := tsvType + ", " + jsonType + ";q=0.5, " + xmlType + ";q=0.2"
	switch {
	case as == ReadSelectTSV:
		accept = tsvType
	case as == ReadSelectBinary:
		accept = tableType
	case as == ReadSelectXML:
		accept = xmlType + ", application/xml;q=0.5"
	case as == ReadSelectJSON || c.tsv.Load() == 2:
		accept = acceptStructured
	}
	r := c.queryRequest("query", query, accept)
	res, err := c.conn.sendQuery(ctx, r)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		res.Close()
		return c.readError(r, err)
	}
	out := &Solutions{Header: res.header, close: res.Close}
	var rows rowReader
	switch {
	case res.mediaType == tableType && as == ReadSelectBinary:
		t, vars, err := newTable(res.body)
		if err != nil {
			return nil, fail(err)
		}
		rows, out.Vars = t, vars
	case res.mediaType == tsvType && (as == "" || as == ReadSelectTSV):
		t, vars, err := newTSV(res.body)
		if err != nil {
			return nil, fail(err)
		}
		rows, out.Vars = t, vars
	case isStructured(res.mediaType) && (as == "" || as == ReadSelectJSON || as == ReadSelectXML):
		var isAsk bool
		rows, out.Vars, isAsk, _, err = c.structured(res)
		if err == nil && isAsk {
			err = fmt.Errorf("the query is an ASK, not a SELECT")
		}
		if err != nil {
			return nil, fail(err)
		}
	default:
		want := accept
		if strings.Contains(accept, ",") {
			want = "SPARQL results"
		}
		err := c.conn.wrongType(r.op, r.url, res, want)
		res.Close()
		return nil, err
	}
	// Waiting for the first row keeps all failures before it inside the retries.
	row, first := rows.next()
	if first != nil && first != io.EOF {
		return nil, fail(first)
	}
	out.Rows = func(yield func(Row, error) bool) {
		defer res.Close()
		for err := first; ; row, err = rows.next() {
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, c.readError(r, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
	return out, nil
}

// readError explains an error in the middle of an answer.
func (c *Client) readError(r request, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	out := &Error{Op: c.conn.op(r.op), URL: redact(r.url), Err: err}
	if errors.Is(err, errNotForTable) {
		c.noTable.Store(true)
		out.Hint = "it is read as JSON from now on"
	} else if errors.Is(err, ErrTruncated) {
		out.Temporary, out.once = true, true // a limit cuts it again
		out.Hint = "the store or a proxy ended the answer: a limit of time or size there?"
	} else if !errors.Is(err, errNotW3CTSV) {
		out.garbled = true
		out.Hint = "the store sent something else in the middle of its answer: its log may say why"
	}
	return out
}

// Ask runs an ASK.
func (c *Client) Ask(ctx context.Context, query string) (bool, error) {
	r := c.queryRequest("ask", query, acceptStructured)
	var answer bool
	err := c.conn.retry(ctx, func() error {
		res, err := c.conn.sendQuery(ctx, r)
		if err != nil {
			return err
		}
		defer res.Close()
		if !isStructured(res.mediaType) {
			return c.conn.wrongType(r.op, r.url, res, "SPARQL results")
		}
		_, _, isAsk, a, err := c.structured(res)
		if err == nil && !isAsk {
			err = fmt.Errorf("the query is not an ASK")
		}
		if err != nil {
			return c.readError(r, err)
		}
		answer = a
		return nil
	})
	return answer, err
}

// Count runs a query with one numeric binding.
func (c *Client) Count(ctx context.Context, query string) (int64, error) {
	sol, err := c.selectAs(ctx, query, ReadSelectJSON)
	if err != nil {
		return 0, err
	}
	fail := func(err error) (int64, error) {
		return 0, &Error{Op: c.conn.op("count"), URL: redact(c.conn.endpoint.Query), Err: err}
	}
	var n int64
	rows := 0
	for row, err := range sol.Rows {
		if err != nil {
			return 0, err
		}
		rows++
		if len(row) != 1 {
			return fail(fmt.Errorf("a count has one variable, the answer has %d", len(row)))
		}
		if n, err = number(row[0]); err != nil {
			return fail(err)
		}
	}
	if rows != 1 {
		return fail(fmt.Errorf("the answer is no count: %d rows", rows))
	}
	return n, nil
}

// number reads a count.
func number(t rdfres.Term) (int64, error) {
	lexical, _, _ := t.Literal()
	n, err := strconv.ParseInt(strings.TrimPrefix(lexical, "+"), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the answer is no count: %q", lexical)
	}
	return n, nil
}
