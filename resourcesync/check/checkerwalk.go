package check

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file goes from document to document and checks them against each other: rules 32,
// 35 to 37, 63, 66, 70, 88, 90, 97, 114, 117, 121, 123.

// walkParts goes through the entries of an index or a Source Description.
func (c *Checker) walkParts(ctx context.Context, d *seen) error {
	k := d.head.Meta.Capability
	want, rule := k, 70
	if k == resourcesync.Description && !d.head.Index {
		want, rule = resourcesync.CapabilityList, 63
	}
	if rule == 70 && k == resourcesync.ResourceList {
		c.cover.index(func(loc string) {
			c.find(d, 68, SeverityWarning, 0, "the resource %s stands in the parts of the index twice", clip(loc))
		})
	}
	for i := range d.entries {
		e := &d.entries[i]
		target, err := c.document(ctx, e.loc)
		if err != nil {
			return err
		}
		target.archived = target.archived || d.archived
		if !c.has(d, e, target, want, rule) {
			continue
		}
		if rule == 70 {
			c.part(d, e, target)
		}
		if err := c.walk(ctx, target); err != nil {
			return err
		}
	}
	if rule == 70 {
		c.partsAdjoin(d)
		c.numbersAdjoin(d)
		c.cover.index(nil)
	}
	return nil
}

// has checks the target of an entry: it can be fetched and has a capability.
func (c *Checker) has(d *seen, e *seenEntry, target *seen, want resourcesync.Capability, rule int) bool {
	switch given := target.head.Meta.Capability; {
	case target.problem != "":
		c.find(d, rule, SeverityError, e.line, "%s is announced as %s, but %s", clip(e.loc), want, target.problem)
	case given != want:
		c.find(d, rule, SeverityError, e.line, "%s is announced as %s, but has the capability %q", clip(e.loc), want, clip(string(given)))
	default:
		return true
	}
	c.cover.lost()
	return false
}

// nextPage goes on to the next page of a document: rule 97.
func (c *Checker) nextPage(ctx context.Context, d *seen) error {
	next := d.head.Link(resourcesync.RelNext)
	if next == "" {
		return nil
	}
	page, err := c.document(ctx, next)
	switch {
	case err != nil:
		return err
	case page.problem != "":
		c.find(d, 97, SeverityError, 0, "its next page is %s, but %s", clip(next), page.problem)
	case page.head.Meta.Capability != d.head.Meta.Capability:
		c.find(d, 97, SeverityError, 0, "its next page %s has the capability %q", clip(next), clip(string(page.head.Meta.Capability)))
	case page.walked:
		c.find(d, 97, SeverityError, 0, "its next page %s was read before: the pages turn in circles", clip(next))
	default:
		return c.walk(ctx, page)
	}
	return nil
}

// part checks a document against its entry in an index.
func (c *Checker) part(d *seen, e *seenEntry, target *seen) {
	k := d.head.Meta.Capability
	if target.head.Index {
		c.find(d, 70, SeverityInfo, e.line, "%s is an index in an index", clip(e.loc))
	}
	switch index := target.head.IndexURL(); {
	case k == resourcesync.Description:
	case index == "" && k.Archive():
		c.find(target, 114, SeverityWarning, 0, "the part of the archive has no index link to %s", clip(d.location))
	case index == "":
		c.find(target, 32, SeverityWarning, 0, "the part has no index link to %s", clip(d.location))
	case !d.isAt(index):
		c.find(target, 32, SeverityError, 0, "the part names the index %s, but stands in %s", clip(index), clip(d.location))
	}
	if k != resourcesync.ChangeList && k != resourcesync.ChangeDump {
		return
	}
	own := &target.head.Meta
	if closed := target.head.Closed(); closed != !e.meta.Until.IsZero() {
		state := map[bool]string{true: "closed", false: "open"}
		c.find(d, 88, SeverityError, e.line, "the entry says that %s is %s, but it is %s", clip(e.loc), state[!closed], state[closed])
	} else if closed && !own.Until.Equal(e.meta.Until) {
		c.find(d, 88, SeverityError, e.line, "the entry says that %s ends at %s, it says %s", clip(e.loc), resourcesync.FormatTime(e.meta.Until), resourcesync.FormatTime(own.Until))
	}
	if !e.meta.From.IsZero() && !own.From.Equal(e.meta.From) {
		c.find(d, 88, SeverityError, e.line, "the entry says that %s begins at %s, it says %s", clip(e.loc), resourcesync.FormatTime(e.meta.From), resourcesync.FormatTime(own.From))
	}
}

