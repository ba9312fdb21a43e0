package sparqlsrc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// DumpOptions name the files of a series and their order.
type DumpOptions struct {
	dumpfile.Series
	// Settle is how long a file must have been left alone before it is read;
	// default 2s. A scan waits for it.
	Settle time.Duration
	// Proof is the proof of a whole file, see [dumpfile.CheckProof]; "": a checksum and a
	// count beside it, if there are any.
	Proof string
}

// Dumps is a source without a store: the newest complete file of a series is the state.
// Its descriptions are those of a store with the same triples.
type Dumps struct {
	s *Source
	o DumpOptions
}

// NewDumps makes a source of files; it opens none. Config.Describe is cbd, scbd
// or graph, and Select.Query empty: there is nobody to answer a query.
func NewDumps(cfg Config, o DumpOptions) (*Dumps, error) {
	s, err := newSource(nil, cfg)
	if err != nil {
		return nil, err
	}
	fail := func(format string, a ...any) (*Dumps, error) {
		return nil, fmt.Errorf("source %q: %w", cfg.Name, fmt.Errorf(format, a...))
	}
	switch {
	case len(o.Patterns) == 0:
		return fail("dumps: no files are named")
	case s.construct != nil:
		return fail("dumps cannot be described by a CONSTRUCT: load them into a store (rsbridge store load)")
	case cfg.Select.Query != "":
		return fail("dumps cannot be asked a select query: load them into a store (rsbridge store load)")
	}
	o.Patterns = slices.Clone(o.Patterns)
	for i, p := range o.Patterns {
		if o.Patterns[i], err = filepath.Abs(p); err != nil { // as the files will be called, from wherever
			return fail("dumps: %w", err)
		}
		if err := dumpfile.CheckPattern(o.Patterns[i]); err != nil {
			return fail("dumps: %q is no pattern: %w", p, err)
		}
	}
	if o.Settle == 0 {
		o.Settle = 2 * time.Second
	}
	return &Dumps{s: s, o: o}, nil
}

// Files are the files of the series, the newest first.
func (d *Dumps) Files() ([]dumpfile.File, error) { return d.o.Files() }

// DumpScan is the result of a look at the files.
type DumpScan struct {
	*Scan                            // nil: there is nothing new
	File       dumpfile.File         // the state, read now or before
	Proof      string                // of the read file; "": none
	Incomplete []dumpfile.Incomplete // newer ones, passed over
}

// Scan reads the newest complete file. There is nothing new if it is the last one (the zero
// value: none was read), or if the newer ones are not complete yet. A damage in the middle
// of a file is an error with the line; no older file takes its place. With again, the last
// file is read once more, and no older one takes its place either.
func (d *Dumps) Scan(ctx context.Context, last dumpfile.File, again bool) (DumpScan, error) {
	out := DumpScan{File: last}
	files, err := d.o.Files()
	if err != nil {
		return out, fmt.Errorf("scan %s: %w", d.s.cfg.Name, err)
	}
	d.lookAtOrder(files)
	if !d.o.Names(last.Path) {
		last = dumpfile.File{} // the patterns are others now
	}
	for _, f := range files {
		if last.Path != "" && (f.Same(last) && !again || f.Path != last.Path && d.o.Newer(last, f) < 0) {
			break // the older ones were passed already
		}
		sc, proof, err := d.read(ctx, &f)
		if err == nil {
			out.Scan, out.File, out.Proof = sc, f, proof
			if last.Path == "" && proof == "" {
				d.s.log.Warn("nothing tells whether the first dump is whole: one that was cut between two lines looks the same; put its checksum (FILE.sha256) or its number of statements (FILE.count) beside it, or set dumps_proof", "file", f.Path)
			}
			return out, nil
		}
		var cut *dumpfile.CutError
		if !errors.As(err, &cut) {
			return out, fmt.Errorf("scan %s: %w", d.s.cfg.Name, err)
		}
		d.s.log.Warn("a dump is not complete; the state stays as it is until it is", "file", f.Path, "why", cut)
		out.Incomplete = append(out.Incomplete, dumpfile.Incomplete{File: f, Why: cut.Error()})
	}
	if last.Path == "" {
		return out, fmt.Errorf("scan %s: dumps: none of the %d files is complete; %s: %s", d.s.cfg.Name, len(files), files[0].Path, out.Incomplete[0].Why)
	}
	if again {
		return out, fmt.Errorf("scan %s: dumps: %s, which is the state, cannot be read again, and there is no newer file that is complete", d.s.cfg.Name, last.Path)
	}
	return out, nil
}

// lookAtOrder warns if the order of names is not that of times.
func (d *Dumps) lookAtOrder(files []dumpfile.File) {
	latest := slices.MaxFunc(files, func(a, b dumpfile.File) int { return a.Modified.Compare(b.Modified) })
	if !d.o.ByTime && latest.Modified.After(files[0].Modified) {
		d.s.log.Info("the newest dump by its name is not the one that was changed last; dumps_order says what counts", "newest", files[0].Path, "changed last", latest.Path)
	}
}

