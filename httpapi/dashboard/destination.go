package dashboard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Destination is the page of a mirror.
type Destination struct {
	Status      bridge.DestinationStatus
	Row         Row
	Facts       []Fact
	Trouble     *Trouble
	Running     []Running
	Graphs      []Graph
	Range       string
	Differences []Different
	More        bool
	Runs        []Ended
	Actions     []Action
	Set         string // of this bridge, if it is the source
	Now         time.Time
	Disabled    bool // it is removed
}

// Different is an entity with differences between mirror and source.
type Different struct {
	destination.Difference
	Label string
}

const mostDifferences = 100

func (d *Dashboard) destinationNamed(v view, name string) (bridge.DestinationStatus, error) {
	for _, s := range v.dests {
		if s.Name == name {
			return s, nil
		}
	}
	return bridge.DestinationStatus{}, notFound("There is no destination " + name + ".")
}

func (d *Dashboard) destination(r *http.Request) (*page, error) {
	ctx, name := r.Context(), r.PathValue("name")
	v, err := d.view(ctx)
	if err != nil {
		return nil, err
	}
	p := Destination{Now: v.now}
	if p.Status, err = d.destinationNamed(v, name); err != nil {
		return nil, err
	}
	p.Disabled, p.Set = p.Status.State == bridge.StateRemoved, d.ownSet(p.Status)
	rows, err := d.rows(ctx, v)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(rows, func(row Row) bool { return row.Kind == "mirror" && row.Name == name }); i >= 0 {
		p.Row = rows[i]
	}
	troubles, err := d.troubles(ctx, v)
	if err != nil {
		return nil, err
	}
	p.Trouble = troubleOf(troubles, "mirror", name)
	if p.Running, err = d.runningOn(ctx, v, "destination:"+name); err != nil {
		return nil, err
	}
	span := time.Duration(0)
	p.Range, span = rangeOf(r)
	if p.Graphs, err = d.graphs(ctx, "destination:"+name, "Lag", span, v.now); err != nil {
		return nil, err
	}
	if p.Runs, err = d.endedOn(ctx, []string{"sync:", "audit:"}, name, 10); err != nil {
		return nil, err
	}
	if p.Differences, p.More, err = d.differences(ctx, p); err != nil {
		return nil, err
	}
	p.Facts = destinationFacts(p.Status, p.Row)
	if !p.Disabled {
		path := "destinations/" + name
		p.Actions = []Action{{Label: "Sync now", Path: path + "/sync", Form: true, Main: true}, {Label: "Audit", Path: path + "/audit", Form: true}}
		p.Actions = append(p.Actions, pauseAction(path, p.Status.Paused))
		p.Actions = append(p.Actions,
			Action{Label: "Repair", Path: path + "/repair", Form: true, Asks: "Compare the mirror with its source, and write and remove in the mirror whatever is not equal?"},
			Action{Label: "Full sync", Path: path + "/full", Form: true, Asks: "Read the whole source again? This may take long, and costs the source as much as a new mirror."})
	}
	return &page{name: "destination", Title: "Mirror " + name, Body: p, Head: v.head(troubles)}, nil
}

// differences are the first ones of a mirror.
func (d *Dashboard) differences(ctx context.Context, p Destination) (out []Different, more bool, err error) {
	dest, err := d.b.Destination(p.Status.Name)
	if err != nil { // the state tells it
		return nil, false, nil
	}
	for diff, err := range dest.Differences(ctx, "") {
		if err != nil {
			return out, false, err
		}
		if len(out) == mostDifferences {
			return out, true, nil
		}
		line := Different{Difference: diff}
		if p.Set != "" && diff.Entity != "" && len(out) < 30 {
			line.Label = d.labelNow(ctx, p.Set, diff.Entity)
		}
		out = append(out, line)
	}
	return out, false, nil
}

// labelNow is the label of an entity of a set as it is, or was at last.
func (d *Dashboard) labelNow(ctx context.Context, set, entity string) string {
	v := d.b.Log(set).View(ctx)
	defer v.Close()
	st, err := v.Entity(ctx, entity)
	switch {
	case err != nil:
		return ""
	case st.Current == nil && st.Deleted != nil:
		return d.labels.of(ctx, set, v, entity, st.Deleted.Before)
	}
	return d.labels.of(ctx, set, v, entity, st.Current)
}

