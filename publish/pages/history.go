package pages

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Limits of histories and comparisons.
const (
	historyPage = 50      // changes
	historyRead = 8 << 20 // bytes of versions compared for a page
	countedMost = 1 << 20 // bytes of a version compared for its counts
	mostLines   = 500     // of a comparison, of each side
)

// Change is one change of an entity.
type Change struct {
	At       Time
	Day      string // of the first one of a day in a history; "": the same day as the one before
	Kind     string
	Sequence uint64
	Href     string // the version, "" after a deletion
	Triples  string
	Counted  bool // Added and Removed are known
	Added    int
	Removed  int
	Before   uint64 // sequence of the version before, 0 for none
	Compare  string // address of the comparison with it
}

// span is a part of a history, the newest change first.
type span struct {
	Rows         []Change
	all          []changetrack.Change
	older, newer uint64 // the next parts begin before these sequences; 0: there is none
}

// before is the version before another one, nil if it is not in the span.
func (h *span) before(v *changetrack.Version) *changetrack.Version {
	for i := range h.all {
		if a := h.all[i].After; a != nil && a.Sequence == v.Sequence {
			return h.all[i].Before
		}
	}
	return nil
}

// changes reads the last changes before a sequence, 0 for the end, and counts their triples. The
// history is read once, and of its versions only those of the span.
func (s *Set) changes(ctx context.Context, entity string, before uint64, most int) (*span, error) {
	h := &span{}
	var later int
	for c, err := range s.View.History(ctx, entity) {
		if err != nil {
			return nil, err
		}
		if before > 0 && c.Sequence >= before {
			if later++; later > most {
				h.newer = c.Sequence
				break
			}
			continue
		}
		if h.all = append(h.all, c); len(h.all) > most+1 {
			h.all = h.all[1:]
		}
	}
	if before > 0 && h.newer == 0 && later > 0 {
		h.newer = ^uint64(0) >> 1 // from the end on
	}
	if len(h.all) > most {
		h.all = h.all[1:]
		h.older = h.all[0].Sequence
	}
	base, compare := s.Generic(entity)+".html", s.URL+"/compare/"+naming.Encode(entity, s.Prefix)
	budget := int64(historyRead)
	var last []rdfres.Triple // of the version lastOf, read already
	var lastOf uint64
	read := func(v *changetrack.Version) ([]rdfres.Triple, bool) {
		if v == nil {
			return nil, true
		}
		if v.Sequence == lastOf {
			return last, true
		}
		if budget -= v.Fixity.Length; budget < 0 || v.Fixity.Length > countedMost {
			return nil, false
		}
		ts, err := s.triples(ctx, entity, v)
		return ts, err == nil
	}
	for _, c := range h.all {
		r := Change{At: At(c.Time), Kind: string(c.Kind), Sequence: c.Sequence}
		old, known := read(c.Before)
		now, known2 := read(c.After)
		if r.Counted = known && known2; r.Counted {
			r.Removed, r.Added = len(missing(old, now)), len(missing(now, old))
		}
		if c.After != nil {
			r.Href, r.Triples = base+"?version="+number(c.After.Sequence), Digits(int64(c.After.Triples))
			if known2 {
				last, lastOf = now, c.After.Sequence
			}
		}
		if c.Before != nil && c.After != nil {
			r.Before, r.Compare = c.Before.Sequence, compare+"?from="+number(c.Before.Sequence)+"&to="+number(c.After.Sequence)
		}
		h.Rows = append(h.Rows, r)
	}
	slices.Reverse(h.Rows)
	return h, nil
}

// History is a part of the history of an entity.
type History struct {
	Frame              Frame
	IRI, Page, Compare string
	Rows               []Change
	Older, Newer       string
	Total              int
	Gone               bool
	Choose             bool // there are two to compare
}

