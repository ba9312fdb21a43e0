package check

import (
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file checks the root: rules 5 to 7, 11, 12, 13, 16 to 22, 25, 26, 30, 31,
// 33, 34, 97 of pages, 118.

func (v *validator) rootRS() error {
	s := v.s
	switch string(s.Name.Local) {
	case "md":
		v.metas++
		v.attributes(rootMeta)
		if v.metas > 1 {
			v.report.add(5, SeverityError, s.Line(), "the root has a second rs:md (capability %q), want exactly one", clip(v.raw("capability")))
			break
		}
		v.metaLine = s.Line()
		if err := s.Meta(&v.head.Meta); err != nil {
			return err
		}
		v.rootMeta()
	case "ln":
		var l resourcesync.Link
		ok, err := s.Link(&l)
		if err != nil {
			return err
		}
		v.attributes(rootLink)
		v.linkElement(rootLink, &l)
		v.rootLinkPlace(&l)
		if ok && len(v.head.Links) < 1000 {
			v.head.Links = append(v.head.Links, l)
		}
	}
	return s.Skip()
}

// rootLinkPlace checks relations of entries.
func (v *validator) rootLinkPlace(l *resourcesync.Link) {
	switch l.Rel {
	case resourcesync.RelPatch:
		v.report.add(98, SeverityError, v.s.Line(), "a patch link at the root; it belongs to entries")
	case resourcesync.RelContents:
		v.report.add(105, SeverityError, v.s.Line(), "a contents link at the root; it belongs to the entries of dumps")
	case resourcesync.RelNext:
		v.report.add(97, SeverityWarning, v.s.Line(), "the document goes on at %s by a next link, which most destinations do not follow; want an index", clip(l.Href))
	}
}

// rootMeta checks the root's rs:md.
func (v *validator) rootMeta() {
	m := &v.head.Meta
	line := v.metaLine
	if m.Capability == "" {
		v.report.add(6, SeverityError, line, "the root's rs:md has no capability")
		return
	}
	switch m.Capability {
	case "resourcesync":
		v.report.add(11, SeverityInfo, line, `capability "resourcesync" is that of 0.9; want description`)
		m.Capability = resourcesync.Description
		v.wasResourceSync = true
	case "changelist-notification":
		v.report.add(118, SeverityInfo, line, `capability "changelist-notification" is that of notification 1.0; want change-notification`)
		m.Capability = resourcesync.ChangeNotification
	default:
		if !m.Capability.Known() {
			v.report.add(7, SeverityInfo, line, "capability %q is not known: an extension, or a typing error", clip(string(m.Capability)))
		}
	}
	v.rootKind(line)
	v.rootTimes(line)
}

func (v *validator) rootKind(line int) {
	c := v.head.Meta.Capability
	if !v.head.Index {
		return
	}
	switch {
	case c.Manifest() || c.Notification():
		v.report.add(16, SeverityError, line, "a %s is a sitemapindex, want urlset", c)
	case c == resourcesync.CapabilityList:
		v.report.add(17, SeverityWarning, line, "a capabilitylist is a sitemapindex, want urlset")
	}
}

func (v *validator) rootTimes(line int) {
	m := &v.head.Meta
	c := m.Capability
	has := func(name string) bool { return v.raw(name) != "" }
	forbid := func(severity string, rule int, names ...string) {
		for _, name := range names {
			if has(name) {
				v.report.add(rule, severity, line, "a %s has %s=%q on its root, where it is not used", c, name, clip(v.raw(name)))
			}
		}
	}
	switch {
	case c.Snapshot() && !v.report.since("1.0"):
		if !has("from") {
			v.report.add(19, SeverityError, line, "a %s has no from on its root, which is its time in 0.9", c)
		}
		forbid(SeverityError, 21, "at", "completed", "until")
	case c.Snapshot():
		if !has("at") {
			v.report.add(19, SeverityError, line, "a %s has no at on its root", c)
		}
		forbid(SeverityError, 21, "from", "until")
		if has("from") && !has("at") {
			v.report.add(11, SeverityInfo, line, "from=%q is the time of the snapshot in 0.9; want at", clip(v.raw("from")))
		}
	case c.Changes():
		if !has("from") {
			v.report.add(20, SeverityError, line, "a %s has no from on its root", c)
		}
		if !has("until") && !v.report.since("1.0") && !v.head.Index {
			v.report.add(20, SeverityError, line, "a %s has no until on its root, which 0.9 demands", c)
		}
		forbid(SeverityError, 21, "at", "completed")
	case c == resourcesync.ChangeNotification:
		for _, name := range []string{"from", "until"} {
			if !has(name) {
				v.report.add(118, SeverityError, line, "a change-notification has no %s on its root", name)
			}
		}
		forbid(SeverityError, 21, "at", "completed")
	case c == resourcesync.Description || c == resourcesync.CapabilityList || c.Archive():
		forbid(SeverityInfo, 22, "at", "completed", "from", "until")
	}
	v.ordered(25, line, "at", m.At, "completed", m.Completed)
	v.ordered(26, line, "from", m.From, "until", m.Until)
}

// ordered reports two times in the wrong order.
func (v *validator) ordered(rule, line int, first string, a time.Time, second string, b time.Time) {
	if !a.IsZero() && !b.IsZero() && a.After(b) {
		v.report.add(rule, SeverityError, line, "%s %s is after %s %s", first, resourcesync.FormatTime(a), second, resourcesync.FormatTime(b))
	}
}

// beforeEntries settles the root as known so far, for the rules of entries.
func (v *validator) beforeEntries() {
	v.settleHead()
}

// endOfDocument checks the rules about the whole document.
func (v *validator) endOfDocument() {
	v.settleHead()
	if v.metas == 0 {
		v.report.add(5, SeverityError, 0, "the root has no rs:md: this is a plain Sitemap")
	}
	v.rootLinks()
	if v.entries > 50_000 {
		v.report.add(12, SeverityWarning, 0, "the document has %d entries, want at most 50,000", v.entries)
	}
	if v.s.BytesRead() > 50<<20 {
		v.report.add(13, SeverityWarning, 0, "the document has %d bytes, want at most 50 MB (52,428,800)", v.s.BytesRead())
	}
	if v.entries == 0 {
		v.report.add(15, SeverityInfo, 0, "the document has no entries; the schemas want one")
	}
	v.endOfEntries()
}

func (v *validator) rootLinks() {
	c := v.head.Meta.Capability
	count := map[string]int{}
	for i := range v.head.Links {
		count[v.head.Links[i].Rel]++
	}
	for _, rel := range []string{resourcesync.RelUp, resourcesync.RelIndex} {
		if count[rel] > 1 {
			v.report.add(31, SeverityWarning, v.metaLine, "the root has %d links with rel %q, want one", count[rel], rel)
		}
	}
	if !c.Known() {
		return
	}
	if c != resourcesync.Description && !c.Notification() && count[resourcesync.RelUp] == 0 {
		target := resourcesync.CapabilityList
		if c == resourcesync.CapabilityList {
			target = resourcesync.Description
		}
		if !v.report.since("1.0") { // it was a should, and another relation
			if count[resourcesync.RelResourceSync] == 0 {
				v.report.add(30, SeverityWarning, v.metaLine, "the root of a %s has no rs:ln rel=\"resourcesync\"", c)
			}
			return
		}
		v.report.add(30, SeverityError, v.metaLine, "the root of a %s has no rs:ln rel=\"up\" to its %s", c, target)
	}
	if c == resourcesync.Description && count[resourcesync.RelUp] > 0 {
		v.report.add(34, SeverityError, v.metaLine, "a description has an up link (%s), but nothing is above it", clip(v.head.Link(resourcesync.RelUp)))
	}
	if (c == resourcesync.Description || c == resourcesync.CapabilityList) && !v.head.Index && count[resourcesync.RelDescribedBy] == 0 {
		v.report.add(33, SeverityWarning, v.metaLine, "the root of a %s has no rs:ln rel=\"describedby\"", c)
	}
}
