package destination

import (
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
)

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	fetch.Limits // of every request

	document   int64         // bytes of one list, unpacked
	resource   int64         // bytes of one representation, unpacked
	pkg        int64         // bytes of one package
	triples    int64         // of one representation
	entries    int64         // of one document
	parts      int           // of one index
	depth      int           // of nested indexes
	sets       int           // offered by one source
	retryFirst time.Duration // before a pending resource is tried again; doubles
	retryMax   time.Duration
	failAfter  int // tries after which pending becomes failed
	window     int // changes fetched and applied together
	keptItems  int // changes of a list that are kept from the first pass over it; of more there is a second one
	few        int // triples that go by an update, with the checkpoint, and not by a Graph Store POST
	blankWork  int // work limit of blank-node naming, 0: default of rdfres
	diffCap    int // triples of one subject held in memory by an audit
	named      int // problems and differences named in a report
}

func defaultLimits() limits {
	return limits{
		document: 2 << 30, resource: 256 << 20, pkg: 64 << 30,
		triples: 5_000_000, entries: 50_000_000, parts: 50_000, depth: 3, sets: 10_000,
		Limits:     fetch.DefaultLimits(),
		retryFirst: 2 * time.Second, retryMax: time.Hour, failAfter: 3,
		window: 2000, keptItems: 10_000, few: 500, diffCap: 200_000, named: 100,
	}
}
