package sparql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// write probes writing in a scratch graph, and removes the graph whatever happens.
func (p *prober) write(caller context.Context) {
	ctx := context.WithValue(caller, onceKey{}, true)
	scratch := "<" + ScratchGraph(time.Now()) + ">"
	defer func() {
		if refused(p.caps.WriteError) {
			return // nothing was written, and this would be refused too
		}
		// Also after the caller has given up, and with all retries.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), time.Minute)
		defer cancel()
		if err := p.remove(ctx, scratch); err != nil {
			p.c.conn.log.Warn("probe: the scratch graph could not be removed; drop it by hand", "graph", scratch, "err", err)
		}
	}()
	p.within(ctx, writeTime, "normal form", func(ctx context.Context) error { return p.normalForm(ctx, scratch) })
	if !p.caps.Writable {
		return
	}
	p.step(ctx, "atomic requests", func(ctx context.Context) error { return p.transactional(ctx, scratch) })
	if !p.brief {
		p.step(ctx, "labels", func(ctx context.Context) error { return p.writtenLabels(ctx, scratch) })
		p.step(ctx, "update size", func(ctx context.Context) error { return p.updateSize(ctx, scratch) })
	}
	if p.speed {
		p.step(ctx, "write speed", func(ctx context.Context) error { return p.writeSpeed(ctx, scratch) })
	}
}

// leftovers finds scratch graphs of other probes, and removes those of ended probes. Graphs of
// earlier versions hold no mark, but the literals of normalForm.
func (p *prober) leftovers(ctx context.Context, remove bool) error {
	q, err := probes.Prepare("scratch", map[string]any{"Subjects": string(ScratchMark.S + " " + rdfres.ProbeTriples()[0].S)})
	if err != nil {
		return err
	}
	found, err := p.c.iris(ctx, q)
	if err != nil {
		return err
	}
	p.caps.Scratch.Left = slices.DeleteFunc(found, func(g string) bool {
		if !strings.HasPrefix(g, ownProbes) {
			return true // somebody's copy of one
		}
		name, err := EscapeIRI(g)
		if err != nil || !remove || !isLeft(g, time.Now()) {
			return false
		}
		if err := p.remove(ctx, name); err != nil {
			p.c.conn.log.Warn("probe: a scratch graph that was left could not be removed; drop it by hand", "graph", g, "err", err)
			return false
		}
		p.c.conn.log.Info("probe: a scratch graph is removed that a probe had left", "graph", g)
		p.caps.Scratch.Removed = append(p.caps.Scratch.Removed, g)
		return true
	})
	return nil
}

// remove removes the scratch graph, and again if an abandoned write arrives after that.
func (p *prober) remove(ctx context.Context, scratch string) error {
	for range 5 {
		if err := p.prepared(ctx, "drop", map[string]any{"Graph": scratch}); err != nil {
			return err
		}
		left, err := p.c.Ask(ctx, "ASK { GRAPH "+scratch+" { ?s ?p ?o } }")
		if err != nil || !left {
			return err
		}
	}
	return errors.New("it is written to again and again")
}

func (p *prober) prepared(ctx context.Context, name string, data map[string]any) error {
	q, err := probes.Prepare(name, data)
	if err != nil {
		return err
	}
	return whole(ctx, func(ctx context.Context) error { return p.c.Update(ctx, q) })
}

// lateTime is how long a write is waited for when the caller has given up.
const lateTime = 2 * time.Second

// whole runs a write to its end, some time longer than the caller waits: a write cut off may still
// be done, after its graph was removed (Oxigraph).
func whole(ctx context.Context, write func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	end, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lateTime):
			cancel()
		case <-end.Done():
		}
	})()
	return cmp.Or(write(end), context.Cause(ctx))
}

// normalForm writes literals of many spellings and compares the answer.
func (p *prober) normalForm(ctx context.Context, scratch string) error {
	var samples []rdfres.Triple
	var lines []string
	for _, t := range append([]rdfres.Triple{ScratchMark}, rdfres.ProbeTriples()...) {
		line, err := triplePattern(t)
		if err != nil {
			continue // cannot be written by an update at all
		}
		samples, lines = append(samples, t), append(lines, line)
	}
	written, err := p.insert(ctx, scratch, samples, lines)
	if len(written) == 0 {
		p.caps.WriteError = err
		return err
	}
	p.caps.Writable = true
	q, err := probes.Prepare("sample", map[string]any{"Pattern": "GRAPH " + scratch + " { ?s ?p ?o }", "Limit": sampleSize})
	if err != nil {
		return err
	}
	sol, err := p.c.SelectAs(ctx, q, ReadSelectJSON)
	if err != nil {
		return err
	}
	var read []rdfres.Triple
	for row, err := range sol.Rows {
		if err != nil {
			return err
		}
		read = append(read, rdfres.Triple{S: row[0], P: row[1], O: row[2]})
	}
	if len(read) == 0 {
		return fmt.Errorf("%d triples were written and none came back", len(written))
	}
	p.caps.NormalForm, p.caps.Unexplained = rdfres.DetectNormalForm(written, read)
	// Nothing else has these, so this is more than a sample of the data can tell; whatever
	// the store made of the literal.
	p.caps.UnionDefault, err = p.inDefault(ctx, []string{fmt.Sprintf("<%s> <%s> ?o .", written[0].S.IRI(), written[0].P.IRI())})
	return err
}

