package feed

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
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

// Access is how requests go to a source.
type Access struct {
	Allow       []string          // further hosts
	Concurrency int               // requests at once
	Agent       string            // User-Agent
	Transport   http.RoundTripper // nil: its own
}

// Connect makes the client of a source. From here on the source's address is without its secrets.
func (o *Options) Connect(a Access) (err error) {
	if o.Limits == nil {
		limits := DefaultLimits()
		o.Limits = &limits
	}
	o.Client, err = fetch.NewClient(o.Source, fetch.Options{Allow: a.Allow, Names: o.Settings, Concurrency: a.Concurrency, Agent: a.Agent, Transport: a.Transport, Limits: &o.Limits.Limits, Now: o.Now, Log: o.Log})
	if err == nil {
		o.Source = o.Client.Source()
	}
	return err
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

// defaultPause is the time between two polls of Wait.
const defaultPause = time.Minute

// Snapshot reads the whole state of the source.
func (src *Source) Snapshot(ctx context.Context) (*Inventory, error) {
	o, err := src.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return src.ReadInventory(ctx, o, Always)
}

// errEnough ends a pass over changes.
var errEnough = errors.New("enough")

// Changes reads the changes after a position. A Change without an Item moves the position alone.
func (src *Source) Changes(ctx context.Context, from Position) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		at := from
		err := src.changes(ctx, &at, func(c Change) error {
			if c.At = at; !yield(c, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Change{At: at}, err)
		}
	}
}

// changes moves a position behind each change before f sees it.
func (src *Source) changes(ctx context.Context, at *Position, f func(Change) error) error {
	o, err := src.Discover(ctx)
	if err != nil {
		return err
	}
	from := at.at.Cursor
	address, kind := o.Changes()
	dl, r, err := src.changesSince(ctx, address, kind, &from)
	if err != nil || dl == nil {
		return err
	}
	defer dl.Close()
	err = Again(func() error {
		return src.eachChangeOf(ctx, dl, r, &from.at, true, func(c Change) error {
			if c.Item == nil {
				at.at.Cursor.End(&c)
			} else {
				at.at.Cursor.Take(&c)
			}
			return f(c)
		})
	})
	if err != nil {
		return err
	}
	at.at.Cursor.Finish(address, dl)
	return f(Change{})
}

// Wait polls after each pause until there may be more.
func (src *Source) Wait(ctx context.Context, from Position) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(src.Docs.opt.Pause):
		}
		if more, err := src.hasMore(ctx, &from); more || err != nil {
			return err
		}
	}
}

// hasMore asks for the last read documents, conditionally.
func (src *Source) hasMore(ctx context.Context, from *Position) (bool, error) {
	o, err := src.Discover(ctx)
	if err != nil {
		return false, err
	}
	var dl *Download
	switch address, kind := o.Changes(); {
	case o.Followed():
		at := from.at.Cursor
		dl, _, err = src.changesSince(ctx, address, kind, &at)
	case o.ResourceList != "":
		dl, _, err = src.unlessKnown(ctx, o.ResourceList, resourcesync.ResourceList, &from.at.Inventory)
	default:
		dl, _, err = src.unlessKnown(ctx, o.ResourceDump, resourcesync.ResourceDump, &from.at.Inventory)
	}
	if errors.Is(err, ErrUnchanged) {
		err = nil
	}
	if err != nil || dl == nil {
		return false, err
	}
	return true, dl.Close()
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

// ErrSourceGone ends a run: the source does not answer any more.
var ErrSourceGone = fetch.ErrSourceGone

// IsOfRequest tells failures of a request to the source.
func IsOfRequest(err error) bool {
	var fe *fetch.Error
	return errors.As(err, &fe)
}

// IsOwnFailure tells failures of our side; another document does not help them.
func IsOwnFailure(err error) bool {
	var pe *os.PathError
	var fe *fetch.Error
	return !errors.As(err, &fe) && (errors.As(err, &pe) || errors.Is(err, ledger.ErrDamaged))
}
