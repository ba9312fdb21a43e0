package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// notification is one document for subscribers; without a body there is nothing to tell. At is the
// position after it.
type notification struct {
	body    []byte
	entries int
	at      hub.Position
}

// changesAfter is the Change Notification for a subscriber at a position: as many changes as fit.
// From is the time of the position: consecutive notifications adjoin. After a position outside of
// the log it begins with the first change known.
func (t *topic) changesAfter(ctx context.Context, at hub.Position, dialect string) (*notification, error) {
	st := t.s.Read(ctx)
	if st == nil {
		return &notification{at: at}, nil
	}
	defer st.Close()
	end, _ := st.End()
	if at.Told > end { // the state is older than the position: from a backup
		at = hub.Position{Told: end, Seen: end}
	}
	at.Seen = max(at.Seen, at.Told)
	if at.Seen >= end {
		return &notification{at: at}, nil
	}
	make := func() (*notification, error) {
		doc, err := t.begin(ctx, st, at.Told)
		if err != nil {
			return nil, err
		}
		for e, err := range doc.rest(ctx, max(at.Seen, doc.told)) {
			if err != nil {
				return nil, err
			}
			if !doc.take(e, dialect) {
				break
			}
		}
		return doc.write(dialect)
	}
	if !t.filter.all() {
		return make()
	}
	return t.s.p.bodies.Get(ctx, fmt.Sprintf("%s %d %d %s", t.address(), at.Told, end, dialect), make)
}

// window is the Change Notification at the address of the topic: the last changes.
func (t *topic) window(ctx context.Context) (*notification, error) {
	st := t.s.Read(ctx)
	if st == nil {
		return &notification{}, nil
	}
	defer st.Close()
	end, _ := st.End()
	return t.s.p.bodies.Get(ctx, fmt.Sprintf("%s window %d", t.address(), end), func() (*notification, error) {
		doc, err := t.begin(ctx, st, end-min(end, windowChanges))
		if err != nil {
			return nil, err
		}
		for e, err := range doc.rest(ctx, doc.told) {
			if err != nil {
				return nil, err
			}
			for !doc.take(e, "") {
				doc.dropFirst()
			}
		}
		return doc.write("")
	})
}

// changeDoc is a Change Notification in the making.
type changeDoc struct {
	t           *topic
	st          State
	told, seen  uint64
	from, until time.Time
	kept        []changeEntry
	bytes       int
}

// changeEntry is a change with its rendered entries.
type changeEntry struct {
	changetrack.Change
	rendered []byte
	n        int
	wanted   bool
}

// begin is an empty document after a position.
func (t *topic) begin(ctx context.Context, st State, after uint64) (*changeDoc, error) {
	doc := &changeDoc{t: t, st: st, told: after}
	view := st.View()
	start, startAt := st.Start()
	tail, tailAt := view.Tail()
	switch {
	case after <= max(start, tail) && start >= tail:
		doc.told, doc.from = start, startAt
	case after <= tail:
		doc.told, doc.from = tail, tailAt
	default:
		for c, err := range view.Changes(ctx, after-1) {
			if err != nil {
				return nil, err
			}
			doc.from = c.Time
			break
		}
	}
	doc.seen, doc.until = doc.told, doc.from
	return doc, nil
}

