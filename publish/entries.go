package publish

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// patchType is the media type of RFC 6902.
const patchType = "application/json-patch+json"

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

// describable tells whether an entity can be the target of a describes link: a
// component of blank nodes is nothing that anybody knows by its IRI.
func describable(entity string) bool {
	return scheme(entity) > 0 && !isComponent(entity)
}

const componentPrefix = "urn:rsbridge:component:"

func isComponent(entity string) bool {
	return len(entity) > len(componentPrefix) && entity[:len(componentPrefix)] == componentPrefix
}

// address is the address of a representation.
func (s *set) address(entity string, f rdfres.Format) string {
	return s.url + "/r/" + EncodeName(entity, s.cfg.Prefix) + f.Suffix()
}

func versionAddress(loc string, sequence uint64) string {
	return loc + "?version=" + strconv.FormatUint(sequence, 10)
}

// representation fills what an entry says of a version.
func (s *set) representation(e *resourcesync.Entry, entity string, v *changetrack.Version) {
	e.Loc = s.address(entity, v.Format)
	e.LastMod = v.Time
	e.HasMeta = true
	e.Meta.Hash = hashes(v.Fixity)
	e.Meta.Length = v.Fixity.Length
	e.Meta.Type = v.Format.MediaType()
	e.Meta.Ext = map[string]string{
		resourcesync.ExtSequence: strconv.FormatUint(v.Sequence, 10),
		resourcesync.ExtGraph:    digestToken(v.Graph),
	}
	if describable(entity) {
		e.Links = append(e.Links, link(resourcesync.RelDescribes, entity))
	}
	e.Links = append(e.Links, link(resourcesync.RelMemento, versionAddress(e.Loc, v.Sequence)))
}

// resourceEntry is the entry of a current entity in a Resource List.
func (s *set) resourceEntry(st *changetrack.State) resourcesync.Entry {
	e := resourcesync.Entry{Meta: resourcesync.Meta{Length: -1}}
	s.representation(&e, st.Entity, st.Current)
	e.ChangeFreq = changeFreq(st)
	return e
}

// changeFreq says how often an entity has really changed, "" when it did not
// since it is known.
func changeFreq(st *changetrack.State) string {
	if st.Changes < 2 || st.First.IsZero() || st.Current == nil {
		return ""
	}
	every := st.Current.Time.Sub(st.First) / time.Duration(st.Changes-1)
	switch day := 24 * time.Hour; {
	case every < 2*time.Hour:
		return "hourly"
	case every < 3*day:
		return "daily"
	case every < 15*day:
		return "weekly"
	case every < 180*day:
		return "monthly"
	}
	return "yearly"
}

// patchInfo is what a Change List says of a patch.
type patchInfo struct {
	length int64
	sha256 rdfres.Digest
}

// changeEntries gives the entries of a change: one, or two when the
// representation moves to the address of another format.
func (s *set) changeEntries(c *changetrack.Change, patch *patchInfo) []resourcesync.Entry {
	var es []resourcesync.Entry
	if c.After == nil || c.Before != nil && c.Before.Format != c.After.Format {
		format := s.cfg.Format
		if c.Before != nil {
			format = c.Before.Format
		}
		e := resourcesync.Entry{Loc: s.address(c.Entity, format), LastMod: c.Time, HasMeta: true}
		e.Meta = resourcesync.Meta{Change: string(changetrack.Deleted), DateTime: c.Time, Length: -1,
			Ext: map[string]string{resourcesync.ExtSequence: strconv.FormatUint(c.Sequence, 10)}}
		if describable(c.Entity) {
			e.Links = append(e.Links, link(resourcesync.RelDescribes, c.Entity))
		}
		es = append(es, e)
	}
	if c.After == nil {
		return es
	}
	e := resourcesync.Entry{Meta: resourcesync.Meta{Length: -1}}
	s.representation(&e, c.Entity, c.After)
	e.LastMod = c.Time
	e.Meta.DateTime = c.Time
	e.Meta.Change = string(c.Kind)
	if len(es) > 0 {
		e.Meta.Change = string(changetrack.Created)
	}
	if patch != nil {
		e.Links = append(e.Links, resourcesync.Link{
			Rel: resourcesync.RelPatch, Href: s.patchAddress(c.Sequence), Type: patchType, Length: patch.length,
			Hash: resourcesync.Hashes{SHA256: patch.sha256.String()},
			Ext: map[string]string{
				resourcesync.ExtBase:   digestToken(c.Before.Fixity.SHA256),
				resourcesync.ExtResult: digestToken(c.After.Fixity.SHA256),
			},
		})
	}
	return append(es, e)
}

// appendEntry renders an entry. An entity whose IRI holds what XML cannot is
// listed without its describes link: the address carries it escaped.
func appendEntry(dst []byte, e *resourcesync.Entry) ([]byte, error) {
	out, err := resourcesync.AppendEntry(dst, e)
	if err == nil {
		return out, nil
	}
	for i, l := range e.Links {
		if l.Rel == resourcesync.RelDescribes {
			e.Links = append(e.Links[:i:i], e.Links[i+1:]...)
			return resourcesync.AppendEntry(dst, e)
		}
	}
	return dst, err
}

func (s *set) patchAddress(sequence uint64) string {
	return s.url + "/patch/" + strconv.FormatUint(sequence, 10) + ".json"
}
