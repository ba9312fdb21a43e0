// Command rsbridge publishes a triple store with ResourceSync and keeps other
// stores equal to it.
//
// This package holds flags, signals, exit codes, printing and progress; the packages
// below do the work. The commands are one table in root.go,
// one file each group. `rsbridge help` prints them; docs/reference/cli.md is made from the
// same table.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	_ "time/tzdata" // CRON_TZ= works on a system without time zones

	_ "golang.org/x/crypto/x509roots/fallback" // https works on a system without certificates, as in an empty container

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

func main() {
	os.Exit(runUntilSignal())
}

// runUntilSignal runs the program. A second signal ends it at once; every promise is on
// the disk already.
func runUntilSignal() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Exit codes.
const (
	exitDone   = 0 // done and equal
	exitFailed = 1
	exitUsage  = 2 // wrong usage or configuration
	exitPart   = 3 // done in part, held, or out of sync
)

// codeError is an error with its exit code; a nil err prints nothing.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

// part is the error of a command after it has printed the remaining work.
var part = &codeError{code: exitPart}

// limitMemory sets a soft limit for the Go heap unless GOMEMLIMIT does: streams need
// little, and each embedded store keeps caches.
func limitMemory(embedded int) { limitMemoryTo(235 + 150*int64(embedded)) }

func limitMemoryTo(megabytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(megabytes << 20)
	}
}

// run is the whole program with its world given.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&app{lineEvery: lineEvery, watchEvery: watchEvery}).execute(ctx, args, stdin, stdout, stderr)
}

func (a *app) execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	limitMemory(1)
	said := &counted{Writer: stdout}
	if _, file := stderr.(*os.File); !file {
		stderr = &inTurn{w: stderr} // lines of the log and of progress
	}
	a.in, a.out, a.err = &untilEnd{ctx: ctx, in: stdin}, said, stderr
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(said)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.endProgress()
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil {
		err = a.stopped(ctx, cmd, err)
	}
	code := exitFailed
	var ce *codeError
	var cfg *bridge.ConfigError
	switch {
	case errors.As(err, &ce):
		code = ce.code
		if ce.err == nil {
			return code
		}
	case errors.As(err, &cfg), strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		code = exitUsage
	}
	text := packages.ReplaceAllString(err.Error(), "$1")
	for _, arg := range args { // errors name a malformed address whole
		if m := webguard.Masked(arg); m != arg {
			text = strings.NewReplacer(arg, m, strings.Trim(strconv.Quote(arg), `"`), m).Replace(text)
		}
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		text += "\nhint: " + hinted.Hint()
	}
	text = webguard.MaskedText(text)
	fmt.Fprintln(a.err, "rsbridge:", text)
	if said.n == 0 && (a.json || slices.Contains(args, "--json")) {
		_ = a.print(failure{text, code}) // the exit code says the same
	}
	return code
}

// packages are the names of packages before errors.
var packages = regexp.MustCompile(`(^|: |\n)(?:resourcesync|sparql|publish|changetrack|embedstore): `)

// failure is the JSON of a failed command.
type failure struct {
	Error string `json:"error"`
	Code  int    `json:"code"` // exit code
}

// counted knows whether something was written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// inTurn writes whole lines of several goroutines.
type inTurn struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(p)
}
