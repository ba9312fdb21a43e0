package destination

import (
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	feed.Limits

	triples    int64         // of one representation
	retryFirst time.Duration // before a pending resource is tried again; doubles
	retryMax   time.Duration
	failAfter  int // tries after which pending becomes failed
	window     int // changes fetched and applied together
	few        int // triples that go by an update, with the checkpoint, and not by a Graph Store POST
	blankWork  int // work limit of blank-node naming, 0: default of rdfres
	diffCap    int // triples of one subject held in memory by an audit
}

func defaultLimits() limits {
	return limits{
		Limits:     feed.DefaultLimits(),
		triples:    5_000_000,
		retryFirst: 2 * time.Second, retryMax: time.Hour, failAfter: 3,
		window: 2000, few: 500, diffCap: 200_000,
	}
}