// rest yields the changes after a position with their entries.
func (d *changeDoc) rest(ctx context.Context, after uint64) iter.Seq2[changeEntry, error] {
	return func(yield func(changeEntry, error) bool) {
		end, _ := d.st.End()
		rendered, stop := iter.Pull2(split(d.st.Rendered(ctx, after), after))
		defer stop()
		next, err, more := rendered()
		for c, cerr := range d.st.View().Changes(ctx, after) {
			if err = errors.Join(cerr, err); err != nil {
				yield(changeEntry{}, err)
				return
			}
			if c.Sequence > end {
				return
			}
			e := changeEntry{Change: c}
			for more && next.sequence <= c.Sequence && err == nil {
				e.rendered = append(e.rendered, next.text...)
				e.n++
				next, err, more = rendered()
			}
			if err == nil && e.n > 0 {
				e.wanted, err = d.t.filter.takes(ctx, d.st.View(), &c)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// take adds a change; false if the document is full.
func (d *changeDoc) take(e changeEntry, dialect string) bool {
	if e.wanted && len(d.kept) > 0 && (d.bytes+len(e.rendered) > mostBytes-4096 || len(d.kept)+1 > mostEntries/2) {
		return false
	}
	d.seen, d.until = e.Sequence, e.Time
	if !e.wanted {
		return true
	}
	if dialect == resourcesync.DialectSocket && e.OfFile() { // there lastmod is the time of the change
		e.rendered = lastMod.ReplaceAll(e.rendered, fmt.Appendf(nil, "<lastmod>%s</lastmod>", resourcesync.FormatTime(e.Time)))
	}
	d.kept, d.bytes = append(d.kept, e), d.bytes+len(e.rendered)
	return true
}

var lastMod = regexp.MustCompile(`<lastmod>[^<]*</lastmod>`)

// dropFirst lets the document begin after its first change.
func (d *changeDoc) dropFirst() {
	first := d.kept[0]
	d.told, d.from = first.Sequence, first.Time
	d.kept, d.bytes = d.kept[1:], d.bytes-len(first.rendered)
}

// write gives the document; without changes it has no body, and its position was seen, not told.
func (d *changeDoc) write(dialect string) (*notification, error) {
	n := &notification{at: hub.Position{Told: d.told, Seen: d.seen}}
	if len(d.kept) == 0 {
		if d.t.filter.all() {
			n.at.Told = d.seen
		}
		return n, nil
	}
	n.at.Told = d.seen
	var b bytes.Buffer
	w, err := resourcesync.NewWriter(&b, resourcesync.Head{
		Dialect: dialect,
		Meta: resourcesync.Meta{Capability: resourcesync.ChangeNotification, From: d.from, Until: d.until, Length: -1,
			Ext: map[string]string{resourcesync.ExtSequence: strconv.FormatUint(d.seen, 10)}},
		Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: d.t.s.Address() + "/capabilitylist.xml", Length: -1}},
	})
	if err != nil {
		return nil, err
	}
	for _, e := range d.kept {
		if err := w.WriteRaw(e.rendered, e.n); err != nil {
			return nil, err
		}
		n.entries += e.n
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	n.body = b.Bytes()
	return n, nil
}

// renderedEntry is one url element of the writer.
type renderedEntry struct {
	sequence uint64
	text     []byte
}

var (
	entryEnd   = []byte("</url>\n")
	sequenceOf = []byte(` rsb:` + resourcesync.ExtSequence + `="`) // its quotes are escaped everywhere else
)

// split takes pieces of rendered entries apart, and leaves out those up to a sequence.
func split(pieces iter.Seq2[[]byte, error], after uint64) iter.Seq2[renderedEntry, error] {
	return func(yield func(renderedEntry, error) bool) {
		for piece, err := range pieces {
			if err != nil {
				yield(renderedEntry{}, err)
				return
			}
			for len(piece) > 0 {
				end := bytes.Index(piece, entryEnd) + len(entryEnd)
				if end < len(entryEnd) {
					end = len(piece)
				}
				e := renderedEntry{text: piece[:end]}
				_, digits, _ := bytes.Cut(e.text, sequenceOf)
				digits, _, _ = bytes.Cut(digits, []byte{'"'})
				if e.sequence, err = strconv.ParseUint(string(digits), 10, 64); err != nil {
					yield(e, fmt.Errorf("rendered entry without sequence: %.200q", e.text))
					return
				}
				if e.sequence > after && !yield(e, nil) {
					return
				}
				piece = piece[end:]
			}
		}
	}
}
