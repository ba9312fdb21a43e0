package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
)

// Graph is a picture of a week or a day, and its summary in words.
type Graph struct {
	Title, Says, Top string
	From, To         time.Time
	Picture          template.HTML
	Legend           []string // classes of the parts, "" for none
}

// points is a line of the values of a function over samples, in a box of the given size. Spans without
// a value are gaps.
func points(samples []history.Sample, from, to time.Time, width, height, top float64, value func(history.Sample) (float64, bool)) string {
	var b strings.Builder
	pen := false
	for _, s := range samples {
		v, known := value(s)
		if !known {
			pen = false
			continue
		}
		x0, x1 := at(s.Time, from, to, width), at(s.Time.Add(s.Span), from, to, width)
		y := height - 1 - (height-2)*math.Min(v/top, 1)
		if !pen {
			fmt.Fprintf(&b, "M%.1f %.1f", x0, y)
		} else {
			fmt.Fprintf(&b, "L%.1f %.1f", x0, y)
		}
		fmt.Fprintf(&b, "H%.1f", x1)
		pen = true
	}
	return b.String()
}

func at(t, from, to time.Time, width float64) float64 {
	return math.Min(math.Max(width*float64(t.Sub(from))/float64(to.Sub(from)), 0), width)
}

func behindOf(s history.Sample) (float64, bool) {
	if s.Behind == nil {
		return 0, false
	}
	return *s.Behind, true
}

// Spark is the lag of a day, in one line.
type Spark struct {
	Path, Says string
}

const sparkWidth, sparkHeight = 96.0, 20.0

func spark(samples []history.Sample, now time.Time) Spark {
	top, known := 0.0, false
	for _, s := range samples {
		if v, ok := behindOf(s); ok {
			top, known = math.Max(top, v), true
		}
	}
	if !known {
		return Spark{Says: "lag of 24 hours: not known yet"}
	}
	return Spark{points(samples, now.Add(-24*time.Hour), now, sparkWidth, sparkHeight, math.Max(top, 1), behindOf), "lag of 24 hours: at most " + seconds(top)}
}

const graphWidth, graphHeight = 640.0, 120.0

func picture(says string, inside string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %g %g" preserveAspectRatio="none" role="img" aria-label="%s">%s</svg>`, //nolint:gosec // numbers, and an escaped text
		graphWidth, graphHeight, template.HTMLEscapeString(says), inside))
}

func lagGraph(title string, samples []history.Sample, from, to time.Time) Graph {
	top, last := 0.0, -1.0
	for _, s := range samples {
		if v, ok := behindOf(s); ok {
			top, last = math.Max(top, v), v
		}
	}
	g := Graph{Title: title, From: from, To: to, Says: "nothing is known yet"}
	if last >= 0 {
		g.Says = "at most " + seconds(top) + ", last " + seconds(last)
	}
	g.Top = seconds(math.Max(top, 1))
	line := points(samples, from, to, graphWidth, graphHeight, math.Max(top, 1), behindOf)
	g.Picture = picture(title+": "+g.Says, `<path class="line" d="`+line+`"/>`)
	return g
}

// bar is a span of a bar graph.
type bar struct {
	from, to time.Time
	parts    []float64 // from below
	says     string    // to those who point at it
}

// mostBars of a graph: each has a quarter of an hour of a day.
const mostBars = 96

func barGraph(bars []bar, classes []string, from, to time.Time, top float64, says string) template.HTML {
	var b strings.Builder
	for _, bar := range bars {
		x, end := at(bar.from, from, to, graphWidth), at(bar.to, from, to, graphWidth)
		if bar.says == "" {
			continue // there is nothing
		}
		y := graphHeight
		fmt.Fprintf(&b, `<g><title>%s: %s</title><rect class="hit" x="%.1f" width="%.1f" height="%g"/>`, bar.from.Local().Format("Jan 2 15:04"), bar.says, x, math.Max(end-x, 1), graphHeight)
		for i, v := range bar.parts {
			if h := (graphHeight - 2) * v / top; h > 0 {
				h = math.Max(h, 1)
				y -= h
				fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, classes[i], x, y, math.Max(end-x-0.4, 1), h)
			}
		}
		b.WriteString("</g>")
	}
	return picture(says, b.String())
}

