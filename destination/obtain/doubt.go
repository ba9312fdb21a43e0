package obtain

import (
	"context"
	"net/http"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
)

// unpromised tells whether nothing is promised of the bytes of a place.
func unpromised(p item.Place) bool { return p.Promise.Unproven() && p.Promise.Length < 0 }

// answered notes the proof of an answer. The time of a file, the same in the list and from its server, is a
// proof.
func (o *Outcome) answered(a *fetch.Answer, p item.Place) {
	modified, err := http.ParseTime(a.Header.Get("Last-Modified"))
	if !unpromised(p) || err == nil && !o.Item.LastMod.IsZero() && modified.Unix() == o.Item.LastMod.Unix() {
		return
	}
	if o.Unproven = true; p.URL == o.Item.Loc {
		o.ETag = a.Header.Get("ETag")
	}
}

// isStrange tells whether triples have no subject of the recorded description.
func (ob *Obtainer) isStrange(ctx context.Context, rec *ledger.Record, ts []rdfres.Triple) bool {
	loc := ledger.HashOf(rec.Loc)
	old, err := ob.Ledger.Record(ctx, loc)
	if err != nil || old == nil || old.Triples == 0 || old.Graph == rec.Graph || old.Has(ledger.FlagMapped) || len(ts) == 0 {
		return false
	}
	before, err := ob.Ledger.Triples(ctx, loc, old)
	if err != nil {
		return false // told when the batch is worked out
	}
	subjects := map[rdfres.Term]bool{}
	for _, t := range before {
		if t.S.Kind() == rdfres.KindIRI {
			subjects[t.S] = true
		}
	}
	for _, t := range ts {
		if subjects[t.S] {
			return false
		}
	}
	return len(subjects) > 0
}
