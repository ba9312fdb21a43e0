package destination

import (
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/obtain"
)

// limits bound what a source can make us do. They are far above what an honest
// source sends, and each has its own message when it is met.
type limits struct {
	obtain.Limits

	retryFirst time.Duration // before a pending resource is tried again; doubles
	retryMax   time.Duration
	failAfter  int // tries after which pending becomes failed
	window     int // changes fetched and applied together
	few        int // triples that go by an update, with the checkpoint, and not by a Graph Store POST
	diffCap    int // triples of one subject held in memory by an audit
}

func defaultLimits() limits {
	return limits{
		Limits:     obtain.Limits{Limits: feed.DefaultLimits(), Triples: 5_000_000},
		retryFirst: 2 * time.Second, retryMax: time.Hour, failAfter: 3,
		window: 2000, few: 500, diffCap: 200_000,
	}
}
