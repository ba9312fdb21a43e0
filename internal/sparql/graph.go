package sparql

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/rsbridge/rsbridge/rdfres"
)

const ntriplesAccept = "application/n-triples, text/plain;q=0.2"

// TripleFunc gets one statement as canonical terms. The bytes are valid during
// the call only. An error ends the reading and is returned as it is.
type TripleFunc func(s, p, o []byte) error

// StreamConstruct reads a CONSTRUCT or DESCRIBE as N-Triples without making a
// term for each triple: the fastest way to read much.
func (c *Client) StreamConstruct(ctx context.Context, query string, fn TripleFunc) error {
	return c.streamLines(ctx, c.queryRequest("construct", query, ntriplesAccept), fn)
}

// StreamGraph reads a graph by the Graph Store Protocol; "" is the default graph. A missing graph
// is empty.
func (c *Client) StreamGraph(ctx context.Context, graph string, fn TripleFunc) error {
	u, err := c.graphURL(graph)
	if err != nil {
		return err
	}
	err = c.streamLines(ctx, request{op: "read graph", method: http.MethodGet, url: u, accept: ntriplesAccept}, fn)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// StreamSelect reads a SELECT of three variables (subject, predicate, object)
// in the given format.
func (c *Client) StreamSelect(ctx context.Context, query string, as Reading, fn TripleFunc) error {
	sol, err := c.selectAs(ctx, query, as)
	if err != nil {
		return err
	}
	if len(sol.Vars) != 3 {
		sol.Close()
		return &Error{Op: c.conn.op("query"), URL: redact(c.conn.endpoint.Query), Err: fmt.Errorf("the answer has %d columns, want 3", len(sol.Vars))}
	}
	var buf []byte
	for row, err := range sol.Rows {
		if err != nil {
			return err
		}
		buf = append(append(append(buf[:0], row[0]...), row[1]...), row[2]...)
		s, p := len(row[0]), len(row[0])+len(row[1])
		if err := fn(buf[:s:s], buf[s:p:p], buf[p:]); err != nil {
			return err
		}
	}
	return nil
}

// streamLines sends a request and gives the N-Triples lines of its answer.
func (c *Client) streamLines(ctx context.Context, r request, fn TripleFunc) error {
	return c.streamScanned(ctx, r, func(sc *rdfres.LineScanner) error { return fn(sc.S, sc.P, sc.O) })
}

// QuadFunc is TripleFunc with the graph, empty for the default graph, first.
type QuadFunc func(g, s, p, o []byte) error

// StreamDataset reads the whole store, with its graphs, by the Graph Store address without a graph,
// in N-Quads. Only some stores offer this (it is not in the protocol, but Oxigraph, Fuseki and the
// embedded store do).
func (c *Client) StreamDataset(ctx context.Context, fn QuadFunc) error {
	if c.conn.endpoint.GraphStore == "" {
		return &Error{Op: c.conn.op("read all"), URL: redact(c.conn.endpoint.Query), Err: ErrNoGraphStore, Hint: "give " + c.conn.endpoint.Names.Of("graph_store")}
	}
	return c.streamScanned(ctx, request{op: "read all", method: http.MethodGet, url: c.conn.endpoint.GraphStore, accept: "application/n-quads"},
		func(sc *rdfres.LineScanner) error { return fn(sc.G, sc.S, sc.P, sc.O) })
}

// StreamQuads reads a SELECT of four variables: graph, subject, predicate, object.
func (c *Client) StreamQuads(ctx context.Context, query string, as Reading, fn QuadFunc) error {
	sol, err := c.selectAs(ctx, query, as)
	if err != nil {
		return err
	}
	if len(sol.Vars) != 4 {
		sol.Close()
		return &Error{Op: c.conn.op("query"), URL: redact(c.conn.endpoint.Query), Err: fmt.Errorf("the answer has %d columns, want 4", len(sol.Vars))}
	}
	var buf []byte
	for row, err := range sol.Rows {
		if err != nil {
			return err
		}
		buf = append(append(append(append(buf[:0], row[0]...), row[1]...), row[2]...), row[3]...)
		g := len(row[0])
		s := g + len(row[1])
		p := s + len(row[2])
		if err := fn(buf[:g:g], buf[g:s:s], buf[s:p:p], buf[p:]); err != nil {
			return err
		}
	}
	return nil
}

// streamScanned is streamLines with all parts of a line.
func (c *Client) streamScanned(ctx context.Context, r request, fn func(*rdfres.LineScanner) error) error {
	delivered := false
	var final error // an error not to be repeated
	send := c.conn.send
	if r.query != "" {
		send = c.conn.sendQuery
	}
	err := c.conn.retry(ctx, func() error {
		res, err := send(ctx, r)
		if err != nil {
			return err
		}
		defer res.Close()
		switch res.mediaType {
		case "application/n-triples", "text/plain", "application/n-quads", "text/ntriples":
		default:
			if res.status == http.StatusNoContent {
				return nil
			}
			return c.conn.wrongType(r.op, r.url, res, "triples")
		}
		in := lineReader{in: bufio.NewReaderSize(res.body, 128<<10)}
		sc := rdfres.LineScanner{Lax: true}
		for {
			line, _, err := in.line()
			if err == io.EOF {
				return nil
			}
			var ok bool
			if err == nil {
				if ok, err = sc.Scan(line); err != nil {
					err = fmt.Errorf("line %d of the answer: %w: %q", in.lines, err, clip(line))
					if _, more := in.in.Peek(1); more == io.EOF {
						err = fmt.Errorf("%w: %w", ErrTruncated, err)
					}
				}
			}
			if err == nil && ok {
				delivered = true
				if final = fn(&sc); final != nil {
					return nil
				}
				continue
			}
			if err != nil {
				err = c.readError(r, err)
				if delivered {
					final = err
					return nil
				}
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	return final
}

var errStop = errors.New("stop")

func triples(stream func(TripleFunc) error) iter.Seq2[rdfres.Triple, error] {
	return func(yield func(rdfres.Triple, error) bool) {
		err := stream(func(s, p, o []byte) error {
			all := string(append(append(append(make([]byte, 0, len(s)+len(p)+len(o)), s...), p...), o...))
			t := rdfres.Triple{S: rdfres.Term(all[:len(s)]), P: rdfres.Term(all[len(s) : len(s)+len(p)]), O: rdfres.Term(all[len(s)+len(p):])}
			if !yield(t, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(rdfres.Triple{}, err)
		}
	}
}

// Construct streams a CONSTRUCT or DESCRIBE as N-Triples.
func (c *Client) Construct(ctx context.Context, query string) iter.Seq2[rdfres.Triple, error] {
	return triples(func(fn TripleFunc) error { return c.StreamConstruct(ctx, query, fn) })
}

// GetGraph streams a graph by the Graph Store Protocol; "" is the default graph. Missing graphs are empty.
func (c *Client) GetGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error] {
	return triples(func(fn TripleFunc) error { return c.StreamGraph(ctx, graph, fn) })
}

// Update runs an update request. It is repeated after a passing failure: an update must give the
// same result when it runs twice (DELETE DATA and INSERT DATA without blank nodes do).
func (c *Client) Update(ctx context.Context, update string) error {
	if c.conn.endpoint.Update == "" {
		return &Error{Op: c.conn.op("update"), URL: redact(c.conn.endpoint.Query), Err: ErrReadOnly, Hint: "give " + c.conn.endpoint.Names.Of("update")}
	}
	r := request{op: "update", method: http.MethodPost, url: c.conn.endpoint.Update, contentType: updateType, accept: "*/*"}
	r.body, r.length = textBody(update)
	var err error
	if !c.updateForms.Load() {
		var e *Error
		if err = c.conn.exec(ctx, r); !errors.As(err, &e) || e.Status != http.StatusUnsupportedMediaType {
			return err
		}
	}
	r.contentType = formType
	r.body, r.length = textBody("update=" + url.QueryEscape(update))
	if byForm := c.conn.exec(ctx, r); byForm == nil || c.updateForms.Load() {
		c.updateForms.Store(true)
		return byForm
	}
	return err
}

// PutGraph replaces a graph, "" the default graph. body is opened once; see Body.
func (c *Client) PutGraph(ctx context.Context, graph string, f rdfres.Format, body func() (io.ReadCloser, error)) error {
	return c.sendGraph(ctx, "replace graph", http.MethodPut, graph, f.MediaType(), body)
}

// PostGraph adds to a graph, "" the default graph. body is opened once; see Body. When it
// fails some of the triples may stand in the store.
func (c *Client) PostGraph(ctx context.Context, graph string, f rdfres.Format, body func() (io.ReadCloser, error)) error {
	return c.sendGraph(ctx, "add to graph", http.MethodPost, graph, f.MediaType(), body)
}

// loaderFrom is the least size of an upload for Oxigraph's loader. The loader makes files, a
// transaction makes entries of a log. Except for a few lines, the loader takes a quarter of the
// time and, for a million triples, 50 MB of memory instead of 900. Its confirmed uploads are on
// disk.
const loaderFrom = 64 << 10

func (c *Client) sendGraph(ctx context.Context, op, method, graph, mediaType string, body func() (io.ReadCloser, error)) error {
	u, err := c.graphURL(graph)
	if err != nil {
		return err
	}
	up, err := measure(body)
	if err != nil {
		return &Error{Op: c.conn.op(op), URL: redact(u), Err: fmt.Errorf("read what is to be sent: %w", err)}
	}
	defer up.close()
	if method == http.MethodPost && c.conn.loader.Load() && up.size >= loaderFrom {
		u += "&no_transaction"
	}
	return c.conn.exec(ctx, request{op: op, method: method, url: u, contentType: mediaType, accept: "*/*", body: up.open, length: up.size})
}

// DeleteGraph removes a graph, "" the default graph's content. A missing one is no error.
func (c *Client) DeleteGraph(ctx context.Context, graph string) error {
	u, err := c.graphURL(graph)
	if err != nil {
		return err
	}
	err = c.conn.exec(ctx, request{op: "delete graph", method: http.MethodDelete, url: u, accept: "*/*"})
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// graphURL addresses a graph indirectly (SPARQL 1.1 Graph Store HTTP Protocol, section 4.2).
func (c *Client) graphURL(graph string) (string, error) {
	if c.conn.endpoint.GraphStore == "" {
		return "", &Error{Op: c.conn.op("graph store"), URL: redact(c.conn.endpoint.Query), Err: ErrNoGraphStore, Hint: "give " + c.conn.endpoint.Names.Of("graph_store")}
	}
	u, err := url.Parse(c.conn.endpoint.GraphStore)
	if err != nil {
		return "", err
	}
	q := "default"
	if graph != "" {
		q = "graph=" + url.QueryEscape(graph)
	}
	if u.RawQuery != "" {
		q = u.RawQuery + "&" + q
	}
	u.RawQuery = q
	return u.String(), nil
}
