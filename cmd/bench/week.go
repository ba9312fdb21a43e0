package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/simulate"
)

// A week is seven simulated days of a scenario. In every simulated cycle changes are made in a
// store, named to a source, published, and mirrored into another store. At the end of every day
// everything is scanned and dumped, and data past retention is removed. The clock of both bridges
// is turned forward between the cycles, so a week takes as long as its work does.
//
// On small machines the number of resources and the number of changes are divided, each by a factor
// shown in the table. The most entries of a list are divided too, so there are as many lists as at
// full size. Days, cycles, bursts, retention and the age of closed Change Lists are not divided.
type week struct {
	scenario string
	cycle    time.Duration
	publish  []string
	rotate   time.Duration
	entries  int  // of a Change List, at the full pace
	whole    bool // changes are not divided: there are few
}

var weeks = []week{
	{scenario: "arxiv", cycle: time.Hour, publish: []string{"resourcelist", "changelist", "resourcedump"}, rotate: 24 * time.Hour, entries: 10_000, whole: true},
	{scenario: "wikipedia", cycle: time.Hour, publish: []string{"resourcelist", "changelist", "resourcedump"}, rotate: 24 * time.Hour, entries: 10_000},
	{scenario: "dbpedia-live", cycle: time.Hour, publish: []string{"changelist", "resourcedump"}, rotate: 24 * time.Hour, entries: 10_000},
	{scenario: "capacity", cycle: time.Hour, publish: []string{"resourcelist", "changelist", "resourcedump"}, rotate: time.Hour, entries: 50_000},
}

// weekBegins is a Tuesday at noon: arXiv announces three times, then New York's
// clocks go back, then it announces twice more.
var weekBegins = time.Date(2026, 10, 27, 12, 0, 0, 0, time.UTC)

const (
	weekDays  = 7
	weekKept  = 48 * time.Hour // retention: from the third day on as much goes as comes
	weekEarly = 4              // days compared with the later ones
	weekLimit = 1.25
)

// weekResult is one week in docs/benchmarks/bench-weeks.json.
type weekResult struct {
	Scenario     string  `json:"scenario"`
	What         string  `json:"what"`
	Entities     int64   `json:"entities"`
	Changes      int64   `json:"changes"`       // made in the store
	EntitiesDiv  float64 `json:"entities_div"`  // divisor of the resources
	ChangesDiv   float64 `json:"changes_div"`   // divisor of the changes
	Seconds      float64 `json:"seconds"`       // duration of the week
	FillSeconds  float64 `json:"fill_seconds"`  // before it: load, first scan, dump, first sync
	Days         []day   `json:"days"`          //
	AuditSeconds float64 `json:"audit_seconds"` // after it, when the mirror was equal
	Resources    int64   `json:"resources"`     // then
}

// day is one simulated day.
type day struct {
	Changes    int64   `json:"changes"`     // made in the store
	Found      int64   `json:"found"`       // by the hints; several to one resource in a cycle are one
	Missed     int64   `json:"missed"`      // by the hints, found by the scan of everything
	LagMiddle  float64 `json:"lag_median"`  // seconds from the last change of a cycle until the mirror had it
	LagMost    float64 `json:"lag_most"`    //
	EachMicros float64 `json:"each_micros"` // lag divided by the changes of its cycle
	Memory     float64 `json:"memory_mb"`   // most resident, source and destination in one process
	Heap       float64 `json:"heap_mb"`     // live, after the collector
	Source     float64 `json:"source_mb"`   // state on disk, published files included
	Mirror     float64 `json:"mirror_mb"`   // state of the destination
	Documents  int     `json:"documents"`   // lists and indexes
	Largest    int64   `json:"largest"`     // bytes of the largest of them
	Resources  int64   `json:"resources"`
}

// turned is a clock; turned forward, it goes on from there.
type turned struct {
	mu       sync.Mutex
	at, real time.Time
}

func (c *turned) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Add(time.Since(c.real))
}

