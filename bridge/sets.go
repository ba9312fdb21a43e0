package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/bridge/lastruns"
	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/bridge/paused"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/bridge/vocabulary"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/content"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// set is one configured ResourceSync set.
type set struct {
	bridge   *Bridge
	name     string
	cfg      Set
	source   *sparqlsrc.Source // nil when it is made from dumps
	files    *sparqlsrc.Dumps  // nil when it is made from a store
	log      *changetrack.Log
	follower *content.Follower // nil: its descriptions lead to no files

	removed   bool   // it is not configured any more, and stays public as it was
	successor string // the likely new name of a removed set, "" for none
	former    string // the likely old name of a configured set, "" for none

	due   *named.Queue
	begun chan struct{} // of the followers of its store's log

	mu  sync.Mutex // guards run
	run *jobs.Run  // of the scan under way, for progress

	writing writing
}

// writing is the run that publishes, or writes a dump, for progress.
type writing struct{ run atomic.Pointer[jobs.Run] }

// wrote tells how far it is.
func (w *writing) wrote(stage string, done, total int64) {
	if run := w.run.Load(); run != nil {
		run.Progress(stage, done, total)
	}
}

// by begins a stage of a run.
func (w *writing) by(run *jobs.Run, stage string) (end func()) {
	run.Progress(stage, 0, 0)
	w.run.Store(run)
	return func() { w.run.Store(nil) }
}

// ScanReport is one set of `scan --json`.
type ScanReport struct {
	Name        string                `json:"name"`
	Finder      string                `json:"finder"`           // "scan" read everything, "hint" the entities named by hints or the request
	Hints       map[string]int64      `json:"hints,omitempty"`  // entities named, by kind: modified, query, counts, named
	Missed      int64                 `json:"missed,omitempty"` // changes found by a full scan and named by no hint before
	Resources   int64                 `json:"resources"`
	Created     int64                 `json:"created"`
	Updated     int64                 `json:"updated"`
	Deleted     int64                 `json:"deleted"`
	Accepted    int64                 `json:"accepted,omitempty"` // of the deleted: those shown and accepted; max_delete_ratio allows the others
	Unchanged   int64                 `json:"unchanged"`
	Failed      int64                 `json:"failed"`
	Held        *changetrack.Held     `json:"held"`
	Candidate   *Candidate            `json:"candidate,omitempty"` // the held changes
	Truncated   int64                 `json:"truncated"`
	Triples     int64                 `json:"triples"`
	Covered     int64                 `json:"covered"`
	LeftOut     int64                 `json:"left_out"`
	Constructed int64                 `json:"constructed,omitempty"` // triples made by a CONSTRUCT; their coverage of the graphs is unknown
	Unpublished *Unpublished          `json:"unpublished,omitempty"` // of the same data, in graphs of no set; null: not known
	Own         int64                 `json:"own"`                   // triples of rsbridge's own bookkeeping, no data
	Orphans     int64                 `json:"orphans"`
	Fallback    int64                 `json:"fallback"`
	Way         string                `json:"way"`
	Same        bool                  `json:"same,omitempty"` // the store answered, triple by triple, as to the last complete scan: nothing was compared
	Dump        *DumpStatus           `json:"dump,omitempty"` // of a set made from dumps
	Failures    []changetrack.Failure `json:"failures,omitempty"`
	Files       *FilesReport          `json:"files,omitempty"` // behind descriptions
	Sequence    uint64                `json:"sequence"`
	Durable     float64               `json:"durable_seconds,omitempty"` // until the changes were in the log; then they are published
	Seconds     float64               `json:"seconds"`
}

// Candidate is the effect of a held scan; nothing of it is in the log.
type Candidate struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	Deleted int64 `json:"deleted"`
}

