// Package sparql is a client for the SPARQL 1.1 protocols that knows the limits
// of the store it talks to.
package sparql

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Endpoint is the addresses and the manners of one store.
type Endpoint struct {
	Name        string // as the user calls it, for messages
	Query       string
	Update      string // "" if the store is only read
	GraphStore  string // "" if it has none
	Username    string
	Password    string
	Timeout     time.Duration     // of one request without progress; default 60s
	Concurrency int               // requests at once; default 2
	Transport   http.RoundTripper // nil: a transport of its own; an embedded store passes its handler
	Retries     int               // default 4 for what can help
	MaxRows     int64             // configured row limit of the store; 0 unknown
	Logger      *slog.Logger
}

// Client speaks to one endpoint. Safe for concurrent use.
type Client struct{}

func New(e Endpoint) (*Client, error) { panic("stub") }
func (c *Client) Close() error        { panic("stub") }
func (c *Client) Endpoint() Endpoint  { panic("stub") } // password removed

// Error is a failed request: what, where, the status, the start of the body, whether a retry can help, a hint.
type Error struct {
	Op, URL   string
	Status    int
	Body      string
	Temporary bool
	Hint      string
	Err       error
}

func (e *Error) Error() string { panic("stub") }
func (e *Error) Unwrap() error { return e.Err }

// Row is one solution; unbound variables are "".
type Row []rdfres.Term

// Solutions are the rows of a SELECT.
type Solutions struct {
	Vars   []string
	Rows   iter.Seq2[Row, error] // one pass; a truncated body ends in an error
	Header http.Header
}

// Select streams a SELECT: TSV where the store writes the W3C form, else JSON. The row is valid until the next step.
func (c *Client) Select(ctx context.Context, query string) (*Solutions, error) { panic("stub") }

// Construct streams a CONSTRUCT or DESCRIBE as N-Triples.
func (c *Client) Construct(ctx context.Context, query string) iter.Seq2[rdfres.Triple, error] {
	panic("stub")
}
func (c *Client) Ask(ctx context.Context, query string) (bool, error) { panic("stub") }

// Count runs a query with one numeric binding.
func (c *Client) Count(ctx context.Context, query string) (int64, error) { panic("stub") }
func (c *Client) Update(ctx context.Context, update string) error        { panic("stub") }

// GetGraph streams a graph by the Graph Store Protocol; "" is the default graph. Missing graphs are empty.
func (c *Client) GetGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error] {
	panic("stub")
}

// PutGraph replaces, PostGraph adds. body is read once per try: give a func.
func (c *Client) PutGraph(ctx context.Context, graph string, f rdfres.Format, body func() (io.ReadCloser, error)) error {
	panic("stub")
}
func (c *Client) PostGraph(ctx context.Context, graph string, f rdfres.Format, body func() (io.ReadCloser, error)) error {
	panic("stub")
}
func (c *Client) DeleteGraph(ctx context.Context, graph string) error { panic("stub") }

// Reading is a way to read whole graphs.
type Reading string

const (
	ReadGraphStore Reading = "graph-store"
	ReadConstruct  Reading = "construct"
	ReadSelectTSV  Reading = "select-tsv"
	ReadSelectJSON Reading = "select-json"
)

// Capabilities is what a probe found.
type Capabilities struct {
	Product, Version string
	Readings         []Reading // that work, fastest first
	RowLimit         int64     // silent truncation, 0: none seen
	UnionDefault     bool      // the default graph shows named graphs too
	ValuesLimit      int
	UpdateTriples    int  // most triples of one INSERT DATA
	Transactional    bool // several operations of one request are atomic
	StableLabels     bool
	NormalForm       rdfres.NormalForm
	Writable         bool
}

// ProbeOptions of Probe. Writing goes into a scratch graph only, removed after.
type ProbeOptions struct {
	Write  bool
	Graphs []string
}

func (c *Client) Probe(ctx context.Context, o ProbeOptions) (Capabilities, error) { panic("stub") }

// EscapeIRI writes an IRI as <...> for a query, or fails when it cannot be one.
func EscapeIRI(iri string) (string, error) { panic("stub") }
