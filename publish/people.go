package publish

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/days"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/publish/pages"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Pages for people: package pages makes them, here they get their addresses, statuses and headers.

func (p *Publisher) site() *pages.Site { return &pages.Site{Title: p.o.Title, Base: p.base} }

// people is a state of a set for pages, nil before the first publication.
func (s *set) people(w http.ResponseWriter, r *http.Request, snap *snapshot) *pages.Set {
	ps := &pages.Set{Site: s.p.site(), Name: s.cfg.Name, Title: s.cfg.Title, URL: s.at.url, Prefix: s.at.Prefix, Static: staysStatic(w, r)}
	if snap != nil {
		ps.View = snap.view
	}
	return ps
}

// sendPage answers with a rendered page.
func (p *Publisher) sendPage(w http.ResponseWriter, r *http.Request, page []byte, err error) error {
	if err != nil {
		return err
	}
	d, err := packed(page, offer.HTMLType)
	return p.send(w, r, d, err)
}

func (p *Publisher) serveFavicon(w http.ResponseWriter, r *http.Request) error {
	d, err := packed(pages.Favicon(), pages.FaviconType)
	return p.send(w, r, d, err)
}

// serveHome is the page of the source: its sets, or those of ?set=, and how to mirror them.
func (p *Publisher) serveHome(w http.ResponseWriter, r *http.Request) error {
	home := &pages.Home{Frame: pages.Frame{Title: p.o.Title, Site: p.site(), About: p.o.Description}, Description: p.o.Description}
	home.Frame.Links = append(home.Frame.Links, pages.HeadLink{Rel: "describedby", Type: "text/turtle", Href: p.base + "/about.ttl"})
	only := r.URL.Query()["set"]
	for _, name := range p.names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		s, snap := p.present(r.Context(), name)
		c := pages.Card{Title: s.cfg.Title, Description: s.cfg.Description, About: s.at.about() + ".html", Command: s.at.mirrorCommand()}
		if err := snap.unreadable(); err != nil {
			snap.release()
			return err
		}
		if snap != nil {
			c.Counts(snap.view.Resources(), snap.view.Triples())
			c.Changed = pages.At(snap.gen.At)
			snap.release()
		}
		home.Sets = append(home.Sets, c)
		home.Frame.Links = append(home.Frame.Links, pages.HeadLink{Rel: "resourcesync", Href: s.at.capabilityList()})
	}
	page, err := home.Write()
	return p.sendPage(w, r, page, err)
}

