package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/changetrack"
)

// Set is the page of a set.
type Set struct {
	Status   bridge.SetStatus
	Row      Row
	Facts    []Fact
	Trouble  *Trouble
	Running  []Running
	Mirrors  []Row
	Graphs   []Graph
	Range    string
	Feed     Feed
	Runs     []Ended
	Actions  []Action
	Command  string // that mirrors the set
	Now      time.Time
	Disabled bool // it is removed
}

// Fact is a line of a summary.
type Fact struct {
	Name, Value, Link string
	Time              *time.Time
	Tone              tone
}

// Feed is a page of changes, the newest first.
type Feed struct {
	Set           string
	Kind, Text    string // of the filter
	Lines         []FeedLine
	Older, Newest string // addresses; "" for none
	Looked        int    // changes, where the filter let few pass
}

// FeedLine is a change.
type FeedLine struct {
	Sequence uint64
	Time     time.Time
	Kind     string
	Entity   string
	Label    string
	File     string
	Triples  string // before and after
	Finder   string
}

// ranges are those of graphs.
var ranges = map[string]time.Duration{"24h": 24 * time.Hour, "7d": history7}

const history7 = 7 * 24 * time.Hour

func rangeOf(r *http.Request) (string, time.Duration) {
	name := r.URL.Query().Get("range")
	if span, known := ranges[name]; known {
		return name, span
	}
	return "24h", ranges["24h"]
}

func (d *Dashboard) graphs(ctx context.Context, subject, behind string, span time.Duration, now time.Time) ([]Graph, error) {
	from := now.Add(-span)
	samples, err := d.samples(ctx, subject, from)
	if err != nil {
		return nil, err
	}
	return []Graph{lagGraph(behind, samples, from, now), changesGraph(samples, from, now), runsGraph(samples, from, now)}, nil
}

func (d *Dashboard) setNamed(r *http.Request) (string, error) {
	name := r.PathValue("name")
	if !slices.Contains(d.b.Sets(), name) {
		return "", notFound("There is no set " + name + ".")
	}
	return name, nil
}

func (d *Dashboard) set(r *http.Request) (*page, error) {
	ctx := r.Context()
	name, err := d.setNamed(r)
	if err != nil {
		return nil, err
	}
	v, err := d.view(ctx)
	if err != nil {
		return nil, err
	}
	p := Set{Now: v.now}
	i := slices.IndexFunc(v.sets, func(s bridge.SetStatus) bool { return s.Name == name })
	if i < 0 {
		return nil, notFound("There is no set " + name + ".")
	}
	p.Status = v.sets[i]
	p.Disabled = p.Status.State == bridge.StateRemoved
	rows, err := d.rows(ctx, v)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if row.Kind == "set" && row.Name == name {
			p.Row = row
			for _, m := range rows[i+1:] {
				if !m.Below {
					break
				}
				p.Mirrors = append(p.Mirrors, m)
			}
		}
	}
	troubles, err := d.troubles(ctx, v)
	if err != nil {
		return nil, err
	}
	p.Trouble = troubleOf(troubles, "set", name)
	if p.Running, err = d.runningOn(ctx, v, "set:"+name); err != nil {
		return nil, err
	}
	span := time.Duration(0)
	p.Range, span = rangeOf(r)
	if p.Graphs, err = d.graphs(ctx, "set:"+name, "Time since the last look", span, v.now); err != nil {
		return nil, err
	}
	if p.Feed, err = d.feed(ctx, name, r.URL.Query()); err != nil {
		return nil, err
	}
	if p.Runs, err = d.endedOn(ctx, []string{"scan:", "hint:", "dump:", "changedump:", "list:", "archive:", "rebase:"}, name, 10); err != nil {
		return nil, err
	}
	p.Facts = d.setFacts(p.Status, p.Row)
	if !p.Disabled {
		p.Actions = []Action{{Label: "Scan now", Path: "sets/" + name + "/scan", Form: true, Main: true}, pauseAction("sets/"+name, p.Status.Paused)}
	}
	if base := d.b.Config().Public.BaseURL; base != "" {
		p.Command = "rsbridge mirror " + base + " --set " + name + " --into embedded:./" + name
	}
	return &page{name: "set", Title: "Set " + name, Body: p, Head: v.head(troubles)}, nil
}

