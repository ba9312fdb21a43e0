package check

import (
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file reads entries and checks the rules for all of them: rules 14, 40 to
// 44, 51 to 55, 98 to 103, 105, 125.

// entryState is the current entry.
type entryState struct {
	e        resourcesync.Entry
	locs     int
	lastMods int
	metas    int
	step     int // how far the order of the schema has come
	disorder bool
}

func (v *validator) entryElement() error {
	s := v.s
	st := &v.entry
	*st = entryState{e: resourcesync.Entry{Line: s.Line(), Links: st.e.Links[:0]}}
	st.e.Meta.Length = -1
	v.entries++
	for i := range s.Attrs {
		if a := &s.Attrs[i]; a.Space != xmlscan.XMLNS {
			v.report.add(44, SeverityError, st.e.Line, "<%s> has the attribute %s=%q; it has none", clip(s.Name.Raw()), clip(a.Raw()), clip(string(a.Value)))
		}
	}
	for {
		tok, err := s.Next()
		if err != nil {
			return err
		}
		v.strayText()
		if tok == xmlscan.End {
			break
		}
		if err := v.entryChild(); err != nil {
			return err
		}
	}
	v.checkEntry()
	if v.o.Entry != nil {
		v.stopped = v.o.Entry(&v.head, &st.e)
	}
	return v.stopped
}

func (v *validator) entryChild() error {
	s := v.s
	n := &s.Name
	switch {
	case v.sitemap(n):
		return v.entryText(string(n.Local))
	case v.rs(n):
		v.inOrder(5)
		return v.entryRS()
	}
	return s.Skip()
}

// inOrder watches the order loc, lastmod, changefreq, priority, rs:*.
func (v *validator) inOrder(step int) {
	st := &v.entry
	if step < st.step && !st.disorder {
		st.disorder = true
		v.report.add(14, SeverityInfo, v.s.Line(), "<%s> stands too late; the schemas want loc, lastmod, changefreq, priority, rs:*", clip(v.s.Name.Raw()))
	}
	st.step = max(st.step, step)
}

func (v *validator) entryText(name string) error {
	s := v.s
	st := &v.entry
	line := s.Line()
	step := 0
	switch name {
	case "loc":
		step = 1
	case "lastmod":
		step = 2
	case "changefreq":
		step = 3
	case "priority":
		step = 4
	default:
		v.report.add(15, SeverityInfo, line, "<%s> is unknown; the schemas do not allow it there", clip(s.Name.Raw()))
		return s.Skip()
	}
	v.inOrder(step)
	raw, err := s.Leaf()
	if err != nil {
		return err
	}
	text := trimSpace(string(raw))
	switch name {
	case "loc":
		if st.locs++; st.locs > 1 {
			v.report.add(40, SeverityError, line, "the entry has a second loc (%s), want exactly one", clip(text))
			return nil
		}
		st.e.Loc, err = s.Address(raw)
		v.checkLoc(line, text, st.e.Loc)
		return err
	case "lastmod":
		if st.lastMods++; st.lastMods > 1 {
			v.report.add(42, SeverityError, line, "the entry has a second lastmod (%s), want at most one", clip(text))
			return nil
		}
		st.e.LastMod, _ = v.checkTime(42, line, "lastmod", text)
	case "changefreq":
		st.e.ChangeFreq = text
		switch text {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
		default:
			v.report.add(43, SeverityError, line, "changefreq %q: want always, hourly, daily, weekly, monthly, yearly or never", clip(text))
		}
	case "priority":
		st.e.Priority = text
		if v.head.Index {
			v.report.add(15, SeverityInfo, line, "priority in a sitemapindex; the schemas do not allow it there")
		} else if p, err := strconv.ParseFloat(text, 64); err != nil || !(p >= 0 && p <= 1) {
			v.report.add(15, SeverityWarning, line, "priority %q: want a number from 0.0 to 1.0", clip(text))
		}
	}
	return nil
}

func (v *validator) checkLoc(line int, text, full string) {
	switch {
	case text == "":
		v.report.add(40, SeverityError, line, "the loc is empty")
	case !resourcesync.HasScheme(text) && v.o.Location != "":
		v.report.add(40, SeverityError, line, "loc %q is relative, want an absolute URI; destinations may read it as %q", clip(text), clip(full))
	case !resourcesync.HasScheme(text):
		v.report.add(40, SeverityError, line, "loc %q: want an absolute URI", clip(text))
	default:
		scheme, rest, _ := strings.Cut(text, ":")
		if problem := checkURI(text); problem != "" {
			v.report.add(40, SeverityError, line, "loc %q: %s", clip(text), problem)
		} else if s := strings.ToLower(scheme); s != "http" && s != "https" && !(strings.HasPrefix(s, "ws") && v.head.Meta.Capability == resourcesync.CapabilityList) { // WebSockets are channels of notification
			v.report.add(40, SeverityWarning, line, "loc %q: no destination fetches %s addresses, want http or https", clip(text), clip(scheme))
		} else if strings.Contains(rest, "#") {
			v.report.add(40, SeverityWarning, line, "loc %q has a fragment; a destination fetches the whole document", clip(text))
		} else if n := len(text); n < 12 || n > 2048 {
			v.report.add(15, SeverityInfo, line, "loc %q has %d characters; the schemas want 12 to 2048", clip(text), n)
		}
	}
}

func (v *validator) entryRS() error {
	s := v.s
	st := &v.entry
	switch string(s.Name.Local) {
	case "md":
		st.metas++
		v.attributes(entryMeta)
		if st.metas > 1 {
			v.report.add(41, SeverityError, s.Line(), "the entry has a second rs:md, want at most one")
			break
		}
		st.e.HasMeta = true
		if err := s.Meta(&st.e.Meta); err != nil {
			return err
		}
	case "ln":
		var l resourcesync.Link
		ok, err := s.Link(&l)
		if err != nil {
			return err
		}
		v.attributes(entryLink)
		v.linkElement(entryLink, &l)
		v.linkPlace(&l)
		if ok && len(st.e.Links) < 1000 {
			st.e.Links = append(st.e.Links, l)
		}
	}
	return s.Skip()
}

// linkPlace checks single links of entries: rules 98 to 100, 102, 105.
func (v *validator) linkPlace(l *resourcesync.Link) {
	c := v.head.Meta.Capability
	line := v.s.Line()
	switch l.Rel {
	case resourcesync.RelPatch:
		if v.head.Index || c.Known() && c != resourcesync.ChangeList && c != resourcesync.ChangeDumpManifest && c != resourcesync.ChangeNotification {
			v.report.add(98, SeverityError, line, "a patch link in a %s; it belongs to changelist, changedump-manifest and change-notification", v.kind())
		}
		if l.Type == "" {
			v.report.add(99, SeverityError, line, "the patch link %s has no type", clip(l.Href))
		}
		if c == resourcesync.ChangeDumpManifest && l.Path == "" {
			v.report.add(99, SeverityError, line, "the patch link %s has no path; in a changedump-manifest the patch is in the package", clip(l.Href))
		}
	case resourcesync.RelTimeGate:
		for i := range v.s.Attrs {
			if a := &v.s.Attrs[i]; a.Space == xmlscan.None && string(a.Local) != "rel" && string(a.Local) != "href" {
				v.report.add(100, SeverityWarning, line, "the timegate link has %s=%q, want rel and href only", clip(string(a.Local)), clip(string(a.Value)))
			}
		}
	case resourcesync.RelAlternate:
		if l.Type == "" {
			v.report.add(102, SeverityWarning, line, "the alternate link %s has no type", clip(l.Href))
		}
	case resourcesync.RelContents:
		if c.Known() && (v.head.Index || c != resourcesync.ResourceDump && c != resourcesync.ChangeDump) {
			v.report.add(105, SeverityError, line, "a contents link in a %s; it belongs to the entries of resourcedump and changedump", v.kind())
		}
	}
}

// kind names the document in messages.
func (v *validator) kind() string {
	if v.head.Index {
		return string(v.head.Meta.Capability) + " index"
	}
	return string(v.head.Meta.Capability)
}

// checkEntry checks an entry as a whole.
func (v *validator) checkEntry() {
	st := &v.entry
	e := &st.e
	if st.locs == 0 {
		v.report.add(40, SeverityError, e.Line, "the entry has no loc")
	}
	v.attributePlaces(e)
	v.ordered(54, e.Line, "at", e.Meta.At, "completed", e.Meta.Completed)
	v.ordered(54, e.Line, "from", e.Meta.From, "until", e.Meta.Until)
	v.withinRoot(e)
	if at := e.Meta.DateTime; v.inFuture(at) {
		v.report.add(125, SeverityWarning, e.Line, "the change of %s is of %s, which is in the future (now %s)", clip(e.Loc), resourcesync.FormatTime(at), resourcesync.FormatTime(v.o.Now))
	}
	if v.head.Index {
		v.indexEntry(e)
	} else {
		v.listEntry(e)
	}
	v.entryLinks(e)
	v.sequence(e)
}

// attributePlaces checks the places of attributes: rules 51 to 53.
func (v *validator) attributePlaces(e *resourcesync.Entry) {
	c := v.head.Meta.Capability
	if !c.Known() {
		return
	}
	m := &e.Meta
	index := v.head.Index
	changes := !index && (c == resourcesync.ChangeList || c == resourcesync.ChangeDumpManifest || c.Notification())
	if !changes && m.Change != "" {
		v.report.add(51, SeverityError, e.Line, "the entry has change=%q in a %s", clip(m.Change), v.kind())
	}
	if !changes && !m.DateTime.IsZero() {
		v.report.add(51, SeverityError, e.Line, "the entry has datetime %s in a %s", resourcesync.FormatTime(m.DateTime), v.kind())
	}
	snapshots := index && c == resourcesync.ResourceList || c == resourcesync.ResourceDump || c == resourcesync.ResourceListArchive || c == resourcesync.ResourceDumpArchive
	if !snapshots && !(m.At.IsZero() && m.Completed.IsZero()) {
		v.report.add(52, SeverityError, e.Line, "the entry has at or completed in a %s", v.kind())
	}
	intervals := index && c == resourcesync.ChangeList || c == resourcesync.ChangeDump || c == resourcesync.ChangeListArchive || c == resourcesync.ChangeDumpArchive
	if !intervals && !(m.From.IsZero() && m.Until.IsZero()) {
		v.report.add(53, SeverityError, e.Line, "the entry has from or until in a %s", v.kind())
	}
}

// withinRoot is rule 55.
func (v *validator) withinRoot(e *resourcesync.Entry) {
	root, m := &v.head.Meta, &e.Meta
	before := func(name string, t, bound time.Time, of string) {
		if !t.IsZero() && !bound.IsZero() && t.Before(bound) {
			v.report.add(55, SeverityWarning, e.Line, "%s %s is before %s %s of the root", name, resourcesync.FormatTime(t), of, resourcesync.FormatTime(bound))
		}
	}
	after := func(name string, t, bound time.Time, of string) {
		if !t.IsZero() && !bound.IsZero() && t.After(bound) {
			v.report.add(55, SeverityWarning, e.Line, "%s %s is after %s %s of the root", name, resourcesync.FormatTime(t), of, resourcesync.FormatTime(bound))
		}
	}
	if !root.Capability.Snapshot() && !root.Capability.Changes() {
		return
	}
	before("at", m.At, root.At, "at")
	after("completed", m.Completed, root.Completed, "completed")
	before("from", m.From, root.From, "from")
	after("until", m.Until, root.Until, "until")
	after("from", m.From, root.Until, "until")
}

// entryLinks checks the links of an entry together: rules 101, 103.
func (v *validator) entryLinks(e *resourcesync.Entry) {
	vias := 0
	for i := range e.Links {
		l := &e.Links[i]
		switch l.Rel {
		case resourcesync.RelVia:
			vias++
		case resourcesync.RelDuplicate:
			if l.Type != "" || l.Length >= 0 || !l.Hash.IsZero() {
				v.report.add(101, SeverityWarning, e.Line, "the duplicate link %s repeats type, length or hash of the resource", clip(l.Href))
			}
		}
	}
	if vias > 1 {
		v.report.add(103, SeverityInfo, e.Line, "the entry %s has %d via links; since 0.9.1 the one to the original is kept", clip(e.Loc), vias)
	}
}
