package embedstore

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// ErrLocked comes from Open when another process (or another Store of this one)
// holds the folder; the message names the holder.
var ErrLocked = errors.New("store is in use")

// Options for Open. The zero value is sensible.
type Options struct {
	CacheBytes   int64            // block cache; default 64 MiB
	Logger       *slog.Logger     // nil: silent
	Budget       Budget           // of each query and update
	MaxBodyBytes int64            // of one HTTP request body, decompressed; default 64 GiB
	Now          func() time.Time // default time.Now
}

// Budget bounds what one query or update may use; what exceeds it fails with a
// *BudgetError. Zero fields mean the default. Streaming needs none of it: rows
// and memory are counted for what must be held at once (sorting, grouping,
// distinct sets, joins that cannot follow an index).
type Budget struct {
	Rows        int64         // rows held at once; default 20 million
	MemoryBytes int64         // default 256 MiB
	Time        time.Duration // of evaluation, waiting for a slow reader not counted; default 10 minutes
}

// BudgetError tells which bound of the Budget a request has met.
type BudgetError struct {
	What  string // "rows", "memory" or "time"
	Limit string // the bound, as a person reads it
}

func (e *BudgetError) Error() string { panic("stub") }

// SyntaxError is a query or update that is not SPARQL 1.1.
type SyntaxError struct {
	Line, Column int // from 1; column in bytes
	Message      string
}

func (e *SyntaxError) Error() string { panic("stub") }

// Store is an open embedded store. Safe for concurrent use; writes run one
// after the other, reads beside them.
type Store struct{}

// Open opens or makes the store in dir. A folder that is held gives an error
// that wraps ErrLocked and names the holder.
func Open(dir string, o Options) (*Store, error) { panic("stub") }

// Close ends the store. Requests that are under way fail or are waited for. Idempotent.
func (s *Store) Close() error { panic("stub") }

// Stats is what a store holds.
type Stats struct {
	Triples   int64 // in all graphs
	Graphs    int64 // named graphs
	Terms     int64 // in the dictionary, blank nodes not counted
	DiskBytes int64
}

func (s *Store) Stats() (Stats, error) { panic("stub") }

// Handler serves the SPARQL 1.1 Protocol at /query and /update and the Graph
// Store Protocol at /data, relative to where it is mounted (use
// http.StripPrefix). An answer that fails in the middle aborts the connection.
func (s *Store) Handler() http.Handler { panic("stub") }

// QueryHandler serves the query part of the SPARQL Protocol only, whatever the path.
func (s *Store) QueryHandler() http.Handler { panic("stub") }

// Transport is a way to Handler without a port: requests to any host with a
// path that ends in /query, /update or /data are answered in this process.
// Bodies stream both ways. An answer that fails in the middle gives its reader
// an error, never a clean end.
func (s *Store) Transport() http.RoundTripper { panic("stub") }

// LoadOptions for Load.
type LoadOptions struct {
	Replace bool   // the graph (with "" and a format of quads: every graph) holds only what is loaded afterwards
	Base    string // base IRI of relative references
}

// Load adds the statements of r as one transaction and tells how many of them
// the store did not hold before. graph is the IRI of the graph that takes
// triples; "" is the default graph. N-Quads and TriG keep their own graphs when
// graph is "", and may name none when it is not.
func (s *Store) Load(ctx context.Context, graph string, f rdfres.Format, r io.Reader, o LoadOptions) (added int64, err error) {
	panic("stub")
}

// DumpOptions choose what Dump writes.
type DumpOptions struct {
	Graph string // IRI of a named graph; "" is the default graph
	All   bool   // every graph; the format must be NQuads or TriG
}

// Dump writes one graph, or all of them, from one snapshot.
func (s *Store) Dump(ctx context.Context, w io.Writer, f rdfres.Format, o DumpOptions) error {
	panic("stub")
}

// QueryOptions for Query.
type QueryOptions struct {
	DefaultGraphs []string // default-graph-uri of the protocol; with NamedGraphs replaces FROM and FROM NAMED
	NamedGraphs   []string // named-graph-uri
	Base          string
	Budget        Budget // zero fields: the store's
}

// ResultKind is the form of an answer.
type ResultKind byte

const (
	Solutions ResultKind = iota + 1 // SELECT
	Boolean                         // ASK
	Graph                           // CONSTRUCT, DESCRIBE
)

// Result is a streamed answer from one snapshot. Close it.
type Result struct {
	Kind ResultKind
	Vars []string // of Solutions
	Bool bool     // of Boolean
}

// Rows streams the solutions, one pass; an unbound variable is "". The slice is
// valid until the next step. The sequence ends after the first error.
func (r *Result) Rows() iter.Seq2[[]rdfres.Term, error] { panic("stub") }

// Triples streams the triples of a Graph, one pass; a triple may come more than
// once when the query is not a plain copy.
func (r *Result) Triples() iter.Seq2[rdfres.Triple, error] { panic("stub") }
func (r *Result) Close() error                             { panic("stub") }

// Query answers a SPARQL 1.1 query. A *SyntaxError, a *BudgetError (also later,
// from the rows) or an error wrapping ErrUnsupported tell why it cannot.
func (s *Store) Query(ctx context.Context, text string, o QueryOptions) (*Result, error) {
	panic("stub")
}

// Update runs a SPARQL 1.1 update request; all its operations are one transaction.
func (s *Store) Update(ctx context.Context, text string) error { panic("stub") }

// ErrUnsupported marks what SPARQL 1.1 allows and this store cannot answer.
var ErrUnsupported = errors.New("cannot be answered by the embedded store")

// Pattern selects quads; "" in S, P or O is anything.
type Pattern struct {
	S, P, O  rdfres.Term
	G        rdfres.Term // "" is the default graph
	AnyGraph bool        // G is ignored: all graphs, the default graph among them
}

// Snapshot is the store at one moment. Close it.
type Snapshot struct{}

func (s *Store) Snapshot() (*Snapshot, error) { panic("stub") }
func (n *Snapshot) Close() error              { panic("stub") }

// Match streams the quads that match, in the order of an index.
func (n *Snapshot) Match(p Pattern) iter.Seq2[rdfres.Quad, error] { panic("stub") }

// Count is how many quads match.
func (n *Snapshot) Count(p Pattern) (int64, error) { panic("stub") }

// GraphCount is one graph and its number of triples.
type GraphCount struct {
	Graph   rdfres.Term // "" is the default graph
	Triples int64
}

// Graphs are the graphs that hold triples, the default graph first when it does.
func (n *Snapshot) Graphs() ([]GraphCount, error) { panic("stub") }