// turn sets the clock; never back.
func (c *turned) turn(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); to.After(c.at.Add(now.Sub(c.real))) {
		c.at, c.real = to, now
	}
}

// weekRun is a running week.
type weekRun struct {
	week
	pace           simulate.Scenario // divided
	clock          *turned
	origin, target store
	source, copy   *bridge.Bridge
	server         *http.Server
	sourceState    string
	copyState      string
	next           func() (simulate.Step, bool)
	each           [2][]float64 // microseconds of lag for each change, by cycle: of the first days, of the others
	res            weekResult
}

// live runs a week. size is how many resources there are at most, changes how
// many changes; each is the microseconds of lag for a change, by cycle.
func (w week) live(ctx context.Context, size, changes int64) (_ weekResult, each [2][]float64, err error) {
	pace, err := simulate.FindScenario(w.scenario)
	if err != nil {
		return weekResult{}, each, err
	}
	r := &weekRun{week: w, clock: &turned{at: weekBegins, real: time.Now()}, res: weekResult{Scenario: w.scenario, What: pace.What}}
	r.res.EntitiesDiv = max(1, float64(pace.Entities)/float64(size))
	r.res.ChangesDiv = 1
	if !w.whole {
		r.res.ChangesDiv = max(1, pace.Rate*weekDays*86400/float64(changes))
	}
	pace.Entities = int64(float64(pace.Entities) / r.res.EntitiesDiv)
	pace.Rate /= r.res.ChangesDiv
	r.entries = max(100, int(math.Ceil(float64(w.entries)/r.res.ChangesDiv)))
	r.pace, r.res.Entities = pace, pace.Entities
	e, err := prepare("", pace.Entities)
	if err != nil {
		return r.res, each, err
	}
	defer e.close()
	began := time.Now()
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx, e); err != nil {
		return r.res, each, err
	}
	r.res.FillSeconds = time.Since(began).Seconds()
	began = time.Now()
	if err := r.days(ctx); err != nil {
		return r.res, each, err
	}
	r.res.Seconds = time.Since(began).Seconds()
	var audit bridge.AuditReport
	if err := r.copy.Do(ctx, "audit", "copy", nil, &audit); err != nil {
		return r.res, each, err
	}
	status, err := r.source.SetStatus(ctx, "data")
	if err != nil {
		return r.res, each, err
	}
	if !audit.Equal || audit.Resources != status.Resources {
		return r.res, each, fmt.Errorf("after the week the mirror of %s has %d resources, and the audit says: %d missing, %d extra, %d different", w.scenario, audit.Resources, audit.Missing, audit.Extra, audit.Different)
	}
	r.res.AuditSeconds, r.res.Resources = audit.Seconds, audit.Resources
	return r.res, r.each, nil
}

