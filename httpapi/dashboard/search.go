package dashboard

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/search"
)

// Search is the page of found entities, or of the alphabet.
type Search struct {
	Text    string
	Set     string // only in this one
	Sets    []string
	Letters []Letter
	Found   []Found
	Next    string // address of the following names
	First   string // address of the beginning
	Making  []Making
	Cut     bool // there may be more
}

// Found is an entity of a set.
type Found struct{ Set, IRI, Label string }

// Letter is a beginning of names.
type Letter struct {
	Name, Href string
	Current    bool
}

// Making is a set whose index of names is being made.
type Making struct {
	Set      string
	Done, Of int64 // descriptions
}

const (
	mostFound   = 100
	mostLetters = 100
	searchTime  = 2 * time.Second // of waiting for indexes
)

// search finds entities by IRI, or by words of their names; without a text it is the alphabet of a set.
func (d *Dashboard) search(r *http.Request) (*page, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := Search{Text: strings.TrimSpace(q.Get("q")), Set: q.Get("set"), Sets: d.b.Sets()}
	names := p.Sets
	switch {
	case slices.Contains(p.Sets, p.Set):
		names = []string{p.Set}
	case p.Text == "" && len(p.Sets) > 0:
		names, p.Set = p.Sets[:1], p.Sets[0]
	default:
		p.Set = ""
	}
	wait, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	for _, name := range names {
		if err := p.in(ctx, wait, d, name, q); err != nil {
			return nil, fmt.Errorf("names of set %s: %w", name, err)
		}
	}
	title := "Browse"
	if p.Text != "" {
		title = "Search: " + clipped(40, p.Text)
	}
	return &page{name: "search", Title: title, Body: p}, nil
}

// in looks into a set. wait bounds the time for its index.
func (p *Search) in(ctx, wait context.Context, d *Dashboard, set string, q url.Values) error {
	v := d.b.Log(set).View(ctx)
	defer v.Close()
	if p.Text != "" {
		p.exactly(ctx, d, v, set)
	}
	index := bridge.Names(d.b, set)
	if index == nil { // nothing of it is published
		return nil
	}
	done, whole, err := index.Ready(wait)
	if err != nil || !whole {
		p.Making = append(p.Making, Making{set, done, v.Resources()})
		return err
	}
	var hits []search.Hit
	if p.Text == "" {
		hits, err = p.browse(ctx, index, q.Get("letter"), q.Get("after"))
	} else if left := mostFound - len(p.Found); left > 0 {
		cut := false
		hits, cut, err = index.Find(ctx, p.Text, left)
		p.Cut = p.Cut || cut
	} else {
		p.Cut = true
	}
	for _, h := range hits {
		st, err := v.EntityByKey(ctx, h.Key)
		if errors.Is(err, kv.ErrNotFound) || err == nil && st.Current == nil {
			continue // the index is ahead of this view
		}
		if err != nil {
			return err
		}
		if !p.has(set, st.Entity) {
			p.Found = append(p.Found, Found{set, st.Entity, h.Label})
		}
	}
	return err
}

// exactly finds an entity by its IRI, or by its name below the prefix of the set.
func (p *Search) exactly(ctx context.Context, d *Dashboard, v *changetrack.View, set string) {
	tries := []string{strings.Trim(p.Text, "<>")}
	if c, known := d.b.Config().Sets[set]; known && c.Prefix != "" {
		tries = append(tries, c.Prefix+p.Text, c.Prefix+strings.ReplaceAll(p.Text, " ", "_"))
	}
	for _, iri := range tries {
		if st, err := v.Entity(ctx, iri); err == nil && !p.has(set, iri) {
			p.Found = append(p.Found, Found{set, iri, d.labels.of(ctx, set, v, iri, st.Current)})
		}
	}
}

func (p *Search) has(set, iri string) bool {
	return slices.ContainsFunc(p.Found, func(f Found) bool { return f.Set == set && f.IRI == iri })
}

