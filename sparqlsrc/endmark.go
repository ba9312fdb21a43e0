package sparqlsrc

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// endMark is a row of our own, asked for behind all others. RDF4J gives the branches of a
// UNION one after the other: the row comes after the last row of the pattern. No limit of
// rows, time or size can cut the pattern and spare the row. A row in the last place stands
// for the store's count, for a count takes RDF4J more than half as long as the reading.
// Without it, or with fewer rows than the last time (Config.Known), the rows are counted: a
// server in front of others may end one branch early and give the next.
type endMark struct {
	iri  string // in no data
	came bool
	last bool // nothing came after it
}

// markEnd gives the mark of a way of reading, or nil if none is trusted: other stores than
// RDF4J order their branches otherwise, or end one early and go on with the next (Virtuoso,
// out of time).
func markEnd(way sparql.Reading) *endMark {
	if way != sparql.ReadSelectBinary {
		return nil
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // it does not fail
	return &endMark{iri: "<urn:rsbridge:end:" + hex.EncodeToString(random[:]) + ">"}
}

// behind is the pattern with the row behind it.
func (m *endMark) behind(pattern string) string {
	if m == nil {
		return pattern
	}
	return "{ " + pattern + "} UNION { VALUES ?s { " + m.iri + " } } "
}

// is tells whether a row is the mark. It is told of every row.
func (m *endMark) is(s, p, o []byte) bool {
	if m == nil {
		return false
	}
	is := len(p) == 0 && len(o) == 0 && string(s) == m.iri
	m.last = is && !m.came
	m.came = m.came || is
	return is
}

// proves tells whether the answer came to its end.
func (m *endMark) proves() bool { return m != nil && m.last }
