// Package publish turns the change log into ResourceSync documents, dumps,
// patches and notifications, and serves them.
package publish

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// SetConfig is what the documents of a set need to know.
type SetConfig struct {
	Name                        string
	Title, Description, Licence string
	Log                         *changetrack.Log
	Format                      rdfres.Format   // main representation
	Prefix                      string          // removed from entity IRIs in addresses
	Capabilities                []string        // resourcelist, changelist, resourcedump, changedump; nil: the first three
	Rotate                      time.Duration   // of Change Lists; default 24h
	RotateEntries               int             // default 10000
	PartEntries                 int             // Resource List part; default 10000
	PackageBytes                int64           // dump package; default 64 MiB packed
	Coverage                    func() Coverage // for the description of the set; may be nil
}

// Coverage is what a scan said of completeness.
type Coverage struct{ Triples, Covered int64 }

// Options of Open.
type Options struct {
	BaseURL string // scheme://host[:port][/path], no trailing slash
	Dir     string // published files (dumps, closed lists)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Publisher publishes all sets of one base URL.
type Publisher struct{}

// Open makes again what a crash left unfinished.
func Open(ctx context.Context, store kv.Store, sets []SetConfig, o Options) (*Publisher, error) {
	panic("stub")
}
func (p *Publisher) Close() error { panic("stub") }

// Publish makes what the log holds now visible: a new generation. It costs what the changes since the last one cost.
func (p *Publisher) Publish(ctx context.Context, set string) (Generation, error) { panic("stub") }

// Dump makes a new Resource Dump of the published state.
func (p *Publisher) Dump(ctx context.Context, set string) error { panic("stub") }

// Retain drops closed lists and files that the retention has passed.
func (p *Publisher) Retain(ctx context.Context, set string) error { panic("stub") }

// Generation is a numbered publication.
type Generation struct {
	Number   uint64
	Sequence uint64
	At       time.Time
}

// Generation returns the current publication of a set.
func (p *Publisher) Generation(set string) (Generation, bool) { panic("stub") }

// Handler serves the public addresses (contract): well-known, /SET/..., the page for people. It routes on the escaped path.
func (p *Publisher) Handler() http.Handler { panic("stub") }

// EncodeName and DecodeName are NAME of an address (house, decision 7). The escape character is '~' followed by two hex digits.
func EncodeName(entity, prefix string) string                   { panic("stub") }
func DecodeName(name, prefix string) (entity string, err error) { panic("stub") } // ErrHashedName when the state must map it back
// CheckSetName refuses names that collide with routes.
func CheckSetName(name string) error { panic("stub") }

// Location is the address of an entity's main representation.
func (p *Publisher) Location(set, entity string) (string, error) { panic("stub") }
