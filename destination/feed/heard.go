package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The lists before the cursor's are not read again. Without a list of resources nothing else would tell
// that one of them was wrong when it was read, so they are asked for again for a time.

// heard is a list read before.
type heard struct {
	listPart
	All   tally     `json:"all"`             // its entries, briefly
	First uint32    `json:"first,omitempty"` // the first of them
	At    time.Time `json:"at"`              // when it was first seen so
}

// growth compares a list with its earlier self. A grown list has all of that at its beginning, or at its end if
// the newest are first.
type growth struct {
	was    heard
	now    tally
	first  uint32
	begins bool    // with all of it
	before []tally // the entries before each one like its first
}

// maxLikeFirst bounds those.
const maxLikeFirst = 16

func (g *growth) look(digest uint64) {
	brief := uint32(digest >> 32)
	if g.now.N == 0 {
		g.first = brief
	}
	if brief == g.was.First && len(g.before) < maxLikeFirst {
		g.before = append(g.before, g.now)
	}
	g.now.add(digest)
	g.begins = g.begins || g.now == g.was.All
}

// shrunk tells that entries of before are gone, or others stand between them: retention took them, or one
// of the two lists is wrong.
func (g *growth) shrunk(newestFirst bool) bool {
	switch {
	case g.begins || g.was.All.N == 0:
		return false
	case !newestFirst:
		return true
	}
	ends := func(b tally) bool { return tally{g.now.N - b.N, g.now.Sum - b.Sum} == g.was.All }
	return !slices.ContainsFunc(g.before, ends)
}

// maxHeard bounds them: they are written with each batch.
const maxHeard = 64

// Hear makes the cursor remember its lists.
func (c *Cursor) Hear() { c.at.hears = true }

func (c *cursor) hear(end *Change) {
	if !c.hears || end.state.Package {
		return
	}
	h := heard{listPart{URL: end.state.URL, ETag: end.state.ETag, Modified: end.state.Modified, Digest: end.state.Digest}, end.all, end.first, end.Served.UTC()}
	c.Heard = slices.DeleteFunc(slices.Clone(c.Heard), func(k heard) bool {
		if k.URL == h.URL && k.All == h.All {
			h.At = k.At
		}
		return k.URL == h.URL || end.Served.Sub(k.At) >= DoubtLasts
	})
	c.Heard = append(c.Heard[max(0, len(c.Heard)-maxHeard+1):], h)
}

// maxAsked bounds the lists asked for by each sync: the latest ones, and as many of the others.
const maxAsked = 16

// Heard tells whether the lists before the cursor's are as they were read; else it is a *GapError.
func (src *Source) Heard(ctx context.Context, c *Cursor) error {
	others := max(0, len(c.at.Heard)-maxAsked)
	for i, h := range c.at.Heard {
		if h.URL == c.at.List || src.Docs.opt.Now().Sub(h.At) >= DoubtLasts || i < others && rand.IntN(others) >= maxAsked {
			continue
		}
		same, err := src.Docs.hasAll(ctx, &h)
		switch {
		case IsGone(err): // retention took it
		case err != nil:
			src.Docs.log.Warn("a Change List of before cannot be had again", "list", h.URL, "error", err)
			if ctx.Err() != nil {
				return err
			}
		case !same:
			return &GapError{Why: fmt.Sprintf("Change List %s has other changes than when it was read: it was wrong, or the source was set back", clip.Middle(h.URL))}
		}
	}
	return nil
}

// hasAll tells whether a list still has the same entries.
func (src *Documents) hasAll(ctx context.Context, was *heard) (bool, error) {
	var now tally
	head, err := src.readAgain(ctx, &was.listPart, 0, now.add)
	return head == nil || now == was.All, err
}

// readAgain gives the digests of the entries of a list, and its head, nil if the list is unchanged.
func (src *Documents) readAgain(ctx context.Context, was *listPart, attempts int, each func(digest uint64)) (*resourcesync.Head, error) {
	dl, r, err := src.document(ctx, fetch.Request{URL: was.URL, ETag: was.ETag, Modified: was.Modified, Attempts: attempts}, resourcesync.ChangeList)
	if err != nil {
		return nil, err
	}
	defer dl.Close()
	if dl.NotModified || dl.Digest.String() == was.Digest {
		return nil, nil
	}
	return r.Head(), eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		it := item.New(e, r, dl.URL)
		it.Change = knownChange(it.Change)
		each(briefly(it))
		return nil
	})
}
