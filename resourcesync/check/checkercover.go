package check

import (
	"math/rand/v2"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// coverage holds the statements of a set's documents about its resources: rules 64 and
// 68. A nil coverage notes nothing.
type coverage struct {
	listed, dumped map[string]struct{}
	files          map[string]struct{} // listed as files (ExtKind)
	withoutFiles   bool                // the dump leaves them out (ExtFiles)
	changes        map[string]lastChange
	listAt, dumpAt time.Time // the earliest of the parts
	changesFrom    time.Time // the earliest of the Change Lists
	full           bool
	incomplete     bool // something of the set could not be read

	twice func(loc string) // told of a resource in two parts of the index that is read; nil: no index

	sample  []resourcesync.Entry
	offered int
}

type lastChange struct {
	change string
	at     time.Time
}

const maxCovered = 500_000

func newCoverage() *coverage {
	return &coverage{listed: map[string]struct{}{}, dumped: map[string]struct{}{}, files: map[string]struct{}{}, changes: map[string]lastChange{}}
}

func (c *coverage) add(h *resourcesync.Head, e *resourcesync.Entry, sample int, random *rand.Rand) {
	if c == nil || h.Index || e.Loc == "" {
		return
	}
	k := h.Meta.Capability
	if k != resourcesync.ResourceList && k != resourcesync.ResourceDumpManifest && k != resourcesync.ChangeList {
		return
	}
	if k != resourcesync.ResourceDumpManifest && sample > 0 {
		c.offer(e, sample, random)
	}
	if c.full = c.full || len(c.listed)+len(c.dumped)+len(c.changes) >= maxCovered; c.full {
		return
	}
	switch k {
	case resourcesync.ResourceList:
		if _, twice := c.listed[e.Loc]; twice && c.twice != nil {
			c.twice(e.Loc)
		}
		c.listed[e.Loc] = struct{}{}
		if e.Meta.Ext[resourcesync.ExtKind] == resourcesync.KindFile {
			c.files[e.Loc] = struct{}{}
		}
	case resourcesync.ResourceDumpManifest:
		c.dumped[e.Loc] = struct{}{}
	case resourcesync.ChangeList:
		c.changes[e.Loc] = lastChange{e.Meta.Change, e.Meta.DateTime}
	}
}

// root notes the times of a document.
func (c *coverage) root(h *resourcesync.Head, broken bool) {
	if c == nil {
		return
	}
	c.incomplete = c.incomplete || broken
	earlier := func(t *time.Time, now time.Time) {
		if t.IsZero() || now.Before(*t) {
			*t = now
		}
	}
	if h.Meta.Capability == resourcesync.ResourceDump && h.Meta.Ext[resourcesync.ExtFiles] != "" {
		c.withoutFiles = true
	}
	if h.Index {
		return
	}
	switch h.Meta.Capability {
	case resourcesync.ResourceList:
		earlier(&c.listAt, h.Meta.At)
	case resourcesync.ResourceDumpManifest:
		earlier(&c.dumpAt, h.Meta.At)
	case resourcesync.ChangeList:
		earlier(&c.changesFrom, h.Meta.From)
	}
}

func (c *coverage) lost() {
	if c != nil {
		c.incomplete = true
	}
}

// comparable says whether list and dump can be held against each other: they are
// of one time, or the Change Lists tell of the time between them.
func (c *coverage) comparable() bool {
	if len(c.listed) == 0 || len(c.dumped) == 0 || c.listAt.IsZero() || c.dumpAt.IsZero() {
		return false
	}
	if c.listAt.Equal(c.dumpAt) {
		return true
	}
	first := c.listAt
	if c.dumpAt.Before(first) {
		first = c.dumpAt
	}
	return !c.changesFrom.IsZero() && !c.changesFrom.After(first)
}

// offer keeps a fair sample of the resources.
func (c *coverage) offer(e *resourcesync.Entry, size int, random *rand.Rand) {
	c.offered++
	kept := *e
	kept.Links = append([]resourcesync.Link(nil), e.Links...)
	if len(c.sample) < size {
		c.sample = append(c.sample, kept)
	} else if i := random.IntN(c.offered); i < size {
		c.sample[i] = kept
	}
}

// index begins the parts of an index, and ends them without a function.
func (c *coverage) index(twice func(loc string)) {
	if c != nil {
		c.twice = twice
	}
}

// covers is rule 64. Changed resources are left out of the comparison of list and dump:
// these may be of different times. The findings are in no order.
func (c *Checker) covers(d *seen) {
	v := c.cover
	if v.full {
		c.find(d, 64, SeverityInfo, 0, "the set has more than %d resources; whether its documents cover the same was not checked", maxCovered)
		return
	}
	if v.incomplete {
		return // told already
	}
	changed := func(loc string) bool { _, ok := v.changes[loc]; return ok }
	if v.comparable() {
		leftOut := 0
		for loc := range v.listed {
			if _, ok := v.dumped[loc]; !ok && !changed(loc) {
				if _, file := v.files[loc]; file && v.withoutFiles {
					leftOut++
					continue
				}
				c.find(d, 64, SeverityError, 0, "%s is in the Resource List, not in the Resource Dump, and no Change List tells why", clip(loc))
			}
		}
		if leftOut > 0 {
			c.find(d, 64, SeverityInfo, 0, "the Resource Dump leaves out %d files of the Resource List, and says so (rsb:files); who takes it needs the list too", leftOut)
		}
		for loc := range v.dumped {
			if _, ok := v.listed[loc]; !ok && !changed(loc) {
				c.find(d, 64, SeverityError, 0, "%s is in the Resource Dump, not in the Resource List, and no Change List tells why", clip(loc))
			}
		}
	}
	if len(v.listed) == 0 {
		return
	}
	for loc, last := range v.changes {
		_, listed := v.listed[loc]
		if !listed && last.change != resourcesync.Deleted && !last.at.IsZero() && last.at.Before(v.listAt) {
			c.find(d, 64, SeverityError, 0, "%s was %s at %s, but is not in the Resource List of %s", clip(loc), last.change, resourcesync.FormatTime(last.at), resourcesync.FormatTime(v.listAt))
		}
	}
}
