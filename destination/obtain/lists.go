package obtain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// An entry may lead to a further list in any form: text, a feed, a page of links, a packed table. No form
// is recognized, since there is no end of them. Only the harm is looked for: resources have lost their
// entries, their addresses answer no 404 or 410, and an entry without RDF is new.

// ErrMaybeList marks a new entry without RDF, which may lead to a list.
var ErrMaybeList = fmt.Errorf("may lead to a further list, %w", ErrList)

// Beside gives an Obtainer that fails with ErrMaybeList for a new entry without RDF, while a resource
// without an entry lives.
func (ob *Obtainer) Beside(u Unlisted) *Obtainer {
	c := *ob
	c.unlisted = u
	return &c
}

// MayBeList tells whether an entry without RDF may have become a list since it was recorded.
func (ob *Obtainer) MayBeList(it *item.Item) bool {
	return ob.unlisted != nil && !ob.passedOver(it)
}

// HoldsAddresses tells whether a body of a type may be a list.
func HoldsAddresses(mediaType string) bool {
	switch major, sub, _ := strings.Cut(mediaType, "/"); major {
	case "image", "audio", "video", "font", "model":
		return false
	default:
		return sub != "css" && sub != "pdf" && !(major == "application" && isOfficeType(sub))
	}
}

// Suspect tells of a new entry that brings no RDF, and may lead to a list.
func (ob *Obtainer) Suspect(ctx context.Context, o *Outcome) bool {
	loc := ledger.HashOf(o.Item.Loc)
	switch {
	case o.Item.File || !HoldsAddresses(o.Item.Promise.Type):
		return false
	case o.Err != nil:
		if !errors.Is(o.Err, ErrContent) || errors.Is(o.Err, ErrList) {
			return false
		}
		f, err := ob.Ledger.Fault(ctx, loc) // a fault of before is not new
		return err == nil && (f == nil || f.List || f.Unseen)
	case !o.Bare:
		return false
	}
	if ob.isNew(ctx, o.Record) {
		return true
	}
	f, err := ob.Ledger.Fault(ctx, loc)
	return err == nil && f != nil && f.List
}

// isNew tells of an entry with another record, or none.
func (ob *Obtainer) isNew(ctx context.Context, rec *ledger.Record) bool {
	old, err := ob.Ledger.Record(ctx, ledger.HashOf(rec.Loc))
	return err != nil || old == nil || old.Graph != rec.Graph && !old.Graph.IsZero() // zero: never fetched
}

// MaybeList is the outcome of a suspect, beside a living resource without an entry.
func MaybeList(o *Outcome, living string) *Outcome {
	what := o.Err
	if what == nil {
		what = fmt.Errorf("%s %w: it brings no RDF", clip.Middle(o.Item.Loc), ErrContent)
	}
	return &Outcome{Item: o.Item, Err: fmt.Errorf("%w; %s, so it %w", what, living, ErrMaybeList)}
}

// beside makes a suspect an ErrMaybeList, if something without an entry lives.
func (ob *Obtainer) beside(ctx context.Context, o *Outcome) *Outcome {
	if ob.unlisted == nil || ctx.Err() != nil || !ob.Suspect(ctx, o) {
		return o
	}
	switch one, err := ob.unlisted.One(ctx); {
	case err != nil:
		return &Outcome{Item: o.Item, Err: err}
	case one != "":
		return MaybeList(o, one)
	}
	return o
}

var rdfType = rdfres.NewIRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

// IsBare tells RDF without a subject of its own, and the feeds of RSS 0.9 to 1.1.
func IsBare(ts []rdfres.Triple) bool {
	bare := true
	for _, t := range ts {
		bare = bare && t.S.Kind() != rdfres.KindIRI
		if t.P != rdfType || t.O.Kind() != rdfres.KindIRI {
			continue
		}
		class := t.O.IRI()
		switch strings.ToLower(class[strings.LastIndexAny(class, "/#")+1:]) {
		case "channel", "item":
			return true
		}
	}
	return bare
}

// isMedium tells pictures, sounds and the like by their bytes: they hold no list.
func isMedium(body []byte) bool {
	t := http.DetectContentType(body)
	return !HoldsAddresses(t)
}
