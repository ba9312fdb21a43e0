package kv

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// OpenOptions are for stores of every engine; the zero value is sensible.
type OpenOptions struct {
	Logger   *slog.Logger // nil: silent
	ReadOnly bool         // of an existing store; every commit is refused
	Former   int64        // of a Led store: number of a leader that is known to have ended; 0: none is

	// Noted gets each durable commit of a Led store, in order, before its Commit returns. Its error is the commit's,
	// and ends all writing. nil: nobody is told.
	Noted func(Point) error
}

// Engine opens the store at a place, in words of its own: a folder, or all of a
// URL behind its scheme. ctx is for the opening.
type Engine func(ctx context.Context, place string, o OpenOptions) (Store, error)

// Engines are the ways to keep a store, by the scheme of its address. The one without
// a scheme takes bare folders.
type Engines map[string]Engine

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`) // of two letters at least: C:\ is a folder

// Open opens the store at an address such as pebble:DIR, or DIR alone.
func (e Engines) Open(ctx context.Context, address string, o OpenOptions) (Store, error) {
	name := strings.ToLower(strings.TrimSuffix(scheme.FindString(address), ":"))
	open := e[name]
	if open == nil {
		return nil, &SchemeError{Scheme: name, Known: slices.Sorted(maps.Keys(e))}
	}
	place := address
	if name != "" {
		place = address[len(name)+1:]
	}
	return open(ctx, place, o)
}

// SchemeError is an address without an engine. It has no more of the
// address than the scheme: a password may stand in it.
type SchemeError struct {
	Scheme string
	Known  []string
}

func (e *SchemeError) Error() string {
	if e.Scheme == "" {
		return "open state: the address has no scheme"
	}
	return fmt.Sprintf("open state: no engine for addresses that begin with %s:", e.Scheme)
}

// Hint tells the known forms of addresses.
func (e *SchemeError) Hint() string {
	var forms []string
	for _, k := range e.Known {
		if k == "" {
			forms = append(forms, "a folder (./DIR if it has a colon)")
			continue
		}
		forms = append(forms, k+":…")
	}
	return "use " + strings.Join(forms, " or ")
}

// Sized is a Store outside of the state's folder.
type Sized interface {
	// Size is about how many bytes the store takes on disk.
	Size(ctx context.Context) (int64, error)
}

// Settler is a Store with times to be opened again.
type Settler interface {
	// Settled is closed when it has to be, and can be.
	Settled() <-chan struct{}
}

// Point names a commit for ever, also in copies of the store. The zero value is before all of them.
type Point struct {
	Lead   string `json:"lead"`   // the time of one leader: a name of its own
	Commit int64  `json:"commit"` // its number in the store
}

// Led is a Store of several processes. One of them at a time, the leader, has the right to write.
type Led interface {
	// Leader is of this moment.
	Leader(ctx context.Context) (Leader, error)
	// Hold returns nil while this process is certain to lead: no other one can begin within the next moment. While
	// that is not known it waits. An error tells that the right to write is lost, or is the cause of ctx.
	Hold(ctx context.Context) error
	// Lost is closed when another process has taken over.
	Lost() <-chan struct{}
	// Newest is the newest durable commit of any process. has tells whether the commit was is still there: Newest
	// has it in its past, or its loss was adopted.
	Newest(ctx context.Context, was Point) (newest Point, has bool, err error)
	// Adopt durably accepts that commits of these leads are lost. Only the leader can.
	Adopt(ctx context.Context, leads ...string) error
}

// Leader is the process with the right to write.
type Leader struct {
	Name   string // process and machine; "": there was none yet
	Leads  bool   // false: another one may begin
	Number int64  // of its lead; the next one has a higher number
	Commit int64  // number of the newest commit
}

// IsLed tells whether a store is one of several processes.
func IsLed(s Store) bool {
	root, _ := unwrap(s)
	_, ok := root.(Led)
	return ok
}
