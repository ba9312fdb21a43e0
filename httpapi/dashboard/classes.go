package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// Classes are those of held deletions. An entity of several classes counts in each.
type Classes struct {
	Shown   []Class // the largest first
	Others  int64   // in other classes
	Files   int64   // deletions of files
	Unread  int64   // deletions without a readable description
	Counted int64   // deletions so far
	Whole   bool    // all are counted
}

// Class is a class of deleted entities, and some of them.
type Class struct {
	Name, IRI string
	Count     int64
	Examples  []string
}

const (
	toldApart    = 1000 // classes
	shownClasses = 12
	countedPage  = 200         // deletions
	countTime    = time.Second // of one page view; the next one counts on
)

type (
	readHeld   func(ctx context.Context, after string, limit int) (*bridge.Held, error)
	readEntity func(ctx context.Context, entity string) (Description, error)
)

// counter counts the classes of held deletions, over several views of their page.
type counter struct {
	mu sync.Mutex        // guards the field below, and is held while a view counts
	of map[string]*count // by set or mirror
}

// count is of one held run.
type count struct {
	id    string
	next  string // place where it goes on
	told  Classes
	found map[string]*Class // by IRI, so many as are told apart; nil once all are counted

	beyond int64 // deletions in classes not told apart
}

// classes counts on, and gives what is known then. id is that of the held run.
func (c *counter) classes(ctx context.Context, subject, id string, read readHeld, describe readEntity) (Classes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[subject]
	if n == nil || n.id != id {
		n = &count{id: id, found: map[string]*Class{}}
		if c.of == nil {
			c.of = map[string]*count{}
		}
		c.of[subject] = n
	}
	for end := time.Now().Add(countTime); !n.told.Whole && time.Now().Before(end); {
		h, err := read(ctx, n.next, countedPage)
		if err != nil {
			return Classes{}, err
		}
		if h.ID != id {
			break // the next view counts that one
		}
		for _, it := range h.Items {
			n.add(ctx, it, describe)
		}
		if ctx.Err() != nil { // some were not read
			delete(c.of, subject)
			return Classes{}, context.Cause(ctx)
		}
		if n.next, n.told.Whole = h.Next, h.Next == ""; n.told.Whole {
			n.sort()
			n.found = nil
		}
	}
	if !n.told.Whole {
		n.sort()
	}
	return n.told, nil
}

func (n *count) add(ctx context.Context, it destination.HeldItem, describe readEntity) {
	n.told.Counted++
	if it.File {
		n.told.Files++
		return
	}
	d, err := describe(ctx, it.Entity)
	if err != nil {
		n.told.Unread++ // its line tells why
		return
	}
	if len(d.Types) == 0 {
		d.Types = []string{""}
	}
	for _, iri := range d.Types {
		c := n.found[iri]
		switch {
		case c == nil && len(n.found) == toldApart:
			n.beyond++
			continue
		case c == nil:
			c = &Class{Name: cmp.Or(localName(iri), "without a class"), IRI: iri}
			n.found[iri] = c
		}
		if c.Count++; len(c.Examples) < 3 {
			c.Examples = append(c.Examples, clipped(60, cmp.Or(it.Label, d.Label, localName(it.Entity))))
		}
	}
}

// sort tells the largest classes, and sums up the others.
func (n *count) sort() {
	var all []Class
	for _, c := range n.found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name), strings.Compare(a.IRI, b.IRI))
	})
	n.told.Shown, n.told.Others = all[:min(len(all), shownClasses)], n.beyond
	for _, c := range all[len(n.told.Shown):] {
		n.told.Others += c.Count
	}
}
