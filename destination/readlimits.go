package destination

import "github.com/rsbridge/rsbridge/destination/fetch"

// readLimits bound the documents of a source. An honest source stays far below them.
type readLimits struct {
	fetch.Limits // of every request

	document  int64 // bytes of one list, unpacked
	resource  int64 // bytes of one representation, unpacked
	pkg       int64 // bytes of one package
	entries   int64 // of one document
	parts     int   // of one index
	depth     int   // of nested indexes
	sets      int   // offered by one source
	keptItems int   // changes of a list that are kept from the first pass over it; of more there is a second one
	named     int   // problems and differences named in a report
}

// defaultReadLimits are those of a source without settings.
func defaultReadLimits() readLimits {
	return readLimits{Limits: fetch.DefaultLimits(), document: 2 << 30, resource: 256 << 20, pkg: 64 << 30,
		entries: 50_000_000, parts: 50_000, depth: 3, sets: 10_000, keptItems: 10_000, named: 100}
}