// read reads one file. f is brought up to date while the file settles.
func (d *Dumps) read(ctx context.Context, f *dumpfile.File) (_ *Scan, provenBy string, err error) {
	if *f, err = dumpfile.Settled(ctx, *f, d.o.Settle); err != nil {
		return nil, "", err
	}
	in, err := dumpfile.Open(f.Path, d.o.Proof)
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	g, err := newGrouper(&d.s.cfg, d.s.scbd)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	sc := &Scan{cfg: &d.s.cfg, group: g, selects: !d.s.cfg.Select.isZero(), byGraph: d.s.byGraph}
	pick, err := newGraphPick(&d.s.cfg, g.dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = pick.rest.graphs.Close() }() // its folder goes with the grouper's
	statements := 0
	err = in.Each(func(s, p, o, graph []byte) error {
		if statements++; statements&0x3fff == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			d.s.cfg.Progress("read", g.rows, 0)
		}
		switch ok, err := pick.has(graph); {
		case err != nil || !ok:
			return err
		case d.s.byGraph:
			return g.addQuad(graph, s, p, o)
		}
		return g.add(s, p, o)
	})
	if err != nil {
		return nil, "", err
	}
	if zeros := in.Padding(); zeros > 0 {
		d.s.log.Warn("zeros behind the end of a gzip file are ignored; where its writer does not fill it up, a part of it may be missing", "file", f.Path, "zeros", zeros)
	}
	if provenBy, err = in.Whole(); err != nil {
		return nil, "", err
	}
	if now, err := dumpfile.Stat(f.Path); err != nil || !now.Same(*f) {
		return nil, "", &dumpfile.CutError{Why: "it changed while it was read"}
	}
	if statements > 0 && g.rows == 0 && pick.own == 0 {
		return nil, "", fmt.Errorf("%s: none of its %d statements is in the graphs of the set (the first is in %s); set graphs, \"*\" for all", f.Path, statements, cmp.Or(pick.other, "the default graph"))
	}
	d.s.cfg.Progress("read", g.rows, g.rows)
	if err := g.finish(ctx); err != nil {
		return nil, "", err
	}
	sc.rows = g.rows
	sc.stats = Stats{Triples: g.rows, Own: pick.own, Bytes: in.Bytes(), Way: "dump"}
	if sc.rest, err = pick.rest.remainder(); err != nil {
		return nil, "", err
	}
	if pick.own > 0 {
		d.s.log.Info("graphs of rsbridge itself are left out", "triples", pick.own)
	}
	return sc, provenBy, nil
}

// Confirm is a second look before deletions are logged: the file must be unchanged since
// it was read. It describes nothing.
func (d *Dumps) Confirm(f dumpfile.File) func(context.Context, []string) ([]rdfres.Description, error) {
	return func(context.Context, []string) ([]rdfres.Description, error) {
		now, err := dumpfile.Stat(f.Path)
		if err == nil && !now.Same(f) {
			err = fmt.Errorf("%s changed since it was read; scan again", f.Path)
		}
		return nil, err
	}
}

// graphPick selects graphs of a file.
type graphPick struct {
	mine, every sparql.Part // of the set, and with all other sets of the file
	own         int64       // statements of rsbridge's own graphs
	rest        *restCount  // triples of no set
	other       string      // a graph left out

	last   []byte // the last graph and the decision
	reads  bool
	isOwn  bool
	counts bool
}

func newGraphPick(cfg *Config, dir string) (*graphPick, error) {
	mine := PartOf(cfg.Graphs, cfg.Describe)
	sorter, err := extsort.New(dir, cfg.MemoryBytes/16)
	return &graphPick{mine: mine, every: mine.And(cfg.Others), rest: &restCount{graphs: sorter}}, err
}

func (p *graphPick) has(graph []byte) (bool, error) {
	if p.last == nil || string(graph) != string(p.last) {
		p.last = append(make([]byte, 0, max(1, len(graph))), graph...)
		p.isOwn = isOwnGraph(graph)
		// A graph named by a blank node is read with everything else, and not alone.
		blank := len(graph) > 0 && graph[0] == '_'
		in := func(part sparql.Part) bool {
			return part.Has(rdfres.Term(graph)) || blank && part.Named && part.Default
		}
		p.reads = !p.isOwn && in(p.mine)
		p.counts = !p.isOwn && !p.reads && !in(p.every)
		if !p.reads && !p.isOwn && p.other == "" {
			p.other = string(graph)
		}
	}
	if p.isOwn && p.mine.Named {
		p.own++
	}
	if p.counts {
		return false, p.rest.add(graph)
	}
	return p.reads, nil
}

// isOwnGraph is sparql.IsOwnGraph of a canonical term.
func isOwnGraph(graph []byte) bool {
	return len(graph) > 0 && graph[0] == '<' && sparql.IsOwnGraph(iriOf(graph))
}
