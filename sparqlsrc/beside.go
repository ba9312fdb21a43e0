package sparqlsrc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Replicas are servers with the data of the store. A scan reads them beside it, by predicates: a predicate is a range
// of an index in every store, and a part by the hash of the subject costs a look at everything. The store alone
// gives the triples with blank nodes, because labels hold within one answer. A replica with another number of triples is
// left out, and one that fails for the rest of the scan.

// errBeside is about replicas that do not make up for the store.
var errBeside = fmt.Errorf("%w: the store and its replicas do not hold the same triples", ErrShort)

// beside reads a scope from the store and its replicas at once. done is false where the store is to be read alone:
// without replicas, for few triples, with another strategy, and after an error.
func (s *Source) beside(ctx context.Context, caps sparql.Capabilities, scope *scope, sc *Scan) (done bool, err error) {
	if len(s.cfg.Replicas) == 0 || s.cfg.Strategy != "" && s.cfg.Strategy != "predicates" {
		return false, nil
	}
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + scope.all() + "}"
	before, err := s.client.Count(ctx, count)
	if err != nil {
		return false, fmt.Errorf("count before reading: %w", err)
	}
	if s.cfg.Strategy == "" && before <= s.many {
		return false, nil
	}
	replicas := equalReplicas(ctx, s, count, before)
	if len(replicas) == 0 {
		return false, context.Cause(ctx)
	}
	g, err := newGrouper(&s.cfg, s.scbd)
	if err != nil {
		return false, err
	}
	defer func() {
		if !done {
			_ = g.close() // err counts
		}
	}()
	r := newPredicateReader(s, caps, scope, g, func() { s.cfg.Progress("read", g.rows, before) })
	r.replicas = replicas
	r.construct = r.construct && (caps.WholeFirst() || caps.Speed[sparql.ReadConstruct] > caps.Speed[caps.SelectReading()])
	if err := r.besides(ctx, scope, before/int64(2+2*len(replicas))+1); err != nil {
		return false, err
	}
	after, err := s.client.Count(ctx, count)
	if err != nil {
		return false, fmt.Errorf("count after reading: %w", err)
	}
	if n := g.rows - r.again; n < min(before, after) || n > max(before, after) {
		return false, fmt.Errorf("%w: %d came; the store counts %d before and %d after", errBeside, n, before, after)
	}
	sc.took(ctx, s, g, scope, before, after, nil)
	sc.stats.Way = "predicates"
	return true, nil
}

// equalReplicas are the replicas with as many triples as the store.
func equalReplicas(ctx context.Context, s *Source, count string, before int64) (equal []*sparql.Client) {
	fits := make([]bool, len(s.cfg.Replicas))
	var asking sync.WaitGroup
	for i, c := range s.cfg.Replicas {
		asking.Go(func() {
			n, err := c.Count(ctx, count)
			if err == nil && n != before { // somebody may write
				var now int64
				if now, err = s.client.Count(ctx, count); err == nil && (n < min(before, now) || n > max(before, now)) {
					err = fmt.Errorf("it holds %d triples, and the store %d", n, now)
				}
			}
			if fits[i] = err == nil; err != nil && ctx.Err() == nil {
				s.log.Warn("a replica is left out of the scan", "replica", c.Endpoint().Name, "err", err)
			}
		})
	}
	asking.Wait()
	for i, c := range s.cfg.Replicas {
		if fits[i] {
			equal = append(equal, c)
		}
	}
	return equal
}

// besides reads everything: bunches of at most so many triples, the largest first, and the triples with blank nodes.
func (r *predicateReader) besides(ctx context.Context, scope *scope, most int64) error {
	bunches, err := r.bunches(ctx, min(most, bunchTriples))
	if err != nil {
		return err
	}
	bunches = inPieces(bunches, most)
	slices.SortStableFunc(bunches, func(a, b bunch) int { return int(min(max(b.total-a.total, -1), 1)) })
	readers, ctx := errgroup.WithContext(ctx)
	blanks := make(chan struct{}) // closed when they are read
	readers.Go(func() error {
		defer close(blanks)
		if err := r.s.readCounted(ctx, r.caps, scope.all()+"FILTER(isBlank(?s) || isBlank(?o)) ", r.construct, r.add); err != nil {
			return fmt.Errorf("read the triples with blank nodes: %w", err)
		}
		return nil
	})
	readers.Go(func() error {
		if done, err := r.byHands(ctx, bunches); done || err != nil {
			return err
		}
		return r.byLanes(ctx, bunches, blanks)
	})
	return readers.Wait()
}

// byLanes reads bunches here, from all servers, and from the store once it has given the triples with blank nodes.
func (r *predicateReader) byLanes(ctx context.Context, bunches []bunch, blanks <-chan struct{}) error {
	work := make(chan *bunch, len(bunches))
	for i := range bunches {
		work <- &bunches[i]
	}
	close(work)
	lanes, ctx := errgroup.WithContext(ctx)
	for _, from := range append([]*sparql.Client{r.s.client}, r.replicas...) {
		for range max(1, from.Endpoint().Concurrency) {
			lanes.Go(func() error {
				if from == r.s.client {
					<-blanks
				}
				return r.lane(ctx, from, work)
			})
		}
	}
	return lanes.Wait()
}

// lane reads bunches from a server, one after the other, and in place of a replica that fails from the store.
func (r *predicateReader) lane(ctx context.Context, from *sparql.Client, work <-chan *bunch) error {
	for b := range work {
		kept, err := r.bunch(ctx, from, b, r.construct)
		if err != nil && from != r.s.client && ctx.Err() == nil {
			r.s.log.Warn("a replica is left out for the rest of the scan, and the store is read in its place", "replica", from.Endpoint().Name, "err", err)
			from = r.s.client
			r.took(kept)
			_, err = r.bunch(ctx, from, b, r.construct)
		}
		if err != nil {
			return fmt.Errorf("read by predicates: %w", err)
		}
	}
	return nil
}

// hexDigits begin the hashes by which a predicate is cut.
const hexDigits = "0123456789abcdef"

// inPieces cuts predicates with more triples than most by the hash of their subjects, into 16 pieces at most. No hash
// is as short as its bounds.
func inPieces(bunches []bunch, most int64) (out []bunch) {
	for _, b := range bunches {
		n := min((b.total+most-1)/most, int64(len(hexDigits)))
		if n < 2 || len(b.predicates) > 1 {
			out = append(out, b)
			continue
		}
		for i := range n {
			var bounds []string
			if i > 0 {
				bounds = append(bounds, `MD5(STR(?s)) > "`+string(hexDigits[i*16/n])+`"`)
			}
			if i < n-1 {
				bounds = append(bounds, `MD5(STR(?s)) < "`+string(hexDigits[(i+1)*16/n])+`"`)
			}
			piece := b
			piece.total, piece.piece = b.total/n, "FILTER("+strings.Join(bounds, " && ")+") "
			out = append(out, piece)
		}
	}
	return out
}
