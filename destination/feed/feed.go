package feed

import (
	"context"
	"iter"
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
