package check

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// memory is kept of a change document for the next Check.
type memory struct {
	count  int64
	digest [sha256.Size]byte // of the first count entries
	closed bool
	from   time.Time
}

// running digests entries one after the other, and notes the digest after as
// many entries as were there before.
type running struct {
	before memory
	hash   hash.Hash
	count  int64
	then   [sha256.Size]byte
	buf    []byte
}

func newRunning(before memory) *running {
	r := &running{before: before, hash: sha256.New()}
	r.hash.Sum(r.then[:0])
	return r
}

func (r *running) add(e *resourcesync.Entry) {
	r.buf = digestEntry(r.buf[:0], e)
	r.hash.Write(r.buf)
	if r.count++; r.count == r.before.count {
		r.hash.Sum(r.then[:0])
	}
}

func (r *running) sum() (d [sha256.Size]byte) {
	r.hash.Sum(d[:0])
	return d
}

// digestEntry renders an entry for comparison: equal entries give equal bytes.
func digestEntry(dst []byte, e *resourcesync.Entry) []byte {
	b, err := resourcesync.AppendEntry(dst, e)
	if err != nil { // not of 1.1: compared by its parts
		return fmt.Appendf(dst, "%q %v %+v %+v\n", e.Loc, e.LastMod, e.Meta, e.Links)
	}
	return b
}

// remember compares a change document with its state before: rules 95, 96.
func (c *Checker) remember(d *seen, r *running) {
	now := memory{count: r.count, digest: r.sum(), closed: d.head.Closed(), from: d.head.Meta.From}
	before, known := c.memory[d.location]
	c.memory[d.location] = now
	if !known {
		return
	}
	switch kept := r.count >= before.count && r.then == before.digest; {
	case before.closed && (now.digest != before.digest || now.count != before.count || !now.closed):
		c.find(d, 95, SeverityError, 0, "the document was closed with %d entries, and has changed since (now %d)", before.count, now.count)
	case before.closed || kept:
	case now.from.After(before.from):
		c.find(d, 96, SeverityInfo, 0, "from has moved from %s to %s: earlier entries were dropped", resourcesync.FormatTime(before.from), resourcesync.FormatTime(now.from))
	default:
		c.find(d, 96, SeverityError, 0, "the document had %d entries, and they are not what it begins with now", before.count)
	}
}
