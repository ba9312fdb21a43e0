package destination

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// updateJob fetches an update: as a patch of the kept version if this is shorter and both ends can
// be verified, else whole. An RDF Patch comes first: it applies to the kept triples. A JSON Patch
// needs a document made of them, and read again.
func (d *Destination) updateJob(it *feed.Item, loc ledger.Hash, rec *ledger.Record) job {
	var usable []feed.PatchOffer
	for _, p := range it.Patches {
		if fits(&p, it, rec) {
			usable = append(usable, p)
		}
	}
	if len(usable) == 0 {
		return d.fetchJob(it)
	}
	slices.SortStableFunc(usable, func(a, b feed.PatchOffer) int { return rank(&a) - rank(&b) })
	return func(ctx context.Context) *outcome {
		for i := range usable {
			p := &usable[i]
			o, err := d.obtainPatched(ctx, it, loc, rec, p)
			if err == nil {
				return o
			}
			if ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
				return &outcome{it: it, err: err}
			}
			d.log.Debug("patch could not be used; the whole is fetched", "loc", it.Loc, "patch", p.URL, "error", err)
		}
		return d.obtain(ctx, it)
	}
}

// fits tells whether a patch has the kept base and the promised result, and is shorter than the
// whole. A JSON Patch must be at most half of it, for its base is read from the records, written,
// patched and read again.
func fits(p *feed.PatchOffer, it *feed.Item, rec *ledger.Record) bool {
	if rec.Has(ledger.FlagMapped) || !rec.Has(ledger.FlagWireNames) || rec.Triples == 0 || it.Promise.Graph.IsZero() || it.Promise.Hashes.SHA256 == "" || it.Promise.Length <= p.Promise.Length {
		return false
	}
	if p.Promise.Type == rdfres.RDFPatchType {
		return p.Base == rec.Graph && p.Result == it.Promise.Graph
	}
	return 2*p.Promise.Length <= it.Promise.Length && p.Base.String() == rec.Hashes.SHA256 && p.Result.String() == it.Promise.Hashes.SHA256
}

// rank is lower for a cheaper patch.
func rank(p *feed.PatchOffer) int {
	if p.Promise.Type == rdfres.RDFPatchType {
		return 0
	}
	return 1
}

func (d *Destination) obtainPatched(ctx context.Context, it *feed.Item, loc ledger.Hash, rec *ledger.Record, p *feed.PatchOffer) (*outcome, error) {
	if err := d.placeAllowed(p.URL); err != nil {
		return nil, err
	}
	before, err := d.led.Proven(ctx, loc, rec)
	if err != nil {
		return nil, err
	}
	made := func(o *outcome, err error) (*outcome, error) {
		if err == nil {
			o.patched, o.before = true, before
		}
		return o, err
	}
	var doc []byte
	if p.Promise.Type == feed.JSONPatchType {
		if doc, err = codec.Encode(rdfres.JSONLD, rec.Entity, before); err != nil {
			return nil, err
		}
		if rdfres.Digest(sha256.Sum256(doc)) != p.Base {
			return nil, errors.New("the patch applies to other bytes than those that can be made of what is kept")
		}
	}
	a, err := d.fetch.Get(ctx, fetch.Request{URL: p.URL, Accept: p.Promise.Type, MaxBytes: d.lim.Resource, Attempts: 2, Gzip: p.Promise.Length > 8<<10})
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
		return made(d.represent(ctx, it, feed.Place{URL: it.Loc, Promise: it.Promise}, doc, fetch.Kind{}))
	}
	after, _, err := rdfres.ApplyPatch(before, a.Body, rdfres.ReadOptions{Name: p.URL, MaxBytes: d.lim.Resource})
	if err != nil {
		return nil, err
	}
	// The same checks as of a whole representation, on the lines of the graph.
	return made(d.represent(ctx, it, feed.Place{URL: it.Loc, Promise: fetch.Promise{Type: rdfres.NTriples.MediaType(), Length: -1}}, appendLines(nil, after), fetch.Kind{}))
}