func destinationFacts(s bridge.DestinationStatus, row Row) []Fact {
	lag := Fact{Name: "lag", Value: "not known"}
	if s.BehindSeconds != nil {
		if lag.Value = "none"; *s.BehindSeconds > 0 {
			lag.Value, lag.Tone = seconds(*s.BehindSeconds), toneWait
		}
		if s.BehindChanges != nil && *s.BehindChanges > 0 {
			lag.Value += ", " + plural(int64(*s.BehindChanges), "change", "changes")
		}
	}
	facts := []Fact{{Name: "resources", Value: number(s.Resources)}, lag}
	if row.Age != "" {
		facts = append(facts, Fact{Name: "oldest possible age", Value: row.Age})
	}
	facts = append(facts, Fact{Name: "last sync", Time: s.LastSync}, Fact{Name: "last poll", Time: s.LastPoll}, Fact{Name: "next sync", Time: s.NextSync, Value: row.NextSays})
	if s.Pending > 0 {
		facts = append(facts, Fact{Name: "pending", Value: number(s.Pending), Link: "#differences", Tone: toneWait})
	}
	if a := s.LastAudit; a != nil {
		facts = append(facts, Fact{Name: "last audit", Value: a.Verdict, Time: &a.Time, Tone: row.ProofTone})
	} else {
		facts = append(facts, Fact{Name: "last audit", Value: "never"})
	}
	if s.ProvenUntil != nil {
		facts = append(facts, Fact{Name: "equal to the source of", Time: s.ProvenUntil})
	}
	if s.ProvenSince != nil {
		facts = append(facts, Fact{Name: "proven since", Time: s.ProvenSince})
	}
	if s.Live != "" {
		facts = append(facts, Fact{Name: "hears of changes by", Value: s.Live})
	}
	facts = append(facts, Fact{Name: "source", Value: s.Source, Link: s.Source}, Fact{Name: "store", Value: s.Store})
	graph := s.GraphIRI
	if s.Graph == "per-entity" {
		graph = "one for each entity: " + graph
	} else if graph == "" {
		graph = "the default graph"
	}
	return append(facts, Fact{Name: "graph", Value: graph})
}

// Comparison is the page of an entity of a mirror beside its source.
type Comparison struct {
	Destination, IRI string
	Kind, Detail     string
	Source, Mirror   Description
	Same             bool
	Written          bool   // of the mirror there is only what was written into it
	Origin           string // where the source's description is
	Set              string // of this bridge; "": the source is another server
}

func (d *Dashboard) difference(r *http.Request) (*page, error) {
	ctx, name := r.Context(), r.PathValue("name")
	v, err := d.view(ctx)
	if err != nil {
		return nil, err
	}
	s, err := d.destinationNamed(v, name)
	if err != nil {
		return nil, err
	}
	p := Comparison{Destination: name, IRI: r.URL.Query().Get("entity"), Set: d.ownSet(s)}
	dest, err := d.b.Destination(name)
	if err != nil {
		return nil, err
	}
	looked := 0
	for diff, err := range dest.Differences(ctx, "") {
		if looked++; err != nil || looked > 10_000 {
			break
		}
		if diff.Entity == p.IRI {
			p.Kind, p.Detail, p.Origin = diff.Kind, diff.Detail, diff.Location
			break
		}
	}
	read, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if p.Mirror, err = d.inStore(read, name, p.IRI); errors.Is(err, bridge.ErrNotRead) {
		p.Written = true
		p.Mirror, err = d.ofMirror(ctx, name, p.IRI)
	}
	if err != nil {
		p.Mirror.Missing = sentence(webguard.MaskedText(err.Error()))
	} else if len(p.Mirror.Statements) == 0 {
		p.Mirror.Missing = "It has none."
	}
	if p.Set != "" {
		p.Source, err = d.ofSet(ctx, p.Set, p.IRI, time.Time{})
	} else {
		p.Source, err = d.ofMirror(ctx, name, p.IRI)
	}
	if err != nil {
		p.Source.Missing = sentence(err.Error())
	}
	p.Same = compare(&p.Source, &p.Mirror) && p.Source.Missing == "" && p.Mirror.Missing == ""
	if p.Origin == "" {
		p.Origin, _ = dest.Origin(ctx, p.IRI) // without it there is no link
	}
	p.Source.cut(mostShown)
	p.Mirror.cut(mostShown)
	return &page{name: "difference", Title: "Difference of " + localName(p.IRI), Body: p}, nil
}
