package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// ScanArgs select entities for a scan; without any it looks at everything.
type ScanArgs struct {
	// Entities are the IRIs of possibly changed entities: only they, and entities with the
	// same blank nodes, are described again.
	Entities []string `json:"entities,omitempty"`
	// Hints: look at the entities named by the hints of the set.
	Hints bool `json:"hints,omitempty"`
}

// Bounds of a request: so many entities, of so many characters, absolute IRIs without
// control characters. They need not be URLs: stores hold IRIs like http://e.example/100%
// too.
const (
	MaxNamed      = 10_000
	MaxEntityLen  = 8192
	EntityPattern = `^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x1f\x7f-\x9f]*$`
)

// ErrEntities comes for malformed or too many entities.
var ErrEntities = errors.New("entities are absolute IRIs, at most 10000 at once")

// ErrApart comes for a request with entities and hints.
var ErrApart = errors.New("hints and entities are two scans: ask for one of them")

// ErrWhole comes for a set without a way to scan the requested part.
var ErrWhole = errors.New("scan everything instead")

var entityPattern = regexp.MustCompile(EntityPattern)

// Check finds faults of the entities.
func (a ScanArgs) Check() error {
	if a.Hints && len(a.Entities) > 0 {
		return ErrApart
	}
	if a.Entities != nil && len(a.Entities) == 0 { // an empty feed does not ask for everything
		return fmt.Errorf("none is named: %w", ErrEntities)
	}
	if len(a.Entities) > MaxNamed {
		return fmt.Errorf("%d entities: %w", len(a.Entities), ErrEntities)
	}
	for _, e := range a.Entities {
		if !entityPattern.MatchString(e) || !utf8.ValidString(e) || utf8.RuneCountInString(e) > MaxEntityLen {
			return fmt.Errorf("%.200q: %w", e, ErrEntities)
		}
	}
	return nil
}

// hintRecord is how far the hints of a set have been followed.
type hintRecord struct {
	Version int                                       `json:"version"`
	At      time.Time                                 `json:"at"`               // when the last look began
	Of      string                                    `json:"of"`               // hints and store, in one text
	Counts  map[string]map[string]sparqlsrc.Partition `json:"counts,omitempty"` // by kind and IRI
}

func hintKey(set string) []byte { return []byte("hint/" + set) }

func (m setMemory) hints(ctx context.Context) (*hintRecord, error) {
	raw, err := m.records.Get(ctx, hintKey(m.set))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	rec := new(hintRecord)
	if err == nil {
		err = json.Unmarshal(raw, rec)
	}
	if err != nil {
		return nil, fmt.Errorf("how far the hints of %s were followed: %w", m.set, err)
	}
	return rec, nil
}

func (m setMemory) saveHints(ctx context.Context, rec *hintRecord) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	b := m.records.Batch()
	defer b.Close()
	b.Set(hintKey(m.set), raw)
	if err := b.Commit(ctx, false); err != nil {
		return fmt.Errorf("keep how far the hints were followed: %w", err)
	}
	return nil
}

// markHints is the point from which hints go on after a look begun now: no change meanwhile
// is missed. A full scan does without missing counts of the store.
func (s *set) markHints(ctx context.Context, full bool) (*hintRecord, error) {
	h := s.cfg.Hints
	if !h.Set() || s.source == nil {
		return nil, nil
	}
	rec := &hintRecord{Version: 1, At: s.bridge.now().UTC(), Of: s.hintsOf(), Counts: map[string]map[string]sparqlsrc.Partition{}}
	for _, by := range h.Counts {
		counts, err := s.source.Partitions(ctx, by)
		switch {
		case err == nil:
			rec.Counts[by] = counts
		case !full || ctx.Err() != nil:
			return nil, err
		default:
			s.bridge.log.Warn("the counts that hints are made from were not had", "set", s.name, "counts", by, "err", err)
		}
	}
	return rec, nil
}

// hintsOf names the store and its hints: after a change of either, the changes until then
// are unknown.
func (s *set) hintsOf() string {
	st, h := s.bridge.cfg.Stores[s.cfg.Store], s.cfg.Hints
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []any{s.cfg.Store, st.Query, st.GraphStore, st.Embedded, h.Modified, h.Query, h.Counts}))
	return hex.EncodeToString(sum[:])
}

// errEverything is the reason for a full scan instead of following hints.
type errEverything struct{ why string }

func (e errEverything) Error() string { return e.why }