// History makes the page of the changes before a sequence; 0: the last ones.
func (s *Set) History(ctx context.Context, st *changetrack.State, before uint64) ([]byte, error) {
	h, err := s.changes(ctx, st.Entity, before, historyPage)
	if err != nil {
		return nil, err
	}
	name := naming.Encode(st.Entity, s.Prefix)
	self := s.URL + "/history/" + name
	p := &History{IRI: st.Entity, Page: s.Generic(st.Entity) + ".html", Compare: s.URL + "/compare/" + name, Rows: h.Rows, Total: st.Changes, Gone: st.Current == nil}
	if h.older > 0 {
		p.Older = self + "?before=" + number(h.older)
	}
	switch {
	case h.newer == ^uint64(0)>>1:
		p.Newer = self
	case h.newer > 0:
		p.Newer = self + "?before=" + number(h.newer)
	}
	versions, day := 0, ""
	for i := range h.Rows {
		r := &h.Rows[i]
		if date := r.At.Text[:len(time.DateOnly)]; date != day {
			r.Day, day = date, date
		}
		if r.Href != "" {
			versions++
		}
	}
	p.Choose = versions > 1
	label := s.label(ctx, st)
	p.Frame = s.frame("History of " + label)
	p.Frame.Crumbs = append(p.Frame.Crumbs, Crumb{label, p.Page})
	return write("history.html", p)
}

// label is the label of the present or last version.
func (s *Set) label(ctx context.Context, st *changetrack.State) string {
	v := st.Current
	if v == nil && st.Deleted != nil {
		v = st.Deleted.Before
	}
	if v != nil && v.Fixity.Length <= countedMost {
		if ts, err := s.triples(ctx, st.Entity, v); err == nil {
			if label := clip.Middle(rdfres.Label(rdfres.NewIRI(st.Entity), ts)); label != "" {
				return label
			}
		}
	}
	return localName(st.Entity)
}

// Side is one of two compared versions.
type Side struct {
	At       Time
	Href     string
	Sequence uint64
	Triples  string
}

// Group is the changed values of a property.
type Group struct {
	Subject, Name, IRI string
	Removed, Added     []Value
}

// Compare is the difference of two versions.
type Compare struct {
	Frame              Frame
	IRI, Page, History string
	From, To           Side
	Groups             []Group
	Removed, Added     int
	More               int // statements left out
	Same               bool
}

// Compare makes the page of the difference of two versions, the older one first.
func (s *Set) Compare(ctx context.Context, st *changetrack.State, from, to *changetrack.Version) ([]byte, error) {
	if from.Sequence > to.Sequence {
		from, to = to, from
	}
	old, err := s.triples(ctx, st.Entity, from)
	if err != nil {
		return nil, err
	}
	now, err := s.triples(ctx, st.Entity, to)
	if err != nil {
		return nil, err
	}
	base, label := s.Generic(st.Entity)+".html", s.label(ctx, st)
	side := func(v *changetrack.Version) Side {
		return Side{At(v.Time), base + "?version=" + number(v.Sequence), v.Sequence, Count(int64(v.Triples), "triple", "triples")}
	}
	removed, added := missing(old, now), missing(now, old)
	p := &Compare{IRI: st.Entity, Page: base, History: s.URL + "/history/" + naming.Encode(st.Entity, s.Prefix), From: side(from), To: side(to), Removed: len(removed), Added: len(added), Same: len(removed)+len(added) == 0}
	p.More = max(0, len(removed)-mostLines) + max(0, len(added)-mostLines)
	p.Groups = groups(st.Entity, removed[:min(len(removed), mostLines)], added[:min(len(added), mostLines)], s.resolver(ctx))
	p.Frame = s.frame("Difference of two versions of " + label)
	p.Frame.Crumbs = append(p.Frame.Crumbs, Crumb{label, base}, Crumb{"History", p.History})
	return write("compare.html", p)
}

