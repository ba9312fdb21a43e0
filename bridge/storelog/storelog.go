// Package storelog reads what a store tells of its own changes, and tells a set made from it.
//
// Each set has its place in the log of its store, kept in the state. What the log tells is kept
// before the place after it: a killed process tells it again.
package storelog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Feed is the log of a store.
type Feed interface {
	// Since gives what was touched after a place of the log, and the place of its end. Without
	// that place in the log, or without a log, it is unknown.
	Since(ctx context.Context, place string) (t embedstore.Touched, end string, err error)
	// Wait ends when there may be more than the last Since gave; false: ctx has ended.
	Wait(ctx context.Context) bool
}

// Something unknown is told when the log is at rest, or after a time at the latest: a bulk load, or a
// mirror being filled, is read whole once and not again and again.
const (
	rest     = time.Second
	mostRest = 30 * time.Second
)

// The pause after a failure grows between them.
const (
	shortest = time.Second
	longest  = 5 * time.Second
)

// Follower follows the log of a store for one set.
type Follower struct {
	Store, Set string // names
	Feed       Feed
	Tell       named.Set
	Records    kv.Store // of the bridge
	Log        *slog.Logger
	// Begun is shared by all followers of the set, with room for one: Begin tells run that there is a
	// place.
	Begun chan struct{}
}

// Key is the record of a set's place: the name of its store, a space, and the place.
func Key(set string) []byte { return []byte("storelog/" + set) }

// run follows until the end of ctx. A set without a place in the log waits for its full scan, not for
// the log.
func (f *Follower) run(ctx context.Context) {
	pause := shortest
	for ctx.Err() == nil {
		place, err := f.place(ctx)
		if err == nil && place == "" {
			select {
			case <-ctx.Done():
			case <-f.Begun:
			}
			continue
		}
		if err == nil {
			err = f.step(ctx, place, rest)
		}
		if err == nil {
			pause = shortest
			f.Feed.Wait(ctx)
			continue
		}
		if ctx.Err() == nil && pause == shortest {
			f.Log.Error("changes are not found at once; the next scan has them", "set", f.Set, "store", f.Store, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// Step tells what has come since the kept place, if there is one. After something unknown it waits
// until the log has been at rest for a time.
func (f *Follower) Step(ctx context.Context, rest time.Duration) error {
	place, err := f.place(ctx)
	if err != nil || place == "" {
		return err
	}
	return f.step(ctx, place, rest)
}

func (f *Follower) step(ctx context.Context, place string, rest time.Duration) error {
	t, end, err := f.Feed.Since(ctx, place)
	if err != nil || end == place && !t.Unknown {
		return err
	}
	if t.Unknown {
		if end, err = f.settle(ctx, end, rest); err != nil {
			return err
		}
	}
	if err := f.tell(ctx, t); err != nil {
		return err
	}
	return f.keep(context.WithoutCancel(ctx), end)
}

// settle waits until the log has been at rest for a time after something unknown, and gives the place
// there. It tells what is known meanwhile: one bulk write delays no single changes.
func (f *Follower) settle(ctx context.Context, at string, rest time.Duration) (string, error) {
	for began := time.Now(); time.Since(began) < mostRest && f.moves(ctx, rest); {
		t, end, err := f.Feed.Since(ctx, at)
		if err == nil && !t.Unknown {
			err = f.tell(ctx, t)
		}
		if err != nil {
			return "", err
		}
		at = end
	}
	return at, nil
}

func (f *Follower) tell(ctx context.Context, t embedstore.Touched) error {
	ctx = context.WithoutCancel(ctx)
	held, err := named.Sets{f.Tell}.Hold(ctx, t, f.Log)
	if err != nil {
		return err
	}
	held.Confirm(ctx, false)
	return nil
}

// Mark is the place of the log's end: what a full scan begun afterwards does not see comes after it.
func (f *Follower) Mark(ctx context.Context) (string, error) {
	_, end, err := f.Feed.Since(ctx, "")
	return end, err
}

// Begin begins to follow after a mark, if the set has no place in the log yet.
func (f *Follower) Begin(ctx context.Context, mark string) error {
	place, err := f.place(ctx)
	if err != nil || place != "" {
		return err
	}
	if err = f.keep(ctx, mark); err != nil {
		return err
	}
	select {
	case f.Begun <- struct{}{}:
	default:
	}
	return nil
}

// place is the kept place in the log of the store, "" for none.
func (f *Follower) place(ctx context.Context) (string, error) {
	record, err := f.Records.Get(ctx, Key(f.Set))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("place of set %s in the log of store %s: %w", f.Set, f.Store, err)
	}
	store, place, _ := strings.Cut(string(record), " ")
	if store != f.Store {
		return "", nil
	}
	return place, nil
}

// keep keeps a place. One that is lost has the log told again.
func (f *Follower) keep(ctx context.Context, place string) error {
	b := f.Records.Batch()
	defer b.Close()
	b.Set(Key(f.Set), []byte(f.Store+" "+place))
	if err := b.Commit(ctx, false); err != nil {
		return fmt.Errorf("keep the place of set %s in the log of store %s: %w", f.Set, f.Store, err)
	}
	return nil
}

// moves tells whether the log goes on within the time.
func (f *Follower) moves(ctx context.Context, rest time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, rest)
	defer cancel()
	return f.Feed.Wait(ctx)
}

// Group are running followers.
type Group struct {
	ends []context.CancelFunc
	wg   sync.WaitGroup
}

// Go starts a follower. It ends with ctx, or End.
func (g *Group) Go(ctx context.Context, f *Follower) {
	ctx, cancel := context.WithCancel(ctx)
	g.ends = append(g.ends, cancel)
	g.wg.Go(func() { f.run(ctx) })
}

// End ends all, and waits for them.
func (g *Group) End() {
	for _, end := range g.ends {
		end()
	}
	g.wg.Wait()
}

// Commits is the feed of an embedded store.
type Commits struct {
	Store *embedstore.Store
	Skip  func(graph string) bool // graphs without data

	news <-chan struct{}
}

// Since is TouchedSince of the store.
func (c *Commits) Since(_ context.Context, place string) (embedstore.Touched, string, error) {
	c.news = c.Store.Committed()
	return c.Store.TouchedSince(place, c.Skip)
}

// Wait waits for the next commit.
func (c *Commits) Wait(ctx context.Context) bool {
	select {
	case <-c.news:
		return true
	case <-ctx.Done():
		return false
	}
}
