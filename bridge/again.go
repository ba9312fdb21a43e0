package bridge

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// roomPause is between two looks whether a store has room.
const roomPause = 2 * time.Second

// IsFull tells whether an error comes from a disk without room.
func IsFull(err error) bool { return guardfs.IsFull(err) }

// Again is closed when the bridge is to be closed and opened again: the disk was full,
// and has room now. Either a commit that failed may hold, so that what is in memory may
// be wrong, or a store that could not be opened can be.
func (b *Bridge) Again() <-chan struct{} { return b.again }

// watchRoom closes again. It ends with ctx.
func (b *Bridge) watchRoom(ctx context.Context, settled <-chan struct{}) {
	var full []string // folders of stores
	for name, s := range b.stores {
		if IsFull(s.fault) {
			full = append(full, b.cfg.Stores[name].Embedded)
		}
	}
	go func() {
		tick := time.NewTicker(roomPause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-settled:
				close(b.again)
				return
			case <-tick.C:
			}
			for _, dir := range full {
				if guardfs.RoomToOpen(dir) == nil {
					close(b.again)
					return
				}
			}
		}
	}()
}
