package sparqlsrc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// DumpFile is a file of a series: N-Triples, N-Quads or Turtle, plain or packed
// with gzip, zstd or bzip2.
type DumpFile struct {
	Path     string    `json:"file"`
	Bytes    int64     `json:"bytes"` // as it lies there
	Modified time.Time `json:"modified"`
}

// Same tells whether it is the file that o was: path, size and time of change.
func (f DumpFile) Same(o DumpFile) bool {
	return f.Path == o.Path && f.Bytes == o.Bytes && f.Modified.Equal(o.Modified)
}

// IncompleteDump is a file that was passed over, and why.
type IncompleteDump struct {
	DumpFile
	Why string `json:"why"`
}

// DumpOptions say which files there are, and which of them is the newest.
type DumpOptions struct {
	Patterns []string // of paths, as path/filepath.Match has them; what is there by such a name is meant itself
	// ByTime: the newest is the one that was changed last. Otherwise it is the
	// last by its name, runs of digits compared as numbers, suffixes left out. Each
	// decides where the other cannot.
	ByTime bool
	// Settle is how long a file must have been left alone before it is read;
	// default 2s. A scan waits for it.
	Settle time.Duration
	// Proof is what tells that a file is whole, see CheckProof; "": a checksum file
	// where there is one.
	Proof string
}

// Dumps is a source without a store: the newest complete file of a series is the
// state. It gives what a scan of a store that holds that file would give.
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
		if err := CheckDumps(o.Patterns[i]); err != nil {
			return fail("dumps: %q is no pattern: %w", p, err)
		}
	}
	if o.Settle == 0 {
		o.Settle = 2 * time.Second
	}
	return &Dumps{s: s, o: o}, nil
}

// CheckDumps tells whether a pattern of paths is one.
func CheckDumps(pattern string) error {
	_, err := filepath.Match(literally(pattern), "")
	return err
}

// literally is a pattern in which the folders at its beginning, and the file, that are
// there by the names that it has are meant themselves, whatever signs those hold: the
// user has not chosen all of them, as where the configuration lies.
func literally(pattern string) string {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern
	}
	there := 0 // so much of it is the name of something
	for end := 1; end <= len(pattern); end++ {
		if end < len(pattern) && !os.IsPathSeparator(pattern[end]) {
			continue
		}
		if _, err := os.Lstat(pattern[:end]); err != nil {
			break
		}
		there = end
	}
	return quoteSigns.Replace(pattern[:there]) + pattern[there:]
}

