package pages

import (
	"context"
	"slices"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/days"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Card is a set on the start page.
type Card struct {
	Title, Description, About, Command string
	Published                          bool
	Resources, Triples                 string
	Changed                            Time
}

// Home is the start page of a source.
type Home struct {
	Frame       Frame
	Description string
	Sets        []Card
}

// Write renders the page.
func (p *Home) Write() ([]byte, error) { return write("home.html", p) }

// Counts are the sizes of a set in words.
func (c *Card) Counts(resources, triples int64) {
	c.Published, c.Resources, c.Triples = true, Count(resources, "description", "descriptions"), Count(triples, "triple", "triples")
}

// Document is a document of a set. Page is its page for people.
type Document struct{ Name, Text, Href, Page, Type string }

// Part is a class or a property with its number.
type Part struct {
	Name, IRI, Href string
	Count           string
}

// Recent is a change of a set.
type Recent struct {
	At                Time
	Kind, Label, Href string
}

// About is the page of a set.
type About struct {
	Frame       Frame
	Description string
	Published   bool
	Facts       []Fact
	Documents   []Document
	Classes     []Part
	Properties  []Part
	Days        *Chart
	Recent      []Recent
	Some        []Crumb
	Command     string
	Browse      string // address of the alphabet, "" without one
	Search      string // address of the search, "" also for files
	Changes     string // address of the page of the changes
}

// Numbers of lines on the page of a set.
const (
	recentChanges = 10
	someEntities  = 10
	mostParts     = 10
)

// Part is a class or a property of the set.
func (s *Set) Part(ctx context.Context, iri string, n int64) Part {
	p := Part{Name: clip.Middle(propertyName(iri)), IRI: iri, Href: iri, Count: Digits(n)}
	if s.View == nil {
		return p
	}
	if label, href := s.resolver(ctx)(iri); href != "" {
		p.Href = href
		if label != "" {
			p.Name = label
		}
	}
	return p
}

// WriteAbout completes the page of a set with examples and the last changes after a sequence, and renders
// it.
func (s *Set) WriteAbout(ctx context.Context, p *About, after uint64, links ...HeadLink) ([]byte, error) {
	p.Frame = s.frame(s.Title, links...)
	p.Frame.Crumbs, p.Frame.About = nil, p.Description
	p.Search, p.Frame.Search = p.Frame.Search, "" // it stands on the page
	if p.Published = s.View != nil; !p.Published {
		return write("set.html", p)
	}
	if p.Browse = s.URL + "/browse"; s.Static {
		p.Browse += ".html"
	}
	here := s.resolver(ctx)
	for c, err := range s.View.Changes(ctx, after) {
		if err != nil {
			return nil, err
		}
		x := Recent{At: At(c.Time), Kind: string(c.Kind)}
		switch {
		case c.OfFile():
			if x.Label = clip.Middle(c.File); c.FileAfter != nil {
				x.Href = c.File
			}
		case c.OfEntity():
			label, href := here(c.Entity)
			if x.Label, x.Href = label, href; label == "" {
				x.Label = localName(c.Entity)
			}
			if href == "" && !s.Static { // deleted: its page says so
				x.Href = s.Generic(c.Entity) + ".html"
			}
		default:
			continue
		}
		p.Recent = append(p.Recent, x)
	}
	slices.Reverse(p.Recent)
	p.Recent = p.Recent[:min(len(p.Recent), recentChanges)]
	for st, err := range s.View.Current(ctx, rdfres.Digest{}, rdfres.Digest{}) {
		if err != nil {
			return nil, err
		}
		label, href := here(st.Entity)
		if label == "" {
			label = localName(st.Entity)
		}
		if p.Some = append(p.Some, Crumb{label, href}); len(p.Some) >= someEntities {
			break
		}
	}
	return write("set.html", p)
}

// Chart is the changes of days as bars.
type Chart struct {
	Bars          []Bar
	From, To      string
	Most          string
	Text          string // for those who do not see it
	Width, Height int
}

// Bar is a day: its changes by kind, as heights from below.
type Bar struct {
	X                                   int
	Title                               string
	Created, Updated, Deleted           int // heights
	CreatedFrom, UpdatedFrom, DeletedAt int // upper ends
}

// ChartOf draws days, the oldest first; nil without changes.
func ChartOf(last []days.Day) *Chart {
	const step, height = 20, 80
	var most, all int64
	for i := range last {
		most, all = max(most, last[i].Sum()), all+last[i].Sum()
	}
	if most == 0 {
		return nil
	}
	c := &Chart{From: last[0].Date, To: last[len(last)-1].Date, Most: Digits(most), Width: step * len(last), Height: height + 2}
	c.Text = Digits(all) + " changes from " + c.From + " to " + c.To + ", at most " + c.Most + " a day"
	for i, d := range last {
		b := Bar{X: i*step + 2, Title: d.Date + ": " + Digits(d.Created) + " created, " + Digits(d.Updated) + " updated, " + Digits(d.Deleted) + " deleted"}
		tall := func(n int64) int {
			if n == 0 {
				return 0
			}
			return max(1, int(n*(height-3)/most))
		}
		b.Created, b.Updated, b.Deleted = tall(d.Created), tall(d.Updated), tall(d.Deleted)
		b.CreatedFrom = height - b.Created
		b.UpdatedFrom = b.CreatedFrom - b.Updated
		b.DeletedAt = b.UpdatedFrom - b.Deleted
		c.Bars = append(c.Bars, b)
	}
	return c
}
