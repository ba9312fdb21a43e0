package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Links are the configured links of list entries, beside the ones of every entry.
type Links struct {
	// Collections are properties whose IRIs become `collection` links.
	Collections []string
	// Collection contains every resource of the set: an OAI-ORE aggregation, an OAI-PMH set, ...
	Collection string
	// Locations are further places of the same representations, the best first:
	// `duplicate` links with pri 1, 2, ... A location is a template with
	// placeholders, or the address of a copy of the set, as `export` writes it.
	Locations []string
	// Templates are further links.
	Templates []LinkTemplate
	// Relations are those that an entry takes over from the Link header of its representation:
	// some of HeaderRelations.
	Relations []string
}

// HeaderRelations are the relations of a representation's Link header, left out of entries unless
// Links.Relations has them. A change has its timegate in any case.
var HeaderRelations = []string{resourcesync.RelAlternate, resourcesync.RelCanonical, resourcesync.RelDescribedBy, resourcesync.RelTimeGate}

// LinkTemplate is a link of every entry. In Href stand {entity} for the entity's IRI,
// {entity_escaped} for the same as a part of a query, {name} for its NAME, {suffix} for the
// format's suffix, {loc} for the address of the representation, {sequence} for the number of the
// version. An entry whose entity is no IRI has no link with {entity}.
type LinkTemplate struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

// ParseLink reads a link written as "REL HREF" or "REL HREF TYPE".
func ParseLink(text string) (t LinkTemplate, err error) {
	switch f := strings.Fields(text); len(f) {
	case 3:
		t = LinkTemplate{f[0], f[1], f[2]}
		if !mediaTypeForm.MatchString(t.Type) {
			return t, errors.New("its third part is no media type: want REL HREF or REL HREF TYPE, without blanks in them")
		}
	case 2:
		t = LinkTemplate{Rel: f[0], Href: f[1]}
	default:
		return t, errors.New("want REL HREF or REL HREF TYPE")
	}
	return t, t.check()
}

var mediaTypeForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+(;\S*)?$`)

// check tells what is wrong without the address, which may be a part of one with a password.
func (t LinkTemplate) check() error {
	switch t.Rel { // what the documents say themselves
	case "":
		return errors.New("it has no rel")
	case resourcesync.RelUp, resourcesync.RelIndex, resourcesync.RelContents, resourcesync.RelPatch, resourcesync.RelMemento, resourcesync.RelTimeGate:
		return fmt.Errorf("a link with the relation %q cannot be configured", t.Rel)
	}
	return checkTemplate(t.Href)
}

// Check finds the first error of the configuration.
func (l Links) Check() error { return l.prepare() }

// placeholders of templates.
var placeholders = []string{"{entity}", "{entity_escaped}", "{name}", "{suffix}", "{loc}", "{sequence}"}

// CheckTemplate tells whether a template is one: an absolute address when its
// placeholders are filled.
func CheckTemplate(href string) error {
	if err := checkTemplate(href); err != nil {
		return fmt.Errorf("%q: %w", href, err)
	}
	return nil
}

func checkTemplate(href string) error {
	filled := strings.ReplaceAll(strings.ReplaceAll(href, "{entity}", "http://h.example/"), "{loc}", "http://h.example/")
	for _, p := range placeholders {
		filled = strings.ReplaceAll(filled, p, "x")
	}
	if i := strings.IndexAny(filled, "{}<>\" "); i >= 0 {
		return fmt.Errorf("unknown placeholder or character; there are %s", strings.Join(placeholders, ", "))
	}
	if naming.Scheme(filled) == 0 {
		return errors.New("want an absolute address")
	}
	return nil
}

// prepare checks and completes the configuration.
func (l *Links) prepare() error {
	l.Locations, l.Templates = slices.Clone(l.Locations), slices.Clone(l.Templates)
	for i, location := range l.Locations {
		if !strings.Contains(location, "{") {
			l.Locations[i] = strings.TrimRight(location, "/") + "/r/{name}{suffix}"
		}
		if err := CheckTemplate(l.Locations[i]); err != nil {
			return fmt.Errorf("location %w", err)
		}
	}
	for _, t := range l.Templates {
		if err := t.check(); err != nil {
			return fmt.Errorf("link %q: %w", t.Href, err)
		}
	}
	for _, rel := range l.Relations {
		if !slices.Contains(HeaderRelations, rel) {
			return fmt.Errorf("relation %q: want %s", rel, strings.Join(HeaderRelations, ", "))
		}
	}
	for _, iri := range l.Collections {
		if naming.Scheme(iri) == 0 {
			return fmt.Errorf("%q is no IRI", iri)
		}
	}
	if l.Collection != "" && !naming.Describable(l.Collection) { // no entry would lead to it
		return fmt.Errorf("%q is no IRI", l.Collection)
	}
	return nil
}

// any tells whether entries have more than every entry has.
func (l *Links) any() bool {
	return len(l.Collections)+len(l.Locations)+len(l.Templates)+len(l.Relations) > 0 || l.Collection != ""
}

// tag is part of the ETag of documents assembled from entries: it changes with the
// configuration of entries.
func (m *entryMaker) tag() string {
	tag := ""
	if m.cfg.Links.any() {
		data, err := json.Marshal(&m.cfg.Links)
		if err != nil {
			panic(err) // strings only
		}
		tag = shortSum(string(data))
	}
	if m.cfg.Content != "" {
		tag += "c" + shortSum(m.cfg.Content)
	}
	if len(m.cfg.Alternates) > 0 {
		tag += "a" + shortSum(strings.Join(m.cfg.Alternates, " "))
	}
	return tag
}

// measureTag says how large entries are made: when it changes, parts of the Resource
// List are measured again.
func (m *entryMaker) measureTag() string { return "2" + m.tag() }

func shortSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// alternates are the formats linked from an entry besides its own (Links.Relations). RDF/XML cannot carry every
// version; it is in the Link header of a representation.
var alternates = map[rdfres.Format][]rdfres.Format{}

func init() {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, rdfres.NQuads, rdfres.TriG} {
		for _, other := range offer.Formats(&changetrack.Version{Format: f}) {
			if other != f {
				alternates[f] = append(alternates[f], other)
			}
		}
	}
}

// entryLinks adds the links of a representation. Those of its Link header are left out, unless
// Links.Relations or always has the relation. Triples are those of the version; they are only used
// for Links.Collections.
func (m *entryMaker) entryLinks(ctx context.Context, e *resourcesync.Entry, entity string, v *changetrack.Version, triples []rdfres.Triple, always ...string) {
	name := naming.Encode(entity, m.at.Prefix)
	generic := m.at.url + "/r/" + name
	links := &m.cfg.Links
	add := func(l resourcesync.Link) { e.Links = append(e.Links, l) }
	has := func(rel string) bool { return slices.Contains(links.Relations, rel) || slices.Contains(always, rel) }
	if has(resourcesync.RelDescribedBy) {
		add(link(resourcesync.RelDescribedBy, m.at.about()))
	}
	if has(resourcesync.RelTimeGate) {
		add(link(resourcesync.RelTimeGate, m.at.url+"/timegate/"+name+v.Format.Suffix()))
	}
	if has(resourcesync.RelCanonical) {
		add(link(resourcesync.RelCanonical, generic))
	}
	if has(resourcesync.RelAlternate) {
		for _, f := range alternates[v.Format] {
			l := link(resourcesync.RelAlternate, generic+offer.Suffix(f))
			l.Type = offer.MediaType(f)
			add(l)
		}
	}
	m.viaLink(ctx, e, entity)
	if !links.any() {
		return
	}
	m.collectionLinks(e, entity, triples)
	fill := func(template string) (string, bool) {
		if strings.Contains(template, "{entity}") && !naming.Describable(entity) {
			return "", false
		}
		return strings.NewReplacer("{entity}", entity, "{entity_escaped}", url.QueryEscape(entity), "{name}", name, "{suffix}", v.Format.Suffix(),
			"{loc}", e.Loc, "{sequence}", strconv.FormatUint(v.Sequence, 10)).Replace(template), true
	}
	for i, location := range links.Locations {
		if href, ok := fill(location); ok {
			l := link(resourcesync.RelDuplicate, href)
			l.Pri = i + 1
			add(l)
		}
	}
	for _, t := range links.Templates {
		if href, ok := fill(t.Href); ok {
			l := link(t.Rel, href)
			l.Type = t.Type
			add(l)
		}
	}
}

// viaLink links to the origin of a mirrored representation.
func (m *entryMaker) viaLink(ctx context.Context, e *resourcesync.Entry, entity string) {
	if m.cfg.Origin == nil {
		return
	}
	if origin := m.cfg.Origin(ctx, entity); naming.Absolute(origin) {
		e.Links = append(e.Links, link(resourcesync.RelVia, origin))
	}
}

// mostLinks is the most links of one kind from a description, since a description may have any
// number: to collections, and to files.
const mostLinks = 1000

// collectionLinks link to the collections of an entity.
func (m *entryMaker) collectionLinks(e *resourcesync.Entry, entity string, triples []rdfres.Triple) {
	links := &m.cfg.Links
	var seen []string
	add := func(iri string) {
		if naming.Describable(iri) && !slices.Contains(seen, iri) && len(seen) < mostLinks {
			seen = append(seen, iri)
			e.Links = append(e.Links, link(resourcesync.RelCollection, iri))
		}
	}
	add(links.Collection)
	for _, t := range triples {
		if t.S.Kind() == rdfres.KindIRI && t.S.IRI() == entity && t.O.Kind() == rdfres.KindIRI && slices.Contains(links.Collections, t.P.IRI()) {
			add(t.O.IRI())
		}
	}
}

// deletionLinks adds the valid links of a deleted resource: the description of the set, the
// TimeGate, and its former collections.
func (m *entryMaker) deletionLinks(ctx context.Context, e *resourcesync.Entry, view *source, c *changetrack.Change, format rdfres.Format) error {
	e.Links = append(e.Links, link(resourcesync.RelDescribedBy, m.at.about()),
		link(resourcesync.RelTimeGate, m.at.url+"/timegate/"+naming.Encode(c.Entity, m.at.Prefix)+format.Suffix()))
	var triples []rdfres.Triple
	if c.Before != nil {
		var err error
		if triples, err = m.linkTriples(ctx, view, c.Entity, c.Before); err != nil {
			return err
		}
	}
	m.collectionLinks(e, c.Entity, triples)
	return nil
}

// linkTriples reads the triples for the links of a version: nil without such links.
func (m *entryMaker) linkTriples(ctx context.Context, view *source, entity string, v *changetrack.Version) ([]rdfres.Triple, error) {
	if len(m.cfg.Links.Collections) == 0 {
		return nil, nil
	}
	data, err := versionBytes(ctx, view.View, entity, v.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil // of a version no longer kept
	}
	if err != nil {
		return nil, err
	}
	return codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
}