// follow asks all hints of the set for changed entities, and counts by kind.
func (s *set) follow(ctx context.Context, last, next *hintRecord, list *sparqlsrc.Named, by map[string]int64) error {
	h := s.cfg.Hints
	add := func(kind string) func(string) error {
		return func(entity string) error {
			by[kind]++
			return list.Add(entity)
		}
	}
	if next.Of != last.Of {
		return errEverything{"the hints, or their store, are others than those that were followed last"}
	}
	if next.At.Before(last.At) {
		return errEverything{"the clock was set back since they were followed last"}
	}
	overlap := time.Duration(h.Overlap)
	if len(h.Modified) > 0 {
		if err := s.source.ModifiedSince(ctx, h.Modified, last.At.Add(-overlap), add("modified")); err != nil {
			return err
		}
	}
	if h.Query != "" {
		if err := s.source.NamedSince(ctx, h.Query, last.At.Add(-overlap), add("query")); err != nil {
			return err
		}
	}
	for _, kind := range h.Counts {
		before := last.Counts[kind]
		if before == nil {
			return errEverything{"the counts by " + kind + " are new"}
		}
		keys := slices.Sorted(maps.Keys(next.Counts[kind]))
		for key := range before {
			if _, still := next.Counts[kind][key]; !still {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			now, old := next.Counts[kind][key], before[key]
			if now == old {
				continue
			}
			if now.Entities < old.Entities && !(kind == sparqlsrc.ByGraph && s.cfg.Describe == "graph") {
				return errEverything{fmt.Sprintf("%s %s had %d entities and has %d: counts do not say which are gone", kind, key, old.Entities, now.Entities)}
			}
			if err := s.source.OfPartition(ctx, kind, key, add("counts")); err != nil {
				return err
			}
		}
	}
	return nil
}

// hintArgs are the arguments of a run of hints.
type hintArgs struct {
	Named bool `json:"named"` // look at the kept requests, instead of the hints of the set
}

// hint looks at what the hints of the set name or, of named, at all that was named until now: what
// is named during a run is for the one after it. It forgets the requests that it has looked at.
// After a good end, and with no run waiting, it begins a run for the other requests: theirs failed,
// or were cancelled before they began.
func (s *set) hint(ctx context.Context, run *jobs.Run) (any, error) {
	var args hintArgs
	if len(run.Args) > 0 {
		if err := json.Unmarshal(run.Args, &args); err != nil {
			return nil, fmt.Errorf("hints of %s: arguments: %w", s.name, err)
		}
	}
	var looked []named.Request
	var told *named.Told
	if args.Named {
		var err error
		if looked, err = s.due.Due(ctx); err != nil {
			return nil, err
		}
		if told, err = named.Gather(looked); err != nil {
			return nil, fmt.Errorf("what was named of %s: %w", s.name, err)
		}
	}
	report, err := s.lookAtHints(ctx, run, told)
	if rep, ok := report.(*ScanReport); err != nil || ok && rep.Candidate != nil {
		return report, err
	}
	if err = s.due.Forget(context.WithoutCancel(ctx), looked); err == nil && !s.bridge.runner.Waits(run.Job) {
		err = s.beginDue(ctx)
	}
	return report, err
}

// beginDue begins a run for the kept requests, if there are any and none is queued.
func (s *set) beginDue(ctx context.Context) error {
	if s.source == nil {
		return nil // of dumps the newest is read whole
	}
	due, err := s.due.Due(ctx)
	if err == nil && len(due) > 0 {
		_, _, err = s.bridge.runner.Start("hint:"+s.name, "again", hintArgs{Named: true})
	}
	return err
}

// HintsBy tells how many entities each kind of hint names.
func (r *ScanReport) HintsBy() string {
	var by []string
	for _, kind := range slices.Sorted(maps.Keys(r.Hints)) {
		by = append(by, fmt.Sprintf("%d by %s", r.Hints[kind], kind))
	}
	return strings.Join(by, ", ")
}

// lookAtHints describes the told entities again or, without them, the entities named by the
// hints of the set, and logs the changes. Before the first complete scan, after a change of the
// configuration, and for a fifth of everything, it is a full scan.
func (s *set) lookAtHints(ctx context.Context, run *jobs.Run, told *named.Told) (any, error) {
	if s.former != "" {
		return s.scan(ctx, run)
	}
	began := s.bridge.now()
	everything := func(why string) (any, error) {
		s.bridge.log.Info("hints are not followed, everything is read", "set", s.name, "why", why)
		full := *run
		full.Args = json.RawMessage(`{"hinted":true}`)
		return s.scan(ctx, &full)
	}
	v := s.log.View(ctx)
	_, _, complete := v.BaselineEnd()
	known := v.Resources()
	v.Close()
	if !complete {
		return everything("there was no complete scan yet")
	}
	last, err := s.memory().hints(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case told == nil && last == nil:
		return everything("the hints are new")
	case told != nil && told.Unknown:
		return everything("what has changed is not known")
	case told != nil && told.Blank:
		rep, err := s.memory().report(ctx)
		if err != nil {
			return nil, err
		}
		if rep == nil || rep.Orphans > 0 {
			return everything("blank nodes have changed, and some belong to no entity")
		}
	case told != nil && len(told.Entities) > MaxNamed && int64(len(told.Entities)) > known/5:
		return everything(fmt.Sprintf("%d of %d entities are named", len(told.Entities), known))
	}
	defer s.during(run)()
	if err := s.forgetOther(ctx); err != nil {
		return nil, err
	}
	list, err := s.source.Named()
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }() // spill files
	rep := &ScanReport{Name: s.name, Finder: "hint", Way: "batches", Hints: map[string]int64{}}
	var next *hintRecord
	if told != nil {
		rep.Hints["named"] = 0
		for _, e := range told.Entities {
			rep.Hints["named"]++
			if err := list.Add(e); err != nil {
				return nil, err
			}
		}
	} else {
		if next, err = s.markHints(ctx, false); err != nil {
			return nil, err
		}
		err = s.follow(ctx, last, next, list, rep.Hints)
		var all errEverything
		if errors.As(err, &all) {
			return everything(all.why)
		}
		if err != nil {
			return nil, err
		}
		if n := list.Len(); n > 1000 && n > known/5 {
			return everything(fmt.Sprintf("they name %d of %d entities", n, known))
		}
	}
	res, err := s.log.Scan(ctx, list.Descriptions(ctx), s.scanOptions(ctx, "hint", changetrack.ScanOptions{Partial: true, Confirm: s.source.Describe}))
	if errors.Is(err, changetrack.ErrFingerprint) {
		return everything("the configuration has changed")
	}
	if err != nil {
		return nil, fmt.Errorf("hints of %s: %w", s.name, err)
	}
	rep.Resources, rep.Created, rep.Updated, rep.Deleted, rep.Unchanged = res.Resources, res.Created, res.Updated, res.Deleted, res.Unchanged
	rep.Failed, rep.Failures, rep.Fallback, rep.Held = res.Failed, res.Failures, res.Fallback, res.Held
	rep.Failed += int64(len(list.Failed()))
	for entity, err := range list.Failed() {
		if len(rep.Failures) < 100 {
			rep.Failures = append(rep.Failures, changetrack.Failure{Entity: entity, Err: err.Error()})
		}
	}
	if old, err := s.memory().report(ctx); err == nil && old != nil { // of the last full scan
		rep.Triples, rep.Covered, rep.LeftOut, rep.Constructed, rep.Own, rep.Orphans = old.Triples, old.Covered, old.LeftOut, old.Constructed, old.Own, old.Orphans
	}
	if rep.Held != nil {
		rep.Candidate = &Candidate{rep.Created, rep.Updated, rep.Deleted}
		rep.Created, rep.Updated, rep.Deleted = 0, 0, 0
	} else {
		if next != nil {
			if err := s.memory().saveHints(context.WithoutCancel(ctx), next); err != nil {
				return rep, err
			}
		}
		if err := s.publish(ctx, run); err != nil {
			return rep, err
		}
		if rep.Files, err = s.followFiles(ctx, run, ""); err != nil {
			return rep, err
		}
	}
	rep.Held = s.held(ctx, rep.Held)
	rep.Sequence, _ = s.log.Head()
	rep.Seconds = s.bridge.now().Sub(began).Seconds()
	s.bridge.log.Info("followed hints", "set", s.name, "found", "hint", "hints", rep.HintsBy(), "created", rep.Created, "updated", rep.Updated,
		"deleted", rep.Deleted, "unchanged", rep.Unchanged, "held", rep.Held != nil, "seconds", rep.Seconds)
	return rep, nil
}

// scanOptions are the common options of all scans of a set.
func (s *set) scanOptions(ctx context.Context, finder string, o changetrack.ScanOptions) changetrack.ScanOptions {
	of := s.formatOptions()
	o.Finder, o.Format, o.MD5, o.SHA1 = finder, of.Format, of.MD5, of.SHA1
	o.MaxDeleteRatio, o.Fingerprint = s.cfg.MaxDeleteRatio, s.fingerprint(ctx)
	return o
}

// formatOptions are those of the representations only.
func (s *set) formatOptions() changetrack.ScanOptions {
	return changetrack.ScanOptions{Format: rdfres.Format(s.cfg.Format), MD5: slices.Contains(s.cfg.Hashes, "md5"), SHA1: slices.Contains(s.cfg.Hashes, "sha-1")}
}