// setPage is /SET/about for people.
func (s *set) setPage(w http.ResponseWriter, r *http.Request, snap *snapshot, services []Service) error {
	ctx, ps := r.Context(), s.people(w, r, snap)
	about := &pages.About{Description: s.cfg.Description, Command: s.at.mirrorCommand()}
	fact := func(name, value string) {
		f := pages.Fact{Name: name, Value: value}
		if naming.Absolute(value) {
			f.Href = value
		}
		if value != "" {
			about.Facts = append(about.Facts, f)
		}
	}
	var after uint64
	if snap != nil {
		fact("Descriptions", pages.Digits(snap.view.Resources()))
		fact("Triples in them", pages.Digits(snap.view.Triples()))
		if n, err := snap.view.Files(ctx); err == nil && n > 0 {
			fact("Files that they lead to", pages.Digits(n))
		}
		s.coverageFacts(ctx, ps, about, fact)
		fact("Last change", pages.At(snap.gen.At).Text+" UTC")
		fact("Changes are listed since", pages.At(snap.lists[0].From).Text+" UTC")
		if d := s.dump.Load(); d != nil && s.offers(resourcesync.ResourceDump) {
			var n int64
			for _, p := range d.Packages {
				n += p.Length
			}
			fact("Dump", pages.At(d.At).Text+" UTC, "+pages.Digits(d.Entries)+" resources, "+pages.Bytes(n))
		}
		after = max(snap.lists[len(snap.lists)-1].Last, 10) - 10
		after = max(after, snap.gen.StartSeq)
		last, err := days.Last(ctx, snap.kv, s.p.now(), shownDays)
		if err != nil {
			return err
		}
		about.Days = pages.ChartOf(last)
	}
	fact("Licence", s.cfg.Licence)
	fact("Publisher", s.cfg.Publisher)
	for _, source := range s.cfg.Via {
		fact("Mirrored from", source)
	}
	if s.at.Prefix != "" {
		about.Facts = append(about.Facts, pages.Fact{Name: "Entities begin with", Value: s.at.Prefix})
	}
	document := func(name, text, address string) {
		about.Documents = append(about.Documents, pages.Document{Name: name, Text: text, Href: address, Page: pages.PageOf(address, 1), Type: "XML"})
	}
	document("Capability List", "all that is needed to follow the rest", s.at.capabilityList())
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
				document(x.name, x.text, s.at.url+"/"+string(x.c)+".xml")
				if x.c == resourcesync.ChangeList {
					if about.Changes = s.at.url + "/changelist.html"; ps.Static {
						continue // the open Change List is another view of it
					}
					document("open Change List", "the last changes, never an index: for clients of one list", s.at.url+"/changelist-open.xml")
				}
			}
		}
	}
	links := []pages.HeadLink{
		{Rel: "alternate", Type: "text/turtle", Href: s.at.about() + ".ttl"},
		{Rel: "alternate", Type: "application/ld+json", Href: s.at.about() + ".jsonld"},
	}
	for _, x := range services {
		about.Documents = append(about.Documents, pages.Document{Name: x.Title, Text: x.Text, Href: s.at.url + x.Self, Type: "service"})
		links = append(links, pages.HeadLink{Rel: relServiceDesc, Type: x.Type, Href: s.at.url + x.Self})
	}
	about.Documents = append(about.Documents, pages.Document{Name: "This page as data", Text: "VoID and DCAT", Href: s.at.about() + ".ttl", Type: "Turtle"},
		pages.Document{Name: "This page as data", Text: "the same", Href: s.at.about() + ".jsonld", Type: "JSON-LD"})
	page, err := ps.WriteAbout(ctx, about, after, links...)
	return s.p.sendPage(w, r, page, err)
}

const (
	shownDays   = 30 // of the chart of changes
	shownGraphs = 20
)

// coverageFacts tells what the last scan found in the store.
func (s *set) coverageFacts(ctx context.Context, ps *pages.Set, about *pages.About, fact func(name, value string)) {
	if s.cfg.Coverage == nil {
		return
	}
	c := s.cfg.Coverage(ctx)
	for _, graph := range c.Graphs[:min(len(c.Graphs), shownGraphs)] {
		if graph == "*" {
			graph = "all of the store"
		}
		fact("Graph", graph)
	}
	if more := len(c.Graphs) - shownGraphs; more > 0 {
		fact("More graphs", pages.Digits(int64(more)))
	}
	switch {
	case c.Constructed > 0:
		fact("Triples of the store", pages.Digits(c.Triples)+", from which a query made the descriptions")
	case c.Triples > 0:
		fact("Triples of the store", pages.Digits(c.Triples)+", of which "+pages.Digits(c.Covered)+" are described")
	}
	if c.Vocabulary.Properties == 0 {
		return
	}
	fact("Vocabulary", pages.Count(c.Vocabulary.Classes, "class", "classes")+", "+pages.Count(c.Vocabulary.Properties, "property", "properties"))
	about.Classes, about.Properties = parts(ctx, ps, c.Vocabulary.LargestClasses), parts(ctx, ps, c.Vocabulary.LargestProperties)
}

func parts(ctx context.Context, ps *pages.Set, counts []Count) (out []pages.Part) {
	for _, c := range counts[:min(len(counts), 10)] {
		out = append(out, ps.Part(ctx, c.IRI, c.Count))
	}
	return out
}