// groups brings the values of each property together.
func groups(entity string, removed, added []rdfres.Triple, here resolver) (out []Group) {
	d := &describer{here: here}
	at := map[[2]rdfres.Term]int{}
	put := func(t rdfres.Triple) *Group {
		key := [2]rdfres.Term{t.S, t.P}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			g := Group{Name: propertyName(t.P.IRI()), IRI: t.P.IRI()}
			if t.S != rdfres.NewIRI(entity) {
				g.Subject = clip.Middle(shortTerm(t.S))
			}
			out = append(out, g)
		}
		return &out[i]
	}
	for _, t := range removed {
		g := put(t)
		g.Removed = append(g.Removed, d.value(t.O, mostDepth))
	}
	for _, t := range added {
		g := put(t)
		g.Added = append(g.Added, d.value(t.O, mostDepth))
	}
	for i := range out {
		out[i].mark()
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		if a.Subject != b.Subject {
			return strings.Compare(a.Subject, b.Subject)
		}
		if x, y := rank(a.IRI), rank(b.IRI); x != y {
			return x - y
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// Changed is the part of a text with its changes, and some of the equal text around it.
type Changed struct{ Before, Text, After string }

const (
	aroundChange = 60        // bytes of the equal text on each side, about
	mostMarked   = 100 << 10 // bytes of a text that is compared
)

// mark finds the changed words in pairs of texts: an old and a new one, the only two of their language and type.
func (g *Group) mark() {
	pairs := map[[2]string][2][]*Value{}
	for side, values := range [][]Value{g.Removed, g.Added} {
		for i := range values {
			v := &values[i]
			if v.Href == "" && !v.IsNode && !v.IsList && !v.Cut && len(v.Text)+len(v.Rest) <= mostMarked {
				p := pairs[[2]string{v.Lang, v.Datatype}]
				p[side] = append(p[side], v)
				pairs[[2]string{v.Lang, v.Datatype}] = p
			}
		}
	}
	for _, p := range pairs {
		if len(p[0]) == 1 && len(p[1]) == 1 {
			markPair(p[0][0], p[1][0])
		}
	}
}

// markPair marks the words between the equal beginning and the equal end of two texts. Texts with little in common
// stay as they are.
func markPair(a, b *Value) {
	x, y := a.Text+a.Rest, b.Text+b.Rest
	n := min(len(x), len(y))
	begin := 0
	for begin < n && x[begin] == y[begin] {
		begin++
	}
	begin = strings.LastIndexByte(x[:begin], ' ') + 1
	end := 0
	for end < n-begin && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	starts := func(text string) bool { return len(text) == end || text[len(text)-end-1] == ' ' } // a word at the equal end
	for end > 0 && !(starts(x) && starts(y)) {
		end--
	}
	if begin+end < n/2 || begin+end == 0 {
		return
	}
	if strings.HasSuffix(x[begin:len(x)-end], " ") && strings.HasSuffix(y[begin:len(y)-end], " ") {
		end++
	}
	for _, v := range []*Value{a, b} {
		text := v.Text + v.Rest
		c := &Changed{text[:begin], text[begin : len(text)-end], text[len(text)-end:]}
		if i := strings.LastIndexByte(c.Before[:max(0, len(c.Before)-aroundChange)], ' '); i > 0 {
			c.Before = "… " + c.Before[i+1:]
		}
		if i := strings.IndexByte(c.After[min(len(c.After), aroundChange):], ' '); i >= 0 {
			c.After = c.After[:aroundChange+i] + " …"
		}
		v.Changed = c
	}
}

// missing gives the statements of a that b lacks.
func missing(a, b []rdfres.Triple) (out []rdfres.Triple) {
	if len(a) == 0 {
		return nil
	}
	have := make(map[rdfres.Triple]bool, len(b))
	for _, t := range b {
		have[t] = true
	}
	for _, t := range a {
		if !have[t] {
			out = append(out, t)
		}
	}
	return out
}
