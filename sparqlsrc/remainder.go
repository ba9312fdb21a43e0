package sparqlsrc

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// PartOf is the graphs that a set reads (Config.Graphs, Config.Describe). A store whose
// default graph shows all graphs has them in Part.Default.
func PartOf(graphs []string, describe string) (p sparql.Part) {
	byGraph := describe == "graph"
	switch {
	case len(graphs) == 0 && byGraph:
		p.Named = true
	case len(graphs) == 0:
		p.Default = true
	case graphs[0] == "*":
		p.Named, p.Default = true, !byGraph
	default:
		p = p.And(sparql.Part{Graphs: graphs})
	}
	return p
}

// RemainderPatience is how long a store may count what is outside of the sets.
const RemainderPatience = 10 * time.Second

// Remainder counts what the store holds outside of this set and of Config.Others. A
// CONSTRUCT that names graphs itself may read any of them: then nothing is left out.
func (s *Source) Remainder(ctx context.Context) (sparql.Remainder, error) {
	if s.construct != nil && s.construct.graphs {
		return sparql.Remainder{}, nil
	}
	product, _, err := s.client.Who(ctx)
	if err != nil {
		return sparql.Remainder{}, err
	}
	part := PartOf(s.cfg.Graphs, s.cfg.Describe).And(s.cfg.Others)
	return s.client.Remainder(ctx, part, product, RemainderPatience), context.Cause(ctx)
}

// restCount counts statements by graph, on disk: graphs may be millions.
type restCount struct {
	graphs *extsort.Sorter // a run of statements of one graph: its key, its length and name
	graph  []byte          // of the run under way
	run    uint64
}

// add counts a statement of a graph, a canonical term.
func (r *restCount) add(graph []byte) error {
	if r.run > 0 && string(graph) != string(r.graph) {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.graph = append(r.graph[:0], graph...)
	r.run++
	return nil
}

func (r *restCount) flush() error {
	key := rdfres.EntityKey(string(r.graph))
	v := append(binary.AppendUvarint(nil, r.run), r.graph...)
	r.run = 0
	return r.graphs.Add(key[:], v)
}

// remainder is the sum.
func (r *restCount) remainder() (out sparql.Remainder, err error) {
	if r.run > 0 {
		if err := r.flush(); err != nil {
			return out, err
		}
	}
	var key rdfres.Digest
	var graph rdfres.Term
	n := int64(0)
	end := func() {
		if n > 0 {
			out.Add(graph, n)
		}
	}
	for rec, err := range r.graphs.Sort() {
		if err != nil {
			return out, err
		}
		run, size := binary.Uvarint(rec.Value)
		if string(key[:]) != string(rec.Key) {
			end()
			copy(key[:], rec.Key)
			graph, n = rdfres.Term(rec.Value[size:]), 0
		}
		n += int64(run)
	}
	end()
	return out, nil
}