// openSet opens a set, with its open queue if there is one.
func (b *Bridge) openSet(ctx context.Context, name string, c Set, open *named.Queue) (*set, error) {
	s := &set{bridge: b, name: name, cfg: c, begun: make(chan struct{}, 1)}
	sc := b.cfg.SourceConfig(name)
	sc.TempDir, sc.Logger, sc.Progress = b.cfg.TempDir(), b.log.With("component", "sparqlsrc", "set", name), s.progress
	sc.Others = b.cfg.Others(name)
	var err error
	if len(c.Dumps) > 0 {
		s.files, err = sparqlsrc.NewDumps(sc, c.DumpOptions())
	} else {
		sc.Findings, sc.Known = findings{s}, s.knownTriples
		s.source, err = sparqlsrc.New(b.stores[c.Store].client, sc)
	}
	if err != nil {
		return nil, err
	}
	if s.due = open; s.due == nil {
		if s.due, err = named.Open(ctx, b.records, name); err != nil {
			return nil, err
		}
	}
	s.log, err = b.tracker.Log(ctx, name)
	return s, err
}

func (s *set) publishConfig(ctx context.Context) publish.SetConfig {
	return publish.SetConfig{
		Name: s.name, Title: s.cfg.Title, Description: s.cfg.Description, Licence: s.cfg.Licence, Publisher: s.cfg.Publisher,
		Log: s.log, Format: rdfres.Format(s.cfg.Format), Prefix: s.cfg.Prefix, Capabilities: s.cfg.Publish,
		Rotate: s.cfg.Rotation(), RotateEntries: s.cfg.ChangeList.Entries,
		PartEntries: s.cfg.ResourceList.PartEntries, DumpPatches: s.cfg.ChangeDump.Patches, Links: s.cfg.EntryLinks(), Content: s.cfg.ContentTag(), FetchFiles: func() publish.FetchFile { return s.listed().fetch() }, DumpFiles: s.cfg.Content.DumpBytes, Alternates: s.cfg.Alternates, Services: s.services(), SPARQL: s.bridge.publicEndpoint(s.cfg.Store), Via: s.bridge.cfg.Via(s.cfg), Origin: s.origin(), NoInventory: !s.cfg.Inventory, ScheduledChangeDump: s.cfg.ChangeDump.Schedule != "", ScheduledList: s.cfg.ResourceList.Schedule != "", Archives: s.cfg.Archives.Schedule != "", ArchivesKeep: time.Duration(s.cfg.Retention.Archives), Coverage: s.coverage, Channels: s.cfg.Notify.Entries(s.bridge.cfg.HubAddress()), RootLinks: s.cfg.Notify.RootLinks(),
	}
}

func (s *set) progress(stage string, done, total int64) {
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run != nil {
		run.Progress(stage, done, total)
	}
}

func (s *set) during(run *jobs.Run) func() {
	s.mu.Lock()
	s.run = run
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
	}
}

// settings are those behind the content of the log, in the spelling of the last scan if they
// mean the same: an empty list is none. The settings of addresses, prefix and base URL, are
// the publisher's (pending).
func (s *set) settings(ctx context.Context) []byte {
	raw, err := json.Marshal(struct {
		Graphs           []string
		Select           Select
		Describe, Format string
	}{s.cfg.Graphs, s.cfg.Select, s.cfg.Describe, s.cfg.Format})
	if err != nil {
		panic(err) // strings only
	}
	if old, err := s.bridge.records.Get(ctx, settingsKey(s.name)); err == nil {
		if what, ok := differences(old, raw); ok && len(what) == 0 {
			return old
		}
	}
	return raw
}

// fingerprint is of the settings: a change of it must be accepted.
func (s *set) fingerprint(ctx context.Context) string {
	sum := sha256.Sum256(s.settings(ctx))
	return hex.EncodeToString(sum[:])
}

// scanArgs are the arguments of a scan's run.
type scanArgs struct {
	Accept string `json:"accept,omitempty"` // id of the held scan
	Rebase bool   `json:"rebase,omitempty"` // other addresses are accepted too
	Files  string `json:"files,omitempty"`  // id of the files that are held
	Hinted bool   `json:"hinted,omitempty"` // hints led to it
}

// stagesOf are those of a scan. The first one makes the first dump.
func stagesOf(s *set) []string {
	out := []string{"read", "group", "describe", "publish"}
	if _, dumped := s.bridge.pub.ResourceDump(s.name); !dumped && slices.Contains(s.cfg.Publish, "resourcedump") {
		out = append(out, "dump")
	}
	if s.follower != nil {
		out = append(out, "files")
	}
	return out
}

