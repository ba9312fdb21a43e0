package faces

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// pageForm is the version of the form of pages; it is part of their ETags.
const pageForm = "ldes page 1"

// member is a version of an entity, or its end, as an event.
type member struct {
	sequence uint64
	time     time.Time
	kind     changetrack.Kind
	entity   string
	version  *changetrack.Version // nil: deleted
}

func memberOf(c changetrack.Change) member {
	return member{c.Sequence, c.Time, c.Kind, c.Entity, c.After}
}

func (m member) tag() string {
	s := fmt.Sprintf("%d %d %s %s", m.sequence, m.time.UnixMicro(), m.kind, m.entity)
	if m.version != nil {
		s += " " + m.version.Graph.String()
	}
	return s
}

// ldesNode answers with a node of the log.
func (q *request) ldesNode(ctx context.Context, n node, begin uint64) error {
	head, _ := q.view.Head()
	switch {
	case n.last > head: // the view has the open range
		return q.noNode()
	case n.last <= begin:
		return q.goneNode()
	case n.first <= begin: // the remaining part
		rest, _ := nodeOf(begin+1, n.last)
		h := q.w.Header()
		h.Set("Location", q.stream()+"/log/"+rest.name())
		h.Set("Cache-Control", "no-cache")
		q.w.WriteHeader(http.StatusFound)
		return nil
	case n.first != begin+1 && !n.aligned():
		return q.noNode()
	}
	path := "/log/" + n.name()
	if n.level > 0 {
		leads, err := q.logRelations(ctx, nil, n.below())
		if err != nil {
			return err
		}
		return q.members(ctx, path, true, nil, leads, nil)
	}
	members, err := q.logMembers(ctx, n.first-1, n.last)
	if err != nil {
		return err
	}
	return q.members(ctx, path, true, members, nil, nil)
}

// logMembers are those of a part of the log, at most pageSpan of it.
func (q *request) logMembers(ctx context.Context, after, last uint64) (out []member, err error) {
	for c, err := range q.view.Changes(ctx, after) {
		if err != nil {
			return nil, err
		}
		if c.Sequence > last {
			break
		}
		if c.Entity != "" {
			out = append(out, memberOf(c))
		}
	}
	return out, nil
}

// ldesMember answers with one member.
func (q *request) ldesMember(ctx context.Context, sequence, begin uint64) error {
	if head, _ := q.view.Head(); sequence > head {
		return notFound("There is no member of this number.")
	}
	if sequence <= begin {
		return gone("The member is no longer kept at an address of its own.").
			hint("If it is the current version of its entity, it is among those that %s/view leads to.", q.stream())
	}
	c, _, err := q.change(ctx, sequence)
	if err != nil {
		return err
	}
	if c.Entity == "" {
		return notFound("The change %d is none of an entity.", sequence)
	}
	return q.members(ctx, "", true, []member{memberOf(c)}, nil, nil)
}

// ldesBase answers with the state of the log at a sequence, divided by the keys
// of the entities.
func (q *request) ldesBase(ctx context.Context, b basePage, begin uint64) error {
	head, _ := q.view.Head()
	depth := depthFor(q.view.Resources())
	switch {
	case b.at == 0, b.at > head, b.depth > depth+2:
		return q.noNode()
	case b.at < begin, b.depth < depth-2:
		return q.goneNode()
	}
	if !b.leaf() {
		until, err := q.timeOf(ctx, b.at)
		if err != nil {
			return err
		}
		var leads relations
		for _, c := range b.below() {
			leads = append(leads, relation{"/base/" + c.name(), time.Time{}, until})
		}
		return q.members(ctx, "/base/"+b.name(), true, nil, leads, nil)
	}
	var members []member
	lo, hi := b.keys()
	for st, err := range q.view.Known(ctx, lo, hi) {
		if err == nil {
			var m *member
			if m, err = q.memberAt(ctx, st, b.at); err == nil && m != nil {
				members = append(members, *m)
			}
		}
		if err != nil {
			return err
		}
	}
	return q.members(ctx, "/base/"+b.name(), true, members, nil, nil)
}

