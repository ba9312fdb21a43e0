package resourcesync

import (
	"strings"
	"time"
)

// This file checks single entries: rules 14, 40 to 44, 50 to 55, 57 to 60, 62,
// 65, 69 to 72, 76, 77, 82, 83, 87, 91 to 93, 98 to 103, 105, 116, 120.

// entryState is the entry that is being read.
type entryState struct {
	e        Entry
	locs     int
	lastMods int
	metas    int
	step     int // how far the order of the schema has come
	disorder bool
}

func (v *validator) entryElement() error {
	s := v.s
	st := &v.entry
	*st = entryState{e: Entry{Line: s.tokenLine(), Links: st.e.Links[:0]}}
	st.e.Meta.Length = -1
	v.entries++
	for i := range s.attrs {
		if a := &s.attrs[i]; a.ns != nsXMLNS {
			v.add(44, SeverityError, st.e.Line, "<%s> has the attribute %s=%q; it has none", clip(s.name.raw()), clip(a.raw()), clip(string(a.value)))
		}
	}
	for {
		tok, err := s.next()
		if err != nil {
			return err
		}
		v.strayText()
		if tok == tokenEnd {
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
	n := &s.name
	switch {
	case v.sitemap(n):
		return v.entryText(string(n.local))
	case v.rs(n):
		v.inOrder(5)
		return v.entryRS()
	}
	return s.skip()
}

// inOrder watches the order loc, lastmod, changefreq, priority, rs:*.
func (v *validator) inOrder(step int) {
	st := &v.entry
	if step < st.step && !st.disorder {
		st.disorder = true
		v.add(14, SeverityInfo, v.s.tokenLine(), "<%s> stands too late; the schemas want loc, lastmod, changefreq, priority, rs:*", clip(v.s.name.raw()))
	}
	st.step = max(st.step, step)
}

func (v *validator) entryText(name string) error {
	s := v.s
	st := &v.entry
	line := s.tokenLine()
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
		v.add(15, SeverityInfo, line, "<%s> is unknown; the schemas do not allow it there", clip(s.name.raw()))
		return s.skip()
	}
	v.inOrder(step)
	raw, err := s.leaf()
	if err != nil {
		return err
	}
	text := string(trimBytes(raw))
	switch name {
	case "loc":
		if st.locs++; st.locs > 1 {
			v.add(40, SeverityError, line, "the entry has a second loc (%s), want exactly one", clip(text))
			return nil
		}
		st.e.Loc, err = v.d.address("loc", raw)
		v.checkLoc(line, text, st.e.Loc)
		return err
	case "lastmod":
		if st.lastMods++; st.lastMods > 1 {
			v.add(42, SeverityError, line, "the entry has a second lastmod (%s), want at most one", clip(text))
			return nil
		}
		st.e.LastMod, _ = v.checkTime(42, line, "lastmod", text)
	case "changefreq":
		st.e.ChangeFreq = text
		switch text {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
		default:
			v.add(43, SeverityError, line, "changefreq %q: want always, hourly, daily, weekly, monthly, yearly or never", clip(text))
		}
	case "priority":
		st.e.Priority = text
		if v.head.Index {
			v.add(15, SeverityInfo, line, "priority in a sitemapindex; the schemas do not allow it there")
		}
	}
	return nil
}

func (v *validator) checkLoc(line int, text, full string) {
	switch {
	case text == "":
		v.add(40, SeverityError, line, "the loc is empty")
	case !hasScheme([]byte(text)) && v.o.Location != "":
		v.add(40, SeverityInfo, line, "loc %q is relative; it is read as %q", clip(text), clip(full))
	case !hasScheme([]byte(text)):
		v.add(40, SeverityError, line, "loc %q: want an absolute URI", clip(text))
	default:
		if problem := checkURI(text); problem != "" {
			v.add(40, SeverityError, line, "loc %q: %s", clip(text), problem)
		} else if n := len(text); n < 12 || n > 2048 {
			v.add(15, SeverityInfo, line, "loc %q has %d characters; the schemas want 12 to 2048", clip(text), n)
		}
	}
}

func (v *validator) entryRS() error {
	s := v.s
	st := &v.entry
	switch string(s.name.local) {
	case "md":
		st.metas++
		v.attributes(entryMeta)
		if st.metas > 1 {
			v.add(41, SeverityError, s.tokenLine(), "the entry has a second rs:md, want at most one")
			break
		}
		st.e.HasMeta = true
		if err := v.d.meta(s.attrs, &st.e.Meta); err != nil {
			return err
		}
	case "ln":
		var l Link
		ok, err := v.d.link(s.attrs, &l)
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
	return s.skip()
}

// linkPlace checks single links of entries: rules 98 to 100, 102, 105.
func (v *validator) linkPlace(l *Link) {
	c := v.head.Meta.Capability
	line := v.s.tokenLine()
	switch l.Rel {
	case RelPatch:
		if v.head.Index || c.Known() && c != ChangeList && c != ChangeDumpManifest && c != ChangeNotification {
			v.add(98, SeverityError, line, "a patch link in a %s; it belongs to changelist, changedump-manifest and change-notification", v.kind())
		}
		if l.Type == "" {
			v.add(99, SeverityError, line, "the patch link %s has no type", clip(l.Href))
		}
		if c == ChangeDumpManifest && l.Path == "" {
			v.add(99, SeverityError, line, "the patch link %s has no path; in a changedump-manifest the patch is in the package", clip(l.Href))
		}
	case RelTimeGate:
		for i := range v.s.attrs {
			if a := &v.s.attrs[i]; a.ns == nsNone && string(a.local) != "rel" && string(a.local) != "href" {
				v.add(100, SeverityWarning, line, "the timegate link has %s=%q, want rel and href only", clip(string(a.local)), clip(string(a.value)))
			}
		}
	case RelAlternate:
		if l.Type == "" {
			v.add(102, SeverityWarning, line, "the alternate link %s has no type", clip(l.Href))
		}
	case RelContents:
		if c.Known() && (v.head.Index || c != ResourceDump && c != ChangeDump) {
			v.add(105, SeverityError, line, "a contents link in a %s; it belongs to the entries of resourcedump and changedump", v.kind())
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
		v.add(40, SeverityError, e.Line, "the entry has no loc")
	}
	v.attributePlaces(e)
	v.ordered(54, e.Line, "at", e.Meta.At, "completed", e.Meta.Completed)
	v.ordered(54, e.Line, "from", e.Meta.From, "until", e.Meta.Until)
	v.withinRoot(e)
	if v.head.Index {
		v.indexEntry(e)
	} else {
		v.listEntry(e)
	}
	v.entryLinks(e)
	v.sequence(e)
}

// attributePlaces checks where attributes may stand: rules 51 to 53.
func (v *validator) attributePlaces(e *Entry) {
	c := v.head.Meta.Capability
	if !c.Known() {
		return
	}
	m := &e.Meta
	index := v.head.Index
	changes := !index && (c == ChangeList || c == ChangeDumpManifest || c.Notification())
	if !changes && m.Change != "" {
		v.add(51, SeverityError, e.Line, "the entry has change=%q in a %s", clip(m.Change), v.kind())
	}
	if !changes && !m.DateTime.IsZero() {
		v.add(51, SeverityError, e.Line, "the entry has datetime %s in a %s", FormatTime(m.DateTime), v.kind())
	}
	snapshots := index && c == ResourceList || c == ResourceDump || c == ResourceListArchive || c == ResourceDumpArchive
	if !snapshots && !(m.At.IsZero() && m.Completed.IsZero()) {
		v.add(52, SeverityError, e.Line, "the entry has at or completed in a %s", v.kind())
	}
	intervals := index && c == ChangeList || c == ChangeDump || c == ChangeListArchive || c == ChangeDumpArchive
	if !intervals && !(m.From.IsZero() && m.Until.IsZero()) {
		v.add(53, SeverityError, e.Line, "the entry has from or until in a %s", v.kind())
	}
}

// withinRoot is rule 55.
func (v *validator) withinRoot(e *Entry) {
	root, m := &v.head.Meta, &e.Meta
	before := func(name string, t, bound time.Time, of string) {
		if !t.IsZero() && !bound.IsZero() && t.Before(bound) {
			v.add(55, SeverityWarning, e.Line, "%s %s is before %s %s of the root", name, FormatTime(t), of, FormatTime(bound))
		}
	}
	after := func(name string, t, bound time.Time, of string) {
		if !t.IsZero() && !bound.IsZero() && t.After(bound) {
			v.add(55, SeverityWarning, e.Line, "%s %s is after %s %s of the root", name, FormatTime(t), of, FormatTime(bound))
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

func (v *validator) indexEntry(e *Entry) {
	c := v.head.Meta.Capability
	switch given := e.Meta.Capability; {
	case given == "" || !c.Known():
	case c == Description && given != Description:
		v.add(18, SeverityError, e.Line, "the entry %s of a description index has the capability %q, want description", clip(e.Loc), clip(string(given)))
	case given != c:
		v.add(70, SeverityError, e.Line, "the entry %s has the capability %q in a %s", clip(e.Loc), clip(string(given)), v.kind())
	}
	if (c == ChangeList || c == ChangeDump) && e.Meta.From.IsZero() {
		v.add(87, SeverityWarning, e.Line, "the entry %s has no rs:md with from", clip(e.Loc))
	}
	if c.Archive() && !e.LastMod.IsZero() {
		v.add(116, SeverityWarning, e.Line, "the entry %s in the index of an archive has a lastmod", clip(e.Loc))
	}
}

func (v *validator) listEntry(e *Entry) {
	switch c := v.head.Meta.Capability; c {
	case Description:
		v.descriptionEntry(e)
	case CapabilityList:
		v.capabilityEntry(e)
	case ResourceList:
		end := v.head.Meta.At
		if !v.head.Meta.Completed.IsZero() {
			end = v.head.Meta.Completed
		}
		if !end.IsZero() && e.LastMod.After(end) {
			v.add(69, SeverityWarning, e.Line, "lastmod %s is after %s, the time of the list", FormatTime(e.LastMod), FormatTime(end))
		}
	case ResourceDump, ChangeDump:
		if e.Meta.Type == "" || e.Meta.Length < 0 {
			v.add(71, SeverityWarning, e.Line, "the entry %s has no rs:md with type and length", clip(e.Loc))
		}
		v.packageType(e)
	case ResourceDumpManifest:
		if e.Meta.Path == "" {
			v.add(76, SeverityError, e.Line, "the entry %s has no rs:md with path", clip(e.Loc))
		}
		if e.Meta.Type == "" {
			v.add(77, SeverityInfo, e.Line, "the entry %s has no type", clip(e.Loc))
		}
	case ChangeList, ChangeDumpManifest, ChangeNotification:
		v.changeEntry(e, c)
	case FrameworkNotification:
		v.frameworkEntry(e)
	}
}

func (v *validator) descriptionEntry(e *Entry) {
	if e.HasMeta && e.Meta.Capability != CapabilityList {
		v.add(57, SeverityError, e.Line, "the entry %s has the capability %q, want capabilitylist", clip(e.Loc), clip(string(e.Meta.Capability)))
	}
	if !e.HasMeta {
		v.add(58, SeverityInfo, e.Line, "the entry %s has no rs:md capability=\"capabilitylist\"", clip(e.Loc))
	}
	if e.Link(RelDescribedBy) == nil {
		v.add(58, SeverityWarning, e.Line, "the entry %s has no rs:ln rel=\"describedby\"", clip(e.Loc))
	}
	v.noLastMod(e)
}

func (v *validator) noLastMod(e *Entry) {
	if !e.LastMod.IsZero() {
		v.add(59, SeverityWarning, e.Line, "the entry %s has a lastmod; it should have none unless it is renewed with every change", clip(e.Loc))
	}
}

func (v *validator) capabilityEntry(e *Entry) {
	v.noLastMod(e)
	c := e.Meta.Capability
	if c == "changelist-notification" {
		c = ChangeNotification
	}
	socket := strings.HasPrefix(e.Loc, "ws:") || strings.HasPrefix(e.Loc, "wss:")
	switch {
	case c == "":
		v.add(60, SeverityError, e.Line, "the entry %s has no rs:md with capability", clip(e.Loc))
		return
	case c == CapabilityList, c == Description, c.Manifest(), c == "resourcesync":
		v.add(62, SeverityError, e.Line, "the entry %s has the capability %q, which no set has", clip(e.Loc), c)
	case !c.Known():
		v.add(7, SeverityInfo, e.Line, "the entry %s has the unknown capability %q: an extension, or a typing error", clip(e.Loc), clip(string(c)))
	case c.Notification() && !socket && e.Link(RelHub) == nil:
		v.add(65, SeverityError, e.Line, "the entry %s for %s has no rs:ln rel=\"hub\"", clip(e.Loc), c)
	}
	key := string(c)
	if socket && c.Notification() {
		key += " over a socket"
	}
	if v.seq.capabilities == nil {
		v.seq.capabilities = map[string]int{}
	}
	if line, twice := v.seq.capabilities[key]; twice {
		v.add(61, SeverityError, e.Line, "the capability %q stands in line %d too", clip(string(c)), line)
	} else if len(v.seq.capabilities) < 10_000 {
		v.seq.capabilities[key] = e.Line
	}
}

func (v *validator) packageType(e *Entry) {
	if e.Meta.Type == "" {
		return
	}
	typ := NormalizeType(e.Meta.Type)
	if v.seq.packageType == "" {
		v.seq.packageType = typ
		if typ != "application/zip" {
			v.add(72, SeverityInfo, e.Line, "packages are of type %q; application/zip is what destinations can be relied on to read", clip(typ))
		}
	} else if typ != v.seq.packageType {
		v.add(72, SeverityWarning, e.Line, "the package %s is of type %q, others are %q", clip(e.Loc), clip(typ), clip(v.seq.packageType))
	}
}

func (v *validator) changeEntry(e *Entry, c Capability) {
	m := &e.Meta
	if m.Change == "" {
		v.add(82, SeverityError, e.Line, "the entry %s has no rs:md with change", clip(e.Loc))
	}
	if m.DateTime.IsZero() {
		if v.counts[91] == 0 {
			v.add(91, SeverityInfo, e.Line, "the entry %s has no datetime; with it destinations know when the change happened", clip(e.Loc))
		} else {
			v.counts[91]++
		}
	} else {
		v.withinInterval(e)
	}
	if c == ChangeDumpManifest {
		if m.Path == "" && m.Change != Deleted {
			v.add(92, SeverityError, e.Line, "the entry %s has no path, and is no deletion", clip(e.Loc))
		}
		if m.Type == "" && m.Change != Deleted {
			v.add(77, SeverityWarning, e.Line, "the entry %s has no type", clip(e.Loc))
		}
	}
	if m.Change != Deleted {
		return
	}
	if m.Path != "" || m.Length >= 0 || !m.Hash.IsZero() {
		v.add(93, SeverityWarning, e.Line, "the deletion of %s has path, length or hash, but nothing is there any more", clip(e.Loc))
	}
	if e.Link(RelPatch) != nil {
		v.add(98, SeverityInfo, e.Line, "the deletion of %s has a patch link", clip(e.Loc))
	}
}

// withinInterval is rule 83.
func (v *validator) withinInterval(e *Entry) {
	root, t := &v.head.Meta, e.Meta.DateTime
	if !root.From.IsZero() && t.Before(root.From) {
		v.add(83, SeverityError, e.Line, "datetime %s is before from %s of the root", FormatTime(t), FormatTime(root.From))
	}
	if !root.Until.IsZero() && t.After(root.Until) {
		v.add(83, SeverityError, e.Line, "datetime %s is after until %s of the root", FormatTime(t), FormatTime(root.Until))
	}
}

// frameworkEntry is rule 120.
func (v *validator) frameworkEntry(e *Entry) {
	change, c := e.Meta.Change, e.Meta.Capability
	if change == "" || c == "" {
		v.add(120, SeverityError, e.Line, "the entry %s has change %q and capability %q; both are mandatory", clip(e.Loc), clip(change), clip(string(c)))
		return
	}
	allowed := true
	switch c {
	case ResourceList, ChangeList, ChangeDump:
		allowed = change == Created || change == Updated
	case ResourceDump:
		allowed = change == Created
	}
	if !allowed {
		v.add(120, SeverityError, e.Line, "the entry %s says that a %s was %s, which is not announced", clip(e.Loc), c, clip(change))
	}
}

// entryLinks checks the links of an entry together: rules 101, 103.
func (v *validator) entryLinks(e *Entry) {
	vias := 0
	for i := range e.Links {
		l := &e.Links[i]
		switch l.Rel {
		case RelVia:
			vias++
		case RelDuplicate:
			if l.Type != "" || l.Length >= 0 || !l.Hash.IsZero() {
				v.add(101, SeverityWarning, e.Line, "the duplicate link %s repeats type, length or hash of the resource", clip(l.Href))
			}
		}
	}
	if vias > 1 {
		v.add(103, SeverityInfo, e.Line, "the entry %s has %d via links; since 0.9.1 the one to the original is kept", clip(e.Loc), vias)
	}
}