// scan looks for changes, logs and publishes them.
func (s *set) scan(ctx context.Context, run *jobs.Run) (any, error) {
	defer s.during(run)()
	if held := s.renamed(); held != nil {
		return &ScanReport{Name: s.name, Finder: "scan", Held: held}, nil
	}
	var args scanArgs
	if len(run.Args) > 0 {
		if err := json.Unmarshal(run.Args, &args); err != nil {
			return nil, fmt.Errorf("scan %s: arguments: %w", s.name, err)
		}
	}
	run.Plans(stagesOf(s)...)
	began := s.bridge.now()
	due, err := s.due.Due(ctx)
	if err != nil {
		return nil, err
	}
	var found *sparqlsrc.Scan
	var confirm func(context.Context, []string) ([]rdfres.Description, error)
	var dump *DumpStatus
	var marks *hintRecord
	var known uint64
	follows := func(context.Context) error { return nil } // the store's log from here on
	if s.files != nil {
		seen, err := s.lookAtDumps(ctx, args.Accept != "" || args.Rebase)
		if err != nil {
			return nil, err
		}
		dump = &DumpStatus{File: seen.File, Unchanged: seen.Scan == nil, Incomplete: seen.Incomplete, Looked: began.UTC(), Proof: seen.Proof}
		if found = seen.Scan; found == nil {
			return s.nothingNew(ctx, run, *dump, began, args.Files)
		}
		confirm = s.files.Confirm(seen.File)
	} else {
		var err error
		if marks, err = s.markHints(ctx, true); err != nil {
			return nil, err
		}
		if follower := storeLog(s); follower != nil {
			if mark, err := follower.Mark(ctx); err != nil {
				s.bridge.log.Error("the log of the store cannot be read, and its changes are found by scans alone", "set", s.name, "error", err)
			} else {
				follows = func(ctx context.Context) error { return follower.Begin(ctx, mark) }
			}
		}
		answer := ""
		if answer, known, err = s.knownAnswer(ctx); err != nil {
			return nil, err
		}
		if found, err = s.source.ScanUnless(ctx, answer); err != nil {
			return nil, err
		}
		confirm = s.source.Describe
	}
	defer found.Close()
	if err := s.forgetOther(ctx); err != nil {
		return nil, err
	}
	counts := vocabulary.New()
	o := changetrack.ScanOptions{Accept: args.Accept, Confirm: confirm, Failed: found.IsFailed}
	if found.Same() {
		o.Same = &known
	}
	res, err := s.log.Scan(ctx, counts.Through(found.Descriptions()), s.scanOptions(ctx, "scan", o))
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", s.name, err)
	}
	ended := context.WithoutCancel(ctx) // the log has what was found: the records of the scan go with it
	st := found.Stats()
	rep := &ScanReport{
		Durable: s.bridge.now().Sub(began).Seconds(),
		Name:    s.name, Finder: "scan", Resources: res.Resources, Created: res.Created, Updated: res.Updated, Deleted: res.Deleted, Accepted: res.Accepted,
		Unchanged: res.Unchanged, Failed: res.Failed, Held: res.Held, Truncated: st.Truncated,
		Triples: st.Triples, Covered: st.Covered, LeftOut: st.LeftOut, Constructed: st.Constructed, Own: st.Own, Orphans: st.Orphans, Fallback: res.Fallback,
		Way: st.Way, Failures: res.Failures, Same: found.Same(),
	}
	old, err := s.memory().report(ended)
	if err != nil {
		return nil, err
	}
	if rep.Same {
		rep.asBefore(old)
	}
	rep.Unpublished = s.countUnpublished(ctx, s.unpublished(old), found)
	if res.Held != nil {
		rep.Candidate = &Candidate{rep.Created, rep.Updated, rep.Deleted}
		rep.Created, rep.Updated, rep.Deleted = 0, 0, 0
	}
	rep.Failed += found.FailedCount() // besides those not compared
	for entity, err := range found.Failed() {
		if len(rep.Failures) < 100 {
			rep.Failures = append(rep.Failures, changetrack.Failure{Entity: entity, Err: err.Error()})
		}
	}
	rep.Sequence, _ = s.log.Head()
	rep.Dump = dump
	if res.Held == nil {
		if err := s.due.Forget(ended, due); err != nil {
			return rep, err
		}
		if dump != nil {
			if err := s.memory().saveDump(ended, dumpRecord{1, *dump, s.fingerprint(ended), boundsOf(&s.cfg)}); err != nil {
				return rep, err
			}
		}
		if marks != nil {
			if n := rep.Created + rep.Updated + rep.Deleted; n > 0 && res.First > 1 && !args.Hinted {
				rep.Missed = n
				s.bridge.log.Info("a full scan found what no hint had named yet", "set", s.name, "changes", n)
			}
			if err := s.memory().saveHints(ended, marks); err != nil {
				return rep, err
			}
		}
		if err := follows(ended); err != nil {
			return rep, err
		}
		vocabulary := counts.Record()
		if rep.Same {
			vocabulary = s.memory().counts(ended)
		}
		if err := s.saveReport(ended, rep, vocabulary, found); err != nil {
			return rep, err
		}
		if err := s.publish(ctx, run); err != nil {
			return rep, err
		}
		if args.Rebase {
			if _, err := s.rebase(ctx, run); err != nil {
				return rep, err
			}
			rep.Sequence, _ = s.log.Head()
		}
		if rep.Files, err = s.followFiles(ctx, run, args.Files); err != nil {
			return rep, err
		}
		rep.Sequence, _ = s.log.Head()
	}
	rep.Held = s.held(ctx, res.Held)
	rep.Seconds = s.bridge.now().Sub(began).Seconds()
	said := "scanned"
	if res.Held != nil {
		said = "a scan ended, and what it found is held"
	}
	s.bridge.log.Info(said, "set", s.name, "resources", rep.Resources, "created", rep.Created, "updated", rep.Updated,
		"deleted", rep.Deleted, "found", "scan", "failed", rep.Failed, "held", rep.Held != nil, "way", rep.Way, "seconds", rep.Seconds)
	return rep, nil
}

