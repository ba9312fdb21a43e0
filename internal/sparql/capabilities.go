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

// The ways to read a whole graph. The fastest depends on the store.
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

// Capabilities is the result of a probe.
type Capabilities struct {
	Product, Version string              // by the Server header; "" when the store does not say
	Readings         []Reading           // working ones, fastest first; untried ones last, without Speed
	Speed            map[Reading]float64 // triples per second on the sample
	Sample           int64               // triples of the sample; speeds of small ones mean little
	RowLimit         int64               // silent truncation, configured, advertised or seen; 0: none seen
	BreaksOff        int64               // no reading got so many triples whole; 0: one did
	UnionDefault     bool                // the default graph shows named graphs too
	ValuesLimit      int                 // most IRIs of one VALUES accepted; the probe stops at 5,000
	UpdateTriples    int                 // most triples of one INSERT DATA accepted; the probe stops at 20,000; 0 not probed
	WriteSpeed       map[string]float64  // triples a second: insert-10, insert-100, insert-1000, graph-store; only with ProbeOptions.Speed
	Transactional    bool                // several operations of one request are atomic; false when not probed
	StableLabels     bool                // two answers call a blank node by the same label; false when it could not be seen
	NormalForm       rdfres.NormalForm   // how literals are rewritten; only with ProbeOptions.Write
	Unexplained      []rdfres.Triple     // of the probe, rewritten without a known rule
	Writable         bool                // a write passed; false when not probed
	WriteError       error               `json:"-"` // why none passed; nil when not probed
	Scratch          ScratchGraphs       // of killed probes
	Failed           map[Reading]error   `json:"-"` // why a way does not work
	Unanswered       []string            // steps without a finding after a passing failure: busy, restarted, cut off
}

// ScratchGraphs are those that a probe has found.
type ScratchGraphs struct {
	Removed []string
	Left    []string // remaining ones: without ProbeOptions.Write all, else of the last hour
}

// NoReading is the reason why no reading of whole graphs works: the failure of each, or the failure
// of a store no longer answering.
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

// SelectReading is the fastest working format of a SELECT.
func (c *Capabilities) SelectReading() Reading {
	for _, r := range c.Readings {
		if r.Selects() {
			return r
		}
	}
	return ReadSelectJSON
}

// WholeFirst tells whether the store makes all of an answer before it sends the first byte: a long
// one takes its memory, or is refused.
func (c *Capabilities) WholeFirst() bool { return c.Product == "Virtuoso" }

// WellSampled tells whether the sample had full size. Findings of a smaller one are probed again,
// at little cost.
func (c Capabilities) WellSampled() bool { return FillsSample(c.Sample) }

// FillsSample tells whether so many triples are enough for a sample of full size.
func FillsSample(triples int64) bool { return triples >= sampleSize }

// ProbeOptions of Probe. Writing goes into a scratch graph only, removed after.
type ProbeOptions struct {
	Write  bool
	Speed  bool     // with Write: also measure the speed of writing
	Graphs []string // to be read: nil the default graph, "*" all

	// Brief leaves out findings for people only. With Write it probes neither labels nor the most
	// triples of an update: these take some 26,000 writes. If RDF4J's binary results agree with its
	// count, the other readings of a large graph are not tried: all of them are slower there.
	Brief bool
}
