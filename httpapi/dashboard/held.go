package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// Held is the page of a held run.
type Held struct {
	Kind, Name, Link string // the set or mirror
	*bridge.Held
	Percent int
	Classes *Classes // nil: not on this page
	Items   []HeldItem
	Next    string // address of the next page
	First   bool
	Fault   string // of the number that was typed
	Typed   string
}

// HeldItem is a deletion beside the last state of its entity.
type HeldItem struct {
	destination.HeldItem
	Description Description
	Link        string
}

const (
	heldPage  = 25
	heldShown = 12 // statements of an item
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

func (d *Dashboard) heldPage(r *http.Request, p Held, read readHeld, describe readEntity) (*page, error) {
	ctx, after := r.Context(), r.URL.Query().Get("after")
	var err error
	if p.Held, err = read(ctx, after, heldPage); err != nil {
		return nil, err
	}
	if p.First = after == ""; p.First {
		classes, err := d.counter.classes(ctx, p.Link, p.Held.ID, read, describe)
		if err != nil {
			return nil, err
		}
		p.Classes = &classes
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