// publish makes the log visible. The first dump follows the first complete scan;
// it is also made again when a crash or the retention left none.
func (s *set) publish(ctx context.Context, run *jobs.Run) error {
	defer s.writing.by(run, "publish")()
	if s.follower != nil {
		if _, err := s.follower.Link(ctx); err != nil {
			return err
		}
	}
	before, _ := s.bridge.pub.Generation(s.name)
	now, err := s.bridge.pub.Publish(ctx, s.name)
	if err != nil {
		return fmt.Errorf("publish %s: %w", s.name, err)
	}
	if now != before {
		if err := s.publishAlternates(ctx); err != nil {
			return err
		}
	}
	if _, ok := s.bridge.pub.Generation(s.name); !ok {
		return nil // before the first complete scan
	}
	if !s.bridge.pub.HasResourceList(s.name) { // by schedule, and the first time
		if err := s.bridge.pub.ListResources(ctx, s.name); err != nil {
			return err
		}
	}
	if s.lacksDump() {
		return s.dump(ctx, run)
	}
	return nil
}

// lacksDump tells whether a published set has no Resource Dump and should: after its first
// scan, a crash, the retention, a move.
func (s *set) lacksDump() bool {
	_, published := s.bridge.pub.Generation(s.name)
	_, dumped := s.bridge.pub.ResourceDump(s.name)
	return published && !dumped && slices.Contains(s.cfg.Publish, "resourcedump")
}

// fileJobs are the jobs behind the published files of a set.
var fileJobs = []string{"dump:", "changedump:", "list:", "archive:"}

// asked tells whether somebody asked for a run of a set.
func asked(run *jobs.Run) bool {
	return slices.Contains([]string{"api", "command", "program"}, run.Cause)
}

