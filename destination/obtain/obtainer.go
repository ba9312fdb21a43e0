// Package obtain fetches the resources of a source and verifies them: from their places, as
// patches of the kept version, out of packages, or as they were at a time. An Outcome has what is
// kept of one: triples, or bytes in a mirror of files.
package obtain

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/settings"
)

// Options of New.
type Options struct {
	Fetch     *fetch.Client
	Packages  feed.Packages
	Ledger    *ledger.Ledger // for the kept version, and for what is mirrored already
	Limits    *Limits
	Settings  settings.Names
	Select    Selection
	Linked    []string            // relations from a page to its RDF
	Map       *embedstore.Mapping // nil: none
	AsFiles   bool                // the mirror keeps representations, and no triples
	KeepFiles bool                // the bytes of resources without RDF are kept
	Now       func() time.Time
	Log       *slog.Logger
}

// Limits of one representation.
type Limits struct {
	feed.Limits
	Triples   int64
	BlankWork int // of naming blank nodes, 0: default of rdfres
}

// Obtainer fetches the resources of a source.
type Obtainer struct {
	Options
	bigMu    *sync.Mutex // one big representation at a time
	packages *packageCache
	contexts *fetch.Contexts
	unlisted Unlisted // nil: none
}

// New makes an Obtainer.
func New(o Options) *Obtainer {
	return &Obtainer{Options: o, bigMu: &sync.Mutex{}, packages: &packageCache{}, contexts: fetch.NewContexts(o.Fetch)}
}

// Settle ends a run: packages and contexts of it are forgotten.
func (ob *Obtainer) Settle() {
	ob.packages.close()
	ob.contexts.Forget()
}

// Job obtains a resource as its item tells.
func (ob *Obtainer) Job(it *item.Item) func(context.Context) *Outcome {
	switch {
	case it.Change == "deleted" && it.Bad == "": // there is nothing to fetch, also when the mirror has refused it before
		return func(context.Context) *Outcome { return &Outcome{Item: it} }
	case !it.AsOf.IsZero():
		return func(ctx context.Context) *Outcome { return ob.obtainAsOf(ctx, it) }
	}
	return func(ctx context.Context) *Outcome { return ob.beside(ctx, ob.Obtain(ctx, it)) }
}

// Needed tells whether the bytes of a resource would be fetched.
func (ob *Obtainer) Needed(it *item.Item) bool {
	return !ob.Select.Outside(it) && (ob.KeepFiles || !ob.passedOver(it))
}
