package apply

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// content is the part of resources that a mirror keeps: descriptions, as triples, or
// representations, as files.
type content interface {
	// void tells of a record without a part in the mirror. empty is for a body without content.
	void(rec *ledger.Record, empty bool) bool
	// ahead works a batch out while another one, of the locations busy, is being written;
	// nil if that cannot be done.
	ahead(ctx context.Context, ops []*Op, busy func(ledger.Hash) bool) *worked
	// apply is one try of applier.apply.
	apply(ctx context.Context, f *inFlight, ops []*Op, ready *worked, c *Counts, bulk bool, change func(*keep.Meta)) error
	// askAgain makes a record unproven after an interrupted write of its file.
	askAgain(rec *ledger.Record)
	// countFiles counts the files of the destination.
	countFiles(e *ledger.Extent) int64
}

// descriptions are the content of stores, dumps and queues. Resources without RDF are
// counted, and their bytes are kept in a folder beside, if there is one.
type descriptions struct{ ap *Applier }

func (descriptions) void(rec *ledger.Record, _ bool) bool { return rec.Triples == 0 }

func (descriptions) askAgain(rec *ledger.Record) { rec.AskAgain() }

func (descriptions) countFiles(e *ledger.Extent) int64 { return e.Files }
