package obtain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// fetchGraph fetches a description; of what is no RDF it gives the digest of the bytes.
func (ob *Obtainer) fetchGraph(ctx context.Context, address string, normal rdfres.NormalForm) (ts []rdfres.Triple, other rdfres.Digest, err error) {
	p := item.Place{URL: address, Promise: fetch.Promise{Length: -1}}
	a, err := ob.Fetch.Get(ctx, fetch.Request{URL: address, Accept: acceptRDF, Gzip: true, MaxBytes: ob.Limits.Resource, Attempts: 3})
	if err != nil {
		return nil, other, err
	}
	ts, ok, err := ob.readRDF(ctx, p, address, a.Body, a.Kind())
	if !ok {
		return nil, sha256.Sum256(a.Body), nil
	}
	if err != nil {
		return nil, other, fmt.Errorf("%s: %w", clip.Middle(address), err)
	}
	for i := range ts { // what a store between them keeps otherwise is no difference of content
		ts[i] = normal.Triple(ts[i])
	}
	return ts, other, nil
}

// plainDigest is that of a graph with blank nodes named by what they are and nothing
// else, so that two places can be compared.
func (ob *Obtainer) plainDigest(ts []rdfres.Triple) (rdfres.Digest, error) {
	ts, _, err := rdfres.NameBlanks(rdfres.SortUnique(ts), rdfres.NameOptions{WorkLimit: ob.Limits.BlankWork})
	return rdfres.GraphDigest(rdfres.SortUnique(ts)), err
}

// FirstSource compares what the source gives with what its origin gives: the same graph,
// or one of several entities with the same description of this one. why is "" where that
// is so.
func (ob *Obtainer) FirstSource(ctx context.Context, rec *ledger.Record, normal rdfres.NormalForm) (why string, err error) {
	ts, other, err := ob.fetchGraph(ctx, rec.Loc, normal)
	if err != nil {
		return "", err
	}
	here, err := ob.plainDigest(ts)
	if err != nil {
		return "", fmt.Errorf("%s: %w", clip.Middle(rec.Loc), err)
	}
	first, otherFirst, err := ob.fetchGraph(ctx, rec.Via, normal)
	whole, wholeErr := ob.plainDigest(first)
	own, ownErr := ob.plainDigest(rdfres.NewGraph(first).CBD(rdfres.NewIRI(rec.Entity)))
	if err = errors.Join(err, wholeErr, ownErr); err != nil {
		return fmt.Sprintf("at its first source, %s: %v", clip.Middle(rec.Via), err), ctx.Err()
	}
	if other != otherFirst || here != whole && here != own {
		return fmt.Sprintf("its first source, %s, gives another graph", clip.Middle(rec.Via)), nil
	}
	return "", nil
}