// open fills the store, and makes the source and its first mirror.
func (r *weekRun) open(ctx context.Context, e *env) (err error) {
	if r.origin, err = embedded(ctx, e); err != nil {
		return err
	}
	if r.target, err = embedded(ctx, e); err != nil {
		return err
	}
	if _, err := r.origin.loadAt(ctx, e, r.origin.data+"?default"); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	base := "http://" + l.Addr().String()
	r.sourceState, r.copyState = filepath.Join(e.dir, "week-source"), filepath.Join(e.dir, "week-copy")

	cfg := bridge.NewConfig()
	cfg.State = r.sourceState
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: base}, ""
	st, set := bridge.NewStore(), bridge.NewSet()
	st.Query, st.Update, st.GraphStore = r.origin.query, r.origin.update, r.origin.data
	set.Store, set.Schedule, set.Publish = "store", "", r.publish
	set.ResourceList.PartEntries = max(500, int(float64(set.ResourceList.PartEntries)/r.res.EntitiesDiv))
	set.ChangeList.Rotate, set.ChangeList.Entries = bridge.Duration(r.rotate), r.entries
	set.Retention.Changes, set.Retention.Versions = bridge.Duration(weekKept), bridge.Duration(weekKept)
	cfg.Stores["store"], cfg.Sets["data"] = st, set
	if r.source, err = bridge.Open(ctx, cfg, bridge.Options{Now: r.clock.now, Command: "bench"}); err != nil {
		l.Close()
		return err
	}
	r.server = &http.Server{Handler: r.source.PublicHandler()}
	go r.server.Serve(l) // until close

	cfg = bridge.NewConfig()
	cfg.State = r.copyState
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	st, dest := bridge.NewStore(), bridge.NewDestination()
	st.Query, st.Update, st.GraphStore = r.target.query, r.target.update, r.target.data
	dest.Source, dest.Store, dest.GraphIRI, dest.Schedule, dest.Audit.Schedule = base, "store", mirrorGraph, "", ""
	cfg.Stores["store"], cfg.Destinations["copy"] = st, dest
	if r.copy, err = bridge.Open(ctx, cfg, bridge.Options{Now: r.clock.now, Command: "bench"}); err != nil {
		return err
	}
	if _, err := r.scan(ctx, nil); err != nil {
		return err
	}
	if err := finish(ctx, r.source, "dump:data"); err != nil {
		return err
	}
	return r.sync(ctx)
}

func (r *weekRun) close() error {
	var errs []error
	if r.copy != nil {
		errs = append(errs, r.copy.Close())
	}
	if r.server != nil {
		errs = append(errs, r.server.Close())
	}
	if r.source != nil {
		errs = append(errs, r.source.Close())
	}
	for _, s := range []store{r.origin, r.target} {
		if s.stop != nil {
			s.stop()
		}
	}
	return errors.Join(errs...)
}

// scan looks at some entities, or at everything.
func (r *weekRun) scan(ctx context.Context, args any) (rep bridge.ScanReport, err error) {
	if err = r.source.Do(ctx, "scan", "data", args, &rep); err == nil && (rep.Failed > 0 || rep.Held != nil) {
		err = fmt.Errorf("a scan left %d failed, held: %t", rep.Failed, rep.Held != nil)
	}
	return rep, err
}

func (r *weekRun) sync(ctx context.Context) error {
	var rep bridge.SyncReport
	err := r.copy.Do(ctx, "sync", "copy", nil, &rep)
	if err == nil && (!rep.InSync || rep.Failed+rep.Pending > 0) {
		err = fmt.Errorf("a sync left %d failed, %d pending, in sync %t", rep.Failed, rep.Pending, rep.InSync)
	}
	return err
}

// days lives through the week.
func (r *weekRun) days(ctx context.Context) error {
	moments, err := r.pace.Moments(weekBegins)
	if err != nil {
		return err
	}
	moment, stop := iter.Pull2(moments)
	defer stop()
	r.next, stop = iter.Pull((simulate.World{Seed: 1}).Changes(r.pace.Entities, 0, r.pace.Mix))
	defer stop()
	at, n, _ := moment()
	for d := range weekDays {
		today := day{}
		var lags []float64
		if err := forgetPeak(os.Getpid()); err != nil {
			return err
		}
		half := min(1, d/weekEarly)
		var each []float64
		evening := weekBegins.AddDate(0, 0, d+1)
		for end := evening.AddDate(0, 0, -1).Add(r.cycle); !end.After(evening); end = end.Add(r.cycle) {
			made := 0
			for !at.After(end) {
				made += n
				at, n, _ = moment()
			}
			r.clock.turn(end)
			lag, found, err := r.turn(ctx, made)
			if err != nil {
				return fmt.Errorf("day %d, %s: %w", d+1, end.Format("15:04"), err)
			}
			if today.Found += found; made > 0 {
				today.Changes += int64(made)
				lags, each = append(lags, lag.Seconds()), append(each, float64(lag.Microseconds())/float64(made))
			}
		}
		r.res.Changes += today.Changes
		rep, err := r.scan(ctx, nil)
		if err != nil {
			return fmt.Errorf("day %d: %w", d+1, err)
		}
		today.Missed = rep.Created + rep.Updated + rep.Deleted
		for _, job := range []string{"dump:data", "retain:data"} {
			if err := finish(ctx, r.source, job); err != nil {
				return fmt.Errorf("day %d: %s: %w", d+1, job, err)
			}
		}
		if err := r.sync(ctx); err != nil {
			return fmt.Errorf("day %d: %w", d+1, err)
		}
		if len(lags) > 0 {
			slices.Sort(lags)
			today.LagMiddle, today.LagMost = lags[len(lags)/2], lags[len(lags)-1]
			today.EachMicros = median(each)
			r.each[half] = append(r.each[half], each...)
		}
		if err := r.look(ctx, &today); err != nil {
			return err
		}
		r.res.Days = append(r.res.Days, today)
		fmt.Fprintf(os.Stderr, "%s: day %d: %+v\n", r.scenario, d+1, today)
	}
	return nil
}