// browse is a page of the alphabet: names with a beginning, after the mark of the page before.
func (p *Search) browse(ctx context.Context, index *search.Index, letter, mark string) ([]search.Hit, error) {
	after, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, "The address of this page is damaged.", "Begin at Browse again."}
	}
	at := func(key, value string) string {
		q := url.Values{"set": {p.Set}, "letter": {letter}}
		q.Set(key, value)
		return "?" + q.Encode()
	}
	letters, err := index.Letters(ctx, mostLetters)
	if err != nil {
		return nil, err
	}
	for _, l := range letters {
		p.Letters = append(p.Letters, Letter{strings.ToUpper(l), at("letter", l), l == letter})
	}
	if mark != "" {
		p.First = at("letter", letter)
	}
	hits, err := index.Browse(ctx, letter, string(after), mostFound+1)
	if len(hits) > mostFound {
		hits = hits[:mostFound]
		p.Next = at("after", base64.RawURLEncoding.EncodeToString([]byte(hits[mostFound-1].Mark)))
	}
	return hits, err
}

// First is the list of first steps.
type First struct {
	Steps []Step
}

// Step is a first step.
type Step struct {
	Title, Says string
	Done        bool
	Action      *Action
	Command     string
}

// first are the first steps, nil once a set was scanned, or a mirror synced.
func (d *Dashboard) first(v view) *First {
	for _, s := range v.sets {
		if s.LastScan != nil {
			return nil
		}
	}
	for _, s := range v.dests {
		if s.LastSync != nil {
			return nil
		}
	}
	cfg, f := d.b.Config(), &First{}
	if len(v.sets)+len(v.dests) == 0 {
		f.Steps = append(f.Steps, Step{Title: "Describe a set or a mirror", Says: "The configuration has none yet. This proposes one from what is in a store:", Command: "rsbridge init --endpoint http://127.0.0.1:3030/ds/query"})
		return f
	}
	f.Steps = append(f.Steps,
		Step{Title: "Configure", Done: true, Says: plural(int64(len(cfg.Stores)), "store", "stores") + ", " + plural(int64(len(v.sets)), "set", "sets") + ", " + plural(int64(len(v.dests)), "mirror", "mirrors") + " in the configuration."},
		Step{Title: "Ask the stores and sources", Says: "See whether each of them answers.", Action: &Action{Label: "Ask now", Path: "check"}})
	for _, s := range v.sets {
		step := Step{Title: "Scan " + s.Name, Says: "The first scan reads the store and publishes the set.", Action: &Action{Label: "Scan now", Path: "sets/" + s.Name + "/scan", Form: true, Main: true}}
		for _, run := range v.active {
			if run.Job == "scan:"+s.Name {
				step.Says, step.Action = "The first scan is under way.", &Action{Label: "See it", Path: fmt.Sprint("runs/", run.ID)}
			}
		}
		f.Steps = append(f.Steps, step)
		if base := cfg.Public.BaseURL; base != "" {
			f.Steps = append(f.Steps, Step{Title: "Mirror " + s.Name, Says: "Anybody can follow it then:", Command: "rsbridge mirror " + base + " --set " + s.Name + " --into embedded:./" + s.Name})
		}
	}
	for _, s := range v.dests {
		f.Steps = append(f.Steps, Step{Title: "Sync " + s.Name, Says: "The first sync fetches the whole source.", Action: &Action{Label: "Sync now", Path: "destinations/" + s.Name + "/sync", Form: true, Main: true}})
	}
	return f
}

// Check is the page of reachable stores and sources.
type Check struct {
	Lines []Reached
	Took  string
}

// Reached is a store, set or source.
type Reached struct {
	What, Says string
	Good       bool
}

const checkTime = 20 * time.Second

// check asks each store and source.
func (d *Dashboard) check(r *http.Request) (*page, error) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	cfg, began := d.b.Config(), time.Now()
	faults := bridge.Reach(ctx, cfg, slog.New(slog.DiscardHandler))
	var p Check
	add := func(kind, name, says string) {
		line := Reached{What: kind + " " + name, Says: says, Good: true}
		if err := faults[kind+" "+name]; err != nil {
			line.Good, line.Says = false, sentence(err.Error())
		}
		p.Lines = append(p.Lines, line)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Stores)) {
		s := cfg.Stores[name]
		add("store", name, "answers: "+cmp.Or(s.Query, s.Embedded, s.Files, s.Dump))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sets)) {
		if len(cfg.Sets[name].Dumps) > 0 {
			add("set", name, "has a complete dump")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		add("destination", name, "its source answers")
	}
	p.Took = seconds(time.Since(began).Seconds())
	return &page{name: "check", Title: "Stores and sources", Body: p}, nil
}
