package faces

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/rdfres"
)

// cacheShort is for the view, since it grows.
const cacheShort = "public, max-age=5, must-revalidate"

// microTime is an xsd:dateTime in UTC of fixed width; the log keeps microseconds.
const microTime = "2006-01-02T15:04:05.000000Z"

func dateTime(t time.Time) rdfres.Term {
	return rdfres.NewLiteral(t.UTC().Format(microTime), "", nsXSD+"dateTime")
}

func integer(n uint64) rdfres.Term {
	return rdfres.NewLiteral(strconv.FormatUint(n, 10), "", nsXSD+"integer")
}

func (q *request) stream() string { return q.base + "/ldes" }

func (q *request) iri(path string) rdfres.Term { return rdfres.NewIRI(q.stream() + path) }

// ldes answers below /SET/ldes.
func (q *request) ldes(ctx context.Context, path string) error {
	if path == "" || path == "/" {
		q.w.Header().Set("Location", q.stream()+"/view")
		q.w.WriteHeader(303)
		return nil
	}
	if err := q.ready(); err != nil {
		return err
	}
	begin, err := q.begin(ctx)
	if err != nil {
		return err
	}
	if path == "/view" {
		return q.ldesView(ctx, begin)
	}
	if name, ok := strings.CutPrefix(path, "/log/"); ok {
		if n, ok := parseNode(name); ok {
			return q.ldesNode(ctx, n, begin)
		}
	}
	if name, ok := strings.CutPrefix(path, "/base/"); ok {
		if b, ok := parseBase(name); ok {
			return q.ldesBase(ctx, b, begin)
		}
	}
	if name, ok := strings.CutPrefix(path, "/member/"); ok {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && strconv.FormatUint(n, 10) == name && n > 0 {
			return q.ldesMember(ctx, n, begin)
		}
	}
	return q.noNode()
}

func (q *request) noNode() error {
	return notFound("There is no page of the event stream at this address.").hint("It begins at %s/view.", q.stream())
}

func (q *request) goneNode() error {
	return gone("The changes of this page are no longer kept.").hint("What is kept is listed at %s/view.", q.stream())
}

// ldesView answers with the root node: the description of the stream, relations to its nodes, and
// the newest members. It no longer links to pages dropped soon, so no client finds a linked page
// gone. All other pages are closed, so a client following the stream asks for the view only. With
// an open page beside it the client would meet that page twice.
func (q *request) ldesView(ctx context.Context, begin uint64) error {
	var leads relations
	at, err := q.baseAt(ctx, begin)
	if err != nil {
		return err
	}
	if at > 0 {
		until, err := q.timeOf(ctx, at)
		if err != nil {
			return err
		}
		b := basePage{at: at, depth: depthFor(q.view.Resources())}
		leads = append(leads, relation{"/base/" + b.name(), time.Time{}, until})
	}
	head, _ := q.view.Head()
	soon, err := q.later(ctx, begin, 16)
	if err != nil {
		return err
	}
	nodes, after := top(max(begin, soon/pageSpan*pageSpan), head)
	if leads, err = q.logRelations(ctx, leads, nodes); err != nil {
		return err
	}
	members, err := q.logMembers(ctx, after, head)
	if err != nil {
		return err
	}
	return q.members(ctx, "/view", false, members, leads, func(w *quadWriter) {
		s, v := rdfres.NewIRI(q.stream()), q.iri("/view")
		w.add("", s, rdfType, ldesStream)
		w.add("", s, dctTitle, rdfres.NewLiteral(q.Title, "", ""))
		w.add("", s, voc(nsLDES, "timestampPath"), asPublished)
		w.add("", s, voc(nsLDES, "sequencePath"), rsbSequence)
		w.add("", s, voc(nsLDES, "versionOfPath"), asObject)
		w.add("", s, voc(nsLDES, "versionCreateObject"), asCreate)
		w.add("", s, voc(nsLDES, "versionUpdateObject"), asUpdate)
		w.add("", s, voc(nsLDES, "versionDeleteObject"), asDelete)
		w.add("", s, treeView, v)
		w.add("", v, rdfType, treeNodeClass)
		if kept := q.kept(); kept > 0 {
			p, d := q.iri("/view#retention"), rdfres.NewLiteral(duration(kept-kept/16), "", nsXSD+"duration")
			w.add("", v, ldesRetention, p)
			w.add("", p, rdfType, ldesPolicy)
			w.add("", p, voc(nsLDES, "fullLogDuration"), d)
			w.add("", p, voc(nsLDES, "versionAmount"), integer(1))
			w.add("", p, voc(nsLDES, "versionDeleteDuration"), d)
		}
	})
}

