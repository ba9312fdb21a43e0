// Package sparqlsrc enumerates the entities of a SPARQL endpoint and describes
// each of them.
package sparqlsrc

import (
	"context"
	"iter"
	"log/slog"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Select says which entities are of the set; the zero value is every subject that is an IRI.
type Select struct {
	Classes  []string
	Prefixes []string
	Query    string // a SELECT; its first variable (or ?entity) names the entities
}

// Config of a source.
type Config struct {
	Name                  string
	Graphs                []string // nil: the default graph; "*": all
	Select                Select
	Describe              string // "cbd" (default), "scbd", or a CONSTRUCT with ?entity
	TempDir               string // spill files; removed by Close
	MemoryBytes           int64  // for sorting; default 64 MiB
	MaxDescriptionTriples int    // default 2,000,000: beyond it the entity fails, by name
	MaxDepth              int    // of blank nodes; default 100,000
	BatchSize             int    // entities a query where batches are needed; default 200, adapts
	WorkLimit             int    // of naming
	Strategy              string // "", "whole", "batches"
	Logger                *slog.Logger
	Progress              func(stage string, done, total int64)
}

// Source reads one store.
type Source struct{}

func New(c *sparql.Client, cfg Config) (*Source, error) { panic("stub") }

// Stats of a scan, complete once it is read.
type Stats struct {
	Triples   int64 // in the graphs
	Covered   int64 // of them in at least one description
	LeftOut   int64 // by the selection
	Entities  int64
	Orphans   int64 // components that no IRI leads to
	Requests  int64
	Bytes     int64
	Truncated int64  // answers that were cut and asked again
	Way       string // how it was read
}

// Scan is a complete, verified download, grouped by entity on disk. Close it.
type Scan struct{}

// Scan downloads and groups. It returns only when everything was received and
// the counts agree; any short, cut or refused answer is an error.
func (s *Source) Scan(ctx context.Context) (*Scan, error) { panic("stub") }

// Descriptions yields the entities in the order of rdfres.EntityKey, once.
func (sc *Scan) Descriptions() iter.Seq2[rdfres.Description, error] { panic("stub") }
func (sc *Scan) Stats() Stats                                       { panic("stub") }

// Failed are the entities that could not be described, with the reason (work limit, bounds).
func (sc *Scan) Failed() map[string]error { panic("stub") }
func (sc *Scan) Close() error             { panic("stub") }

// Describe describes the named entities by batches of VALUES; one that is not
// there (any more) comes with no triples. Every owner of a touched blank-node
// component is described too.
func (s *Source) Describe(ctx context.Context, entities []string) ([]rdfres.Description, error) {
	panic("stub")
}
