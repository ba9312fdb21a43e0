package faces

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const (
	iiifContext = "http://iiif.io/api/discovery/1/context.json"
	iiifType    = `application/ld+json;profile="` + iiifContext + `"`
	iiifClass   = "http://iiif.io/api/presentation/" // begins the classes of Presentation API resources
)

// link is a reference to a collection or a page of it.
type link struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// activityCollection and activityPage are the documents of the API; activity and its object are
// their items (IIIF Change Discovery 1.0, section 3).
type activityCollection struct {
	Context string `json:"@context"`
	link
	Summary string `json:"summary,omitempty"`
	First   *link  `json:"first,omitempty"`
	Last    *link  `json:"last"`
}

type activityPage struct {
	Context string `json:"@context"`
	link
	PartOf link       `json:"partOf"`
	Prev   *link      `json:"prev,omitempty"`
	Next   *link      `json:"next,omitempty"`
	Items  []activity `json:"orderedItems"`
}

type activity struct {
	Type      string          `json:"type"`
	Summary   string          `json:"summary,omitempty"`
	Object    *activityObject `json:"object,omitempty"`
	StartTime string          `json:"startTime,omitempty"`
	EndTime   string          `json:"endTime,omitempty"`
}

type activityObject struct {
	link
	Canonical string     `json:"canonical,omitempty"`
	SeeAlso   []document `json:"seeAlso,omitempty"`
}

type document struct {
	link
	Format string `json:"format"`
}

func (q *request) collection() link {
	return link{q.base + "/activity", "OrderedCollection"}
}

func (q *request) activityLink(path string) *link {
	return &link{q.base + "/activity/" + path, "OrderedCollectionPage"}
}

// pages are the existing pages, in the order of time. If the log no longer begins with the first
// change, pages of the state at a sequence come first. Blocks of the log follow.
type pages struct {
	begin       uint64 // the log has the changes after it
	at          uint64 // the pages of the log follow after this
	leaves      int    // pages of the state at it; 0: the log has everything
	depth       int    // of the leaves
	first, last uint64 // blocks; last < first: none
}

// leaf is one of the pages of the state.
func (p pages) leaf(i int) basePage {
	b := basePage{at: p.at, depth: p.depth}
	if p.depth > 0 {
		b.prefix = fmt.Sprintf("%0*b", p.depth, i)
	}
	return b
}

func pageName(block uint64) string   { return "page/" + strconv.FormatUint(block, 10) }
func baseName(b basePage) string     { return "base/" + b.name() }
func blockOf(sequence uint64) uint64 { return (sequence - 1) / pageSpan }

func (q *request) activityPages(ctx context.Context) (p pages, err error) {
	begin, err := q.begin(ctx)
	if err != nil {
		return p, err
	}
	head, _ := q.view.Head()
	p.begin = begin
	if p.at, err = q.baseAt(ctx, begin); err != nil {
		return p, err
	}
	p.first = p.at / pageSpan
	if p.at > 0 {
		p.depth = depthFor(q.view.Resources())
		p.leaves = 1 << p.depth
	}
	p.last = p.first
	if head > p.at {
		for p.last = blockOf(head); p.last > p.first; p.last-- { // a block may hold nothing but a move
			items, err := q.blockMembers(ctx, p.last, p.at)
			if err != nil {
				return p, err
			}
			if len(items) > 0 {
				break
			}
		}
		if p.last == p.first {
			items, err := q.blockMembers(ctx, p.first, p.at)
			if err != nil {
				return p, err
			}
			if len(items) > 0 {
				return p, nil
			}
		} else {
			return p, nil
		}
	}
	p.first++ // none
	return p, nil
}

// blockMembers are the changes of a block after a sequence.
func (q *request) blockMembers(ctx context.Context, block, after uint64) (out []changetrack.Change, err error) {
	for c, err := range q.view.Changes(ctx, max(after, block*pageSpan)) {
		if err != nil {
			return nil, err
		}
		if c.Sequence > (block+1)*pageSpan {
			break
		}
		if c.Entity != "" {
			out = append(out, c)
		}
	}
	return out, nil
}

// iiif answers below /SET/activity.
func (q *request) iiif(ctx context.Context, path string) error {
	if err := q.ready(); err != nil {
		return err
	}
	p, err := q.activityPages(ctx)
	if err != nil {
		return err
	}
	switch {
	case path == "" || path == "/":
		c := activityCollection{Context: iiifContext, link: q.collection(), Summary: q.Title}
		if p.leaves > 0 {
			c.First = q.activityLink(baseName(p.leaf(0)))
			c.Last = q.activityLink(baseName(p.leaf(p.leaves - 1)))
		}
		if p.first <= p.last {
			if c.First == nil {
				c.First = q.activityLink(pageName(p.first))
			}
			c.Last = q.activityLink(pageName(p.last))
		}
		if c.Last == nil {
			return notFound("The set %s has had no change yet.", q.Name)
		}
		return q.sendJSON(c)
	case strings.HasPrefix(path, "/page/"):
		n, err := strconv.ParseUint(path[6:], 10, 56)
		if err != nil || strconv.FormatUint(n, 10) != path[6:] {
			break
		}
		if n < p.begin/pageSpan {
			return q.goneActivity()
		}
		if n <= p.last {
			return q.activityBlock(ctx, p, n)
		}
	case strings.HasPrefix(path, "/base/"):
		b, ok := parseBase(path[6:])
		if !ok || !b.leaf() || p.leaves == 0 {
			break
		}
		if b.at < p.begin || b.depth < p.depth-2 {
			return q.goneActivity()
		}
		if head, _ := q.view.Head(); b.at > head || b.depth > p.depth+2 {
			break
		}
		if b.at != p.at || b.depth != p.depth { // a client with an older state goes on in that state
			p.at, p.depth, p.leaves, p.first = b.at, b.depth, 1<<b.depth, b.at/pageSpan
		}
		i, err := strconv.ParseUint("0"+b.prefix, 2, mostBits+1)
		if err != nil {
			return err
		}
		return q.activityBase(ctx, p, int(i))
	}
	return notFound("There is no page of activities at this address.").hint("They begin at %s.", q.collection().ID)
}