// baseAt is the sequence whose state replaces the changes dropped from the log, 0 before any is
// dropped. It is the roundest sequence in the last three quarters of the log's time: so it moves
// seldom, and a client has time to read its pages.
func (q *request) baseAt(ctx context.Context, begin uint64) (uint64, error) {
	if begin == 0 {
		return 0, nil
	}
	head, _ := q.view.Head()
	low, err := q.later(ctx, begin, 4)
	if err != nil {
		return 0, err
	}
	return roundest(low, head), nil
}

// later is the position in the log after a share of the log's time. A page linked there stays at
// least as long before it is dropped.
func (q *request) later(ctx context.Context, begin uint64, share time.Duration) (uint64, error) {
	if begin == 0 {
		return 0, nil
	}
	from, err := q.timeOf(ctx, begin)
	if err != nil {
		return 0, err
	}
	_, until := q.view.Head()
	low, err := q.view.SequenceAt(ctx, from.Add(until.Sub(from)/share))
	return max(begin, low), err
}

// kept is for how long all changes are kept; 0: for ever.
func (q *request) kept() time.Duration {
	switch {
	case q.Changes == 0:
		return q.Versions
	case q.Versions == 0:
		return q.Changes
	}
	return min(q.Changes, q.Versions)
}

func duration(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("PT%dH", d/time.Hour)
	}
	return fmt.Sprintf("PT%dS", (d+time.Second-1)/time.Second)
}

// timeOf is the time of a change; begin may be the tail, a change no longer in the log.
func (q *request) timeOf(ctx context.Context, sequence uint64) (time.Time, error) {
	if tail, t := q.view.Tail(); sequence == tail {
		return t, nil
	}
	if head, t := q.view.Head(); sequence == head {
		return t, nil
	}
	c, ok, err := q.change(ctx, sequence)
	if err == nil && !ok {
		err = fmt.Errorf("change %d is not in the log", sequence)
	}
	return c.Time, err
}

// relation links to a node with members from the time from to the time until; the zero time is no
// bound.
type relation struct {
	path        string
	from, until time.Time
}

type relations []relation

// write writes them, each bound as one of its own.
func (rs relations) write(q *request, w *quadWriter, node rdfres.Term) {
	n := 0
	for _, r := range rs {
		to := q.iri(r.path)
		for _, x := range []struct {
			kind rdfres.Term
			at   time.Time
		}{{treeGTE, r.from}, {treeLTE, r.until}} {
			if x.at.IsZero() {
				continue
			}
			n++
			b := rdfres.NewBlank("r" + strconv.Itoa(n))
			w.add("", node, treeRelation, b)
			w.add("", b, rdfType, x.kind)
			w.add("", b, treeNode, to)
			w.add("", b, treePath, asPublished)
			w.add("", b, treeValue, dateTime(x.at))
		}
	}
}

// logRelations adds the relations to nodes of the log.
func (q *request) logRelations(ctx context.Context, to relations, nodes []node) (relations, error) {
	for _, n := range nodes {
		from, err := q.timeOf(ctx, n.first)
		if err != nil {
			return nil, err
		}
		until, err := q.timeOf(ctx, n.last)
		if err != nil {
			return nil, err
		}
		to = append(to, relation{"/log/" + n.name(), from, until})
	}
	return to, nil
}

// choose negotiates the media type of a page.
func (q *request) choose(types ...string) (string, error) {
	q.w.Header().Add("Vary", "Accept")
	offers := make([][]string, len(types))
	for i := range types {
		offers[i] = types[i : i+1]
	}
	best, ok := accept.Best(q.r.Header["Accept"], offers...)
	if !ok {
		return "", &statusError{code: 406, reason: "None of the formats of this page is acceptable.",
			detail: []string{"There are " + strings.Join(types, ", ") + "."}}
	}
	return types[best], nil
}
