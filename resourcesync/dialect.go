package resourcesync

import (
	"strings"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// This file finds a document's version of ResourceSync: the meaning of its links and times, and its
// refused forms.

// checkRoot accepts the root element of a readable form, and names any other.
func (r *Reader) checkRoot() error {
	s := r.d.s
	root := &s.Name
	local := string(root.Local)
	switch {
	case root.Space == SpaceDLib && local == "resync":
		return s.Failf(ErrDialect, "this is a ResourceSync 0.2 document (element resync); read are 0.5 to 1.1 and the D-Lib form")
	case root.URI == namespaceAtom:
		return s.Failf(ErrDialect, "this is an Atom feed; the Atom serialization of ResourceSync was given up in 2013 and is not read")
	case root.Space == SpacePreAlpha:
		return s.Failf(ErrDialect, "this is a document of the unpublished namespace %s; it is not read", namespacePreAlpha)
	case local != "urlset" && local != "sitemapindex":
		if strings.EqualFold(local, "html") {
			return s.Failf(ErrNotResourceSync, "this is a web page (HTML), and no ResourceSync document (urlset or sitemapindex)")
		}
		return s.Failf(ErrNotResourceSync, "the root element is <%s>, want urlset or sitemapindex", clip(root.Raw()))
	case root.Space == SpaceSitemap && root.URI == NamespaceSitemap:
	case root.Space == SpaceSitemap:
		if err := r.d.lapse("namespace", "<%s> is in the namespace %q, want %q", local, clip(root.URI), NamespaceSitemap); err != nil {
			return err
		}
	case root.Space == xmlscan.None:
		if err := r.d.lapse("namespace", "<%s> has no namespace, want xmlns=%q", local, NamespaceSitemap); err != nil {
			return err
		}
	case root.Space == xmlscan.Other:
		if err := r.d.lapse("namespace", "<%s> is in the unknown namespace %q, want %q", local, clip(root.URI), NamespaceSitemap); err != nil {
			return err
		}
	default:
		return s.Failf(ErrNotResourceSync, "<%s> is in the namespace %q, want %q", clip(root.Raw()), clip(root.URI), NamespaceSitemap)
	}
	for i := range s.Attrs {
		if a := &s.Attrs[i]; (a.Space == SpaceRS || a.Space == SpaceDLib) && string(a.Local) == "type" {
			return r.refuse01("attribute " + clip(a.Raw()) + " of the root")
		}
	}
	r.ns, r.uri = root.Space, root.URI
	r.sitemaps = local == "sitemapindex"
	r.head.Index = r.sitemaps
	return nil
}

// sitemap tells whether an element belongs to the Sitemap protocol. An element without the root's
// namespace, or with one in a root without it, belongs too: none is lost in silence.
func (r *Reader) sitemap(n *xmlscan.Name) bool {
	return n.Space == SpaceSitemap || n.Space == xmlscan.None || n.Space == r.ns && n.URI == r.uri
}

// refuse01 is the error for the alpha of August 2012.
func (r *Reader) refuse01(sign string) error {
	return r.d.s.Failf(ErrDialect, "this is a ResourceSync 0.1 document (%s); read are 0.5 to 1.1 and the D-Lib form", sign)
}

// mapCapability gives renamed capabilities their present names.
func (r *Reader) mapCapability() error {
	m := &r.head.Meta
	switch m.Capability {
	case "resourcesync":
		r.signs.WasResourceSync = true
		m.Capability = Description
		return r.d.lapse("capability", `capability "resourcesync" is read as description (its name since 0.9.1)`)
	case "changelist-notification":
		m.Capability = ChangeNotification
		return r.d.lapse("capability", `capability "changelist-notification" is read as change-notification (its name since 1.0.1)`)
	}
	return nil
}

// settle derives the dialect from the root.
func (r *Reader) settle() error {
	h := &r.head
	h.LegacyLinks, h.inherited = r.legacy(), false
	if known := r.o.Dialect; known != "" && !h.navigates() {
		h.LegacyLinks = h.LegacyLinks || legacyDialect(known)
		h.inherited = !h.LegacyLinks
	}
	h.Dialect = r.dialect()
	if r.d.strict && (h.LegacyLinks || r.ended && h.Dialect == DialectSitemap) {
		return r.d.s.Failf(ErrInvalid, "the document speaks the dialect %q, want 1.1", h.Dialect)
	}
	return nil
}

func legacyDialect(s string) bool {
	return s == DialectDLib || s == Dialect05 || s == Dialect06 || s == Dialect09
}

// legacy is step 3 of the reader's algorithm. The attribute modified says nothing
// on a description or a Capability List: the reference client's trees have it
// beside links of 1.0.
func (r *Reader) legacy() bool {
	h := &r.head
	m := &h.Meta
	resource := strings.HasPrefix(string(m.Capability), "resource")
	change := strings.HasPrefix(string(m.Capability), "change") && !m.Capability.Notification()
	switch {
	case r.signs.DLib, r.signs.WasResourceSync, h.Link(RelResourceSync) != "", h.Link(RelTop) != "":
		return true
	case (resource || change) && !m.Modified.IsZero() && m.At.IsZero() && m.From.IsZero():
		return true
	case resource && !m.From.IsZero() && m.At.IsZero():
		return true
	}
	return false
}

func (r *Reader) dialect() string {
	h := &r.head
	m := &h.Meta
	c := m.Capability
	old := !m.Modified.IsZero() && m.At.IsZero() && m.From.IsZero()
	switch {
	case r.signs.DLib, h.Link(RelTop) != "":
		return DialectDLib
	case !r.signs.Meta:
		return DialectSitemap
	case r.signs.WasResourceSync:
		return Dialect09
	case old && h.Index && (c == CapabilityList || c.Manifest()):
		return Dialect05
	case old && (h.LegacyLinks || c == CapabilityList && h.Link(RelUp) == ""):
		return Dialect06
	case h.LegacyLinks && !h.navigates() && r.o.Dialect != "":
		return r.o.Dialect
	case h.LegacyLinks:
		return Dialect09
	case r.ended && (c == ChangeList || c == ChangeDumpManifest || c == ChangeNotification) && !h.Index && r.times.sawLastMod && !r.times.sawDateTime:
		return Dialect10
	}
	return Dialect11
}
