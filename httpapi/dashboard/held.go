package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// Held is the page of a held run.
type Held struct {
	Kind, Name, Link string // the set or mirror
	*bridge.Held
	Percent int
	Classes []Class
	Sampled int
	Items   []HeldItem
	Next    string // address of the next page
	First   bool
	Fault   string // of the number that was typed
	Typed   string
}

// Class is a class of deleted entities, and some of them.
type Class struct {
	Name, IRI string
	Count     int
	Examples  []string
}

// HeldItem is a deletion beside the last state of its entity.
type HeldItem struct {
	destination.HeldItem
	Description Description
	Link        string
}

const (
	heldPage    = 25
	heldSampled = 200 // descriptions that are read for the classes
	heldShown   = 12  // statements of an item
)

func (d *Dashboard) setHeld(r *http.Request) (*page, error) {
	name, err := d.setNamed(r)
	if err != nil {
		return nil, err
	}
	describe := func(ctx context.Context, entity string) (Description, error) {
		return d.ofSet(ctx, name, entity, time.Time{})
	}
	page := func(ctx context.Context, after string, limit int) (*bridge.Held, error) {
		return d.b.SetHeld(ctx, name, after, limit)
	}
	return d.heldPage(r, Held{Kind: "set", Name: name, Link: "sets/" + name}, page, describe)
}

func (d *Dashboard) destinationHeld(r *http.Request) (*page, error) {
	name := r.PathValue("name")
	describe := func(ctx context.Context, entity string) (Description, error) { return d.ofMirror(ctx, name, entity) }
	page := func(ctx context.Context, after string, limit int) (*bridge.Held, error) {
		return d.b.DestinationHeld(ctx, name, after, limit)
	}
	return d.heldPage(r, Held{Kind: "mirror", Name: name, Link: "destinations/" + name}, page, describe)
}

func (d *Dashboard) heldPage(r *http.Request, p Held, read func(context.Context, string, int) (*bridge.Held, error), describe func(context.Context, string) (Description, error)) (*page, error) {
	ctx, after := r.Context(), r.URL.Query().Get("after")
	var err error
	if p.Held, err = read(ctx, after, heldPage); err != nil {
		return nil, err
	}
	if p.First = after == ""; p.First {
		if err := p.sample(ctx, read, describe); err != nil {
			return nil, err
		}
	}
	if p.Of > 0 {
		p.Percent = int(100 * p.Deletions / p.Of)
	}
	for _, it := range p.Held.Items {
		item := HeldItem{HeldItem: it}
		if !it.File && it.Entity != "" {
			if item.Description, err = describe(ctx, it.Entity); err != nil {
				item.Description.Missing = sentence(err.Error())
			}
			if item.Label = cmp.Or(item.Label, item.Description.Label); p.Kind == "set" {
				item.Link = p.Link + "/entity"
			} else {
				item.Link = p.Link + "/difference"
			}
		}
		item.Description.cut(heldShown)
		p.Items = append(p.Items, item)
	}
	if p.Held.Next != "" {
		p.Next = "?after=" + p.Held.Next
	}
	if r.URL.Query().Has("typed") {
		p.Typed = clipped(20, r.URL.Query().Get("typed"))
		p.Fault = "Nothing is accepted: " + strconv.Quote(p.Typed) + " is not the number of deletions."
	}
	return &page{name: "held", Title: "Held: " + p.Kind + " " + p.Name, Body: p}, nil
}

// sample counts the classes of the first deletions.
func (p *Held) sample(ctx context.Context, read func(context.Context, string, int) (*bridge.Held, error), describe func(context.Context, string) (Description, error)) error {
	first, err := read(ctx, "", heldSampled)
	if err != nil {
		return err
	}
	found := map[string]*Class{}
	for _, it := range first.Items {
		if it.File || it.Entity == "" {
			continue
		}
		desc, err := describe(ctx, it.Entity)
		if err != nil {
			continue // its line tells why
		}
		p.Sampled++
		if len(desc.Types) == 0 {
			desc.Types = []string{""}
		}
		for _, iri := range desc.Types {
			c := found[iri]
			if c == nil {
				c = &Class{Name: cmp.Or(localName(iri), "without a class"), IRI: iri}
				found[iri] = c
			}
			if c.Count++; len(c.Examples) < 3 {
				c.Examples = append(c.Examples, cmp.Or(it.Label, desc.Label, localName(it.Entity)))
			}
		}
	}
	for _, c := range found {
		p.Classes = append(p.Classes, *c)
	}
	slices.SortFunc(p.Classes, func(a, b Class) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name)) })
	p.Classes = p.Classes[:min(len(p.Classes), 12)]
	return nil
}