// quoteSigns has path/filepath.Match take signs for themselves.
var quoteSigns = func() *strings.Replacer {
	signs := []string{"*", "[*]", "?", "[?]", "[", "[[]"}
	if filepath.Separator != '\\' {
		signs = append(signs, `\`, `[\\]`)
	}
	return strings.NewReplacer(signs...)
}()

// Files are the files that the patterns name, the newest first.
func (d *Dumps) Files() ([]DumpFile, error) {
	var out []DumpFile
	seen := map[string]bool{}
	for _, pattern := range d.o.Patterns {
		paths, err := filepath.Glob(literally(pattern))
		if err != nil {
			return nil, fmt.Errorf("dumps %s: %w", pattern, err)
		}
		for _, path := range paths {
			if seen[path] || isProof(path) {
				continue
			}
			seen[path] = true
			f, err := stat(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
				continue // it has just gone, or is a folder
			}
			if err != nil {
				return nil, fmt.Errorf("dumps: %w", err)
			}
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("dumps: no file is named by %s", strings.Join(d.o.Patterns, " or "))
	}
	slices.SortFunc(out, func(a, b DumpFile) int { return d.newer(a, b) })
	return out, nil
}

// names tells whether a path is one that the patterns name, there or not.
func (d *Dumps) names(path string) bool {
	return slices.ContainsFunc(d.o.Patterns, func(p string) bool {
		ok, _ := filepath.Match(literally(p), path) // checked by NewDumps
		return ok
	})
}

// newer sorts the newer file first.
func (d *Dumps) newer(a, b DumpFile) int {
	byName, byTime := compareNames(dumpName(b.Path), dumpName(a.Path)), b.Modified.Compare(a.Modified)
	last := strings.Compare(b.Path, a.Path)
	if d.o.ByTime {
		return cmp.Or(byTime, byName, last)
	}
	return cmp.Or(byName, byTime, last)
}

var errNoFile = errors.New("it is no file")

func stat(path string) (DumpFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return DumpFile{}, err
	}
	if !info.Mode().IsRegular() {
		return DumpFile{}, fmt.Errorf("%s: %w", path, errNoFile)
	}
	return DumpFile{Path: path, Bytes: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// dumpName is a path without the suffixes that say how the file is written.
func dumpName(path string) string {
	for _, suffixes := range [][]string{{".gz", ".zst", ".zstd", ".bz2"}, {".nt", ".nq", ".ttl"}} {
		for _, s := range suffixes {
			if n := len(path) - len(s); n >= 0 && strings.EqualFold(path[n:], s) {
				path = path[:n]
				break
			}
		}
	}
	return path
}

// compareNames compares runs of digits as numbers, the rest as text.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			x, y := digits(a), digits(b)
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) string {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return s[:i]
		}
	}
	return s
}

// DumpScan is what a look at the files came to.
type DumpScan struct {
	*Scan                       // nil: there is nothing new
	File       DumpFile         // the state: what was read, or what was read before
	Proof      string           // what told that the file that was read is whole; "": nothing
	Incomplete []IncompleteDump // newer ones, which were passed over
}

// Scan reads the newest complete file, unless that is what was read last (the
// zero value: nothing was): then, and when the newer ones are not complete yet,
// there is nothing new. A file that is damaged in its middle is an error that
// names the line; nothing older is taken for it. With again what was read last is
// read once more, and what is older is not taken for that either.
func (d *Dumps) Scan(ctx context.Context, last DumpFile, again bool) (DumpScan, error) {
	out := DumpScan{File: last}
	files, err := d.Files()
	if err != nil {
		return out, fmt.Errorf("scan %s: %w", d.s.cfg.Name, err)
	}
	d.lookAtOrder(files)
	if !d.names(last.Path) {
		last = DumpFile{} // the patterns are others now
	}
	for _, f := range files {
		if last.Path != "" && (f.Same(last) && !again || f.Path != last.Path && d.newer(last, f) < 0) {
			break // what is older was passed already
		}
		sc, proof, err := d.read(ctx, &f)
		if err == nil {
			out.Scan, out.File, out.Proof = sc, f, proof
			if last.Path == "" && proof == "" {
				d.s.log.Warn("nothing tells whether the first dump is whole: one that was cut between two lines looks the same; put its checksum beside it (FILE.sha256), or set dumps_proof", "file", f.Path)
			}
			return out, nil
		}
		var cut *cutError
		if !errors.As(err, &cut) {
			return out, fmt.Errorf("scan %s: %w", d.s.cfg.Name, err)
		}
		d.s.log.Warn("a dump is not complete; the state stays as it is until it is", "file", f.Path, "why", cut)
		out.Incomplete = append(out.Incomplete, IncompleteDump{f, cut.Error()})
	}
	if last.Path == "" {
		return out, fmt.Errorf("scan %s: dumps: none of the %d files is complete; %s: %s", d.s.cfg.Name, len(files), files[0].Path, out.Incomplete[0].Why)
	}
	if again {
		return out, fmt.Errorf("scan %s: dumps: %s, which is the state, cannot be read again, and there is no newer file that is complete", d.s.cfg.Name, last.Path)
	}
	return out, nil
}

// lookAtOrder warns where the names say something else than the times.
func (d *Dumps) lookAtOrder(files []DumpFile) {
	latest := slices.MaxFunc(files, func(a, b DumpFile) int { return a.Modified.Compare(b.Modified) })
	if !d.o.ByTime && latest.Modified.After(files[0].Modified) {
		d.s.log.Info("the newest dump by its name is not the one that was changed last; dumps_order says what counts", "newest", files[0].Path, "changed last", latest.Path)
	}
}

// cutError is a file that ends too early, or has not come to its end yet.
type cutError struct{ why string }

func (e *cutError) Error() string { return e.why }

// read reads one file. f is brought up to date while the file settles.
func (d *Dumps) read(ctx context.Context, f *DumpFile) (_ *Scan, provenBy string, err error) {
	if err := d.settled(ctx, f); err != nil {
		return nil, "", err
	}
	proof, err := proofOf(f.Path, d.o.Proof)
	if err != nil {
		return nil, "", err
	}
	in, err := openDump(f.Path, proof)
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
	statements := int64(0)
	err = in.each(func(s, p, o, graph []byte) error {
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
	if in.nothing {
		return nil, "", &cutError{"it is empty"}
	}
	if in.padding != nil && *in.padding > 0 {
		d.s.log.Warn("zeros behind the end of a gzip file are ignored; where its writer does not fill it up, a part of it may be missing", "file", f.Path, "zeros", *in.padding)
	}
	if err := proof.holds(in.in, statements, in.last.String()); err != nil {
		return nil, "", err
	}
	if now, err := stat(f.Path); err != nil || !now.Same(*f) {
		return nil, "", &cutError{"it changed while it was read"}
	}
	if statements > 0 && g.rows == 0 && pick.own == 0 {
		return nil, "", fmt.Errorf("%s: none of its %d statements is in the graphs of the set (the first is in %s); set graphs, \"*\" for all", f.Path, statements, cmp.Or(pick.other, "the default graph"))
	}
	d.s.cfg.Progress("read", g.rows, g.rows)
	if err := g.finish(ctx); err != nil {
		return nil, "", err
	}
	sc.rows = g.rows
	sc.stats = Stats{Triples: g.rows, Own: pick.own, Bytes: in.packed(), Way: "dump"}
	if sc.rest, err = pick.rest.remainder(); err != nil {
		return nil, "", err
	}
	if pick.own > 0 {
		d.s.log.Info("graphs of rsbridge itself are left out", "triples", pick.own)
	}
	return sc, proof.from, nil
}

// settled waits until a file has been left alone for a while.
func (d *Dumps) settled(ctx context.Context, f *DumpFile) error {
	for began := time.Now(); ; {
		rest := d.o.Settle - time.Since(f.Modified)
		if rest <= 0 || rest > d.o.Settle { // of the future: its clock is another
			return nil
		}
		if time.Since(began) > 3*d.o.Settle {
			return &cutError{"it is still growing"}
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		now, err := stat(f.Path)
		if err != nil {
			return &cutError{"it has gone"}
		}
		*f = now
	}
}

// Confirm is a second look before deletions are logged: the file must still be
// what was read. It describes nothing.
func (d *Dumps) Confirm(f DumpFile) func(context.Context, []string) ([]rdfres.Description, error) {
	return func(context.Context, []string) ([]rdfres.Description, error) {
		now, err := stat(f.Path)
		if err == nil && !now.Same(f) {
			err = fmt.Errorf("%s changed since it was read; scan again", f.Path)
		}
		return nil, err
	}
}

// graphPick decides which graphs of a file are read.
type graphPick struct {
	mine, every sparql.Part // of the set, and with all other sets of the file
	own         int64       // statements of rsbridge's own graphs
	rest        *restCount  // what no set publishes
	other       string      // a graph that was left out

	last   []byte // the last graph and what was decided
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
		// What a blank node names is read with everything else, and not alone.
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
