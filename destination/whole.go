package destination

import (
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"

	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Stores that have the Graph Store Protocol and no SPARQL Update. A per-entity
// graph is put or deleted by itself; a single graph cannot lose a triple but by
// being put whole, which is done once, at the end of a run.

func (d *Destination) putEntities(ctx context.Context, changes []*delta, p *sink.Batch) error {
	for _, g := range p.DropGraphs {
		if err := d.mirror.Client.DeleteGraph(ctx, g); err != nil {
			return err
		}
	}
	for _, ch := range changes {
		if ch.same || ch.newGraph == "" {
			continue
		}
		var text []byte
		for i := range ch.newSts {
			text = ch.newSts[i].Triple.AppendLine(text)
		}
		err := d.mirror.Client.PutGraph(ctx, ch.newGraph, rdfres.NTriples, sparql.Body(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// putsWhole tells a mirror whose graph is put whole at the end of a run.
func (d *Destination) putsWhole() bool { return d.mirror.GSPOnly() && !d.mirror.Layout.PerEntity }

// putWhole puts the single graph of a store without updates from the records of
// every destination that writes into it.
func (d *Destination) putWhole(ctx context.Context) error {
	if !d.putsWhole() || !d.meta.Ahead && !(d.sink != nil && d.sink.absent()) {
		return nil
	}
	d.spaceL.Lock()
	defer d.spaceL.Unlock()
	var owned int64
	both, putting := errgroup.WithContext(ctx) // the end of putting waits for a disk or a store
	both.Go(func() error { return d.putLines(putting) })
	countable := d.mirror.Countable()
	if countable {
		both.Go(func() (err error) {
			owned, err = d.owned(putting)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return fmt.Errorf("put the graph: %w", err)
	}
	if countable {
		if held, err := d.mirror.Count(ctx); err != nil {
			d.log.Debug("what was put cannot be counted", "error", err)
		} else if held < owned {
			return fmt.Errorf("put the graph: %w: %d triples are not there", sparqlsink.ErrUnconfirmed, owned-held)
		}
	}
	if err := d.crashAt("written"); err != nil {
		return err
	}
	return d.checkpoint(ctx, d.meta.Stage, func(m *meta) { m.Ahead = false })
}

// putLines replaces the graph.
func (d *Destination) putLines(ctx context.Context) error {
	if d.sink != nil {
		metas, err := d.metas()
		if err != nil {
			return err
		}
		var authorities []string
		for _, name := range slices.Sorted(maps.Keys(metas)) {
			if m := metas[name]; m.Space == d.space {
				authorities = append(authorities, m.Authority)
			}
		}
		return d.sink.replace(d.mirror.Layout.Graph, authorities, func(put putPart) error { return d.eachWhole(ctx, put) })
	}
	return d.mirror.Client.PutGraph(ctx, d.mirror.Layout.Graph, rdfres.NTriples, func() (io.ReadCloser, error) {
		pr, pw := io.Pipe()
		go func() { // ends when the request has read everything or closes the pipe
			w := bufio.NewWriterSize(pw, 256<<10)
			lay := d.mirror.Layout
			err := d.eachWhole(ctx, func(authority string, wire []byte) error {
				lay.Authority = authority
				lines, err := linesOf(&lay, wire)
				if err == nil {
					_, err = w.Write(lines)
				}
				return err
			})
			if err == nil {
				err = w.Flush()
			}
			pw.CloseWithError(err)
		}()
		return pr, nil
	})
}

// putPart takes lines of some resources, canonical N-Triples, whose blank nodes are
// those of an authority. It does not keep them.
type putPart func(authority string, lines []byte) error

// partBytes are about those of the lines of a part.
const partBytes = 64 << 10

// eachWhole hands out what stands in the single graph, with its blank nodes, whole
// resources at a time. They are read beside put.
func (d *Destination) eachWhole(ctx context.Context, put putPart) error {
	type part struct {
		authority string
		lines     []byte
	}
	ready, spent := make(chan part, 2), make(chan []byte, 4)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		defer close(ready)
		return d.readWhole(ctx, func(authority string, lines []byte) (empty []byte, err error) {
			select {
			case ready <- part{authority, lines}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			select {
			case empty = <-spent:
			default:
			}
			return empty, nil
		})
	})
	both.Go(func() error {
		for p := range ready {
			if err := put(p.authority, p.lines); err != nil {
				return err
			}
			spent <- p.lines[:0] // there are no more than it has room for
		}
		return nil
	})
	return both.Wait()
}

// readWhole gives the lines away, for a buffer to read on into.
func (d *Destination) readWhole(ctx context.Context, give func(authority string, lines []byte) (empty []byte, err error)) error {
	snap := d.store.Snapshot()
	defer snap.Close()
	var lines, one []byte
	for m, err := range ledger.All(snap) {
		if err != nil {
			return err
		}
		if m.Space != d.space {
			continue
		}
		prefix := ledger.Key(ledger.KindBody, m.Dest)
		for body, err := range snap.Scan(prefix, kv.PrefixEnd(prefix)) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil {
				one, err = ledger.UnpackInto(one, body.Value)
			}
			if lines = append(lines, one...); err == nil && len(lines) >= partBytes {
				lines, err = give(m.Authority, lines)
			}
			if err != nil {
				return err
			}
		}
		if len(lines) > 0 {
			if lines, err = give(m.Authority, lines); err != nil {
				return err
			}
		}
	}
	return nil
}

// linesOf are those of a kept representation as they stand in the mirror.
func linesOf(l *sink.Layout, wire []byte) ([]byte, error) {
	if !hasBlank(wire) && len(l.NormalForm.Rules) == 0 {
		return wire, nil // as it is
	}
	ts, err := ledger.ParseWire(wire)
	if err != nil {
		return nil, err
	}
	sts, err := l.Statements("", ts)
	if err != nil {
		return nil, err
	}
	lines := make([]byte, 0, 2*len(wire))
	for i := range sts {
		lines = sts[i].Triple.AppendLine(lines)
	}
	return lines, nil
}

var blankMark = []byte("_:") // of a blank node

// hasBlank tells whether one of the triples of lines has a blank node.
func hasBlank(lines []byte) bool {
	if !bytes.Contains(lines, blankMark) {
		return false
	}
	for line := range bytes.Lines(lines) {
		_, rest, _ := bytes.Cut(line, space)
		_, object, _ := bytes.Cut(rest, space)
		if bytes.HasPrefix(line, blankMark) || bytes.HasPrefix(object, blankMark) {
			return true
		}
	}
	return false
}

var space = []byte(" ")

// pull reads the keys of a sorter one by one.
func pull(s *extsort.Sorter) (next func() (ledger.Hash, bool, error), stop func()) {
	step, stop := iter.Pull2(s.Sort())
	return func() (h ledger.Hash, ok bool, err error) {
		rec, err, ok := step()
		if ok && err == nil {
			copy(h[:], rec.Key)
		}
		return h, ok, err
	}, stop
}
