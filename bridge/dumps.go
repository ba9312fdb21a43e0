package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/sparqlsrc"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// DumpStatus is the file of a series of dumps behind the state of a set.
type DumpStatus struct {
	dumpfile.File
	// Unchanged: the look found no newer complete file.
	Unchanged bool `json:"unchanged"`
	// Incomplete are newer files, not complete yet.
	Incomplete []dumpfile.Incomplete `json:"incomplete,omitempty"`
	Looked     time.Time             `json:"looked"` // for files
	// Proof is the proof of a whole file; without one it may be cut.
	Proof string `json:"proof,omitempty"`
}

// dumpRecord is kept of the last look.
type dumpRecord struct {
	Version int `json:"version"`
	DumpStatus
	Fingerprint string `json:"fingerprint"`     // of the set, when the file was read
	Bounds      bounds `json:"bounds,omitzero"` // of the set, at the last look
}

// bounds are the limits of an entity, by name.
type bounds struct {
	Triples int `json:"triples"`
	Depth   int `json:"depth"`
	Naming  int `json:"naming"`
}

func boundsOf(s *Set) bounds { return bounds{s.MaxTriples, s.MaxDepth, s.MaxNaming} }

func dumpKey(set string) []byte { return []byte("dump/" + set) }

func (m setMemory) dump(ctx context.Context) (*dumpRecord, error) {
	raw, err := m.records.Get(ctx, dumpKey(m.set))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the last dump of %s: %w", m.set, err)
	}
	rec := new(dumpRecord)
	if err := json.Unmarshal(raw, rec); err != nil {
		return nil, fmt.Errorf("the last dump of %s: %w", m.set, err)
	}
	return rec, nil
}

func (m setMemory) saveDump(ctx context.Context, rec dumpRecord) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	b := m.records.Batch()
	defer b.Close()
	b.Set(dumpKey(m.set), raw)
	if err := b.Commit(ctx, false); err != nil {
		return fmt.Errorf("keep which dump was read: %w", err)
	}
	return nil
}

// lookAtDumps reads the newest complete file, unless it is the state already. again reads
// the same one too: a scan is held, the configuration has changed, or failed entities may
// succeed now.
func (s *set) lookAtDumps(ctx context.Context, again bool) (sparqlsrc.DumpScan, error) {
	rec, err := s.memory().dump(ctx)
	if err != nil {
		return sparqlsrc.DumpScan{}, err
	}
	var last dumpfile.File
	v := s.log.View(ctx)
	held := v.Held(ctx)
	v.Close()
	if rec != nil {
		last, again = rec.File, again || held != nil || rec.Fingerprint != s.fingerprint(ctx)
		if rec.Bounds != boundsOf(&s.cfg) {
			rep, err := s.memory().report(ctx)
			if err != nil {
				return sparqlsrc.DumpScan{}, err
			}
			again = again || rep != nil && rep.Failed > 0
		}
	}
	return s.files.Scan(ctx, last, again)
}

// nothingNew is the end of a scan without a newer file.
func (s *set) nothingNew(ctx context.Context, run *jobs.Run, d DumpStatus, began time.Time, acceptFiles string) (any, error) {
	rep := &ScanReport{Name: s.name, Finder: "scan", Way: "dump", Dump: &d}
	old, err := s.memory().report(ctx)
	if err != nil {
		return nil, err
	}
	rep.asBefore(old)
	rep.Unpublished = s.unpublished(old)
	if rec, err := s.memory().dump(ctx); err == nil && rec != nil {
		d.Proof = rec.Proof
	}
	v := s.log.View(ctx)
	rep.Resources, rep.Unchanged = v.Resources(), v.Resources()
	held := v.Held(ctx)
	v.Close()
	rep.Sequence, _ = s.log.Head()
	if err := s.memory().saveDump(ctx, dumpRecord{1, d, s.fingerprint(ctx), boundsOf(&s.cfg)}); err != nil {
		return rep, err
	}
	if err := s.publish(ctx, run); err != nil {
		return rep, err
	}
	if rep.Files, err = s.followFiles(ctx, run, acceptFiles); err != nil {
		return rep, err
	}
	rep.Sequence, _ = s.log.Head()
	rep.Held = s.held(ctx, held)
	rep.Seconds = s.bridge.now().Sub(began).Seconds()
	s.bridge.log.Info("no newer dump", "set", s.name, "file", d.Path, "incomplete", len(d.Incomplete))
	return rep, nil
}

// dumpsOf is the files of a set, for looking at them.
func dumpsOf(c *Config, name string, log *slog.Logger) (*sparqlsrc.Dumps, error) {
	s := c.Sets[name]
	sc := c.SourceConfig(name)
	sc.Logger = log
	return sparqlsrc.NewDumps(sc, s.DumpOptions())
}

// Newest gives, for each set made from dumps, the newest file, or the cause of its absence.
func Newest(cfg *Config, log *slog.Logger) (files map[string]dumpfile.File, faults map[string]error) {
	files, faults = map[string]dumpfile.File{}, map[string]error{}
	for name, s := range cfg.Sets {
		if len(s.Dumps) == 0 {
			continue
		}
		d, err := dumpsOf(cfg, name, log)
		var all []dumpfile.File
		if err == nil {
			all, err = d.Files()
		}
		if err != nil {
			faults[name] = err
			continue
		}
		files[name] = all[0]
	}
	return files, faults
}