// pauseAction pauses a schedule, or resumes it.
func pauseAction(path string, paused bool) Action {
	if paused {
		return Action{Label: "Resume", Path: path + "/resume", Form: true}
	}
	return Action{Label: "Pause", Path: path + "/pause", Form: true}
}

func troubleOf(all []Trouble, kind, name string) *Trouble {
	for _, t := range all {
		if t.Kind == kind && t.Name == name {
			return &t
		}
	}
	return nil
}

func (d *Dashboard) runningOn(ctx context.Context, v view, subject string) ([]Running, error) {
	all, err := d.runningNow(ctx, v.active, v.now)
	return slices.DeleteFunc(all, func(r Running) bool { return r.Subject != subject }), err
}

// endedOn are the newest runs of some jobs, by time.
func (d *Dashboard) endedOn(ctx context.Context, kinds []string, name string, most int) (out []Ended, err error) {
	for _, kind := range kinds {
		runs, err := d.ended(ctx, kind+name, "", 0, most, 4*most)
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	slices.SortFunc(out, func(a, b Ended) int { return int(b.ID) - int(a.ID) })
	return out[:min(most, len(out))], nil
}

func (d *Dashboard) setFacts(s bridge.SetStatus, row Row) []Fact {
	facts := []Fact{{Name: "resources", Value: number(s.Resources), Link: "../search?set=" + s.Name}, {Name: "change number", Value: number(s.Sequence)}, {Name: "last change", Time: s.LastChange}, {Name: "last scan", Time: s.LastScan}, {Name: "next scan", Time: s.NextScan, Value: row.NextSays}}
	if row.From != "" {
		facts = append(facts, Fact{Name: "from", Value: row.From})
	}
	if s.Triples > 0 {
		described := Fact{Name: "described", Value: "all " + plural(s.Triples, "triple", "triples")}
		if s.Covered != s.Triples {
			described.Value = number(s.Covered) + " of " + plural(s.Triples, "triple", "triples")
		}
		if s.Held.OfScan() {
			described.Value, described.Time = described.Value+", before what is held", row.ProofAt
		}
		facts = append(facts, described)
	}
	if s.Failed > 0 {
		facts = append(facts, Fact{Name: "could not be described", Value: number(s.Failed), Tone: toneBad})
	}
	if u := s.Unpublished; u != nil && (u.Graphs > 0 || u.Unknown != "") {
		value := u.Unknown
		if value == "" {
			value = plural(u.Triples, "triple", "triples") + " in " + plural(int64(u.Graphs), "graph", "graphs") + " of no set"
		}
		facts = append(facts, Fact{Name: "not published", Value: value, Tone: toneWait})
	}
	if r := s.Retention; r != nil {
		facts = append(facts, Fact{Name: "changes kept", Value: "for " + r.Changes}, Fact{Name: "old versions kept", Value: "for " + r.Versions})
		if r.Begins != nil {
			facts = append(facts, Fact{Name: "last change that has gone", Value: "no. " + number(r.After) + " of", Time: r.Begins})
		}
		facts = append(facts, Fact{Name: "next retention", Time: r.NextRun})
	}
	if n := s.Listeners; n.WebSub+n.WebSocket+n.Events > 0 {
		facts = append(facts, Fact{Name: "listeners", Value: fmt.Sprint(n.WebSub + n.WebSocket + n.Events)})
	}
	if s.Address != "" {
		facts = append(facts, Fact{Name: "for people", Value: "public page", Link: strings.TrimSuffix(s.Address, "capabilitylist.xml") + "about"}, Fact{Name: "for programs", Value: "Capability List", Link: s.Address})
	}
	return facts
}

const (
	feedPage  = 40
	feedLooks = 20_000 // changes that a filter looks at
)

// feed is a page of the log, the newest first.
func (d *Dashboard) feed(ctx context.Context, set string, q url.Values) (Feed, error) {
	f := Feed{Set: set, Kind: q.Get("change"), Text: strings.TrimSpace(q.Get("text"))}
	v := d.b.Log(set).View(ctx)
	defer v.Close()
	head, _ := v.Head()
	tail, _ := v.Tail()
	end := head + 1 // the changes before it
	if before, err := strconv.ParseUint(q.Get("before"), 10, 63); err == nil && before <= head {
		end = before
		f.Newest = "?" + f.filter(0)
	}
	for window := uint64(4 * feedPage); end > tail+1 && len(f.Lines) < feedPage && f.Looked < feedLooks; {
		from := max(end, window+1) - window - 1
		from = max(from, tail)
		var piece []changetrack.Change
		for c, err := range v.Changes(ctx, from) {
			if err != nil {
				return f, err
			}
			if c.Sequence >= end {
				break
			}
			piece = append(piece, c)
		}
		for _, c := range slices.Backward(piece) {
			f.Looked++
			if !f.shows(c) {
				end = c.Sequence
				continue
			}
			if len(f.Lines) == feedPage {
				break
			}
			f.Lines = append(f.Lines, d.feedLine(ctx, set, v, c))
			end = c.Sequence
		}
		if len(f.Lines) < feedPage {
			end = min(end, from+1)
		}
	}
	if end > tail+1 {
		f.Older = "?" + f.filter(end)
	}
	return f, v.Err()
}

// filter is the query of a page of the feed.
func (f Feed) filter(before uint64) string {
	q := url.Values{}
	if f.Kind != "" {
		q.Set("change", f.Kind)
	}
	if f.Text != "" {
		q.Set("text", f.Text)
	}
	if before > 0 {
		q.Set("before", strconv.FormatUint(before, 10))
	}
	return q.Encode()
}

func (f Feed) shows(c changetrack.Change) bool {
	if f.Kind != "" && string(c.Kind) != f.Kind {
		return false
	}
	text := strings.ToLower(f.Text)
	return text == "" || strings.Contains(strings.ToLower(c.Entity), text) || strings.Contains(strings.ToLower(c.File), text)
}

func (d *Dashboard) feedLine(ctx context.Context, set string, v *changetrack.View, c changetrack.Change) FeedLine {
	l := FeedLine{Sequence: c.Sequence, Time: c.Time, Kind: string(c.Kind), Entity: c.Entity, File: c.File, Finder: c.Finder}
	ver := c.After
	if ver == nil {
		ver = c.Before
	}
	l.Label = d.labels.of(ctx, set, v, c.Entity, ver)
	switch {
	case c.Before != nil && c.After != nil:
		l.Triples = number(c.Before.Triples) + " → " + number(c.After.Triples)
	case ver != nil:
		l.Triples = number(ver.Triples)
	}
	return l
}

// Entity is the page of an entity of a set.
type Entity struct {
	Set, IRI    string
	Description Description
	Deleted     bool
	Location    string
	History     []FeedLine
	More        bool
	Removed     []string
	Added       []string
}

const mostHistory = 50

func (d *Dashboard) entity(r *http.Request) (*page, error) {
	ctx := r.Context()
	name, err := d.setNamed(r)
	if err != nil {
		return nil, err
	}
	p := Entity{Set: name, IRI: r.URL.Query().Get("iri")}
	v := d.b.Log(name).View(ctx)
	defer v.Close()
	st, err := v.Entity(ctx, p.IRI)
	if err != nil {
		return nil, notFound(p.IRI + " is not in the set " + name + ".")
	}
	p.Deleted = st.Current == nil
	for c, err := range v.History(ctx, p.IRI) {
		if err != nil {
			return nil, err
		}
		p.History = append(p.History, d.feedLine(ctx, name, v, c))
	}
	slices.Reverse(p.History)
	if p.More = len(p.History) > mostHistory; p.More {
		p.History = p.History[:mostHistory]
	}
	at := time.Time{}
	if p.Deleted && st.Deleted != nil {
		at = st.Deleted.Time.Add(-time.Microsecond)
	}
	if p.Description, err = d.ofSet(ctx, name, p.IRI, at); err != nil {
		p.Description.Missing = sentence(err.Error())
	}
	p.Description.cut(mostShown)
	if p.Location, err = d.b.Location(ctx, name, p.IRI); err != nil {
		p.Location = ""
	}
	if len(p.History) > 1 {
		if diff, err := d.b.Diff(ctx, name, p.IRI, "", ""); err == nil && len(diff.Removed)+len(diff.Added) < mostShown {
			p.Removed, p.Added = diff.Removed, diff.Added
		}
	}
	title := p.Description.Label
	if title == "" {
		title = localName(p.IRI)
	}
	return &page{name: "entity", Title: title, Body: p}, nil
}
