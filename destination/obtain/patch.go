package obtain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Update fetches an update: as a patch of the kept version if this is shorter and both ends can
// be verified, else whole. An RDF Patch comes first: it applies to the kept triples. A JSON Patch
// needs a document made of them, and read again.
func (ob *Obtainer) Update(it *item.Item, loc ledger.Hash, rec *ledger.Record) func(context.Context) *Outcome {
	var usable []item.Patch
	for _, p := range it.Patches {
		if fits(&p, it, rec) {
			usable = append(usable, p)
		}
	}
	if len(usable) == 0 {
		return ob.Job(it)
	}
	slices.SortStableFunc(usable, func(a, b item.Patch) int { return rank(&a) - rank(&b) })
	return func(ctx context.Context) *Outcome {
		for i := range usable {
			p := &usable[i]
			o, err := ob.obtainPatched(ctx, it, loc, rec, p)
			if err == nil {
				return o
			}
			if ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
				return &Outcome{Item: it, Err: err}
			}
			ob.Log.Debug("patch could not be used; the whole is fetched", "loc", it.Loc, "patch", p.URL, "error", err)
		}
		return ob.Obtain(ctx, it)
	}
}

// fits tells whether a patch has the kept base and the promised result, and is shorter than the
// whole. A JSON Patch must be at most half of it, for its base is read from the records, written,
// patched and read again.
func fits(p *item.Patch, it *item.Item, rec *ledger.Record) bool {
	if rec.Has(ledger.FlagMapped) || !rec.Has(ledger.FlagWireNames) || rec.Triples == 0 || it.Promise.Graph.IsZero() || it.Promise.Hashes.SHA256 == "" || it.Promise.Length <= p.Promise.Length {
		return false
	}
	if p.Promise.Type == rdfres.RDFPatchType {
		return p.Base == rec.Graph && p.Result == it.Promise.Graph
	}
	return 2*p.Promise.Length <= it.Promise.Length && p.Base.String() == rec.Hashes.SHA256 && p.Result.String() == it.Promise.Hashes.SHA256
}

// rank is lower for a cheaper patch.
func rank(p *item.Patch) int {
	if p.Promise.Type == rdfres.RDFPatchType {
		return 0
	}
	return 1
}

func (ob *Obtainer) obtainPatched(ctx context.Context, it *item.Item, loc ledger.Hash, rec *ledger.Record, p *item.Patch) (*Outcome, error) {
	if err := ob.PlaceAllowed(p.URL); err != nil {
		return nil, err
	}
	before, err := ob.Ledger.Proven(ctx, loc, rec)
	if err != nil {
		return nil, err
	}
	made := func(o *Outcome, err error) (*Outcome, error) {
		if err == nil {
			o.Patched, o.Before = true, before
		}
		return o, err
	}
	var doc []byte
	if p.Promise.Type == item.JSONPatchType {
		if doc, err = codec.Encode(rdfres.JSONLD, rec.Entity, before); err != nil {
			return nil, err
		}
		if rdfres.Digest(sha256.Sum256(doc)) != p.Base {
			return nil, errors.New("the patch applies to other bytes than those that can be made of what is kept")
		}
	}
	a, err := ob.Fetch.Get(ctx, fetch.Request{URL: p.URL, Accept: p.Promise.Type, MaxBytes: ob.Limits.Resource, Attempts: 2, Gzip: p.Promise.Length > 8<<10})
	if err != nil {
		return nil, err
	}
	if err := p.Promise.VerifyAnswer(a); err != nil {
		return nil, fmt.Errorf("%s %w: %w", clip.Middle(p.URL), feed.ErrMismatch, err)
	}
	if doc != nil {
		if doc, err = jsonpatch.Apply(doc, a.Body); err != nil {
			return nil, err
		}
		if err := it.Promise.Verify(doc); err != nil {
			return nil, fmt.Errorf("what the patch makes %w: %w", feed.ErrMismatch, err)
		}
		return made(ob.represent(ctx, it, item.Place{URL: it.Loc, Promise: it.Promise}, doc, fetch.Kind{}))
	}
	after, _, err := rdfres.ApplyPatch(before, a.Body, rdfres.ReadOptions{Name: p.URL, MaxBytes: ob.Limits.Resource})
	if err != nil {
		return nil, err
	}
	// The same checks as of a whole representation, on the lines of the graph.
	return made(ob.represent(ctx, it, item.Place{URL: it.Loc, Promise: fetch.Promise{Type: rdfres.NTriples.MediaType(), Length: -1}}, AppendLines(nil, after), fetch.Kind{}))
}
