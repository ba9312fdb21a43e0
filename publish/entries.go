package publish

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// entryMaker makes the entries of a set's lists: one for each resource or change,
// with its links.
type entryMaker struct {
	cfg *SetConfig
	at  *place
}

// link is an rs:ln with nothing but rel and href.
func link(rel, href string) resourcesync.Link {
	return resourcesync.Link{Rel: rel, Href: href, Length: -1}
}

func digestToken(d rdfres.Digest) string { return "sha-256:" + d.String() }

func hashes(f rdfres.Fixity) resourcesync.Hashes {
	h := resourcesync.Hashes{SHA256: f.SHA256.String()}
	if len(f.MD5) > 0 {
		h.MD5 = hex.EncodeToString(f.MD5)
	}
	if len(f.SHA1) > 0 {
		h.SHA1 = hex.EncodeToString(f.SHA1)
	}
	return h
}

// name names the entity of an entry: by a describes link if there can be one.
func name(e *resourcesync.Entry, entity string) {
	if naming.Describable(entity) {
		e.Links = append(e.Links, link(resourcesync.RelDescribes, entity))
	} else if naming.XMLText(entity) {
		e.Meta.Ext[resourcesync.ExtEntity] = entity
	}
}

func (a *place) address(entity string, f rdfres.Format) string {
	return a.url + "/r/" + naming.Encode(entity, a.Prefix) + f.Suffix()
}

func versionAddress(loc string, sequence uint64) string {
	return loc + "?version=" + strconv.FormatUint(sequence, 10)
}

// representation fills in the fields of a version. Always are relations of links of every entry.
func (m *entryMaker) representation(ctx context.Context, e *resourcesync.Entry, view *source, entity string, v *changetrack.Version, always ...string) error {
	e.Loc = m.at.address(entity, v.Format)
	e.LastMod = v.Time
	e.HasMeta = true
	e.Meta.Hash = hashes(v.Fixity)
	e.Meta.Length = v.Fixity.Length
	e.Meta.Type = v.Format.MediaType()
	e.Meta.Ext = map[string]string{
		resourcesync.ExtSequence: strconv.FormatUint(v.Sequence, 10),
		resourcesync.ExtGraph:    digestToken(v.Graph),
	}
	e.Links = slices.Grow(e.Links, 3) // as many as most have
	name(e, entity)
	e.Links = append(e.Links, link(resourcesync.RelMemento, versionAddress(e.Loc, v.Sequence)))
	triples, err := m.linkTriples(ctx, view, entity, v)
	if err != nil {
		return err
	}
	m.entryLinks(ctx, e, entity, v, triples, always...)
	return m.fileLinks(ctx, e, view, entity)
}

// resourceEntry is the entry of a current entity in a Resource List.
func (m *entryMaker) resourceEntry(ctx context.Context, view *source, st *changetrack.State) (resourcesync.Entry, error) {
	e := resourcesync.Entry{Meta: resourcesync.Meta{Length: -1}}
	err := m.representation(ctx, &e, view, st.Entity, st.Current)
	if err == nil {
		err = m.alternateLinks(ctx, &e, view, st.Entity)
	}
	e.ChangeFreq = changeFreq(st)
	return e, err
}

