package publish

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

//go:embed pages
var pageFiles embed.FS

var (
	pageTemplates = template.Must(template.ParseFS(pageFiles, "pages/*.html"))
	pageStyle     = func() template.CSS {
		data, err := pageFiles.ReadFile("pages/style.css")
		if err != nil {
			panic(err) // it is embedded
		}
		return template.CSS(data)
	}()
)

// Limits of a page.
const (
	pageValues  = 200 // of one property
	pageHistory = 100
	pageDepth   = 8   // of nested blank nodes
	pageLocal   = 300 // IRIs looked up in the set
	pageLabels  = 40  // linked descriptions read for their label
)

type pageLink struct{ Rel, Type, Href string }

type fact struct {
	Name, Value, Href string
}

func (p *Publisher) page(name string, data map[string]any) (*document, error) {
	data["Style"], data["Home"], data["WellKnown"] = pageStyle, p.base+"/", p.wellKnown()
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return packed(b.Bytes(), offer.HTMLType)
}

func humanTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// serveHome is the page of the source: its sets, and how to mirror them.
func (p *Publisher) serveHome(w http.ResponseWriter, r *http.Request) error {
	type card struct {
		Title, Description, About, Command, Resources, Triples, Changed, ChangedISO string
		Published                                                                   bool
	}
	var cards []card
	links := []pageLink{{Rel: "describedby", Type: "text/turtle", Href: p.base + "/about.ttl"}}
	for _, name := range p.names {
		s, snap := p.present(r.Context(), name)
		c := card{Title: s.cfg.Title, Description: s.cfg.Description, About: s.at.about() + ".html", Command: s.at.mirrorCommand()}
		if err := snap.unreadable(); err != nil {
			snap.release()
			return err
		}
		if snap != nil {
			c.Published, c.Resources, c.Triples = true, groupDigits(snap.view.Resources()), groupDigits(snap.view.Triples())
			c.Changed, c.ChangedISO = humanTime(snap.gen.At), resourcesync.FormatTime(snap.gen.At)
			snap.release()
		}
		cards = append(cards, c)
		links = append(links, pageLink{Rel: "resourcesync", Href: s.at.capabilityList()})
	}
	d, err := p.page("home.html", map[string]any{"Title": p.o.Title, "Sets": cards, "HeadLinks": links})
	return p.send(w, r, d, err)
}

