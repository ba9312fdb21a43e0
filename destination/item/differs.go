package item

import (
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

// verdict of comparing a record with an entry.
type verdict int

const (
	Unknown    verdict = iota // no measure in common
	Different                 // proven by a measure
	SameLength                // nothing else is told
	SeemsSame                 // lastmod agrees, and length if it is told
	ProvenSame                // a digest agrees
)

// Same tells whether nothing need be fetched for the comparison. A length says little, but beside
// followed changes comparisons are rare, and a passed-over difference is never told again.
func (v verdict) Same(followed bool) bool {
	return v == ProvenSame || v == SeemsSame || v == SameLength && !followed
}

// Differs compares a record with a list's present entry. The digest of the graph and a common
// hash decide; then length, then lastmod. Without any common measure nothing is known: no
// difference.
func (it *Item) Differs(r *ledger.Record) (v verdict, why string) {
	if it.Bad != "" {
		return Different, "what cannot be used: " + it.Bad
	}
	if !it.Promise.Graph.IsZero() && r.Has(ledger.FlagWireNames) && !r.Has(ledger.FlagUnselected) {
		if it.Promise.Graph == r.Graph {
			return ProvenSame, ""
		}
		return Different, fmt.Sprintf("graph digest %s, recorded is %s", it.Promise.Graph, r.Graph)
	}
	if linkedOf(it.Promise.Hashes) != linkedOf(r.Hashes) {
		return Different, "what is promised of the RDF that it links to is another than recorded"
	}
	if equal, known := it.Promise.Hashes.Compare(r.Hashes); known {
		if equal {
			return ProvenSame, ""
		}
		return Different, fmt.Sprintf("hash %s, recorded is %s", it.Promise.Hashes, r.Hashes)
	}
	length, settled := r.Promised()
	lengths, times := it.Promise.Length >= 0 && length >= 0, !it.LastMod.IsZero() && !r.LastMod.IsZero()
	switch {
	case lengths && it.Promise.Length != length:
		return Different, fmt.Sprintf("length %d, recorded is %d", it.Promise.Length, length)
	case times && !it.LastMod.Equal(r.LastMod):
		return Different, fmt.Sprintf("lastmod %s, recorded is %s", it.LastMod, r.LastMod)
	case times && settled:
		return SeemsSame, ""
	case lengths && settled:
		return SameLength, ""
	}
	return Unknown, ""
}

// SamePromise tells whether two entries promise the same bytes.
func (it *Item) SamePromise(b *Item) bool {
	if !it.AsOf.Equal(b.AsOf) {
		return false
	}
	if equal, known := it.Promise.Hashes.Compare(b.Promise.Hashes); known {
		return equal
	}
	return it.Promise.Length == b.Promise.Length && it.LastMod.Equal(b.LastMod)
}

// Vague tells of an entry: no other state of its resource can be seen by it. Its list was served
// at the time at.
func (it *Item) Vague(at time.Time) bool {
	return it.Promise.Unproven() && (it.LastMod.IsZero() && it.Promise.Length < 0 || Unsettled(it.LastMod, at))
}

// Unsettled tells whether at the time at a resource could be changed once more and keep its
// lastmod: on the same day, or in the same minute or second.
func Unsettled(lastMod, at time.Time) bool {
	told := Lasts(lastMod)
	if told > 24*time.Hour {
		told += 12 * time.Hour // the day of any place
	}
	age := at.Sub(lastMod)
	return !lastMod.IsZero() && age < told // or of a time to come, by a clock ahead
}

// Lasts is the time in which a clock shows the same value, as precise as the source tells its times:
// a second, a minute, or a day.
func Lasts(t time.Time) time.Duration {
	told := 2 * time.Second
	for _, unit := range []time.Duration{time.Minute, 24 * time.Hour} {
		if t.Equal(t.Truncate(unit)) {
			told = unit + 2*time.Second
		}
	}
	return told
}
