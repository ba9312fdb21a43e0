// Command bench measures rsbridge against baselines of the same run and prints one table, each row
// a ratio.
//
//	make bench                 all rows
//	make bench ROW=load        one of them
//	make bench ROW=scan,load   by the beginning of their names: scan-oxigraph, scan-fuseki ...
//
// A row is the median of five interleaved runs of both sides (-runs), with the spread. The results
// also go to docs/benchmarks/bench.json; rows not measured this time stay there. make bench writes
// docs/benchmarks.md and its plot from that file. Rows of a missing store are named and left out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// row is one comparison. measure gives the seconds of rsbridge and of its baseline for the same
// work. The ratio is thing / baseline, or its inverse for speed. Rows of memory compare megabytes
// with their limit.
type row struct {
	id, what, baseline string
	speed              bool // the ratio is of speeds: at least limit; else of times: at most limit
	limit              float64
	needs              string // environment variable
	measure            func(ctx context.Context, e *env) (thing, base time.Duration, err error)
	megabytes          func(ctx context.Context, e *env) (int64, error)
	most               int64 // megabytes

	large    bool // a row of -large
	value    func(ctx context.Context, e *env) (thing, base float64, err error)
	unitName string
	shape    func(ctx context.Context, e *env) ([2][]float64, error) // both distributions of a turn, sorted
}

// result is a row of docs/benchmarks/bench.json.
type result struct {
	ID       string     `json:"id"`
	What     string     `json:"what"`
	Value    float64    `json:"value"`
	Unit     string     `json:"unit"`
	Baseline string     `json:"baseline"`
	Base     float64    `json:"baseline_value"`
	Ratio    float64    `json:"ratio"`
	Spread   [2]float64 `json:"spread"`
	Runs     int        `json:"runs"`          // interleaved, of both sides: the values are their medians
	Day      string     `json:"day,omitempty"` // of the measurement
	Note     string     `json:"note,omitempty"`
	Limit    float64    `json:"limit"`
	Least    bool       `json:"least"` // the limit is the least allowed ratio, else the most
	Holds    bool       `json:"holds"`

	Shape *[2][]float64 `json:"shape,omitempty"` // both distributions of one run, in a hundred steps
	Lines *[2]string    `json:"lines,omitempty"` // their names, if they are not of us and the baseline
}

// note is kept with the rows that are measured.
var note string

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// env is shared by the rows.
type env struct {
	dir     string
	keep    bool   // the folder stays
	triples string // N-Triples file
	n       int64  // entities in it
	lines   int64  // triples in it

	ours, theirs store // with the data in them, once loaded made them

	profile string // folder for profiles
	graphs  int    // made by empty

	// Folders of measured copies. They stay to the end: for minutes after so many deletions ext4
	// takes up to ten times as long to make files, since it passes each of the old inodes by.
	spent []string

	turn   int     // the run being measured, from 0
	large  []sizes // of each turn of -large
	served *origin
	hints  *origin

	hintsMirror *bridge.Bridge
	kept        keptMirror // of the increments

	push pushRuns

	filled map[string]bool                                         // servers with the data in their bench graph
	ways   map[string]func(context.Context) (time.Duration, error) // the fastest download of each
}

