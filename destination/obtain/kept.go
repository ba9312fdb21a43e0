package obtain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// What is kept of a verified body: the triples of its description, or, in a mirror of files, its bytes.

func (ob *Obtainer) representDescription(ctx context.Context, it *item.Item, p item.Place, body []byte, kind fetch.Kind) (*Outcome, error) {
	o, err := ob.representRDF(ctx, it, p, body, kind)
	if err == nil {
		err = ob.mapped(context.Background(), o)
	}
	if err != nil {
		return nil, err
	}
	if o.Record.Has(ledger.FlagNotRDF) {
		ob.otherwise(o, sha256.Sum256(body), body)
	}
	return o, nil
}

func (ob *Obtainer) representFile(ctx context.Context, it *item.Item, p item.Place, body []byte, kind fetch.Kind) (*Outcome, error) {
	o, err := ob.representRDF(ctx, it, p, body, kind)
	if err != nil {
		if !errors.Is(err, ErrContent) || errors.Is(err, ErrList) || !it.Promise.Graph.IsZero() {
			return nil, err
		}
		// The bytes are the promised ones, whatever they are.
		rec := it.Record()
		rec.Flags |= ledger.FlagNotRDF
		o = &Outcome{Item: it, Record: rec, NotRDF: true, Bare: true}
	}
	o.Empty = o.Empty || isBlank(body)
	o.Wire, o.Parsed, o.Record.Triples = nil, nil, 0
	if o.Record.Has(ledger.FlagNotRDF) {
		ob.inPart(o)
	}
	if o.Record.Has(ledger.FlagUnselected) {
		return o, nil
	}
	if h := o.Record.Hashes; h.SHA256 == "" && h.SHA1 == "" && h.MD5 == "" {
		o.Record.Hashes = resourcesync.HashesOf(body, h)
	}
	o.Raw, o.Record.Normal = body, sha256.Sum256(body)
	if o.Record.Has(ledger.FlagNotRDF) {
		o.Record.Graph = o.Record.Normal // bytes are compared as graphs are
	}
	return o, nil
}

// otherwise completes what is recorded of a resource that is no RDF: sum is the
// SHA-256 of its bytes, body nil where they were not fetched.
func (ob *Obtainer) otherwise(o *Outcome, sum rdfres.Digest, body []byte) {
	if !ob.inPart(o) {
		return
	}
	o.Record.Graph = sum // so that its bytes are compared where graphs are
	if ob.KeepFiles {
		o.Raw = body
	}
}

// inPart leaves non-RDF resources outside of the part out.
func (ob *Obtainer) inPart(o *Outcome) bool {
	if ob.Select.SelectedOther(o.Record) {
		return true
	}
	o.Record.Flags = o.Record.Flags&^ledger.FlagNotRDF | ledger.FlagUnselected
	o.NotRDF = false
	return false
}

// left is the outcome of an outside resource. Its promises stand for it.
func (ob *Obtainer) left(it *item.Item) *Outcome {
	rec := it.Record()
	rec.Flags |= ledger.FlagUnselected
	if rec.Graph = it.Promise.Graph; !rec.Graph.IsZero() {
		rec.Flags |= ledger.FlagWireNames
	}
	return &Outcome{Item: it, Record: rec}
}

// With map each description is verified as ever, goes through a CONSTRUCT, and
// what that makes is stored. The record keeps the digest of the source's graph, by
// which lists and inventories are compared, and that of what was made of it, by
// which the kept representation is proven. Blank nodes of the result are named by
// what they are and where they come from, so that they stay while it stays.

// mapped puts a representation through the map.
func (ob *Obtainer) mapped(ctx context.Context, o *Outcome) error {
	if ob.Map == nil || o.Record.Triples == 0 || o.Record.Has(ledger.FlagUnselected) {
		return nil
	}
	ts, err := o.Triples()
	if err != nil {
		return err
	}
	made, noValue, err := ob.Map.Apply(ctx, o.Record.Entity, ts)
	if err == nil {
		made, _, err = rdfres.NameBlanks(made, rdfres.NameOptions{Scope: o.Item.Loc, WorkLimit: ob.Limits.BlankWork})
	}
	if err == nil {
		err = sink.CheckTriples(made)
	}
	if err != nil {
		return fmt.Errorf("%s %w: map: %w", clip.Middle(o.Item.Loc), ErrContent, err)
	}
	if int64(len(made)) > ob.Limits.Triples {
		return fmt.Errorf("%s %w: map makes %d triples, at most %d are taken (%s)", clip.Middle(o.Item.Loc), ErrContent, len(made), ob.Limits.Triples, ob.Settings.Of("max_resource_triples"))
	}
	o.Wire, o.Parsed, o.NoValue = AppendLines(nil, made), made, noValue
	o.Record.Triples = int64(len(made))
	o.Record.Flags |= ledger.FlagMapped
	o.Record.Made = rdfres.GraphDigest(made)
	return nil
}
