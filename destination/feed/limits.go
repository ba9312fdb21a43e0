package feed

import "github.com/rsbridge/rsbridge/destination/fetch"

// Limits bound the documents of a source. An honest source stays far below them.
type Limits struct {
	fetch.Limits // of every request

	Document  int64 // bytes of one list, unpacked
	Resource  int64 // bytes of one representation, unpacked
	Package   int64 // bytes of one package
	entries   int64 // of one document
	Parts     int   // of one index
	depth     int   // of nested indexes
	Sets      int   // offered by one source
	KeptItems int   // changes of a list kept from the first pass over it; more need a second pass
	Named     int   // problems and differences named in a report
}

// DefaultLimits are those of a source without settings.
func DefaultLimits() Limits {
	return Limits{Limits: fetch.DefaultLimits(), Document: 2 << 30, Resource: 256 << 20, Package: 64 << 30,
		entries: 50_000_000, Parts: 50_000, depth: 3, Sets: 10_000, KeptItems: 10_000, Named: 100}
}