func (q *request) goneActivity() error {
	return gone("The activities of this page are no longer kept.").hint("What is kept is listed at %s.", q.collection().ID)
}

func (q *request) page(name string) activityPage {
	return activityPage{Context: iiifContext, link: *q.activityLink(name), PartOf: q.collection()}
}

func (q *request) activityBlock(ctx context.Context, p pages, n uint64) error {
	doc := q.page(pageName(n))
	switch {
	case n > p.first, n < p.first && n > p.begin/pageSpan: // n < p.first: a client of an older state
		doc.Prev = q.activityLink(pageName(n - 1))
	case p.leaves > 0:
		doc.Prev = q.activityLink(baseName(p.leaf(p.leaves - 1)))
	}
	if n < p.last {
		doc.Next = q.activityLink(pageName(n + 1))
	}
	after := p.at
	if n < p.first {
		after = p.begin
	}
	changes, err := q.blockMembers(ctx, n, after)
	if err != nil {
		return err
	}
	doc.Items = []activity{}
	for _, c := range changes {
		kind, v := "Update", c.After
		switch c.Kind {
		case changetrack.Created:
			kind = "Create"
		case changetrack.Deleted:
			kind, v = "Delete", c.Before
		}
		o, err := q.activityObject(ctx, c.Entity, v, c.Kind != changetrack.Deleted)
		if err != nil {
			return err
		}
		doc.Items = append(doc.Items, activity{Type: kind, Object: o, EndTime: c.Time.UTC().Format(microTime)})
	}
	return q.sendJSON(doc)
}

// activityBase answers with a part of the state before the present log: the refresh repeating it
// all.
func (q *request) activityBase(ctx context.Context, p pages, i int) error {
	doc := q.page(baseName(p.leaf(i)))
	if i > 0 {
		doc.Prev = q.activityLink(baseName(p.leaf(i - 1)))
	}
	switch {
	case i+1 < p.leaves:
		doc.Next = q.activityLink(baseName(p.leaf(i + 1)))
	case p.first <= p.last:
		doc.Next = q.activityLink(pageName(p.first))
	}
	t, err := q.timeOf(ctx, p.at)
	if err != nil {
		return err
	}
	at := t.UTC().Format(microTime)
	doc.Items = []activity{}
	if i == 0 {
		doc.Items = append(doc.Items, activity{Type: "Refresh", StartTime: at, Summary: "The log begins here; what was there then follows."})
	}
	lo, hi := p.leaf(i).keys()
	for st, err := range q.view.Known(ctx, lo, hi) {
		if err == nil {
			err = q.r.Context().Err()
		}
		if err != nil {
			return err
		}
		m, err := q.memberAt(ctx, st, p.at)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		o, err := q.activityObject(ctx, m.entity, m.version, true)
		if err != nil {
			return err
		}
		doc.Items = append(doc.Items, activity{Type: "Update", Object: o, EndTime: at})
	}
	return q.sendJSON(doc)
}

// activityObject is an entity as the object of an activity.
func (q *request) activityObject(ctx context.Context, entity string, v *changetrack.Version, there bool) (*activityObject, error) {
	o := &activityObject{link: link{entity, "Document"}}
	location := ""
	if q.Location != nil {
		var err error
		if location, err = q.Location(ctx, entity); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(entity, "http://") && !strings.HasPrefix(entity, "https://") && location != "" {
		o.ID, o.Canonical = location, identifierOf(entity)
	}
	if there && location != "" && v != nil {
		o.SeeAlso = []document{{link{location, "Dataset"}, v.Format.MediaType()}}
	}
	if v != nil {
		if class := q.iiifClassOf(ctx, entity, v); class != "" {
			o.Type = class
		}
	}
	return o, nil
}

// iiifClassOf is the entity's class of the Presentation API in a description, "" for none; also if
// the version is no longer kept.
func (q *request) iiifClassOf(ctx context.Context, entity string, v *changetrack.Version) string {
	blob, err := q.view.Representation(ctx, entity, v.Sequence)
	if err != nil {
		return ""
	}
	data, err := blob.Bytes()
	if err != nil || !bytes.Contains(data, []byte(iiifClass)) {
		return ""
	}
	ts, err := codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
	if err != nil {
		return ""
	}
	for _, t := range ts {
		if t.P == rdfType && t.S == rdfres.NewIRI(entity) {
			if rest, ok := strings.CutPrefix(t.O.IRI(), iiifClass); ok {
				if _, class, ok := strings.Cut(rest, "#"); ok && (class == "Manifest" || class == "Collection" || class == "Canvas" || class == "Range") {
					return class
				}
			}
		}
	}
	return ""
}

func (q *request) sendJSON(doc any) error {
	t, err := q.choose("application/ld+json", "application/json")
	if err != nil {
		return err
	}
	if t == "application/ld+json" {
		t = iiifType
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("activities: %w", err)
	}
	q.sendBytes(t, buf.Bytes())
	return nil
}