// turn makes changes, names them to the source, and has them mirrored. The lag
// begins when the store has the last of them.
func (r *weekRun) turn(ctx context.Context, n int) (lag time.Duration, found int64, err error) {
	named := map[string]bool{}
	for made := 0; made < n; {
		var ops []string
		for ; made < n && len(ops) < 100; made++ {
			step, _ := r.next() // endless
			ops = append(ops, (simulate.World{Seed: 1}).Update(step))
			named[simulate.IRI(step.Entity)] = true
		}
		if err := r.origin.run(ctx, strings.Join(ops, " ;\n")); err != nil {
			return 0, 0, err
		}
	}
	began := time.Now()
	all := make([]string, 0, len(named))
	for entity := range named {
		all = append(all, entity)
	}
	for part := range slices.Chunk(all, 10_000) {
		rep, err := r.scan(ctx, bridge.ScanArgs{Entities: part})
		if err != nil {
			return 0, 0, err
		}
		found += rep.Created + rep.Updated + rep.Deleted
	}
	err = r.sync(ctx)
	return time.Since(began), found, err
}

// look measures the state after a day.
func (r *weekRun) look(ctx context.Context, d *day) (err error) {
	if d.Memory, err = residentPeak(os.Getpid()); err != nil {
		return err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	d.Heap = float64(m.HeapAlloc) / (1 << 20)
	var err1, err2 error
	d.Source, err1 = megabytes(r.sourceState)
	d.Mirror, err2 = megabytes(r.copyState)
	status, err3 := r.source.SetStatus(ctx, "data")
	d.Resources = status.Resources
	for _, kind := range r.publish {
		d.documents(r.source, "/data/"+kind+".xml")
	}
	return errors.Join(err1, err2, err3)
}

// documents counts a list, or an index and its lists.
func (d *day) documents(b *bridge.Bridge, path string) {
	rec := httptest.NewRecorder()
	b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, benchBase+path, nil))
	doc := rec.Body.Bytes()
	d.Documents, d.Largest = d.Documents+1, max(d.Largest, int64(len(doc)))
	if strings.Contains(string(doc[:min(len(doc), 400)]), "<sitemapindex") {
		for _, part := range locations(doc) {
			d.documents(b, part)
		}
	}
}