func main() {
	only := flag.String("row", "", "run these rows only: their names or how they begin, separated by commas")
	runs := flag.Int("runs", 5, "runs of each row, at most three of -large")
	entities := flag.Int64("entities", 102_000, "entities of the data: about 9.8 triples each")
	dir := flag.String("dir", "", "keep the data of rows in this folder, and use what an earlier run left there")
	cpu := flag.String("cpuprofile", "", "write a profile of all that is run here")
	out := flag.String("o", filepath.Join("docs", "benchmarks", "bench.json"), "write the results here")
	page := flag.String("page", "", "measure nothing: write this page (Markdown, with its plot) from the results beside -o")
	large := flag.Bool("large", false, "measure this many entities and ten times as many, instead of the other rows")
	weeks := flag.String("weeks", "", "simulate a week of this scenario, or of all, instead of the rows")
	var two time.Duration
	flag.Func("two", "change an Oxigraph behind the gateway and a Fuseki with its patch log for so long, with mirrors of both in one Fuseki, instead of the rows", func(text string) (err error) {
		two, err = settings.ParseDuration(text)
		return err
	})
	size := flag.Int64("size", 25_000, "with -weeks: divide the resources of a scenario until there are no more than these")
	changes := flag.Int64("changes", 40_000, "with -weeks: divide its changes until a week has no more than these")
	profile := flag.String("profile", "", "folder for profiles of scans and syncs: of the processor, and of all that was allocated up to their end")
	flag.StringVar(&note, "note", "", "keep this with the rows, such as: shared machine")
	flag.Parse()
	if *page != "" {
		if err := writePage(*page, filepath.Dir(*out)); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *cpu != "" {
		f, err := os.Create(*cpu)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch {
	case *weeks != "":
		err = runWeeks(ctx, *weeks, *size, *changes, *out)
	case two > 0:
		err = runTwo(ctx, two, *out)
	default:
		err = run(ctx, *only, *runs, *entities, *dir, *out, *profile, *large)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, runs int, entities int64, dir, out, profile string, large bool) error {
	e, err := prepare(dir, entities)
	if err != nil {
		return err
	}
	e.profile = profile
	defer e.close()
	machine := fmt.Sprintf("%s/%s, %d CPUs, %s, %d entities, %d triples", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), e.n, e.lines)
	if versions := os.Getenv(teststores.EnvVersions); versions != "" {
		machine += "; " + versions
	}
	fmt.Println(machine)
	var results []result
	var failed []error
	all := rows
	for _, s := range servers {
		all = append(all, s.rows()...)
	}
	all = append(append(all, hintRow), liveRows...)
	if large {
		all, runs = largeRows, min(runs, 3)
	}
	for _, r := range all {
		if only != "" && !slices.ContainsFunc(strings.Split(only, ","), func(name string) bool { return r.id == name || strings.HasPrefix(r.id, name+"-") }) {
			continue
		}
		if r.needs != "" && os.Getenv(r.needs) == "" {
			fmt.Printf("%s: left out: %s is not set (make bench sets it)\n", r.id, r.needs)
			continue
		}
		res, err := r.run(ctx, e, runs)
		if err != nil {
			failed = append(failed, fmt.Errorf("row %s: %w", r.id, err)) // the others are measured
			fmt.Fprintf(os.Stderr, "%s: %v\n", r.id, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		results = append(results, res)
		fmt.Fprintf(os.Stderr, "%s: %.2f\n", r.id, res.Ratio)
		if err := keep(out, machine, res); err != nil { // the whole takes more than an hour
			return err
		}
	}
	fmt.Println(table(results))
	return errors.Join(failed...)
}

// table is the results for a terminal.
func table(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "row\twhat\tvalue\tbaseline\tratio\tspread\truns\tlimit\tholds")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%.3f %s\t%s: %.3f\t%.2f\t%.2f-%.2f\t%d\t%s\t%t\n", r.ID, r.What, r.Value, r.Unit, r.Baseline, r.Base, r.Ratio, r.Spread[0], r.Spread[1], r.Runs, r.limit(), r.Holds)
	}
	w.Flush()
	return b.String()
}

func (r row) run(ctx context.Context, e *env, runs int) (result, error) {
	var ratios, things, bases []float64
	for e.turn = range runs {
		thing, base, err := r.once(ctx, e)
		if err != nil {
			return result{}, err
		}
		ratio := thing / base
		if r.speed {
			ratio = 1 / ratio
		}
		ratios, things, bases = append(ratios, ratio), append(things, thing), append(bases, base)
	}
	slices.Sort(ratios)
	slices.Sort(things)
	slices.Sort(bases)
	mid := len(ratios) / 2
	res := result{ID: r.id, What: r.what, Value: things[mid], Unit: r.unit(), Baseline: r.baseline, Base: bases[mid],
		Ratio: ratios[mid], Spread: [2]float64{ratios[0], ratios[len(ratios)-1]}, Runs: runs, Day: today(), Note: note, Limit: r.limit, Least: r.speed, Holds: ratios[mid] <= r.limit}
	if r.speed {
		res.Holds = ratios[mid] >= r.limit
	}
	if r.shape != nil {
		both, err := r.shape(ctx, e)
		if err != nil {
			return result{}, err
		}
		res.Shape = &[2][]float64{steps(both[0]), steps(both[1])}
	}
	return res, nil
}

func (r row) unit() string {
	if r.megabytes != nil {
		return "MB"
	}
	if r.value != nil {
		return r.unitName
	}
	return "s"
}

func (r row) once(ctx context.Context, e *env) (thing, base float64, err error) {
	if r.megabytes != nil {
		mb, err := r.megabytes(ctx, e)
		return float64(mb), float64(r.most), err
	}
	if r.value != nil {
		return r.value(ctx, e)
	}
	t, b, err := r.measure(ctx, e)
	return t.Seconds(), b.Seconds(), err
}
