package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Search is the page of found entities.
type Search struct {
	Text   string
	Set    string // only in this one
	Sets   []string
	Found  []Found
	Looked int64 // entities
	Of     int64
	More   bool // there may be others
}

// Found is an entity of a set.
type Found struct {
	Set, IRI, Label string
	Exact           bool
}

const (
	mostFound  = 100
	searchTime = 2 * time.Second
)

// search finds entities by IRI, or a part of it, or of their label. It looks for some seconds, and
// says how far it came.
func (d *Dashboard) search(r *http.Request) (*page, error) {
	q := r.URL.Query()
	p := Search{Text: strings.TrimSpace(q.Get("q")), Set: q.Get("set"), Sets: d.b.Sets()}
	names := p.Sets
	if slices.Contains(p.Sets, p.Set) {
		names = []string{p.Set}
	}
	ctx, cancel := context.WithTimeout(r.Context(), searchTime)
	defer cancel()
	for _, name := range names {
		p.exactly(ctx, d, name)
	}
	for _, name := range names {
		if err := p.in(ctx, d, name); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	p.More = p.More || p.Looked < p.Of
	slices.SortStableFunc(p.Found, func(a, b Found) int {
		if a.Exact != b.Exact {
			return map[bool]int{true: -1, false: 1}[a.Exact]
		}
		return cmp.Compare(strings.ToLower(cmp.Or(a.Label, localName(a.IRI))), strings.ToLower(cmp.Or(b.Label, localName(b.IRI))))
	})
	title := "Browse"
	if p.Text != "" {
		title = "Search: " + clipped(40, p.Text)
	}
	return &page{name: "search", Title: title, Body: p}, nil
}

// exactly finds an entity by its IRI, or by its name below the prefix of the set.
func (p *Search) exactly(ctx context.Context, d *Dashboard, set string) {
	v := d.b.Log(set).View(ctx)
	defer v.Close()
	tries := []string{strings.Trim(p.Text, "<>")}
	if c, known := d.b.Config().Sets[set]; known && c.Prefix != "" {
		tries = append(tries, c.Prefix+p.Text, c.Prefix+strings.ReplaceAll(p.Text, " ", "_"))
	}
	for _, iri := range tries {
		if iri == "" || p.has(set, iri) {
			continue
		}
		if st, err := v.Entity(ctx, iri); err == nil {
			p.Found = append(p.Found, Found{set, iri, d.labels.of(ctx, set, v, iri, st.Current), true})
		}
	}
}

func (p *Search) has(set, iri string) bool {
	return slices.ContainsFunc(p.Found, func(f Found) bool { return f.Set == set && f.IRI == iri })
}

// in looks at the entities of a set, one after the other.
func (p *Search) in(ctx context.Context, d *Dashboard, set string) error {
	v := d.b.Log(set).View(ctx)
	defer v.Close()
	p.Of += v.Resources()
	text, plain := strings.ToLower(p.Text), strings.ToLower(strings.ReplaceAll(p.Text, " ", "_"))
	for st, err := range v.Current(ctx, rdfres.Digest{}, rdfres.Digest{}) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if len(p.Found) >= mostFound {
			p.More = true
			return nil
		}
		p.Looked++
		iri := strings.ToLower(st.Entity)
		hit := strings.Contains(iri, text) || strings.Contains(iri, plain)
		label := d.labels.of(ctx, set, v, st.Entity, st.Current)
		if hit = hit || strings.Contains(strings.ToLower(label), text); hit && !p.has(set, st.Entity) {
			p.Found = append(p.Found, Found{set, st.Entity, label, strings.EqualFold(label, p.Text)})
		}
	}
	return nil
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
