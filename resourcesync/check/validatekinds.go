package check

import (
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file checks entries by the kind of their document: rules 18, 57 to 62, 65,
// 69 to 72, 76, 77, 82, 83, 87, 91 to 93, 116, 120.

func (v *validator) indexEntry(e *resourcesync.Entry) {
	c := v.head.Meta.Capability
	switch given := e.Meta.Capability; {
	case given == "" || !c.Known():
	case c == resourcesync.Description && given != resourcesync.Description:
		v.report.add(18, SeverityError, e.Line, "the entry %s of a description index has the capability %q, want description", clip(e.Loc), clip(string(given)))
	case given != c:
		v.report.add(70, SeverityError, e.Line, "the entry %s has the capability %q in a %s", clip(e.Loc), clip(string(given)), v.kind())
	}
	if (c == resourcesync.ChangeList || c == resourcesync.ChangeDump) && e.Meta.From.IsZero() {
		v.report.add(87, SeverityWarning, e.Line, "the entry %s has no rs:md with from", clip(e.Loc))
	}
	if c.Archive() && !e.LastMod.IsZero() {
		v.report.add(116, SeverityWarning, e.Line, "the entry %s in the index of an archive has a lastmod", clip(e.Loc))
	}
}

func (v *validator) listEntry(e *resourcesync.Entry) {
	switch c, given := v.head.Meta.Capability, e.Meta.Capability; {
	case c == resourcesync.Description || c == resourcesync.CapabilityList || c.Notification() || given == "":
	case given == c:
		v.report.add(70, SeverityError, e.Line, "the entry %s leads to a %s, and stands in one: want a sitemapindex", clip(e.Loc), c)
	case c.Archived() != given:
		v.report.add(70, SeverityError, e.Line, "the entry %s leads to a %s, which is no resource", clip(e.Loc), clip(string(given)))
	}
	switch c := v.head.Meta.Capability; c {
	case resourcesync.Description:
		v.descriptionEntry(e)
	case resourcesync.CapabilityList:
		v.capabilityEntry(e)
	case resourcesync.ResourceList:
		end := v.head.Meta.At
		if !v.head.Meta.Completed.IsZero() {
			end = v.head.Meta.Completed
		}
		if !end.IsZero() && e.LastMod.After(end) {
			v.report.add(69, SeverityWarning, e.Line, "lastmod %s is after %s, the time of the list", resourcesync.FormatTime(e.LastMod), resourcesync.FormatTime(end))
		}
	case resourcesync.ResourceDump, resourcesync.ChangeDump:
		if e.Meta.Type == "" || e.Meta.Length < 0 {
			v.report.add(71, SeverityWarning, e.Line, "the entry %s has no rs:md with type and length", clip(e.Loc))
		}
		v.packageType(e)
	case resourcesync.ResourceDumpManifest:
		if e.Meta.Path == "" {
			v.report.add(76, SeverityError, e.Line, "the entry %s has no rs:md with path", clip(e.Loc))
		}
		if e.Meta.Type == "" {
			v.report.add(77, SeverityInfo, e.Line, "the entry %s has no type", clip(e.Loc))
		}
	case resourcesync.ChangeList, resourcesync.ChangeDumpManifest, resourcesync.ChangeNotification:
		v.changeEntry(e, c)
	case resourcesync.FrameworkNotification:
		v.frameworkEntry(e)
	}
}

func (v *validator) descriptionEntry(e *resourcesync.Entry) {
	if e.HasMeta && e.Meta.Capability != resourcesync.CapabilityList {
		v.report.add(57, SeverityError, e.Line, "the entry %s has the capability %q, want capabilitylist", clip(e.Loc), clip(string(e.Meta.Capability)))
	}
	if !e.HasMeta {
		v.report.add(58, SeverityInfo, e.Line, "the entry %s has no rs:md capability=\"capabilitylist\"", clip(e.Loc))
	}
	if e.Link(resourcesync.RelDescribedBy) == nil {
		v.report.add(58, SeverityWarning, e.Line, "the entry %s has no rs:ln rel=\"describedby\"", clip(e.Loc))
	}
	v.noLastMod(e)
}

func (v *validator) noLastMod(e *resourcesync.Entry) {
	if !e.LastMod.IsZero() {
		v.report.add(59, SeverityWarning, e.Line, "the entry %s has a lastmod; it should have none unless it is renewed with every change", clip(e.Loc))
	}
}

func (v *validator) capabilityEntry(e *resourcesync.Entry) {
	v.noLastMod(e)
	c := e.Meta.Capability
	if c == "changelist-notification" {
		c = resourcesync.ChangeNotification
	}
	socket := strings.HasPrefix(e.Loc, "ws:") || strings.HasPrefix(e.Loc, "wss:")
	switch {
	case c == "":
		v.report.add(60, SeverityError, e.Line, "the entry %s has no rs:md with capability", clip(e.Loc))
		return
	case c == resourcesync.CapabilityList, c == resourcesync.Description, c.Manifest(), c == "resourcesync":
		v.report.add(62, SeverityError, e.Line, "the entry %s has the capability %q, which no set has", clip(e.Loc), c)
	case !c.Known():
		v.report.add(7, SeverityInfo, e.Line, "the entry %s has the unknown capability %q: an extension, or a typing error", clip(e.Loc), clip(string(c)))
	case c.Notification() && !socket && e.Link(resourcesync.RelHub) == nil:
		v.report.add(65, SeverityError, e.Line, "the entry %s for %s has no rs:ln rel=\"hub\"", clip(e.Loc), c)
	}
	key := string(c)
	if socket && c.Notification() {
		key += " over a socket"
	}
	if v.seq.capabilities == nil {
		v.seq.capabilities = map[string]int{}
	}
	if line, twice := v.seq.capabilities[key]; twice {
		v.report.add(61, SeverityError, e.Line, "the capability %q stands in line %d too", clip(string(c)), line)
	} else if len(v.seq.capabilities) < 10_000 {
		v.seq.capabilities[key] = e.Line
	}
}

func (v *validator) packageType(e *resourcesync.Entry) {
	if e.Meta.Type == "" {
		return
	}
	typ := resourcesync.NormalizeType(e.Meta.Type)
	if v.seq.packageType == "" {
		v.seq.packageType = typ
		if typ != "application/zip" {
			v.report.add(72, SeverityInfo, e.Line, "packages are of type %q; application/zip is what destinations can be relied on to read", clip(typ))
		}
	} else if typ != v.seq.packageType {
		v.report.add(72, SeverityWarning, e.Line, "the package %s is of type %q, others are %q", clip(e.Loc), clip(typ), clip(v.seq.packageType))
	}
}

func (v *validator) changeEntry(e *resourcesync.Entry, c resourcesync.Capability) {
	m := &e.Meta
	if m.Change == "" {
		v.report.add(82, SeverityError, e.Line, "the entry %s has no rs:md with change", clip(e.Loc))
	}
	switch {
	case !v.report.since("1.1"):
		if e.LastMod.IsZero() && c != resourcesync.ChangeNotification {
			v.report.add(91, SeverityError, e.Line, "the entry %s has no lastmod, which is the time of a change before 1.1", clip(e.Loc))
		}
	case m.DateTime.IsZero():
		if v.report.counts[grade{91, SeverityInfo}] == 0 {
			v.report.add(91, SeverityInfo, e.Line, "the entry %s has no datetime; with it destinations know when the change happened", clip(e.Loc))
		}
	default:
		v.withinInterval(e)
	}
	if c == resourcesync.ChangeDumpManifest {
		if m.Path == "" && m.Change != resourcesync.Deleted {
			v.report.add(92, SeverityError, e.Line, "the entry %s has no path, and is no deletion", clip(e.Loc))
		}
		if m.Type == "" && m.Change != resourcesync.Deleted {
			v.report.add(77, SeverityWarning, e.Line, "the entry %s has no type", clip(e.Loc))
		}
	}
	if m.Change != resourcesync.Deleted {
		return
	}
	if m.Path != "" || m.Length >= 0 || !m.Hash.IsZero() {
		v.report.add(93, SeverityWarning, e.Line, "the deletion of %s has path, length or hash, but nothing is there any more", clip(e.Loc))
	}
	if e.Link(resourcesync.RelPatch) != nil {
		v.report.add(98, SeverityInfo, e.Line, "the deletion of %s has a patch link", clip(e.Loc))
	}
}

// withinInterval is rule 83.
func (v *validator) withinInterval(e *resourcesync.Entry) {
	root, t := &v.head.Meta, e.Meta.DateTime
	if !root.From.IsZero() && t.Before(root.From) {
		v.report.add(83, SeverityError, e.Line, "datetime %s is before from %s of the root", resourcesync.FormatTime(t), resourcesync.FormatTime(root.From))
	}
	if !root.Until.IsZero() && t.After(root.Until) {
		v.report.add(83, SeverityError, e.Line, "datetime %s is after until %s of the root", resourcesync.FormatTime(t), resourcesync.FormatTime(root.Until))
	}
}

// frameworkEntry is rule 120.
func (v *validator) frameworkEntry(e *resourcesync.Entry) {
	change, c := e.Meta.Change, e.Meta.Capability
	if change == "" || c == "" {
		v.report.add(120, SeverityError, e.Line, "the entry %s has change %q and capability %q; both are mandatory", clip(e.Loc), clip(change), clip(string(c)))
		return
	}
	allowed := true
	switch c {
	case resourcesync.ResourceList, resourcesync.ChangeList, resourcesync.ChangeDump:
		allowed = change == resourcesync.Created || change == resourcesync.Updated
	case resourcesync.ResourceDump:
		allowed = change == resourcesync.Created
	case resourcesync.CapabilityList, resourcesync.Description:
	default:
		allowed = !c.Manifest() && !c.Notification()
		if allowed && !c.Known() && !resourcesync.HasScheme(string(c)) {
			v.report.add(120, SeverityWarning, e.Line, "the entry %s announces the capability %q, which is not known", clip(e.Loc), clip(string(c)))
		}
	}
	if !allowed {
		v.report.add(120, SeverityError, e.Line, "the entry %s says that a %s was %s, which is not announced", clip(e.Loc), c, clip(change))
	}
}
