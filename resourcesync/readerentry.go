package resourcesync

import (
	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// entry reads the element after its start tag.
func (r *Reader) entry(e *Entry) error {
	s := r.d.s
	e.Line = s.Line()
	e.Meta.Length = -1
	r.d.faults = nil
	located := false
	for {
		tok, err := r.d.next()
		if err != nil {
			return err
		}
		if tok == xmlscan.End {
			break
		}
		switch n := &s.Name; {
		case r.sitemap(n):
			err = r.sitemapChild(e, &located)
		case n.Space == SpaceRS || n.Space == SpaceDLib:
			r.signs.DLib = r.signs.DLib || n.Space == SpaceDLib
			err = r.entryRS(e)
		default:
			err = s.Skip()
		}
		if err != nil {
			return err
		}
	}
	s.Pass = s.Pass[:0]
	if e.Loc == "" && r.o.KeepFaulty {
		r.d.faults = append(r.d.faults, "the entry has no loc")
	} else if e.Loc == "" {
		return &DocumentError{Location: r.o.BaseURL, Line: e.Line, Kind: ErrInvalid, Message: "the entry has no loc"}
	}
	e.Faults = r.d.faults
	if len(e.Links) > 0 {
		r.links = len(e.Links)
	}
	if r.d.strict {
		return r.strictEntry(e)
	}
	return nil
}

// sitemapChild reads loc, lastmod, changefreq and priority.
func (r *Reader) sitemapChild(e *Entry, located *bool) error {
	s := r.d.s
	switch local := string(s.Name.Local); local {
	case "loc":
		v, err := s.Leaf()
		if err != nil {
			return err
		}
		if *located && r.o.KeepFaulty {
			r.d.faults = append(r.d.faults, "the entry has more than one loc")
			return nil
		}
		if *located {
			return s.Failf(ErrInvalid, "the entry has more than one loc")
		}
		*located = true
		e.Loc, err = r.d.address("loc", v)
		return err
	case "lastmod":
		for i := range s.Attrs {
			if a := &s.Attrs[i]; a.Space == SpaceRS && string(a.Local) == "type" {
				return r.refuse01("attribute rs:type of lastmod")
			}
		}
		v, err := s.Leaf()
		if err != nil {
			return err
		}
		v = trimBytes(v) // white space around element text is no fault
		t, err := r.d.timeValue([]byte(local), v)
		if err != nil {
			return err
		}
		if !e.LastMod.IsZero() {
			return r.d.lapse("second lastmod", "the entry has more than one lastmod; the first counts")
		}
		e.LastMod = t
		return nil
	case "changefreq":
		v, err := s.Leaf()
		e.ChangeFreq = r.d.intern(trimBytes(v))
		return err
	case "priority":
		v, err := s.Leaf()
		e.Priority = r.d.intern(trimBytes(v))
		return err
	case "url", "sitemap", "urlset", "sitemapindex":
		return s.Failf(ErrInvalid, "<%s> inside <%s>", local, clip(s.Parent()))
	default:
		if err := r.d.lapse("unknown element", "the unknown element <%s> in <%s> is left out", clip(local), clip(s.Parent())); err != nil {
			return err
		}
		return s.Skip()
	}
}

// entryRS reads an rs:md or rs:ln of an entry.
func (r *Reader) entryRS(e *Entry) error {
	s := r.d.s
	if err := r.rsNamespace(); err != nil {
		return err
	}
	switch string(s.Name.Local) {
	case "md":
		if e.HasMeta {
			if err := r.d.lapse("second rs:md", "the entry has more than one rs:md; the first counts"); err != nil {
				return err
			}
			break
		}
		e.HasMeta = true
		if err := r.d.meta(s.Attrs, &e.Meta); err != nil {
			return err
		}
		if r.passLinks != nil && r.passLinks(&e.Meta) && len(s.Name.Prefix) > 0 {
			s.Pass = append(append(append(s.Pass, '<'), s.Name.Prefix...), ":ln "...)
		}
	case "ln":
		if len(e.Links) == r.o.MaxEntryLinks {
			return s.Failf(ErrLimit, "the entry has more than %d rs:ln", r.o.MaxEntryLinks)
		}
		if cap(e.Links) == 0 {
			e.Links = make([]Link, 0, min(max(1, r.links), 16))
		}
		e.Links = append(e.Links, Link{})
		ok, err := r.d.link(s.Attrs, &e.Links[len(e.Links)-1])
		if err != nil {
			return err
		}
		if !ok {
			e.Links = e.Links[:len(e.Links)-1]
		}
	default:
		if err := r.unknownRS(); err != nil {
			return err
		}
	}
	return s.Skip()
}

// strictEntry refuses fields not allowed in this kind of document.
func (r *Reader) strictEntry(e *Entry) error {
	what := ""
	switch c := r.head.Meta.Capability; {
	case r.head.Index:
	case (c == ChangeList || c == ChangeDumpManifest || c.Notification()) && e.Meta.Change == "":
		what = "an entry of a " + string(c) + " needs rs:md with change"
	case c == ResourceDumpManifest && e.Meta.Path == "",
		c == ChangeDumpManifest && e.Meta.Path == "" && e.Meta.Change != Deleted:
		what = "an entry of a " + string(c) + " needs rs:md with path"
	case c == CapabilityList && e.Meta.Capability == "":
		what = "an entry of a capabilitylist needs rs:md with capability"
	}
	if what == "" {
		return nil
	}
	return &DocumentError{Location: r.o.BaseURL, Line: e.Line, Kind: ErrInvalid, Message: what}
}