// thenAgain is a look for changes, followed by the jobs of the set that failed last, or left a file
// missing: their schedules may be far.
func (s *set) thenAgain(look func(context.Context, *jobs.Run) (any, error)) func(context.Context, *jobs.Run) (any, error) {
	return func(ctx context.Context, run *jobs.Run) (any, error) {
		if !asked(run) {
			if rests, err := paused.Is(ctx, s.bridge.records, paused.Set(s.name)); rests || err != nil {
				return skipped{rests}, err
			}
		}
		rep, err := look(ctx, run)
		if err != nil {
			return rep, err
		}
		s.bridge.behind.startWaiting()
		makeNames(ctx, s)
		within := func(job, cause string) error {
			_, err := s.bridge.runner.Within(ctx, job, cause)
			return err
		}
		if err := s.again(ctx, run.Job, within); err != nil && !errors.Is(err, jobs.ErrClosed) {
			s.bridge.log.Error("a job that failed was not begun again; its schedule does it", "set", s.name, "error", err)
		}
		return rep, nil
	}
}

// again begins the jobs with a failed last run, one after the other. Their own runs tell how they end.
func (s *set) again(ctx context.Context, after string, begin func(job, cause string) error) error {
	missing := s.bridge.pub.Missing(s.name) != ""
	for _, kind := range s.jobKinds() {
		if kind == "scan:" || kind == "hint:" {
			continue
		}
		job := kind + s.name
		if _, busy := s.bridge.runner.Busy(job); busy {
			continue
		}
		last, err := lastruns.Of(ctx, s.bridge.runner, []string{kind}, s.name)
		if err != nil {
			return err
		}
		if last.Failed == nil && (!missing || kind == "retain:") {
			continue
		}
		if err := begin(job, "again after "+after); err != nil {
			return err
		}
	}
	return nil
}

// jobKinds are the kinds of setJobs that the set has.
func (s *set) jobKinds() []string {
	has := map[string]bool{
		"scan:": true, "hint:": len(s.cfg.Dumps) == 0, "dump:": s.dumps(), "changedump:": s.dumpsChanges(),
		"list:": s.cfg.ResourceList.Schedule != "", "archive:": s.cfg.Archives.Schedule != "", "retain:": true,
	}
	return slices.DeleteFunc(slices.Clone(setJobs), func(kind string) bool { return !has[kind] })
}

// dumps tells whether the set offers a dump by the schedule of the Resource Dump.
func (s *set) dumps() bool {
	return slices.Contains(s.cfg.Publish, "resourcedump") || slices.Contains(s.cfg.Publish, "changedump") && s.cfg.ChangeDump.Schedule == ""
}

// dumpsChanges tells whether the set offers a Change Dump with its own schedule.
func (s *set) dumpsChanges() bool {
	return slices.Contains(s.cfg.Publish, "changedump") && s.cfg.ChangeDump.Schedule != ""
}

func (s *set) dump(ctx context.Context, run *jobs.Run) error {
	defer s.writing.by(run, "dump")()
	if err := s.bridge.pub.Dump(ctx, s.name); err != nil {
		return fmt.Errorf("dump %s: %w", s.name, err)
	}
	return nil
}

// retain drops changes older than the retention: from the documents first, then from the log.
func (s *set) retain(ctx context.Context, _ *jobs.Run) (any, error) {
	now := s.bridge.now()
	if err := s.beginDue(ctx); err != nil { // a run for it has failed, and none may come by itself
		return nil, err
	}
	if err := s.bridge.pub.Retain(ctx, s.name); err != nil {
		return nil, fmt.Errorf("retention of %s: %w", s.name, err)
	}
	n, err := s.log.Retain(ctx, now.Add(-time.Duration(s.cfg.Retention.Changes)), now.Add(-time.Duration(s.cfg.Retention.Versions)))
	if err == nil { // lists of the dropped changes
		err = s.bridge.pub.Retain(ctx, s.name)
	}
	if err != nil {
		return nil, fmt.Errorf("retention of %s: %w", s.name, err)
	}
	return map[string]int64{"dropped": n}, nil
}

// forgetOther forgets the position in the dumps after a scan of a store, and the positions of
// the hints and in the store's log after a dump: the log no longer follows from them.
func (s *set) forgetOther(ctx context.Context) error {
	keys := [][]byte{dumpKey(s.name)}
	if s.files != nil {
		keys = [][]byte{hintKey(s.name), storelog.Key(s.name)}
	}
	for _, key := range keys {
		if _, err := s.bridge.records.Get(ctx, key); errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err := s.bridge.memory().put(ctx, key, nil); err != nil {
			return fmt.Errorf("forget where %s was read before: %w", s.name, err)
		}
	}
	return nil
}

