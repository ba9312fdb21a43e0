package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// roomPause is between two looks whether a store has room.
const roomPause = 2 * time.Second

// behind is what goes on behind an open bridge.
type behind struct {
	unwatch   context.CancelFunc // ends watchRoom
	followers storelog.Group
	samples   *history.Sampler // nil: none are taken

	mu      sync.Mutex // guards waiting
	waiting []*mirror  // started with the first publication of their source, one of our sets
}

// start starts the mirrors, those of our own sets once these are published.
func (b *behind) start(mirrors map[string]*mirror) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range mirrors {
		if m.waits() {
			b.waiting = append(b.waiting, m)
		} else {
			m.start()
			// The first publication of its source may have come before the start, and after the first sync was due.
			if _, busy := m.bridge.runner.Busy("sync:" + m.name); !busy && m.cfg.Schedule != "" && m.isNew(context.Background()) {
				m.firstSync()
			}
		}
	}
}

// startWaiting starts the waiting mirrors with a published source, and their first syncs.
func (b *behind) startWaiting() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(m *mirror) bool {
		if m.waits() {
			return false
		}
		m.start()
		m.firstSync()
		return true
	})
}

// firstSync begins a sync.
func (m *mirror) firstSync() {
	if _, _, err := m.bridge.runner.Start("sync:"+m.name, jobs.BySchedule, nil); err != nil && !errors.Is(err, jobs.ErrClosed) {
		m.bridge.log.Error("the first sync comes by schedule", "destination", m.name, "error", err)
	}
}

// waits tells whether the source is a set of this bridge without a publication, or with its first dump
// under way: a baseline from the dump costs both sides least.
func (m *mirror) waits() bool {
	b := m.bridge
	if b.pub == nil || b.cfg.Public.BaseURL == "" || !strings.HasPrefix(m.cfg.Source+"/", b.cfg.Public.BaseURL+"/") {
		return false
	}
	_, one := b.sets[m.cfg.Set]
	return !slices.ContainsFunc(b.Sets(), func(name string) bool {
		_, published := b.pub.Generation(name)
		_, scanning := b.runner.Busy("scan:" + name)
		return published && (!one || name == m.cfg.Set) && !(scanning && b.sets[name].lacksDump())
	})
}

// follow follows the logs of the stores of all sets, and takes samples, until end.
func (b *behind) follow(ctx context.Context, sets map[string]*set, samples *history.Sampler) {
	b.samples = samples
	samples.Start(ctx)
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
	b.samples.End()
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
