package embedstore

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/rsbridge/rsbridge/rdfres"
)

// DumpOptions choose the content of a Dump.
type DumpOptions struct {
	Graph string // IRI of a named graph; "" is the default graph
	All   bool   // every graph; the format must be NQuads, TriG or JSONLD
}

// Dump writes one graph, or all of them, from one snapshot. A missing graph is empty.
func (s *Store) Dump(ctx context.Context, w io.Writer, f rdfres.Format, o DumpOptions) error {
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return snap.dump(ctx, w, f, o)
}

func (n *Snapshot) dump(ctx context.Context, w io.Writer, f rdfres.Format, o DumpOptions) error {
	if o.All && f != rdfres.NQuads && f != rdfres.TriG && f != rdfres.JSONLD {
		return fmt.Errorf("dump all graphs: %s holds triples of one graph only: use N-Quads, TriG or JSON-LD", f)
	}
	bw := bufio.NewWriterSize(w, 64<<10)
	gw, err := newGraphWriter(bw, f)
	if err != nil {
		return err
	}
	pat := quad{}
	if !o.All && o.Graph != "" {
		g, err := lookup(n.v, iriTerm(o.Graph))
		if err != nil {
			return err
		}
		if g == 0 {
			if err := gw.end(); err != nil {
				return err
			}
			return bw.Flush()
		}
		pat[posG] = g
	}
	ctx, cancel := n.s.bound(ctx)
	defer cancel()
	r := newTermReader(n.v, nil)
	defer r.close()
	rows := r.walk(4, func(terms []string) error {
		for i := 0; i < len(terms); i += 4 {
			g := terms[i+3]
			if !o.All {
				g = ""
			}
			if err := gw.write(terms[i], terms[i+1], terms[i+2], g); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	rows.free, rows.apart = !o.All || f == rdfres.NQuads, true
	defer rows.wait()
	a := access{3, 1}
	if o.All {
		a = access{3, 0}
	}
	var ferr error
	err = scan(n.v, nil, a, &pat, !o.All, func(q *quad) bool {
		ferr = rows.add(q[:]...)
		return ferr == nil
	})
	if err == nil {
		err = ferr
	}
	if err == nil {
		err = rows.flush()
	}
	if err == nil {
		err = gw.end()
	}
	if err != nil {
		return err
	}
	return bw.Flush()
}
