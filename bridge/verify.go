package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/inventory"
)

// verifyJob is the job to verify everything.
const verifyJob = "verify:state"

// VerifyArgs are the arguments of a verification.
type VerifyArgs struct {
	// ReadData: also the representations of the sets, and the embedded stores.
	ReadData bool `json:"read_data,omitempty"`
}

// VerifyReport is the report of a verification.
type VerifyReport struct {
	Records         int64         `json:"records"`         // of the state
	Files           int           `json:"files"`           // published ones
	Representations int64         `json:"representations"` // with read_data
	Triples         int64         `json:"triples"`         // of embedded stores, with read_data
	ReadData        bool          `json:"read_data"`
	Faults          []VerifyFault `json:"faults"`
	Seconds         float64       `json:"seconds"`
	// Due: something is to be made again, and the verification of OpenDry makes nothing.
	Due bool `json:"due,omitempty"`
}

// VerifyFault is a damage to written data.
type VerifyFault struct {
	What  string `json:"what"` // state, set NAME, store NAME
	File  string `json:"file,omitempty"`
	Error string `json:"error"`
	// Again: it is right now. A damaged file was made again.
	Again bool `json:"made_again"`
}

// verify reads everything kept here: the records of the state with their checksums, the
// published files, and with ReadData the representations by digest and the embedded stores.
// It makes damaged files again.
func (b *Bridge) verify(ctx context.Context, run *jobs.Run) (any, error) {
	var o VerifyArgs
	if len(run.Args) > 0 {
		if err := json.Unmarshal(run.Args, &o); err != nil {
			return nil, fmt.Errorf("%s: arguments: %w", run.Job, err)
		}
	}
	began := time.Now()
	rep := &VerifyReport{ReadData: o.ReadData, Faults: []VerifyFault{}}
	found := func(what string, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			b.log.Error("verification found a fault", "what", what, "error", err)
			rep.Faults = append(rep.Faults, VerifyFault{What: what, Error: err.Error()})
		}
		return nil
	}
	run.Progress("records", 0, 0)
	var err error
	rep.Records, err = kv.ReadAll(ctx, b.kv)
	if err := found("state", err); err != nil {
		return nil, err
	}
	for _, name := range b.Sets() {
		run.Progress("files of "+name, 0, 0)
		files, faults, err := b.pub.Verify(ctx, name)
		if s := b.sets[name]; err == nil && !b.o.dry && !s.removed && s.lacksDump() { // a command has dropped a damaged one
			err = s.dump(ctx, run)
		}
		rep.Files += files
		rep.Due = rep.Due || b.o.dry && (len(faults) > 0 || !b.sets[name].removed && b.sets[name].lacksDump())
		for _, f := range faults {
			rep.Faults = append(rep.Faults, VerifyFault{What: "set " + name, File: f.File, Error: f.Error, Again: f.Again})
		}
		if err == nil && o.ReadData {
			run.Progress("representations of "+name, 0, 0)
			if err = b.sets[name].log.Check(ctx); err == nil {
				err = verifyInventory(ctx, b, name, rep)
			}
			if err == nil {
				v := b.sets[name].log.View(ctx)
				rep.Representations += v.Resources()
				v.Close()
			}
		}
		if err := found("set "+name, err); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.stores)) {
		s := b.stores[name]
		err := s.fault
		if err == nil && s.embedded != nil && o.ReadData {
			run.Progress("store "+name, 0, 0)
			var n int64
			n, err = s.embedded.Verify(ctx)
			rep.Triples += n
		}
		if err := found("store "+name, err); err != nil {
			return nil, err
		}
	}
	if err := failedAgain(ctx, b, run, rep); err != nil {
		return nil, err
	}
	rep.Seconds = time.Since(began).Seconds()
	return rep, nil
}

// verifyInventory makes a damaged inventory anew.
func verifyInventory(ctx context.Context, b *Bridge, name string, rep *VerifyReport) error {
	err := b.pub.CheckInventory(ctx, name)
	if !errors.Is(err, inventory.ErrDamaged) {
		return err
	}
	rep.Faults = append(rep.Faults, VerifyFault{What: "set " + name, Error: err.Error(), Again: !b.o.dry})
	if rep.Due = rep.Due || b.o.dry; b.o.dry {
		return nil
	}
	_, err = b.pub.Publish(ctx, name)
	return err
}

// failedAgain begins the jobs of published files with a failed last run: files that are right say
// nothing of one that was not made. A run under way on a set does it itself.
func failedAgain(ctx context.Context, b *Bridge, run *jobs.Run, rep *VerifyReport) error {
	for _, name := range b.ConfiguredSets() {
		s := b.sets[name]
		if slices.ContainsFunc(s.jobKinds(), func(kind string) bool { _, busy := b.runner.Busy(kind + name); return busy }) {
			continue
		}
		run.Progress("failed jobs of "+name, 0, 0)
		err := s.again(ctx, run.Job, func(job, cause string) error {
			if b.o.dry {
				rep.Due = true
				return nil
			}
			again, _, err := b.runner.Start(job, cause, nil)
			if err == nil {
				_, err = b.runner.Wait(ctx, again.ID)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("begin the failed jobs of set %s again: %w", name, err)
		}
	}
	return nil
}