// partsAdjoin is rule 90 by the parts themselves, if the index does
// not tell.
func (c *Checker) partsAdjoin(d *seen) {
	if k := d.head.Meta.Capability; k != resourcesync.ChangeList && k != resourcesync.ChangeDump {
		return
	}
	var before *seen
	for i := range d.entries {
		e := &d.entries[i]
		now := c.docs[e.loc]
		if now == nil || now.problem != "" {
			before = nil
			continue
		}
		if before != nil && (e.meta.From.IsZero() || d.entries[i-1].meta.Until.IsZero()) {
			until, from := before.head.Meta.Until, now.head.Meta.From
			if !until.IsZero() && !from.IsZero() && !until.Equal(from) {
				c.find(d, 90, SeverityWarning, e.line, "%s begins at %s, the part before ended at %s", clip(e.loc), resourcesync.FormatTime(from), resourcesync.FormatTime(until))
			}
		}
		before = now
	}
}

// walkSet goes through a Capability List.
func (c *Checker) walkSet(ctx context.Context, d *seen) error {
	outer := c.cover
	c.cover = newCoverage()
	defer func() { c.cover = outer }()
	for i := range d.entries {
		e := &d.entries[i]
		if e.meta.Capability.Notification() {
			if err := c.topic(ctx, d, e); err != nil {
				return err
			}
			continue
		}
		if e.meta.Capability == "" { // rule 60 has told
			continue
		}
		target, err := c.document(ctx, e.loc)
		if err != nil {
			return err
		}
		if !c.has(d, e, target, e.meta.Capability, 63) {
			continue
		}
		if index := target.head.IndexURL(); !target.head.Index && index != "" {
			c.find(d, 97, SeverityWarning, e.line, "%s is a part of the index %s, which should be named instead", clip(e.loc), clip(index))
		}
		if err := c.walk(ctx, target); err != nil {
			return err
		}
	}
	c.covers(d)
	return c.live(ctx, d)
}

// topic checks the address of a notification channel: rule 123.
func (c *Checker) topic(ctx context.Context, d *seen, e *seenEntry) error {
	if !strings.HasPrefix(e.loc, "http:") && !strings.HasPrefix(e.loc, "https:") {
		return nil // a socket (notification 0.8)
	}
	got, err := c.o.Fetch(ctx, e.loc)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.find(d, 123, SeverityError, e.line, "the topic %s does not answer: %v", clip(e.loc), err)
		return nil
	}
	got.Body.Close()
	switch {
	case got.Status == 204:
		c.find(d, 123, SeverityInfo, e.line, "the topic %s answers 204, as before notification 1.0.1; want 200", clip(e.loc))
	case got.Status != 200:
		c.find(d, 123, SeverityError, e.line, "the topic %s answers %d, want 200", clip(e.loc), got.Status)
		return nil
	case resourcesync.NormalizeType(got.ContentType) != "application/xml":
		c.find(d, 123, SeverityError, e.line, "the topic %s is of type %q, want application/xml", clip(e.loc), clip(got.ContentType))
	}
	for _, rel := range []string{resourcesync.RelSelf, resourcesync.RelHub} {
		if len(resourcesync.HeaderLinks(got.Links, rel)) == 0 {
			c.find(d, 123, SeverityError, e.line, "the topic %s has no Link header with rel=%q", clip(e.loc), rel)
		}
	}
	return nil
}