func reportKey(set string) []byte { return []byte("scan/" + set) }

// saveReport keeps the last complete scan's report, for coverage and status.
func (s *set) saveReport(ctx context.Context, rep *ScanReport, counts publish.Vocabulary, found *sparqlsrc.Scan) error {
	raw, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	b := s.bridge.records.Batch()
	defer b.Close()
	b.Set(reportKey(s.name), raw)
	b.Set(settingsKey(s.name), s.settings(ctx))
	if err := s.memory().saveCounts(b, counts); err != nil {
		return err
	}
	if !rep.Same {
		if err := s.keepAnswer(ctx, b, found, rep); err != nil {
			return err
		}
	}
	if err := b.Commit(ctx, false); err != nil {
		return fmt.Errorf("keep the report of the scan: %w", err)
	}
	return nil
}

func (m setMemory) report(ctx context.Context) (*ScanReport, error) {
	raw, err := m.records.Get(ctx, reportKey(m.set))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("report of the last scan of %s: %w", m.set, err)
	}
	rep := new(ScanReport)
	return rep, json.Unmarshal(raw, rep)
}

// asBefore takes over the report of an earlier scan with the same answer.
func (r *ScanReport) asBefore(old *ScanReport) {
	if old != nil {
		r.Triples, r.Covered, r.LeftOut, r.Unpublished, r.Own, r.Orphans, r.Failed, r.Failures = old.Triples, old.Covered, old.LeftOut, old.Unpublished, old.Own, old.Orphans, old.Failed, old.Failures
	}
}

// knownTriples is how many triples the last complete scan found in the graphs.
func (s *set) knownTriples(ctx context.Context) (int64, error) {
	rep, err := s.memory().report(ctx)
	if err != nil || rep == nil {
		return 0, err
	}
	return rep.Triples, nil
}

func (s *set) coverage(ctx context.Context) publish.Coverage {
	rep, err := s.memory().report(ctx)
	if err != nil || rep == nil {
		return publish.Coverage{Graphs: s.cfg.Graphs}
	}
	return publish.Coverage{Graphs: s.cfg.Graphs, Triples: rep.Triples, Covered: rep.Covered, Constructed: rep.Constructed, Vocabulary: s.memory().counts(ctx)}
}

// describe finds the version of an entity at a time (zero: now) and encodes it.
func (s *set) describe(ctx context.Context, entity string, at time.Time, f rdfres.Format) ([]byte, changetrack.Version, error) {
	v := s.log.View(ctx)
	defer v.Close()
	fail := func(err error) ([]byte, changetrack.Version, error) {
		return nil, changetrack.Version{}, fmt.Errorf("%s in set %s: %w", entity, s.name, err)
	}
	st, err := v.Entity(ctx, entity)
	if errors.Is(err, kv.ErrNotFound) {
		if data, err := s.listed().describe(ctx, entity); err == nil || !errors.Is(err, ErrUnknown) {
			return data, changetrack.Version{}, err
		}
		return fail(ErrUnknown)
	}
	if err != nil {
		return fail(err)
	}
	ver := st.Current
	if !at.IsZero() {
		ver = nil
		for c, err := range v.History(ctx, entity) {
			if err != nil {
				return fail(err)
			}
			if c.Time.After(at) {
				if ver == nil && c.Before != nil {
					ver = c.Before // the version before this change; its own change is beyond retention
				}
				break
			}
			ver = c.After
		}
	}
	if ver == nil {
		return fail(fmt.Errorf("it is deleted, or was not there then: %w", ErrUnknown))
	}
	blob, err := v.Representation(ctx, entity, ver.Sequence)
	if err != nil {
		return fail(err)
	}
	data, err := blob.Bytes()
	if err != nil || f == "" || f == ver.Format {
		return data, *ver, err
	}
	ts, err := codec.Decode(ver.Format, data, rdfres.ReadOptions{Name: entity})
	if err == nil {
		data, err = codec.Encode(f, entity, ts)
	}
	if err != nil {
		return fail(err)
	}
	return data, *ver, nil
}

// subject is the same for all jobs on a set: they never overlap.
func (s *set) subject() string { return "set:" + s.name }