// servePage is a description for people. A deleted entity has its last version there, with status 410.
func (s *set) servePage(w http.ResponseWriter, r *http.Request, snap *snapshot, name, suffix string) error {
	ctx, version := r.Context(), r.URL.Query().Get("version")
	st, v, err := s.choose(ctx, snap, name, suffix, version)
	ps := s.people(w, r, snap)
	if gone := (*statusError)(nil); errors.As(err, &gone) && gone.code == http.StatusGone && st.Deleted != nil && st.Deleted.Before != nil {
		page, err := ps.Entity(ctx, &st, st.Deleted.Before, false)
		if err != nil && !errors.Is(err, pages.ErrNotKept) {
			return err
		}
		gone.page = page
		return gone
	}
	if err != nil {
		return err
	}
	render := func() (*document, error) {
		page, err := ps.Entity(ctx, &st, v, version != "")
		if errors.Is(err, pages.ErrNotKept) {
			return nil, s.notKept(&st, v.Sequence)
		}
		if err != nil {
			return nil, err
		}
		return packed(page, offer.HTMLType)
	}
	var d *document
	if version == "" {
		key := s.cfg.Name + "\x00" + strconv.FormatUint(snap.gen.Number, 36) + "\x00" + name + "\x00page" + strconv.FormatBool(ps.Static)
		d, err = s.p.hot.Get(ctx, key, render)
	} else {
		d, err = render()
	}
	if err != nil {
		return err
	}
	own := *d // the address is this request's
	own.linked = &linked{&s.at, name, suffix, st.Entity, v, offer.HTML, version != ""}
	if version != "" {
		own.memento = v.Time
	}
	s.p.answer(w, r, &own)
	return nil
}

func (s *set) notKept(st *changetrack.State, sequence uint64) error {
	return notFound("The version %d of this description is not kept.", sequence).
		hint("The versions that are kept are listed at %s.", s.at.timeMap(st.Entity, ""))
}

// serveHistory answers /SET/history/NAME and, with two versions, /SET/compare/NAME.
func (s *set) serveHistory(w http.ResponseWriter, r *http.Request, snap *snapshot, head, rest string) error {
	name, err := unescapePath(rest)
	if err != nil {
		return err
	}
	ctx, query := r.Context(), r.URL.Query()
	st, err := s.find(ctx, snap, name)
	if err != nil {
		return err
	}
	number := func(key string) (uint64, error) {
		n, err := strconv.ParseUint(query.Get(key), 10, 63)
		if err != nil && (query.Get(key) != "" || head == "compare") {
			return 0, &statusError{code: http.StatusBadRequest, reason: key + "=" + strconv.Quote(clip.Middle(query.Get(key))) + ": want the number of a change."}
		}
		return n, nil
	}
	ps := s.people(w, r, snap)
	if head == "history" {
		before, err := number("before")
		if err != nil {
			return err
		}
		page, err := ps.History(ctx, &st, before)
		return s.p.sendPage(w, r, page, err)
	}
	var versions [2]*changetrack.Version
	for i, key := range []string{"from", "to"} {
		n, err := number(key)
		if err == nil {
			versions[i], err = snap.version(ctx, &st, n)
		}
		if err != nil {
			return err
		}
	}
	page, err := ps.Compare(ctx, &st, versions[0], versions[1])
	if errors.Is(err, pages.ErrNotKept) {
		err = notFound("One of these versions of the description is not kept.").hint("The versions that are kept are listed at %s.", s.at.timeMap(st.Entity, ""))
	}
	return s.p.sendPage(w, r, page, err)
}

// serveNames answers /SET/search?q= and /SET/browse.
func (s *set) serveNames(w http.ResponseWriter, r *http.Request, snap *snapshot, head string) error {
	ps, query := s.people(w, r, snap), r.URL.Query()
	if head == "browse" {
		page, making, err := ps.Browse(r.Context(), s.names, query.Get("letter"), query.Get("after"))
		return s.sendNames(w, r, page, making, err)
	}
	page, found, making, err := ps.Search(r.Context(), s.names, query.Get("q"))
	if found != "" {
		w.Header().Set("Location", naming.HeaderSafe(found))
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.sendNames(w, r, page, making, err)
}

// serveAlphabet answers the alphabet for files, below /SET/. A Link header leads to the next page to be made.
func (s *set) serveAlphabet(w http.ResponseWriter, r *http.Request, snap *snapshot, path string) error {
	page, next, making, err := s.people(w, r, snap).Alphabet(r.Context(), s.names, path, r.URL.Query().Get("after"))
	if next != "" {
		w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	return s.sendNames(w, r, page, making, noPage(err))
}

func (s *set) sendNames(w http.ResponseWriter, r *http.Request, page []byte, making bool, err error) error {
	if making {
		w.Header().Set("Refresh", "2")
	}
	if errors.Is(err, pages.ErrMark) {
		err = &statusError{code: http.StatusBadRequest, reason: "after: want what the link to the next page has."}
	}
	return s.p.sendPage(w, r, page, err)
}