// walkArchive goes through an archive: rule 117.
func (c *Checker) walkArchive(ctx context.Context, d *seen) error {
	outer := c.cover
	c.cover = nil // an archive does not tell of the present
	defer func() { c.cover = outer }()
	want := d.head.Meta.Capability.Archived()
	for i := range d.entries {
		e := &d.entries[i]
		target, err := c.document(ctx, e.loc)
		if err != nil {
			return err
		}
		target.archived = true
		if !c.has(d, e, target, want, 117) {
			continue
		}
		if want.Changes() && !target.head.Closed() {
			c.find(d, 117, SeverityInfo, e.line, "%s is archived, but open", clip(e.loc))
		}
		if err := c.walk(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

// walkNotification is rule 121.
func (c *Checker) walkNotification(ctx context.Context, d *seen) error {
	for i := range d.entries {
		e := &d.entries[i]
		if e.meta.Change == resourcesync.Deleted {
			continue
		}
		target, err := c.document(ctx, e.loc)
		if err != nil {
			return err
		}
		if target.problem != "" {
			c.find(d, 121, SeverityWarning, e.line, "%s: %s", clip(e.loc), target.problem)
			continue
		}
		if target.head.Index && e.meta.Capability != resourcesync.CapabilityList && e.meta.Capability != resourcesync.Description {
			c.find(d, 121, SeverityError, e.line, "%s is an index; its parts are announced, not itself", clip(e.loc))
		}
		if index := target.head.IndexURL(); index != "" && !sameDocument(index, e.index) {
			c.find(d, 121, SeverityError, e.line, "%s is a part of %s, but the entry has the index link %q", clip(e.loc), clip(index), clip(e.index))
		}
	}
	return nil
}

// navigation checks the links of all documents of the walk: rules 35 to 37. Their
// targets are read, but not walked.
func (c *Checker) navigation(ctx context.Context) error {
	var walked []*seen
	for _, d := range c.read {
		if d.problem == "" {
			walked = append(walked, d)
		}
	}
	outer := c.cover
	c.cover = nil
	defer func() { c.cover = outer }()
	for _, d := range walked {
		if err := c.up(ctx, d); err != nil {
			return err
		}
		if err := c.index(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) up(ctx context.Context, d *seen) error {
	address := d.head.Parent()
	k := d.head.Meta.Capability
	if address == "" || k == resourcesync.Description || k.Notification() {
		return nil
	}
	parent, err := c.document(ctx, address)
	if err != nil {
		return err
	}
	want := resourcesync.CapabilityList
	if k == resourcesync.CapabilityList {
		want = resourcesync.Description
	}
	switch given := parent.head.Meta.Capability; {
	case parent.problem != "":
		c.find(d, 35, SeverityError, 0, "up leads to %s: %s", clip(address), parent.problem)
		return nil
	case given != want:
		c.find(d, 35, SeverityError, 0, "up leads to %s, which has the capability %q, want %s", clip(address), clip(string(given)), want)
		return nil
	}
	if d.archived || k.Manifest() || parent.head.Index {
		return nil
	}
	index := d.head.IndexURL()
	for i := range parent.entries {
		e := &parent.entries[i]
		if !d.isAt(e.loc) && !sameDocument(e.loc, index) {
			continue
		}
		if given := e.meta.Capability; given == k || given == "" && want == resourcesync.Description {
			return nil
		}
		c.find(d, 36, SeverityWarning, 0, "%s lists the document as %q, it is a %s", clip(address), clip(string(e.meta.Capability)), k)
		return nil
	}
	c.find(d, 36, SeverityWarning, 0, "up leads to %s, which lists neither the document nor its index", clip(address))
	return nil
}

func (c *Checker) index(ctx context.Context, d *seen) error {
	address := d.head.IndexURL()
	if address == "" {
		return nil
	}
	index, err := c.document(ctx, address)
	if err != nil {
		return err
	}
	k := d.head.Meta.Capability
	switch {
	case index.problem != "":
		c.find(d, 37, SeverityError, 0, "index leads to %s: %s", clip(address), index.problem)
	case !index.head.Index:
		c.find(d, 37, SeverityError, 0, "index leads to %s, which is no sitemapindex", clip(address))
	case index.head.Meta.Capability != k:
		c.find(d, 37, SeverityError, 0, "index leads to %s, which has the capability %q, want %s", clip(address), clip(string(index.head.Meta.Capability)), k)
	default:
		for i := range index.entries {
			if d.isAt(index.entries[i].loc) {
				return nil
			}
		}
		if len(index.entries) < maxKeptEntries {
			c.find(d, 37, SeverityError, 0, "index leads to %s, which does not hold the document", clip(address))
		}
	}
	return nil
}

// wellKnown is rule 66.
func (c *Checker) wellKnown(ctx context.Context, d *seen) error {
	u, err := url.Parse(d.location)
	if err != nil || u.Host == "" {
		return nil
	}
	address := fmt.Sprintf("%s://%s/.well-known/resourcesync", u.Scheme, u.Host)
	if d.isAt(address) {
		return nil
	}
	target, err := c.document(ctx, address)
	if err != nil {
		return err
	}
	switch {
	case target.problem != "":
		c.find(d, 66, SeverityWarning, 0, "there is no Source Description at %s: %s", clip(address), target.problem)
	case target.head.Meta.Capability != resourcesync.Description:
		c.find(d, 66, SeverityWarning, 0, "%s has the capability %q, want description", clip(address), clip(string(target.head.Meta.Capability)))
	}
	return nil
}

// isAt tells whether an address is that of the document, or of the answer after redirects.
func (d *seen) isAt(address string) bool {
	return sameDocument(address, d.location) || sameDocument(address, d.resolved)
}

// sameDocument compares addresses without fragment and with scheme and host in
// any case.
func sameDocument(a, b string) bool {
	if a == b {
		return true
	}
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	w, err := url.Parse(b)
	if err != nil {
		return false
	}
	return strings.EqualFold(u.Scheme, w.Scheme) && strings.EqualFold(u.Host, w.Host) &&
		u.EscapedPath() == w.EscapedPath() && u.RawQuery == w.RawQuery
}
