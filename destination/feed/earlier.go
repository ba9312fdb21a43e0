package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/clip"
)

// A Change List with a later one behind it is read once. If it was wrong then, its index says nothing of
// it. So it is asked for again for an hour, and at least once.

// earlier is a list read before, by its looks.
type earlier struct {
	listPart
	All    tally     `json:"all"`
	First  uint32    `json:"first,omitempty"` // its first entry
	End    uint32    `json:"end,omitempty"`   // its last one
	Closed bool      `json:"closed,omitempty"`
	Read   time.Time `json:"read"`
	Asked  bool      `json:"asked,omitempty"` // since then
}

const (
	maxEarlier   = 32
	earlierLasts = time.Hour
)

// note takes a list after its last entry.
func (c *cursor) note(end *Change) {
	if c.hears || end.state.Package { // without a list they are heard
		return
	}
	all := slices.DeleteFunc(slices.Clone(c.Earlier), func(e earlier) bool { return e.URL == end.List })
	if c.Earlier = all; end.tail { // the whole of it is not known
		return
	}
	c.Earlier = append(all[max(0, len(all)-maxEarlier+1):], end.looks)
}

func (s *changeScan) looks(end *Change) earlier {
	of := listPart{URL: end.List, ETag: end.state.ETag, Modified: end.state.Modified, Digest: end.state.Digest}
	return earlier{listPart: of, All: s.seen.now.All, First: s.seen.now.First, End: s.seen.oldest, Closed: end.closed, Read: s.served.UTC()}
}

// LooksBack names a list before the cursor's with other changes than were applied, "" for none. The next run asks
// for each list, and so do runs that discover the source anew, for an hour. asked tells of a change of the
// cursor's memory.
func (src *Source) LooksBack(ctx context.Context, c *Cursor, looks bool) (why string, asked bool, err error) {
	at, now := &c.at, src.Docs.opt.Now()
	var kept []earlier
	for _, e := range at.Earlier {
		if e.URL == at.List || e.Asked && !looks {
			kept = append(kept, e)
			continue
		}
		switch is, err := src.Docs.stillTells(ctx, &e, at.Root.Untold); {
		case err != nil:
			return "", false, err
		case !is:
			at.Earlier = nil
			return fmt.Sprintf("Change List %s tells other changes than those that were applied", clip.Middle(e.URL)), true, nil
		}
		age := now.Sub(e.Read)
		if asked = asked || !e.Asked || age >= earlierLasts; age >= 0 && age < earlierLasts {
			e.Asked = true
			kept = append(kept, e)
		}
	}
	at.Earlier = kept
	return "", asked, nil
}

// stillTells tells whether a list has the changes that it had. Its oldest may have left it; where nothing
// tells the order of the lists, it may have got more.
func (src *Documents) stillTells(ctx context.Context, was *earlier, untold bool) (bool, error) {
	var now tally
	begins, same, end := false, false, 0 // it has the first entry; its beginning is the same; the place of the last entry
	head, err := src.readAgain(ctx, &was.listPart, 2, func(digest uint64) {
		now.add(digest)
		begins, same = begins || uint32(digest>>32) == was.First, same || now == was.All
		if uint32(digest>>32) == was.End {
			end = now.N
		}
	})
	switch {
	case err != nil:
		return true, ctx.Err() // retention may have taken it; else its reader tells
	case head == nil, head.Index, now == was.All, untold && (same || was.All.N == 0):
		return true, nil
	}
	return !was.Closed && !begins && end > 0 && end < was.All.N, nil
}