// setPage is /SET/about for people.
func (s *set) setPage(ctx context.Context, snap *snapshot, services []Service) (*document, error) {
	var facts, documents, some []fact
	type row struct{ Time, ISO, Kind, Label, Href string }
	var recent []row
	if snap != nil {
		facts = append(facts,
			fact{Name: "Descriptions", Value: groupDigits(snap.view.Resources())},
			fact{Name: "Triples in them", Value: groupDigits(snap.view.Triples())})
		if n, err := snap.view.Files(ctx); err == nil && n > 0 {
			facts = append(facts, fact{Name: "Files that they lead to", Value: groupDigits(n)})
		}
		if s.cfg.Coverage != nil {
			if c := s.cfg.Coverage(ctx); c.Triples > 0 {
				value := groupDigits(c.Triples) + ", of which " + groupDigits(c.Covered) + " are described"
				if c.Constructed > 0 {
					value = groupDigits(c.Triples) + ", from which a query made the descriptions"
				}
				facts = append(facts, fact{Name: "Triples of the store", Value: value})
			}
			if v := s.cfg.Coverage(ctx).Vocabulary; v.Properties > 0 {
				facts = append(facts, fact{Name: "Vocabulary", Value: groupDigits(v.Classes) + " classes, " + groupDigits(v.Properties) + " properties"})
			}
		}
		facts = append(facts,
			fact{Name: "Last change", Value: humanTime(snap.gen.At) + " UTC"},
			fact{Name: "Changes are listed since", Value: humanTime(snap.lists[0].From) + " UTC"})
		if d := s.dump.Load(); d != nil && s.offers(resourcesync.ResourceDump) {
			var n int64
			for _, p := range d.Packages {
				n += p.Length
			}
			facts = append(facts, fact{Name: "Dump", Value: humanTime(d.At) + " UTC, " + groupDigits(d.Entries) + " resources, " + shortBytes(n), Href: s.at.url + "/resourcedump.xml"})
		}
	}
	if s.cfg.Licence != "" {
		f := fact{Name: "Licence", Value: s.cfg.Licence}
		if naming.Absolute(s.cfg.Licence) {
			f.Href = s.cfg.Licence
		}
		facts = append(facts, f)
	}
	if s.cfg.Publisher != "" {
		f := fact{Name: "Publisher", Value: s.cfg.Publisher}
		if naming.Absolute(s.cfg.Publisher) {
			f.Href = s.cfg.Publisher
		}
		facts = append(facts, f)
	}
	for _, source := range s.cfg.Via {
		facts = append(facts, fact{Name: "Mirrored from", Value: source, Href: source})
	}
	if s.at.Prefix != "" {
		facts = append(facts, fact{Name: "Entities begin with", Value: s.at.Prefix})
	}
	documents = append(documents, fact{"Capability List", "all that is needed to follow the rest", s.at.capabilityList()})
	if snap != nil {
		for _, x := range []struct {
			c          resourcesync.Capability
			name, text string
			there      bool
		}{
			{resourcesync.ResourceList, "Resource List", "every description with its hash", true},
			{resourcesync.ResourceDump, "Resource Dump", "all of them packed, to begin a copy with", s.dump.Load() != nil},
			{resourcesync.ChangeList, "Change List", "what was created, updated and deleted, in order", true},
			{resourcesync.ChangeDump, "Change Dump", "older changes packed", len(*s.changeDumps.Load()) > 0},
		} {
			if x.there && s.offers(x.c) {
				documents = append(documents, fact{x.name, x.text, s.at.url + "/" + string(x.c) + ".xml"})
				if x.c == resourcesync.ChangeList {
					documents = append(documents, fact{"open Change List", "the last changes, never an index: for clients of one list", s.at.url + "/changelist-open.xml"})
				}
			}
		}
	}
	links := []pageLink{
		{Rel: "resourcesync", Href: s.at.capabilityList()},
		{Rel: "alternate", Type: "text/turtle", Href: s.at.about() + ".ttl"},
		{Rel: "alternate", Type: "application/ld+json", Href: s.at.about() + ".jsonld"},
	}
	for _, x := range services {
		documents = append(documents, fact{x.Title, x.Text, s.at.url + x.Self})
		links = append(links, pageLink{Rel: relServiceDesc, Type: x.Type, Href: s.at.url + x.Self})
	}
	documents = append(documents, fact{"Turtle", "this page as VoID and DCAT", s.at.about() + ".ttl"}, fact{"JSON-LD", "the same", s.at.about() + ".jsonld"})
	if snap != nil {
		after := snap.lists[len(snap.lists)-1].Last
		if after = max(after, 10) - 10; after < snap.gen.StartSeq {
			after = snap.gen.StartSeq
		}
		for c, err := range snap.view.Changes(ctx, after) {
			if err != nil {
				return nil, err
			}
			if c.OfFile() {
				x := row{Time: humanTime(c.Time), ISO: resourcesync.FormatTime(c.Time), Kind: string(c.Kind), Label: clip.Middle(c.File)}
				if c.FileAfter != nil {
					x.Href = c.File
				}
				recent = append(recent, x)
			}
			if !c.OfEntity() {
				continue
			}
			x := row{Time: humanTime(c.Time), ISO: resourcesync.FormatTime(c.Time), Kind: string(c.Kind), Label: clip.Middle(c.Entity)}
			if c.After != nil {
				x.Href = s.at.generic(c.Entity) + ".html" + versionQuery(c.After, true)
			}
			recent = append(recent, x)
		}
		slices.Reverse(recent)
		for st, err := range snap.view.Current(ctx, rdfres.Digest{}, rdfres.Digest{}) {
			if err != nil {
				return nil, err
			}
			if some = append(some, fact{Name: clip.Middle(st.Entity), Href: s.at.generic(st.Entity) + ".html"}); len(some) >= 10 {
				break
			}
		}
	}
	return s.p.page("set.html", map[string]any{
		"Title": s.cfg.Title, "Description": s.cfg.Description, "Published": snap != nil, "Facts": facts, "Documents": documents,
		"Recent": recent, "Some": some, "Command": s.at.mirrorCommand(),
		"HeadLinks": links,
	})
}

// value is an object on a page.
type value struct {
	Text, Href, Title, Lang, Datatype string
	Rows                              []row
}

// row is a property and its values.
type row struct {
	IRI, Name, Href string
	Values          []value
	More            int
}

