package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Reading is the published state of a set, for whoever tells others of it. It stays as it is until
// Close; all of it can be fetched.
type Reading struct{ snap *snapshot }

// Read opens the published state of a set; nil before the first publication.
func (p *Publisher) Read(ctx context.Context, name string) *Reading {
	if s, snap := p.present(ctx, name); s != nil && snap != nil {
		return &Reading{snap}
	}
	return nil
}

// Close releases the state.
func (r *Reading) Close() { r.snap.release() }

// View is the log in this state.
func (r *Reading) View() *changetrack.View { return r.snap.view }

// Start is the position before the first change of all Change Lists.
func (r *Reading) Start() (uint64, time.Time) { return r.snap.lists[0].After, r.snap.lists[0].From }

// End is the position of the last published change.
func (r *Reading) End() (uint64, time.Time) { return r.snap.gen.Sequence, r.snap.gen.At }

// Rendered yields the entries of the changes after a sequence, as in Change Lists, in the pieces of
// their writing. The first pieces may hold earlier changes.
func (r *Reading) Rendered(ctx context.Context, after uint64) iter.Seq2[[]byte, error] {
	lists := r.snap.lists
	l := &lists[min(sort.Search(len(lists), func(i int) bool { return lists[i].Last > after }), len(lists)-1)]
	return func(yield func([]byte, error) bool) {
		from := keyOf('c', l.Number)
		if l.Through == 0 { // keys of a merged list have other numbers
			for pair, err := range r.snap.kv.ScanReverse(ctx, from, keyOf('c', l.Number, after+2)) {
				if err == nil {
					from = bytes.Clone(pair.Key)
				}
				break // an error comes again
			}
		}
		for pair, err := range r.snap.kv.Scan(ctx, from, keyOf('c', r.snap.open().Number, r.snap.gen.Sequence+1)) {
			_, width := binary.Uvarint(pair.Value)
			if !yield(pair.Value[max(width, 0):], err) || err != nil {
				return
			}
		}
	}
}

// Documents are the capability documents below the Capability List with the times of their
// content: of several parts of a list the one touched last.
func (r *Reading) Documents() (out []resourcesync.Entry) {
	s, snap := r.snap.set, r.snap
	add := func(c resourcesync.Capability, part string, several bool, at time.Time) {
		e := capabilityEntry(s.at.url+"/"+string(c)+".xml", c)
		if several {
			e.Loc, e.Links = part, []resourcesync.Link{link(resourcesync.RelIndex, e.Loc)}
		}
		if e.LastMod = at; s.offers(c) {
			out = append(out, e)
		}
	}
	if rec := s.scheduled.Load(); !s.cfg.ScheduledList {
		part := slices.MaxFunc(snap.parts, func(a, b partition.Part) int { return a.At.Compare(b.At) })
		add(resourcesync.ResourceList, s.at.partAddress(part), len(snap.parts) > 1, part.At)
	} else if rec != nil && len(rec.Documents) == 1 {
		add(resourcesync.ResourceList, "", false, rec.At)
	}
	if rec := s.dump.Load(); rec != nil && len(rec.Packages) <= s.sizes.dumpDocEntries {
		add(resourcesync.ResourceDump, "", false, rec.At)
	}
	add(resourcesync.ChangeList, s.at.listAddress(snap.open()), len(snap.lists) > 1, snap.gen.At)
	if packages := *s.changeDumps.Load(); len(packages) > 0 && len(packages) <= s.sizes.dumpDocEntries {
		add(resourcesync.ChangeDump, "", false, packages[len(packages)-1].Until)
	}
	return out
}
