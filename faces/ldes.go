package faces

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// cacheShort is for what grows: the view and the open page.
const cacheShort = "public, max-age=5, must-revalidate"

// microTime is an xsd:dateTime in UTC of fixed width; the log keeps microseconds.
const microTime = "2006-01-02T15:04:05.000000Z"

func dateTime(t time.Time) rdfres.Term {
	return rdfres.NewLiteral(t.UTC().Format(microTime), "", nsXSD+"dateTime")
}

func integer(n uint64) rdfres.Term {
	return rdfres.NewLiteral(strconv.FormatUint(n, 10), "", nsXSD+"integer")
}

// stream is the IRI of the event stream.
func (q *request) stream() string { return q.base + "/ldes" }

func (q *request) iri(path string) rdfres.Term { return rdfres.NewIRI(q.stream() + path) }

// ldes answers below /SET/ldes.
func (q *request) ldes(path string) error {
	if path == "" || path == "/" {
		q.w.Header().Set("Location", q.stream()+"/view")
		q.w.WriteHeader(303)
		return nil
	}
	if err := q.ready(); err != nil {
		return err
	}
	begin, err := q.begin()
	if err != nil {
		return err
	}
	if path == "/view" {
		return q.ldesView(begin)
	}
	if name, ok := strings.CutPrefix(path, "/log/"); ok {
		if n, ok := parseNode(name); ok {
			return q.ldesNode(n, begin)
		}
	}
	if name, ok := strings.CutPrefix(path, "/base/"); ok {
		if b, ok := parseBase(name); ok {
			return q.ldesBase(b, begin)
		}
	}
	if name, ok := strings.CutPrefix(path, "/member/"); ok {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && strconv.FormatUint(n, 10) == name && n > 0 {
			return q.ldesMember(n, begin)
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

// ldesView answers with the root node: what the stream is, and the nodes that it
// leads to.
func (q *request) ldesView(begin uint64) error {
	head, headTime := q.view.Head()
	return q.document(cacheShort, func(w *quadWriter) error {
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
			p, d := q.iri("/view#retention"), rdfres.NewLiteral(duration(kept), "", nsXSD+"duration")
			w.add("", v, ldesRetention, p)
			w.add("", p, rdfType, ldesPolicy)
			w.add("", p, voc(nsLDES, "fullLogDuration"), d)
			w.add("", p, voc(nsLDES, "versionAmount"), integer(1))
			w.add("", p, voc(nsLDES, "versionDeleteDuration"), d)
		}
		r := relations{q: q, w: w, node: v, begin: begin}
		if begin > 0 {
			at := roundest(begin, head)
			until, err := q.timeOf(at)
			if err != nil {
				return err
			}
			b := basePage{at: at, depth: depthFor(q.view.Resources())}
			r.add("/base/"+b.name(), time.Time{}, until)
		}
		for _, n := range top(begin, head) {
			if err := r.log(n, head, headTime); err != nil {
				return err
			}
		}
		return nil
	})
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

// duration is an xsd:duration.
func duration(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("PT%dH", d/time.Hour)
	}
	return fmt.Sprintf("PT%dS", (d+time.Second-1)/time.Second)
}

// timeOf is the time of a change; begin may be the tail, whose change has left.
func (q *request) timeOf(sequence uint64) (time.Time, error) {
	if tail, t := q.view.Tail(); sequence == tail {
		return t, nil
	}
	if head, t := q.view.Head(); sequence == head {
		return t, nil
	}
	c, ok, err := q.change(sequence)
	if err == nil && !ok {
		err = fmt.Errorf("change %d is not in the log", sequence)
	}
	return c.Time, err
}

// relations writes the relations of a node, each bound by one of its own.
type relations struct {
	q     *request
	w     *quadWriter
	node  rdfres.Term
	begin uint64 // the log follows after it
	n     int
}

// add leads to a node whose members are not before from and not after until; the
// zero time is no bound.
func (r *relations) add(path string, from, until time.Time) {
	to := r.q.iri(path)
	for _, x := range []struct {
		kind rdfres.Term
		at   time.Time
	}{{treeGTE, from}, {treeLTE, until}} {
		if x.at.IsZero() {
			continue
		}
		r.n++
		b := rdfres.NewBlank("r" + strconv.Itoa(r.n))
		r.w.add("", r.node, treeRelation, b)
		r.w.add("", b, rdfType, x.kind)
		r.w.add("", b, treeNode, to)
		r.w.add("", b, treePath, asPublished)
		r.w.add("", b, treeValue, dateTime(x.at))
	}
}

// log leads to a node of the log.
func (r *relations) log(n node, head uint64, headTime time.Time) error {
	from, err := r.q.timeOf(max(n.first, r.begin+1))
	if err != nil {
		return err
	}
	var until time.Time
	if n.last <= head {
		if until, err = r.q.timeOf(n.last); err != nil {
			return err
		}
	}
	r.add("/log/"+n.name(), from, until)
	return nil
}

// document answers with statements that fit into memory and hold no members.
func (q *request) document(cache string, statements func(w *quadWriter) error) error {
	t, err := q.choose(trigType, nquadsType, turtleType, ntType)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	b := bufio.NewWriter(&buf)
	w := newQuadWriter(b, t)
	if err := statements(w); err != nil {
		return err
	}
	w.end()
	b.Flush() // into memory
	q.send(reply{contentType: t, cache: cache, etag: etagOf(buf.String()), write: func(w *bufio.Writer) error {
		_, err := w.Write(buf.Bytes())
		return err
	}})
	return nil
}

// choose negotiates the media type of a page.
func (q *request) choose(types ...string) (string, error) {
	q.w.Header().Add("Vary", "Accept")
	t, ok := negotiate(q.r.Header["Accept"], types)
	if !ok {
		return "", &statusError{code: 406, reason: "None of the formats of this page is acceptable.",
			detail: []string{"There are " + strings.Join(types, ", ") + "."}}
	}
	return t, nil
}