// describer lays out the triples of one description.
type describer struct {
	snap      *snapshot
	bySubject map[rdfres.Term][]rdfres.Triple
	shown     map[rdfres.Term]bool // blank nodes
	local     int
	labels    int
}

// page is a description for people: its label, its properties with blank nodes
// nested, and its history.
func (s *set) page(ctx context.Context, snap *snapshot, st *changetrack.State, v *changetrack.Version, memento bool) (*document, error) {
	triples, err := snap.triples(ctx, st.Entity, v)
	if err != nil {
		return nil, err
	}
	d := &describer{snap: snap, bySubject: map[rdfres.Term][]rdfres.Triple{}, shown: map[rdfres.Term]bool{}}
	var subjects []rdfres.Term
	for _, t := range triples {
		if _, ok := d.bySubject[t.S]; !ok {
			subjects = append(subjects, t.S)
		}
		d.bySubject[t.S] = append(d.bySubject[t.S], t)
	}
	entity := rdfres.NewIRI(st.Entity)
	rows := d.rows(ctx, entity, 0)
	type other struct {
		Name string
		Rows []row
	}
	var others []other
	for _, subject := range subjects { // not shown nested before: orphans, incoming triples
		if subject != entity && !d.shown[subject] {
			name := "about " + shortTerm(subject)
			if subject.Kind() == rdfres.KindBlank {
				d.shown[subject] = true
				name = "A node without a name"
			}
			others = append(others, other{name, d.rows(ctx, subject, 0)})
		}
	}
	type entry struct {
		Time, ISO, Kind, Href, Triples string
		Sequence                       uint64
	}
	var history []entry
	base := s.at.generic(st.Entity)
	var before *changetrack.Version // of the version shown
	for c, err := range snap.view.History(ctx, st.Entity) {
		if err != nil {
			return nil, err
		}
		if c.After != nil && c.After.Sequence == v.Sequence {
			before = c.Before
		}
		e := entry{Time: humanTime(c.Time), ISO: resourcesync.FormatTime(c.Time), Kind: string(c.Kind), Sequence: c.Sequence}
		if c.After != nil {
			e.Href = base + ".html" + versionQuery(c.After, true)
			e.Triples = groupDigits(int64(c.After.Triples))
		}
		if history = append(history, e); len(history) > pageHistory {
			history = history[1:]
		}
	}
	slices.Reverse(history)
	var formats []fact
	headLinks := []pageLink{{Rel: "resourcesync", Href: s.at.capabilityList()}, {Rel: "canonical", Href: base}}
	for _, f := range offer.Formats(v) {
		if f != offer.HTML {
			address := base + offer.Suffix(f) + versionQuery(v, memento)
			formats = append(formats, fact{Name: formatName(f), Value: offer.MediaType(f), Href: address})
			headLinks = append(headLinks, pageLink{Rel: "alternate", Type: offer.MediaType(f), Href: address})
		}
	}
	title := clip.Middle(rdfres.Label(entity, d.bySubject[entity]))
	if title == "" {
		title = localName(st.Entity)
	}
	data := map[string]any{
		"Title": title, "Entity": st.Entity, "Set": s.cfg.Title, "About": s.at.about() + ".html", "Rows": rows, "Others": others, "History": history,
		"Formats": formats, "HeadLinks": headLinks, "Memento": memento, "Time": humanTime(v.Time), "ISO": resourcesync.FormatTime(v.Time),
		"Hash": v.Fixity.SHA256.String(), "MainName": formatName(v.Format),
	}
	if memento && before != nil {
		if old, err := snap.triples(ctx, st.Entity, before); err == nil { // otherwise it is no longer kept
			data["Removed"], data["Added"] = difference(old, triples), difference(triples, old)
		}
	}
	if naming.Absolute(st.Entity) {
		data["EntityHref"] = st.Entity
	}
	if st.Current != nil {
		data["Now"] = base + ".html"
	}
	return s.p.page("description.html", data)
}

// difference gives the statements of a missing in b, as lines, at most pageValues of them.
func difference(a, b []rdfres.Triple) (lines []string) {
	have := make(map[rdfres.Triple]bool, len(b))
	for _, t := range b {
		have[t] = true
	}
	for _, t := range a {
		if !have[t] && len(lines) < pageValues {
			lines = append(lines, shortTerm(t.S)+"  "+shortTerm(t.P)+"  "+shortTerm(t.O))
		}
	}
	return lines
}