// grouped joins samples to at most so many spans, so that each is seen.
func grouped(samples []history.Sample, from, to time.Time, most int) (out []history.Sample) {
	span := to.Sub(from) / time.Duration(most)
	for _, s := range samples {
		slot := s.Time.Sub(from) / span
		start := from.Add(slot * span)
		if n := len(out); n > 0 && out[n-1].Time.Equal(start) {
			last := &out[n-1]
			last.Created, last.Updated, last.Deleted = last.Created+s.Created, last.Updated+s.Updated, last.Deleted+s.Deleted
			last.Runs, last.Failed, last.Longest = last.Runs+s.Runs, last.Failed+s.Failed, max(last.Longest, s.Longest)
			continue
		}
		s.Time, s.Span = start, max(span, s.Span)
		out = append(out, s)
	}
	return out
}

func changesGraph(samples []history.Sample, from, to time.Time) Graph {
	samples = grouped(samples, from, to, mostBars)
	var bars []bar
	top := 0.0
	var all history.Counts
	for _, s := range samples {
		minutes := s.Span.Minutes()
		parts := []float64{float64(s.Created) / minutes, float64(s.Updated) / minutes, float64(s.Deleted) / minutes}
		top = math.Max(top, parts[0]+parts[1]+parts[2])
		bars = append(bars, bar{s.Time, s.Time.Add(s.Span), parts, changesOf(s.Counts)})
		all.Created, all.Updated, all.Deleted = all.Created+s.Created, all.Updated+s.Updated, all.Deleted+s.Deleted
	}
	g := Graph{Title: "Changes a minute", From: from, To: to, Says: changesOf(all), Legend: []string{"created", "updated", "deleted"}}
	if top == 0 {
		g.Says, top = "none", 1
	}
	g.Top = rate(top)
	g.Picture = barGraph(bars, g.Legend, from, to, top, g.Title+": "+g.Says)
	return g
}

// changesOf are changes in words, "" for none.
func changesOf(c history.Counts) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		sign string
		what string
	}{{c.Created, "+", "created"}, {c.Updated, "~", "updated"}, {c.Deleted, "−", "deleted"}} {
		if p.n > 0 {
			parts = append(parts, p.sign+number(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

// runsOf are runs in words, "" for none.
func runsOf(runs, failed int64, longest float64) string {
	if runs == 0 {
		return ""
	}
	return plural(runs, "run", "runs") + ", " + number(failed) + " failed, at most " + seconds(longest)
}

func rate(v float64) string {
	if v >= 10 {
		return number(int64(math.Round(v)))
	}
	return formatTenth(v)
}

func runsGraph(samples []history.Sample, from, to time.Time) Graph {
	samples = grouped(samples, from, to, mostBars)
	var bars []bar
	top, runs, failed := 0.0, int64(0), int64(0)
	for _, s := range samples {
		parts := []float64{s.Longest, 0}
		if s.Failed > 0 {
			slices.Reverse(parts)
		}
		top = math.Max(top, s.Longest)
		bars = append(bars, bar{s.Time, s.Time.Add(s.Span), parts, runsOf(s.Runs, s.Failed, s.Longest)})
		runs, failed = runs+s.Runs, failed+s.Failed
	}
	g := Graph{Title: "Longest run", From: from, To: to, Says: "none", Legend: []string{"well", "failed"}}
	if runs > 0 {
		g.Says = runsOf(runs, failed, top)
	}
	top = math.Max(top, 0.1)
	g.Top = seconds(top)
	g.Picture = barGraph(bars, g.Legend, from, to, top, g.Title+": "+g.Says)
	return g
}
