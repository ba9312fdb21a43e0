package feed

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Source reads one set of a source: its lists, dumps and changes. It applies nothing, and its
// keeper keeps its position.
type Source struct {
	Docs   *Documents
	keeper keeper
	survey survey // of the run under way
	stands uint64

	trusted trust
	early   *early // of the run under way

	whole time.Time // when the Change Lists were read to their end last, and not from a cursor on
}

// Stands is the last position of the source's own log in the lists of its changes, 0 if they
// have told none.
func (src *Source) Stands() uint64 { return src.stands }

// Documents opens the documents and packages of a source.
type Documents struct {
	opt    Options
	fetch  *fetch.Client
	lim    *Limits
	log    *slog.Logger
	plan   plan
	lapses lapses
}

// Options are the settings of a source, and its surroundings.
type Options struct {
	Source, Set string // as configured
	Client      *fetch.Client
	Limits      *Limits
	Settings    settings.Names // of the settings in hints
	TempDir     string
	MemoryBytes int64
	Pause       time.Duration // between two polls of Wait; default 1m
	EachChange  bool          // a later change of a resource does not replace an earlier one

	Keeper   keeper // nil: the source was never read
	Plan     plan   // of a dry run, nil of any other
	Now      func() time.Time
	Log      *slog.Logger
	Progress func(stage string, done, total int64)
}

// keeper keeps the position of a source between polls.
type keeper interface {
	Position() Position
	Keep(ctx context.Context, change func(*Position)) error // durably
	Stage() ledger.Stage
}

// plan is told about everything a run would take.
type plan interface {
	Document(address string, kind resourcesync.Capability, at time.Time, entries int64)
	Change(list string, kind resourcesync.Capability)
	Fetch(length int64) // less than 0: unknown
}

// New reads a source by its client.
func New(o Options) *Source {
	if o.Keeper == nil {
		o.Keeper = unread{}
	}
	if o.Limits == nil {
		limits := DefaultLimits()
		o.Limits = &limits
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 64 << 20
	}
	if o.Pause <= 0 {
		o.Pause = defaultPause
	}
	docs := &Documents{opt: o, fetch: o.Client, lim: o.Limits, log: o.Log, plan: o.Plan}
	return &Source{Docs: docs, keeper: o.Keeper, survey: survey{docs: docs, keeper: o.Keeper}}
}

// Settle forgets the knowledge of one run.
func (src *Source) Settle() {
	src.survey.forget()
	src.forgetEarly()
}

// unread is the keeper of a never read source.
type unread struct{}

func (unread) Position() Position                          { return Position{} }
func (unread) Keep(context.Context, func(*Position)) error { return nil }
func (unread) Stage() ledger.Stage                         { return ledger.None }

// IsOwnFailure tells failures of our side; another document does not help them.
func IsOwnFailure(err error) bool {
	var pe *os.PathError
	var fe *fetch.Error
	return !errors.As(err, &fe) && (errors.As(err, &pe) || errors.Is(err, ledger.ErrDamaged))
}