func (d *describer) rows(ctx context.Context, subject rdfres.Term, depth int) []row {
	var rows []row
	at := map[rdfres.Term]int{}
	for _, t := range d.bySubject[subject] {
		i, ok := at[t.P]
		if !ok {
			i = len(rows)
			at[t.P] = i
			iri := t.P.IRI()
			r := row{IRI: iri, Name: shortIRI(iri)}
			if naming.Absolute(iri) {
				r.Href = iri
			}
			rows = append(rows, r)
		}
		if len(rows[i].Values) >= pageValues {
			rows[i].More++
			continue
		}
		rows[i].Values = append(rows[i].Values, d.value(ctx, t.O, depth))
	}
	return rows
}

func (d *describer) value(ctx context.Context, o rdfres.Term, depth int) value {
	switch o.Kind() {
	case rdfres.KindIRI:
		iri := o.IRI()
		v := value{Text: shortIRI(iri), Title: iri}
		if text, ok := d.here(ctx, iri); ok {
			v.Href = d.snap.set.at.generic(iri) + ".html"
			if text != "" {
				v.Text = text
			}
		} else if naming.Absolute(iri) {
			v.Href = iri
		}
		return v
	case rdfres.KindBlank:
		if len(d.bySubject[o]) > 0 && !d.shown[o] && depth < pageDepth {
			d.shown[o] = true
			return value{Rows: d.rows(ctx, o, depth+1)}
		}
		return value{Text: "_:" + o.Label()}
	}
	lexical, lang, datatype := o.Literal()
	v := value{Text: lexical, Lang: lang}
	if lang == "" && datatype != nsXSD+"string" {
		v.Datatype, v.Title = shortIRI(datatype), datatype
	}
	return v
}

// here tells whether this set describes an IRI, and its label.
func (d *describer) here(ctx context.Context, iri string) (text string, ok bool) {
	if d.local++; d.local > pageLocal {
		return "", false
	}
	st, err := d.snap.view.Entity(ctx, iri)
	if err != nil || st.Current == nil {
		return "", false
	}
	if d.labels++; d.labels > pageLabels || st.Current.Fixity.Length > 64<<10 {
		return "", true
	}
	ts, err := d.snap.triples(ctx, iri, st.Current)
	if err != nil {
		return "", true
	}
	return clip.Middle(rdfres.Label(rdfres.NewIRI(iri), ts)), true
}

func formatName(f rdfres.Format) string {
	switch f {
	case rdfres.JSONLD:
		return "JSON-LD"
	case rdfres.NTriples:
		return "N-Triples"
	case rdfres.Turtle:
		return "Turtle"
	case rdfres.RDFXML:
		return "RDF/XML"
	}
	return strings.ToUpper(string(f))
}

// prefixes of names on pages.
var prefixes = []struct{ prefix, ns string }{
	{"rdf", nsRDF}, {"rdfs", nsRDFS}, {"xsd", nsXSD}, {"owl", "http://www.w3.org/2002/07/owl#"}, {"skos", "http://www.w3.org/2004/02/skos/core#"},
	{"dcterms", nsDCT}, {"dc", "http://purl.org/dc/elements/1.1/"}, {"foaf", nsFOAF}, {"void", nsVoID}, {"dcat", nsDCAT},
	{"schema", "https://schema.org/"}, {"schema", "http://schema.org/"}, {"geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"},
	{"prov", "http://www.w3.org/ns/prov#"}, {"sh", "http://www.w3.org/ns/shacl#"}, {"dbo", "http://dbpedia.org/ontology/"},
	{"dbr", "http://dbpedia.org/resource/"}, {"dbp", "http://dbpedia.org/property/"}, {"wd", "http://www.wikidata.org/entity/"},
}

func shortIRI(iri string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(iri, p.ns); ok && rest != "" {
			return p.prefix + ":" + rest
		}
	}
	return iri
}

func shortTerm(t rdfres.Term) string {
	if t.Kind() == rdfres.KindIRI {
		return shortIRI(t.IRI())
	}
	return string(t)
}

func localName(iri string) string {
	s := strings.TrimRight(iri, "/#")
	if i := strings.LastIndexAny(s, "/#"); i >= 0 && i+1 < len(s) && !naming.IsComponent(iri) {
		s = s[i+1:]
	}
	return clip.Middle(strings.ReplaceAll(s, "_", " "))
}