// rows hold the most of the last days beside the most of the first.
func (w weekResult) rows(each [2][]float64) []result {
	row := func(id, what, unit string, value, base float64) result {
		return result{ID: "week-" + w.Scenario + "-" + id, What: what + ", a week of " + w.Scenario + ": its last days", Value: value, Unit: unit, Baseline: "its first four", Base: base,
			Ratio: value / base, Spread: [2]float64{value / base, value / base}, Runs: 1, Day: today(), Limit: weekLimit, Holds: value/base <= weekLimit}
	}
	most := func(id, what, unit string, of func(day) float64) result {
		var parts [2]float64
		for i, d := range w.Days {
			half := min(1, i/weekEarly)
			parts[half] = max(parts[half], of(d))
		}
		return row(id, what, unit, parts[1], parts[0])
	}
	return []result{
		row("lag", "lag of a change, median", "µs", median(each[1]), median(each[0])),
		most("memory", "most resident memory", "MB", func(d day) float64 { return d.Memory }),
		most("disk", "both states on disk", "bytes a resource", func(d day) float64 { return (d.Source + d.Mirror) * (1 << 20) / float64(d.Resources) }),
		most("documents", "largest list", "bytes", func(d day) float64 { return float64(d.Largest) }),
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[len(sorted)/2]
}

// weekReport is docs/benchmarks/bench-weeks.json.
type weekReport struct {
	report
	Weeks []weekResult `json:"weeks"`
}

// runWeeks runs the named scenarios, or all, and keeps their results.
func runWeeks(ctx context.Context, only string, size, changes int64, out string) error {
	rep, err := readReport(out)
	if err != nil {
		return err
	}
	rep.Machine = fmt.Sprintf("%s/%s, %d CPUs, %s, source, destination and both their stores on it", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Println(rep.Machine)
	known := false
	for _, w := range weeks {
		if only != "all" && only != w.scenario {
			continue
		}
		known = true
		res, each, err := w.live(ctx, size, changes)
		if err != nil {
			return fmt.Errorf("a week of %s: %w", w.scenario, err)
		}
		rep.Weeks = slices.DeleteFunc(rep.Weeks, func(old weekResult) bool { return old.Scenario == w.scenario })
		rep.Weeks = append(rep.Weeks, res)
		rep.put(res.rows(each)...)
		fmt.Println(res.table())
		if err := writeJSON(out, rep); err != nil {
			return err
		}
	}
	if !known {
		return fmt.Errorf("-weeks %s: there are all, arxiv, wikipedia, dbpedia-live, capacity", only)
	}
	fmt.Println(table(rep.Rows))
	return nil
}

// table is a week for a terminal.
func (w weekResult) table() string {
	var b strings.Builder
	fmt.Fprintln(&b, w.head())
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, line := range w.cells() {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	t.Flush()
	return b.String()
}

// head names the measured week and its divisors.
func (w weekResult) head() string {
	divided := func(by float64) string {
		if by == 1 {
			return ""
		}
		return fmt.Sprintf(" (divided by %.3g)", by)
	}
	return fmt.Sprintf("**%s**: %s.\n\n%d resources%s, %d changes%s. It was filled in %.0f s, and the week took %.0f s (%.0f times compressed). At its end the mirror was equal (%d resources, audited in %.1f s)",
		w.Scenario, w.What, w.Entities, divided(w.EntitiesDiv), w.Changes, divided(w.ChangesDiv), w.FillSeconds, w.Seconds, weekDays*86400/cmp.Or(w.Seconds, 1), w.Resources, w.AuditSeconds)
}

// cells are the days, with a head.
func (w weekResult) cells() [][]string {
	out := [][]string{{"day", "changes", "found", "missed by hints", "lag, median s", "lag, most s", "µs a change", "memory MB", "heap MB", "source MB", "mirror MB", "documents", "largest kB", "resources"}}
	for i, d := range w.Days {
		out = append(out, []string{fmt.Sprint(i + 1), fmt.Sprint(d.Changes), fmt.Sprint(d.Found), fmt.Sprint(d.Missed), fmt.Sprintf("%.2f", d.LagMiddle), fmt.Sprintf("%.2f", d.LagMost),
			fmt.Sprintf("%.0f", d.EachMicros), fmt.Sprintf("%.0f", d.Memory), fmt.Sprintf("%.0f", d.Heap), fmt.Sprintf("%.1f", d.Source), fmt.Sprintf("%.1f", d.Mirror),
			fmt.Sprint(d.Documents), fmt.Sprintf("%.1f", float64(d.Largest)/1e3), fmt.Sprint(d.Resources)})
	}
	return out
}
