// Package forward brings records of an earlier version of the program to the present version.
//
// A state has spaces of records, each with a version and a table of steps. [Run] takes the missing steps when a
// state is opened. Changed records and the place of the step are committed together, so a step goes on after a
// kill at any moment. The new version is recorded with the first of them: an earlier program refuses a state with
// a step under way.
package forward

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Space is a part of a store with a version of its own.
type Space struct {
	Name   string // "jobs"; the key of its version
	Prefix string // of its keys, "jobs/"
	// Steps lead from each version to the next: the first one from 1 to 2. The present version is len(Steps)+1.
	Steps []Step
}

// Step adds to b the writes that bring one record of its space to the next version; keys are without the prefix.
// Records come in the order of their keys. A record that a step writes may come to it as well: a step leaves
// records of the next version alone.
type Step func(p kv.Pair, b kv.Batch) error

func (s Space) present() int { return len(s.Steps) + 1 }

// prefix is of the records with the versions, by the names of the spaces.
const prefix = "format/"

// version is the value of such a record.
type version struct {
	Version int `json:"version"`
	// UnderWay: the step to Version has not ended; it has done the keys up to After.
	UnderWay bool   `json:"under_way,omitempty"`
	After    []byte `json:"after,omitempty"`

	recorded bool
}

// batchBytes is about the size of a batch.
const batchBytes = 4 << 20

// Check tells the spaces with an earlier version, as "jobs: version 1 of 3", in the order of the table. Records of
// a later version give a kv.ErrNewer.
func Check(ctx context.Context, r kv.Store, spaces []Space) (due []string, err error) {
	versions, err := read(ctx, r, spaces)
	for _, s := range spaces {
		if v := versions[s.Name]; err == nil && (v.Version < s.present() || v.UnderWay) {
			due = append(due, fmt.Sprintf("%s: version %d of %d", s.Name, v.Version, s.present()))
		}
	}
	return due, err
}

// Run takes the missing steps of all spaces, and records their versions. Records of a later version give a
// kv.ErrNewer; nothing is changed then. After any other error it goes on at the next call.
func Run(ctx context.Context, store kv.Store, spaces []Space, log *slog.Logger) error {
	versions, err := read(ctx, store, spaces)
	if err != nil {
		return err
	}
	b := store.Batch()
	defer b.Close()
	for _, s := range spaces {
		if v := versions[s.Name]; !v.recorded {
			set(b, s, v)
		}
	}
	if b.Size() > 0 {
		if err := b.Commit(ctx, true); err != nil {
			return err
		}
	}
	for _, s := range spaces {
		for v := versions[s.Name]; v.Version < s.present() || v.UnderWay; {
			if !v.UnderWay {
				v = version{Version: v.Version + 1, UnderWay: true}
			}
			log.Info("records are brought forward", "records", s.Name, "to_version", v.Version, "goes_on", v.After != nil)
			n, err := s.step(ctx, store, v)
			if err != nil {
				return fmt.Errorf("bring the records %s to version %d: %w", s.Name, v.Version, err)
			}
			log.Info("records are of the next version", "records", s.Name, "version", v.Version, "read", n)
			v = version{Version: v.Version}
		}
	}
	return nil
}

// step takes the rest of a step. n counts the records that it read.
func (s Space) step(ctx context.Context, store kv.Store, v version) (n int64, err error) {
	b := store.Batch()
	defer b.Close()
	records := kv.Prefix(store, []byte(s.Prefix))
	write := kv.Join(records, b)
	var lo []byte
	if v.After != nil {
		lo = append(append(lo, v.After...), 0)
	}
	for p, err := range records.Scan(ctx, lo, nil) {
		if err != nil {
			return n, err
		}
		if err := s.Steps[v.Version-2](p, write); err != nil {
			return n, fmt.Errorf("record %q: %w", p.Key, err)
		}
		n++
		v.After = append(v.After[:0], p.Key...)
		if b.Size() < batchBytes {
			continue
		}
		set(b, s, v)
		if err := b.Commit(ctx, true); err != nil {
			return n, err
		}
	}
	set(b, s, version{Version: v.Version})
	return n, b.Commit(ctx, true)
}

func set(b kv.Batch, s Space, v version) {
	raw, _ := json.Marshal(v) // of plain fields
	b.Set([]byte(prefix+s.Name), raw)
}

// read reads the versions of all spaces. Records without a version are of the first one.
func read(ctx context.Context, store kv.Store, spaces []Space) (map[string]version, error) {
	out, known := map[string]version{}, map[string]Space{}
	for _, s := range spaces {
		known[s.Name] = s
		out[s.Name] = version{Version: s.present()}
		for _, err := range kv.Prefix(store, []byte(s.Prefix)).Scan(ctx, nil, nil) {
			if err != nil {
				return nil, err
			}
			out[s.Name] = version{Version: 1}
			break
		}
	}
	for p, err := range kv.Prefix(store, []byte(prefix)).Scan(ctx, nil, nil) {
		if err != nil {
			return nil, err
		}
		var v version
		name := string(p.Key)
		s, is := known[name]
		if err := json.Unmarshal(p.Value, &v); err != nil || v.Version < 1 || v.UnderWay && v.Version < 2 {
			return nil, fmt.Errorf("the version of the records %s is damaged: %q", name, p.Value)
		}
		if !is {
			return nil, fmt.Errorf("the records %s are not known here: %w", name, kv.ErrNewer)
		}
		if v.Version > s.present() {
			return nil, fmt.Errorf("the records %s have version %d, this program knows %d: %w", name, v.Version, s.present(), kv.ErrNewer)
		}
		v.recorded = true
		out[name] = v
	}
	return out, nil
}
