package check

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file looks at each entry of a list, and needs more than the list: rules 126 across parts, and 129.

// elsewhere counts entries out of reach, by host and scheme.
type elsewhere struct {
	allowed func(*url.URL) error
	list    *url.URL

	host  string // of the entry before
	why   string // it is out of reach, "" if it is not
	found map[string]*away
}

// away are entries at one host.
type away struct {
	n, line    int
	first, why string
}

// mostHosts bounds the hosts told by name.
const mostHosts = 20

func (s *elsewhere) add(e *resourcesync.Entry) {
	u, err := url.Parse(e.Loc)
	if err != nil || u.Host == "" || s.list == nil || s.list.Host == "" { // a file is at no host
		return
	}
	if at := u.Scheme + "://" + u.Host; at != s.host {
		s.host, s.why = at, s.outOfReach(u)
	}
	if s.why == "" {
		return
	}
	if s.found == nil {
		s.found = map[string]*away{}
	}
	at := s.host
	if s.found[at] == nil && len(s.found) >= mostHosts {
		at = "other hosts"
	}
	if s.found[at] == nil {
		s.found[at] = &away{line: e.Line, first: e.Loc, why: s.why}
	}
	s.found[at].n++
}

func (s *elsewhere) outOfReach(u *url.URL) string {
	if s.allowed != nil {
		if err := s.allowed(u); err != nil {
			return err.Error()
		}
	}
	if s.list.Scheme == "https" && u.Scheme == "http" {
		return "the list is at https"
	}
	return ""
}

func (s *elsewhere) tell(c *Checker, d *seen) {
	for _, at := range slices.Sorted(maps.Keys(s.found)) {
		a := s.found[at]
		c.find(d, 129, SeverityWarning, a.line, "its entries lead to %s (%d of them, the first is %s): %s", clip(at), a.n, clip(a.first), a.why)
	}
}

// numbers are the first and the last rsb:sequence of the changes in a document.
type numbers struct {
	some        bool
	first, last uint64
}

func (s *numbers) add(e *resourcesync.Entry) {
	n, err := strconv.ParseUint(e.Meta.Ext[resourcesync.ExtSequence], 10, 64)
	if err != nil {
		return
	}
	if !s.some {
		s.first = n
	}
	s.some, s.last = true, n
}

// numbersAdjoin is rule 126 across the parts of an index.
func (c *Checker) numbersAdjoin(d *seen) {
	if d.head.Meta.Capability != resourcesync.ChangeList {
		return
	}
	before := (*seen)(nil)
	for i := range d.entries {
		part := c.docs[d.entries[i].loc]
		if part == nil || part.problem != "" {
			before = nil // told already
			continue
		}
		if !part.numbers.some {
			continue
		}
		if was := before; was != nil && (part.numbers.first <= was.numbers.last || part.numbers.first > was.numbers.last+1) {
			c.find(d, 126, SeverityWarning, d.entries[i].line, "%s begins with change %d, the part before ended with change %d", clip(part.location), part.numbers.first, was.numbers.last)
		}
		before = part
	}
}