// appendResource renders the entry of resourceEntry. The usual entry is written straight into dst;
// a test compares the two.
func (m *entryMaker) appendResource(ctx context.Context, dst []byte, view *source, st *changetrack.State) ([]byte, error) {
	v := st.Current
	if m.cfg.Links.any() || m.cfg.Content != "" || len(m.cfg.Alternates) > 0 || m.cfg.Origin != nil || !naming.Describable(st.Entity) || strings.ContainsAny(st.Entity, "&'\t\n\r") || v.Fixity.MD5 != nil || v.Fixity.SHA1 != nil || strings.ContainsAny(m.at.url, "&<>\"'") {
		e, err := m.resourceEntry(ctx, view, st)
		if err != nil {
			return dst, err
		}
		return resourcesync.AppendEntry(dst, &e)
	}
	name := naming.Encode(st.Entity, m.at.Prefix)
	address := func() {
		dst = append(append(append(dst, m.at.url...), "/r/"...), name...)
		dst = append(dst, v.Format.Suffix()...)
	}
	dst = append(dst, "  <url><loc>"...)
	address()
	dst = append(dst, "</loc><lastmod>"...)
	dst = resourcesync.AppendTime(dst, v.Time)
	dst = append(dst, "</lastmod>"...)
	if f := changeFreq(st); f != "" {
		dst = append(append(append(dst, "<changefreq>"...), f...), "</changefreq>"...)
	}
	dst = append(dst, `<rs:md hash="sha-256:`...)
	dst = hex.AppendEncode(dst, v.Fixity.SHA256[:])
	dst = append(dst, `" length="`...)
	dst = strconv.AppendInt(dst, v.Fixity.Length, 10)
	dst = append(append(append(dst, `" type="`...), v.Format.MediaType()...), `" rsb:graph="sha-256:`...)
	dst = hex.AppendEncode(dst, v.Graph[:])
	dst = append(dst, `" rsb:sequence="`...)
	dst = strconv.AppendUint(dst, v.Sequence, 10)
	dst = append(append(dst, `"/><rs:ln rel="describes" href="`...), st.Entity...)
	dst = append(dst, `"/><rs:ln rel="memento" href="`...)
	address()
	dst = append(dst, "?version="...)
	dst = strconv.AppendUint(dst, v.Sequence, 10)
	return append(dst, "\"/></url>\n"...), nil
}

// changeFreq says how often an entity has really changed, "" when it did not
// since it is known.
func changeFreq(st *changetrack.State) string {
	if st.Current == nil {
		return ""
	}
	return resourcesync.ChangeFreq(st.Changes, st.First, st.Current.Time)
}

// ofChange gives the entries of a change: one, or two when the
// representation moves to the address of another format.
func (m *entryMaker) ofChange(ctx context.Context, view *source, c *changetrack.Change, patches []patch.Patch) ([]resourcesync.Entry, error) {
	if c.OfFile() {
		e, err := m.fileChange(ctx, view, c)
		return []resourcesync.Entry{e}, err
	}
	var es []resourcesync.Entry
	if c.After == nil || c.Before != nil && c.Before.Format != c.After.Format {
		format := m.cfg.Format
		if c.Before != nil {
			format = c.Before.Format
		}
		e := resourcesync.Entry{Loc: m.at.address(c.Entity, format), LastMod: c.Time, HasMeta: true}
		e.Meta = resourcesync.Meta{Change: string(changetrack.Deleted), DateTime: c.Time, Length: -1,
			Ext: map[string]string{resourcesync.ExtSequence: strconv.FormatUint(c.Sequence, 10)}}
		name(&e, c.Entity)
		if err := m.deletionLinks(ctx, &e, view, c, format); err != nil {
			return nil, err
		}
		es = append(es, e)
	}
	if c.After == nil {
		return es, nil
	}
	e := resourcesync.Entry{Meta: resourcesync.Meta{Length: -1}}
	if err := m.representation(ctx, &e, view, c.Entity, c.After, resourcesync.RelTimeGate); err != nil {
		return nil, err
	}
	e.LastMod = c.Time
	e.Meta.DateTime = c.Time
	e.Meta.Change = string(c.Kind)
	if len(es) > 0 {
		e.Meta.Change = string(changetrack.Created)
	}
	if c.Before == nil || c.Before.Format != c.After.Format {
		patches = nil
	}
	for _, p := range patches {
		base, result := p.Kind.Digests(c)
		e.Links = append(e.Links, resourcesync.Link{
			Rel: resourcesync.RelPatch, Href: m.at.patchAddress(c.Sequence, p.Kind), Type: p.Kind.MediaType, Length: int64(len(p.Data)),
			Hash: resourcesync.Hashes{SHA256: rdfres.ComputeFixity(p.Data, false, false).SHA256.String()},
			Ext:  map[string]string{resourcesync.ExtBase: digestToken(base), resourcesync.ExtResult: digestToken(result)},
		})
	}
	return append(es, e), nil
}
