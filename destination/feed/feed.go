package feed

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Feed tells one set of a source and its changes, in order.
// An implementer guarantees:
//   - A Snapshot is whole: a resource outside of it is not in the source. Changes go on at its
//     position.
//   - Changes come in the order of the source's log. Each has the position behind it. A change
//     may come again, after an error or with overlapping lists.
//   - Lost changes, and a log other than the followed one, are a [*GapError]. No change behind
//     the gap comes before it.
//   - Only the feed reads a [Position]. Its caller keeps it, and gives it back.
//   - Wait returns nil as soon as there may be more behind a position. It never returns an error
//     for lack of changes, and ends with its context.
//
// One of these runs at a time.
type Feed interface {
	Snapshot(ctx context.Context) (*Inventory, error)
	Changes(ctx context.Context, from Position) iter.Seq2[Change, error]
	Wait(ctx context.Context, from Position) error
}

// Heard is what notifications tell of a source, zero for nothing.
type Heard struct {
	Position uint64    // of its newest change
	Since    time.Time // of the first change heard of and not read yet
}

// Unnumbered tells of changes heard of without their positions: they are news until the source is read.
func (h Heard) Unnumbered() bool { return h.Position == 0 && !h.Since.IsZero() }

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

// Notified is a feed with a second end of Wait: a value on wake, as from a hub's callback. A wake
// is a hint, and proves nothing: the changes are read as ever. A wake before Wait counts if the
// channel keeps it.
func Notified(f Feed, wake <-chan struct{}) Feed { return &notified{f, wake} }

type notified struct {
	Feed
	wake <-chan struct{}
}

func (n *notified) Wait(ctx context.Context, from Position) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Feed.Wait(ctx, from) }()
	select {
	case err := <-ended:
		return err
	case <-n.wake:
		cancel()
		<-ended // whatever it found, it is asked again
		return nil
	}
}