// insert writes samples, and returns the accepted ones: a refused one (Virtuoso: an integer beyond
// 64 bits) must not hide the rewriting of the others.
func (p *prober) insert(ctx context.Context, scratch string, samples []rdfres.Triple, lines []string) ([]rdfres.Triple, error) {
	err := p.prepared(ctx, "insert", map[string]any{"Graph": scratch, "Data": strings.Join(lines, "")})
	var e *Error
	switch {
	case err == nil:
		return samples, nil
	case len(samples) == 1 || !errors.As(err, &e) || e.Temporary || refused(err):
		return nil, err
	}
	half := len(samples) / 2
	a, err1 := p.insert(ctx, scratch, samples[:half], lines[:half])
	b, err2 := p.insert(ctx, scratch, samples[half:], lines[half:])
	return append(slices.Clone(a), b...), errors.Join(err1, err2)
}

// refused tells whether an error concerns writing at all, and not the written triples.
func refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusInsufficientStorage}, e.Status)
}

func triplePattern(t rdfres.Triple) (string, error) {
	var parts [3]string
	for i, term := range []rdfres.Term{t.S, t.P, t.O} {
		s, err := EscapeTerm(term)
		if err != nil {
			return "", err
		}
		parts[i] = s
	}
	return strings.Join(parts[:], " ") + " .\n", nil
}

// transactional sends requests with a failing second operation, and looks whether the first was
// kept.
func (p *prober) transactional(ctx context.Context, scratch string) error {
	failed := false
	for _, name := range []string{"insert-then-load", "insert-then-create"} {
		data := fmt.Sprintf("<urn:rsbridge:probe:atomic> <urn:rsbridge:probe:p> %q .", name)
		limited, cancel := context.WithTimeout(ctx, 4*time.Second)
		err := p.prepared(limited, name, map[string]any{"Graph": scratch, "Data": data})
		cancel()
		if err == nil {
			continue // it did not fail, so nothing is learned
		}
		q, err := probes.Prepare("ask", map[string]any{"Pattern": "GRAPH " + scratch + " { " + data + " }"})
		if err != nil {
			return err
		}
		kept, err := p.c.Ask(ctx, q)
		if err != nil {
			return err
		}
		if kept {
			p.caps.Transactional = false
			return nil
		}
		failed = true
	}
	p.caps.Transactional = failed
	return nil
}

// writtenLabels probes labels in a scratch graph if the graphs themselves hold no blank nodes.
func (p *prober) writtenLabels(ctx context.Context, scratch string) error {
	var data strings.Builder
	for i := range 6 {
		fmt.Fprintf(&data, "_:b%d <urn:rsbridge:probe:label> \"%d\" .\n", i, i)
	}
	if err := p.prepared(ctx, "insert", map[string]any{"Graph": scratch, "Data": data.String()}); err != nil {
		return err
	}
	if p.caps.StableLabels {
		return nil
	}
	q := *p
	q.pattern = "GRAPH " + scratch + " { ?s ?p ?o }"
	if err := q.stableLabels(ctx); err != nil {
		return err
	}
	p.caps.StableLabels = q.caps.StableLabels
	return nil
}

// updateSize finds how many triples an INSERT DATA may hold.
func (p *prober) updateSize(ctx context.Context, scratch string) error {
	for _, n := range []int{100, 1000, 5000, 20000} {
		start := time.Now()
		var data strings.Builder
		for i := range n {
			fmt.Fprintf(&data, "<urn:rsbridge:probe:size:%d> <urn:rsbridge:probe:p> \"%d\" .\n", i, i)
		}
		if err := p.prepared(ctx, "insert", map[string]any{"Graph": scratch, "Data": data.String()}); err != nil {
			return err
		}
		p.caps.UpdateTriples = n
		if time.Since(start) > time.Second {
			return nil // the next would take too long: an abandoned update may still be done, after its graph was removed
		}
	}
	return nil
}
