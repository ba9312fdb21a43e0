package sparql

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Reading is a way to read whole graphs.
type Reading string

// The ways to read a whole graph. Which is fastest depends on the store.
const (
	ReadGraphStore   Reading = "graph-store"   // GET by the Graph Store Protocol, N-Triples
	ReadConstruct    Reading = "construct"     // CONSTRUCT, N-Triples
	ReadSelectTSV    Reading = "select-tsv"    // SELECT, W3C tab-separated values
	ReadSelectJSON   Reading = "select-json"   // SELECT, JSON results
	ReadSelectXML    Reading = "select-xml"    // SELECT, XML results, of a store without JSON
	ReadSelectBinary Reading = "select-binary" // SELECT, RDF4J's binary results
)

// Selects tells whether a way is a format of a SELECT.
func (r Reading) Selects() bool {
	return r == ReadSelectTSV || r == ReadSelectJSON || r == ReadSelectXML || r == ReadSelectBinary
}

// Capabilities is what a probe found.
type Capabilities struct {
	Product, Version string              // by the Server header; "" when the store does not say
	Readings         []Reading           // that work, fastest first; last what was not tried, which has no Speed
	Speed            map[Reading]float64 // triples per second on the sample
	Sample           int64               // triples of the sample; speeds of small ones mean little
	RowLimit         int64               // silent truncation, configured, advertised or seen; 0: none seen
	BreaksOff        int64               // so many triples came whole in no way: 0 where they did in one
	UnionDefault     bool                // the default graph shows named graphs too
	ValuesLimit      int                 // most IRIs of one VALUES that passed; the probe stops at 5,000
	UpdateTriples    int                 // most triples of one INSERT DATA that passed; the probe stops at 20,000; 0 not probed
	WriteSpeed       map[string]float64  // triples a second: insert-10, insert-100, insert-1000, graph-store; only with ProbeOptions.Speed
	Transactional    bool                // several operations of one request are atomic; false when not probed
	StableLabels     bool                // two answers call a blank node by the same label; false when it could not be seen
	NormalForm       rdfres.NormalForm   // how literals are rewritten; only with ProbeOptions.Write
	Unexplained      []rdfres.Triple     // of the probe, rewritten in a way that no rule explains
	Writable         bool                // a write passed; false when not probed
	WriteError       error               `json:"-"` // why none passed; nil when not probed
	Removed          []string            // scratch graphs that probes which were killed had left
	Left             []string            // those that stay: without ProbeOptions.Write all, else of the last hour
	Failed           map[Reading]error   `json:"-"` // why a way does not work
	Unanswered       []string            // steps that failed as a store does for a while: busy, restarted, cut off. They found nothing
}

// NoReading tells why there is no way to read whole graphs: what each of them failed of,
// or, where the store does not answer any more, that.
func (c *Capabilities) NoReading() error {
	why := errors.New("no way of reading this store works")
	for _, r := range slices.Sorted(maps.Keys(c.Failed)) {
		if err := c.Failed[r]; momentary(err) {
			return fmt.Errorf("read a sample: %w", err)
		}
		why = fmt.Errorf("%w; %s: %w", why, r, c.Failed[r])
	}
	return why
}

// SelectReading is the fastest format of a SELECT that the store has.
func (c *Capabilities) SelectReading() Reading {
	for _, r := range c.Readings {
		if r.Selects() {
			return r
		}
	}
	return ReadSelectJSON
}

// WellSampled tells whether the sample was as large as one may be: what was found
// of a small one is found anew, which costs little.
func (c Capabilities) WellSampled() bool { return FillsSample(c.Sample) }

// FillsSample tells whether so many triples are enough for a sample that is as large as
// one may be.
func FillsSample(triples int64) bool { return triples >= sampleSize }

// ProbeOptions of Probe. Writing goes into a scratch graph only, removed after.
type ProbeOptions struct {
	Write  bool
	Speed  bool     // with Write: also measure how fast it takes what is written
	Graphs []string // that will be read: nil the default graph, "*" all

	// Brief: for work, which does without what people want to know. With Write neither
	// labels nor how many triples an update may hold are looked at, which takes
	// writing some 26,000. Of an RDF4J whose binary results agree with its count, the
	// other ways of reading a large graph are not tried, all of which are slower there.
	Brief bool
}