// memberAt is the member of an entity at a sequence, the start for reading the log from there; nil
// if the entity was not there then.
func (q *request) memberAt(ctx context.Context, st changetrack.State, at uint64) (*member, error) {
	v := st.Current
	if v == nil && (st.Deleted == nil || st.Deleted.Sequence <= at) {
		return nil, nil
	}
	var past []changetrack.Change
	for c, err := range q.view.History(ctx, st.Entity) {
		if err != nil {
			return nil, err
		}
		if c.Sequence > at {
			if v = c.Before; v == nil {
				return nil, nil // it came after
			}
			break
		}
		past = append(past[:0], c) // the last one before made v
	}
	m := &member{v.Sequence, v.Time, changetrack.Updated, st.Entity, v}
	if len(past) > 0 && past[0].Sequence == v.Sequence {
		m.kind = past[0].Kind
	}
	return m, nil
}

// members answers with a page: the statements of about, the node at path ("" for none), the
// relations and the members. A page without members needs no graphs, so more formats are offered.
func (q *request) members(ctx context.Context, path string, closed bool, members []member, leads relations, about func(w *quadWriter)) error {
	types := []string{trigType, nquadsType}
	if len(members) == 0 {
		types = append(types, turtleType, ntType)
	}
	t, err := q.choose(types...)
	if err != nil {
		return err
	}
	write := func(b *bufio.Writer, some []member) error {
		w := newQuadWriter(b, t)
		if about != nil {
			about(w)
		}
		if path != "" {
			v := q.iri(path)
			w.add("", v, rdfType, treeNodeClass)
			if closed {
				w.add("", v, ldesImmutable, literalTrue)
			}
			leads.write(q, w, v)
		}
		for _, m := range some {
			if err := q.r.Context().Err(); err != nil {
				return err
			}
			if err := q.member(ctx, w, m); err != nil {
				return err
			}
		}
		w.end()
		return nil
	}
	var head bytes.Buffer
	b := bufio.NewWriter(&head)
	if err := write(b, nil); err != nil {
		return err
	}
	b.Flush() // into memory
	tag := []any{pageForm, t, head.String()}
	for _, m := range members {
		tag = append(tag, m.tag())
	}
	cache := cacheForever
	if !closed {
		cache = cacheShort
	}
	format, _ := rdfres.FormatByMediaType(t)
	q.send(reply{contentType: format.ContentType(), cache: cache, etag: etagOf(tag...), write: func(b *bufio.Writer) error { return write(b, members) }})
	return nil
}

// member writes a member: its properties into the default graph, the description into the graph of
// its name.
func (q *request) member(ctx context.Context, w *quadWriter, m member) error {
	id := q.iri(fmt.Sprintf("/member/%d", m.sequence))
	ts, err := q.triples(ctx, m.entity, m.version)
	if err != nil {
		return err
	}
	entity, rewritten := clean(rdfres.NewIRI(m.entity))
	for i, t := range ts {
		s, a := clean(t.S)
		p, b := clean(t.P)
		o, c := clean(t.O)
		if a || b || c {
			ts[i], rewritten = rdfres.Triple{S: s, P: p, O: o}, true
		}
	}
	w.add("", rdfres.NewIRI(q.stream()), treeMember, id)
	kind := asUpdate
	switch m.kind {
	case changetrack.Created:
		kind = asCreate
	case changetrack.Deleted:
		kind = asDelete
	}
	w.add("", id, rdfType, kind)
	w.add("", id, asObject, entity)
	w.add("", id, asPublished, dateTime(m.time))
	w.add("", id, rsbSequence, integer(m.sequence))
	if m.version != nil {
		w.add("", id, rsbGraph, rdfres.NewLiteral(m.version.Graph.String(), "", ""))
	}
	if rewritten {
		w.add("", id, rsbRewritten, literalTrue)
	}
	for _, t := range ts {
		w.add(id, t.S, t.P, t.O)
	}
	w.end()
	return nil
}

// triples reads the description of a version; none for nil.
func (q *request) triples(ctx context.Context, entity string, v *changetrack.Version) ([]rdfres.Triple, error) {
	if v == nil {
		return nil, nil
	}
	blob, err := q.view.Representation(ctx, entity, v.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		err = q.lost(ctx, entity, v.Sequence)
	}
	var data []byte
	if err == nil {
		data, err = blob.Bytes()
	}
	var ts []rdfres.Triple
	if err == nil {
		ts, err = codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
	}
	if err != nil {
		return nil, fmt.Errorf("version %d of %s: %w", v.Sequence, entity, err)
	}
	return ts, nil
}
