package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// leavings are the remains of a stopped command, and the next step.
type leavings struct{ stands, next string }

const again = "run it again"

// whenStopped has the leavings of every waiting command. A test holds it to the
// tree of commands.
var whenStopped = map[string]leavings{
	"init":     {"no file was written", again},
	"check":    {"nothing was changed", again},
	"doctor":   {"the store keeps nothing of the probe", again},
	"explore":  {"nothing was changed", again},
	"validate": {"printed findings stand, the rest was not read", again},
	"demo":     {"its temporary folder is removed, a folder of --dir stays", again},

	"run":    {"the state is closed in order", "rsbridge run goes on from there"},
	"expose": {"published changes stay in --state", again + " to go on from there"},
	"mirror": {"written batches stay in the mirror, and --state knows them", again + " to go on from there"},

	"scan":    {"published sets stay published, an unfinished scan changes nothing", again},
	"sync":    {"written batches stay in the mirror, and the state knows them", again + " to go on from there"},
	"audit":   {"nothing is proven, finished repairs stay", again},
	"status":  {"nothing was changed", again},
	"changes": {"nothing was changed", again + " with --since and the last sequence"},
	"show":    {"nothing was changed", again},
	"diff":    {"nothing was changed", again},
	"accept":  {"what is not released stays held", "rsbridge status shows it"},
	"rebase":  {"the set has all old addresses or all new ones", "rsbridge status shows them"},
	"forget":  {"removed records stay removed", again + " to remove the rest"},
	"move":    {"the move is done or not begun", "rsbridge status shows it"},
	"verify":  {"nothing is proven, files that were made again stay", again},
	"backup":  {"FILE is as it was", again},
	"restore": {"the state folder is empty, as it was", again},
	"migrate": {"the state is where it was", again},
	"export":  {"DIR has new files, its documents come last", again + " to write the rest"},

	"store load":   {"loaded files stay, the last one left nothing", "load the rest again"},
	"store dump":   {"the output is not complete", again},
	"store query":  {"the output is not complete", again},
	"store update": {"the store is unchanged", again},
	"store serve":  {"the store is closed in order", again},
	"simulate":     {"made entities and changes stay in the store", again + " to go on from there"},
}

// ofDryRun are those of a command with --dry-run.
var ofDryRun = leavings{"nothing was changed", again}

// foundByScan are those of a scan stopped behind its comparison.
var foundByScan = leavings{"what it found is in the log of the set", again + " to publish what is not published yet"}

// errStopped is the error of the set or destination under way at a signal.
var errStopped error = stoppedError{}

type stoppedError struct{}

func (stoppedError) Error() string        { return "stopped before its end" }
func (stoppedError) Is(target error) bool { return target == context.Canceled }

// stopped is the error of a command ended by a signal.
func (a *app) stopped(ctx context.Context, cmd *cobra.Command, err error) error {
	var ce *codeError
	if errors.As(err, &ce) { // it ended by itself
		return err
	}
	by := map[string]string{"interrupt signal received": "an interrupt", "terminated signal received": "SIGTERM"}[context.Cause(ctx).Error()]
	if by == "" {
		by = "a signal"
	}
	name := commandName(cmd)
	left := whenStopped[name]
	if dry, err := cmd.Flags().GetBool("dry-run"); err == nil && dry {
		left = ofDryRun
	}
	if a.found {
		left = foundByScan
	}
	if a.left != nil {
		left = leavings{fmt.Sprintf("the daemon goes on with %s (run %d)", a.left.Job, a.left.ID), "rsbridge status shows how it ends"}
	}
	text := fmt.Sprintf("%s was stopped by %s: %s", name, by, left.stands)
	for _, e := range apart(err) {
		text += "\n  it also failed: " + e.Error()
	}
	return errors.New(text + "\n  next: " + left.next)
}

// untilEnd reads from an input until its context ends: the input itself may wait for ever.
type untilEnd struct {
	ctx   context.Context
	in    io.Reader
	once  sync.Once
	piped *io.PipeReader
}

func (u *untilEnd) Read(p []byte) (int, error) {
	u.once.Do(func() {
		r, w := io.Pipe()
		u.piped = r
		context.AfterFunc(u.ctx, func() { w.CloseWithError(context.Cause(u.ctx)) })
		go func() { // ends with the input, or with the process
			_, err := io.Copy(w, u.in)
			w.CloseWithError(err)
		}()
	})
	return u.piped.Read(p)
}

// commandName is the path of a command without the program.
func commandName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

// apart are the errors among joined ones with another cause than the stop.
func apart(err error) (out []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && errors.Join(joined.Unwrap()...).Error() == err.Error() {
		for _, e := range joined.Unwrap() {
			out = append(out, apart(e)...)
		}
		return out
	}
	ends := []error{context.Canceled, jobs.ErrClosed, embedstore.ErrClosed, kv.ErrClosed}
	if slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) || strings.Contains(err.Error(), end.Error()) }) {
		return nil
	}
	return []error{err}
}
