package destination

import "time"

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	document   int64         // bytes of one list, unpacked
	resource   int64         // bytes of one representation, unpacked
	pkg        int64         // bytes of one package
	page       int64         // bytes of a page, robots.txt or other document read whole
	triples    int64         // of one representation
	entries    int64         // of one document
	parts      int           // of one index
	depth      int           // of nested indexes
	sets       int           // offered by one source
	redirects  int           // in a row
	idle       time.Duration // without a byte
	slowAfter  time.Duration // after this a body must have come at slowRate
	slowRate   int64         // bytes a second
	header     time.Duration // until the first byte of an answer
	attempts   int           // of one request
	pause      time.Duration // after the first failed attempt; doubles
	pauseMax   time.Duration
	dead       int           // failed requests in a row after which the source counts as gone
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
		document: 2 << 30, resource: 256 << 20, pkg: 64 << 30, page: 4 << 20,
		triples: 5_000_000, entries: 50_000_000, parts: 50_000, depth: 3, sets: 10_000, redirects: 5,
		idle: 60 * time.Second, slowAfter: 2 * time.Minute, slowRate: 64, header: 2 * time.Minute,
		attempts: 5, pause: 250 * time.Millisecond, pauseMax: 30 * time.Second, dead: 40,
		retryFirst: 2 * time.Second, retryMax: time.Hour, failAfter: 3,
		window: 2000, keptItems: 10_000, few: 500, diffCap: 200_000, named: 100,
	}
}
