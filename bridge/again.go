package bridge

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// roomPause is between two looks whether a store has room.
const roomPause = 2 * time.Second

// behind is what goes on behind an open bridge.
type behind struct {
	unwatch   context.CancelFunc // ends watchRoom
	followers storelog.Group
}

// follow follows the logs of the stores of all sets, until end.
func (b *behind) follow(ctx context.Context, sets map[string]*set) {
	for _, s := range sets {
		if f := storeLog(s); f != nil {
			b.followers.Go(ctx, f)
		}
	}
}

func (b *behind) end() {
	if b.unwatch != nil {
		b.unwatch()
	}
	b.followers.End()
}

// IsFull tells whether an error comes from a disk without room.
func IsFull(err error) bool { return guardfs.IsFull(err) }

// Again is closed when a full disk has room again: close the bridge and open it anew. A
// failed commit may hold after all, and differ from the memory; or an unopened store can be
// opened now.
func (b *Bridge) Again() <-chan struct{} { return b.again }

// fullFolders are the folders of stores unopened on a full disk.
func fullFolders(c *Config, stores map[string]*store) (full []string) {
	for name, s := range stores {
		if IsFull(s.fault) {
			full = append(full, c.Stores[name].Embedded)
		}
	}
	return full
}

// watchRoom closes again, once a folder has room or the state has settled. It ends with ctx.
func watchRoom(ctx context.Context, settled <-chan struct{}, full []string, again chan<- struct{}) {
	go func() {
		tick := time.NewTicker(roomPause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-settled:
				close(again)
				return
			case <-tick.C:
			}
			for _, dir := range full {
				if guardfs.RoomToOpen(dir) == nil {
					close(again)
					return
				}
			}
		}
	}()
}
