package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	acceptDocument = "application/xml, text/xml;q=0.9, */*;q=0.5"
	acceptAny      = "application/xml, text/xml;q=0.9, text/html;q=0.8, */*;q=0.5"
)

// Offer is a source's offer for one set. Empty addresses are not offered.
type Offer struct {
	CapabilityList string
	ResourceList   string
	ResourceDump   string
	ChangeList     string
	ChangeDump     string
	ChangeArchive  string // changelist-archive
	DumpArchive    string // changedump-archive
	ListArchive    string // resourcelist-archive
	Inventory      string // the present root of the in-sync inventory
	Authority      string // scheme://host for skolem IRIs
	Found          string // how it was found, for people
	Way            Way
	Plain          bool // a Sitemap or feed, as sites have of their pages too
	Channels       []Channel
	Framework      []Channel // of its documents: lists, dumps, sets
	Reports        string    // takes the positions of mirrors
	ChangesFrom    string    // before the number of a change and .xml: the open Change List from there on
}

// Channel tells of changes of the resources, as they come.
type Channel struct {
	Loc    string   // a topic, or a WebSocket: the scheme tells them apart
	Hubs   []string // of a topic
	Events string   // the address of server-sent events, "" for none
}

const mostChannels = 10

// channelsOf are the channels of an entry: its loc, and a socket linked as its alternate.
func channelsOf(e *resourcesync.Entry) []Channel {
	c, sockets := Channel{Loc: e.Loc}, []Channel(nil)
	for _, l := range e.Links {
		switch {
		case l.Rel == resourcesync.RelHub:
			c.Hubs = append(c.Hubs, l.Href)
		case l.Rel == resourcesync.RelAlternate && fetch.Essence(l.Type) == "text/event-stream" && c.Events == "":
			c.Events = l.Href
		case l.Rel == resourcesync.RelAlternate && (strings.HasPrefix(l.Href, "ws:") || strings.HasPrefix(l.Href, "wss:")):
			sockets = append(sockets, Channel{Loc: l.Href})
		}
	}
	return append([]Channel{c}, sockets...)
}

// Way is how an offer was found, the surest way first.
type Way int

const (
	ByAddress Way = iota // the configured address is a document
	byPage
	byWellKnown
	byRobots
	byGuess
)

// set takes the address of a capability; before is the one it had.
func (o *Offer) set(c resourcesync.Capability, address string) (before string, used bool) {
	var p *string
	switch c {
	case resourcesync.ResourceList:
		p = &o.ResourceList
	case resourcesync.ResourceDump:
		p = &o.ResourceDump
	case resourcesync.ChangeList:
		p = &o.ChangeList
	case resourcesync.ChangeDump:
		p = &o.ChangeDump
	case resourcesync.ChangeListArchive:
		p = &o.ChangeArchive
	case resourcesync.ChangeDumpArchive:
		p = &o.DumpArchive
	case resourcesync.ResourceListArchive:
		p = &o.ListArchive
	default:
		return "", false
	}
	if before = *p; before == "" {
		*p = address
	}
	return before, true
}

// Address names the set.
func (o *Offer) Address() string {
	return cmp.Or(o.CapabilityList, o.ResourceList, o.ResourceDump, o.ChangeList, o.ChangeDump)
}

// Changes is the place of the changes: the Change List, or, without one, the manifests of the
// Change Dump; "" for a source without either.
func (o *Offer) Changes() (address string, kind resourcesync.Capability) {
	if o.ChangeList == "" && o.ChangeDump != "" {
		return o.ChangeDump, resourcesync.ChangeDump
	}
	return o.ChangeList, resourcesync.ChangeList
}

// Listed tells whether the source lists its resources.
func (o *Offer) Listed() bool { return o.ResourceList+o.ResourceDump != "" }

// Followed tells whether the source tells its changes.
func (o *Offer) Followed() bool { return o.ChangeList+o.ChangeDump != "" }

func (o *Offer) empty() bool {
	return o.ResourceList == "" && o.ResourceDump == "" && o.ChangeList == "" && o.ChangeDump == ""
}

// errNotDocument marks a body without a ResourceSync document or Sitemap.
var errNotDocument = errors.New("no ResourceSync document")

// ErrNothingYet comes for a set to be followed later, perhaps.
var ErrNothingYet = errors.New("offers neither lists nor dumps: the source may not have been scanned yet")

// discovery finds the configured set.
type discovery struct {
	*Documents
	keeper keeper
}

func (src *Source) discovery() *discovery { return &discovery{src.Docs, src.keeper} }

// Discover finds the set to be followed.
func (src *Source) Discover(ctx context.Context) (*Offer, error) {
	src.stands = 0 // it may be another source
	return src.discovery().discover(ctx)
}

// LeadsToSource tells whether an address is one of ResourceSync, and not only a Sitemap. While
// it cannot be asked it may be.
func (src *Source) LeadsToSource(ctx context.Context, address string) bool {
	o, err := src.discovery().discoverFrom(ctx, address, false)
	return passing(err) || err == nil && !o.Plain
}

// discover finds the set to be followed from whatever address was configured.
func (src *discovery) discover(ctx context.Context) (*Offer, error) {
	o, err := src.discoverFrom(ctx, src.opt.Source, true)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), clip.Middle(src.opt.Source)): // it tells the address
		err = fmt.Errorf("discover: %w", err)
	default:
		err = fmt.Errorf("discover %s: %w", clip.Middle(src.opt.Source), err)
	}
	return o, err
}

// passing tells of an error: the thing may be there all the same.
func passing(err error) bool {
	var fe *fetch.Error
	return errors.As(err, &fe) && fe.Temporary || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (src *discovery) discoverFrom(ctx context.Context, address string, pages bool) (*Offer, error) {
	dl, err := src.list(ctx, fetch.Request{URL: address, Accept: acceptAny, Gzip: true, MaxBytes: src.lim.Document}, nil)
	if err != nil {
		var fe *fetch.Error
		if pages && errors.As(err, &fe) && fe.Gone && IsSiteRoot(address) {
			return src.discoverSite(ctx, address, nil)
		}
		return nil, err
	}
	defer dl.Close()
	r, err := src.reader(dl)
	if err == nil {
		return src.discoverDocument(ctx, dl.URL, r)
	}
	if !errors.Is(err, errNotDocument) {
		return nil, err
	}
	if !pages {
		return nil, err
	}
	return src.discoverSite(ctx, dl.URL, dl)
}

// IsSiteRoot tells an address without a path: of a site, and of no document.
func IsSiteRoot(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.Trim(u.Path, "/") == ""
}

// discoverDocument goes on from a document of any kind.
func (src *discovery) discoverDocument(ctx context.Context, address string, r *resourcesync.Reader) (*Offer, error) {
	h := r.Head()
	switch h.Meta.Capability {
	case resourcesync.Description:
		return src.discoverSets(ctx, address, r)
	case resourcesync.CapabilityList:
		if h.Index {
			return src.discoverSets(ctx, address, r)
		}
		return src.capabilityList(address, r)
	case resourcesync.ResourceList, resourcesync.ResourceDump, resourcesync.ChangeList, resourcesync.ChangeDump, "":
		kind := h.Meta.Capability
		if kind == "" {
			kind = resourcesync.ResourceList // a plain Sitemap is a Resource List without times
		}
		if o, err := src.fromParent(ctx, address, h, kind, 0); o != nil || err != nil {
			return o, err
		}
		o := &Offer{Authority: authorityOf(address), Found: "the address is a " + string(kind)}
		if h.Meta.Capability == "" {
			o.Found, o.Plain = "the address is a plain Sitemap", true
		}
		o.Plain = o.Plain || h.Feed
		o.set(kind, address)
		return o, nil
	}
	return nil, fmt.Errorf("a document of capability %q is no start: give the address of the site, its Source Description, a Capability List or a list", h.Meta.Capability)
}

// fromParent follows the links of a list up to its Capability List, for a part of an index over
// the index; nil if they lead nowhere. Only fetched documents decide.
func (src *discovery) fromParent(ctx context.Context, address string, h *resourcesync.Head, kind resourcesync.Capability, depth int) (*Offer, error) {
	if depth > src.lim.depth {
		return nil, nil
	}
	for _, up := range []string{h.Parent(), h.IndexURL()} {
		if up == "" || up == address || !src.fetch.MayFetch(up) {
			continue
		}
		dl, err := src.list(ctx, fetch.Request{URL: up, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.Document, Attempts: 2}, nil)
		if err != nil {
			if passing(err) || up == h.IndexURL() && src.keeper.Stage() != ledger.None {
				return nil, err // the list may be a part of one, and not the whole
			}
			src.log.Debug("discover: the link up leads nowhere", "from", address, "up", up, "error", err)
			continue
		}
		r, err := src.reader(dl)
		if err != nil {
			dl.Close()
			continue
		}
		ph := r.Head()
		if ph.Meta.Capability == resourcesync.CapabilityList && !ph.Index {
			o, err := src.capabilityList(dl.URL, r)
			dl.Close()
			if err != nil {
				continue
			}
			if !slices.Contains([]string{o.ResourceList, o.ResourceDump, o.ChangeList, o.ChangeDump}, address) {
				src.log.Debug("discover: the address is a part of what its Capability List names", "list", address, "capabilitylist", up)
			}
			return o, nil
		}
		dl.Close()
		if ph.Meta.Capability == kind && ph.Index {
			if o, err := src.fromParent(ctx, dl.URL, ph, kind, depth+1); o != nil || err != nil {
				return o, err
			}
			o := &Offer{Authority: authorityOf(dl.URL), Found: "the address is a part of " + dl.URL}
			o.set(kind, dl.URL)
			return o, nil
		}
	}
	return nil, nil
}

// capabilityList reads the offer of one set.
func (src *discovery) capabilityList(address string, r *resourcesync.Reader) (*Offer, error) {
	o := &Offer{CapabilityList: address, Authority: authorityOf(address), Found: "Capability List " + address}
	for _, l := range r.Head().Links {
		switch {
		case l.Rel == InventoryRel && o.Inventory == "":
			o.Inventory = l.Href
		case l.Rel == resourcesync.RelPosition && o.Reports == "":
			o.Reports = l.Href
		case l.Rel == resourcesync.RelChangesFrom && o.ChangesFrom == "":
			o.ChangesFrom = l.Href
		}
	}
	for n := 0; ; n++ {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("Capability List %s: %w", clip.Middle(address), err)
		}
		if n > src.lim.Sets {
			return nil, fmt.Errorf("Capability List %s has more than %d entries", clip.Middle(address), src.lim.Sets)
		}
		switch before, used := o.set(e.Meta.Capability, e.Loc); {
		case e.Loc == "":
			return nil, fmt.Errorf("Capability List %s line %d: the entry of capability %q has no loc, and without that document nothing can be concluded", clip.Middle(address), e.Line, e.Meta.Capability)
		case e.Meta.Capability == "":
			return nil, fmt.Errorf("Capability List %s line %d: the entry %s does not tell its capability, and without it nothing can be concluded", clip.Middle(address), e.Line, clip.Middle(e.Loc))
		case before != "" && before != e.Loc:
			return nil, fmt.Errorf("Capability List %s names two documents of capability %s, %s and %s: give the address of the one to follow", clip.Middle(address), e.Meta.Capability, clip.Middle(before), clip.Middle(e.Loc))
		case e.Meta.Capability == resourcesync.ChangeNotification:
			o.Channels = append(o.Channels, channelsOf(e)...)
			o.Channels = o.Channels[:min(len(o.Channels), mostChannels)]
		case e.Meta.Capability == resourcesync.FrameworkNotification:
			o.Framework = append(o.Framework, channelsOf(e)...)
			o.Framework = o.Framework[:min(len(o.Framework), mostChannels)]
		case !used:
			src.log.Debug("discover: capability is not used", "capability", e.Meta.Capability, "loc", e.Loc)
		}
	}
	if o.empty() {
		return nil, fmt.Errorf("Capability List %s %w", clip.Middle(address), ErrNothingYet)
	}
	return o, nil
}

// offered is one set of a Source Description.
type offered struct{ list, about string }

// discoverSets reads a Source Description, or an index of them or of Capability
// Lists, and chooses the set.
func (src *discovery) discoverSets(ctx context.Context, address string, r *resourcesync.Reader) (*Offer, error) {
	var sets []offered
	seen := map[string]bool{address: true}
	if err := src.collectSets(ctx, address, r, &sets, seen, 0); err != nil {
		return nil, err
	}
	set, err := src.chooseSet(sets)
	if err != nil {
		return nil, fmt.Errorf("%s %w", clip.Middle(address), err)
	}
	dl, err := src.list(ctx, fetch.Request{URL: set.list, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.Document}, nil)
	if err != nil {
		return nil, fmt.Errorf("Capability List: %w", err)
	}
	defer dl.Close()
	cr, err := src.reader(dl)
	if err != nil {
		return nil, err
	}
	if c := cr.Head().Meta.Capability; c != resourcesync.CapabilityList {
		return nil, fmt.Errorf("%s was announced as a Capability List and is a document of capability %q (the source contradicts itself: tell who runs it; nothing was changed)", clip.Middle(dl.URL), c)
	}
	return src.capabilityList(dl.URL, cr)
}

func (src *discovery) collectSets(ctx context.Context, address string, r *resourcesync.Reader, sets *[]offered, seen map[string]bool, depth int) error {
	h := r.Head()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", clip.Middle(address), err)
		}
		if len(*sets) >= src.lim.Sets || len(seen) > src.lim.Sets {
			return fmt.Errorf("%s offers more than %d sets", clip.Middle(address), src.lim.Sets)
		}
		if e.Loc == "" {
			return fmt.Errorf("%s line %d: an entry has no loc, and without that set nothing can be concluded", clip.Middle(address), e.Line)
		}
		if h.Index && h.Meta.Capability == resourcesync.Description {
			if depth >= src.lim.depth || seen[e.Loc] {
				return fmt.Errorf("%s: the index of Source Descriptions turns in circles at %s", clip.Middle(address), clip.Middle(e.Loc))
			}
			seen[e.Loc] = true
			dl, err := src.list(ctx, fetch.Request{URL: e.Loc, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.Document}, nil)
			if err != nil {
				return err
			}
			pr, err := src.reader(dl)
			if err == nil {
				err = src.collectSets(ctx, dl.URL, pr, sets, seen, depth+1)
			}
			dl.Close()
			if err != nil {
				return err
			}
			continue
		}
		s := offered{list: e.Loc}
		if l := e.Link(resourcesync.RelDescribedBy); l != nil {
			s.about = l.Href
		}
		*sets = append(*sets, s)
	}
}

// chooseSet takes the only set, or the configured one: by the address of its Capability List, by
// its description, or by its name, the folder or file name in one of the two.
func (src *discovery) chooseSet(sets []offered) (offered, error) {
	want := src.opt.Set
	if len(sets) == 0 {
		return offered{}, errors.New("offers no set")
	}
	var found []offered
	for _, s := range sets {
		if want == "" || s.list == want || s.about == want || slices.Contains(setNames(s), want) {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var b strings.Builder
	switch {
	case len(found) == 0:
		fmt.Fprintf(&b, "offers no set %q; it has", want)
	case want == "":
		fmt.Fprintf(&b, "offers %d sets; choose one with %s:", len(sets), src.opt.Settings.Of("set"))
	default:
		fmt.Fprintf(&b, "offers %d sets that %q can mean; name one by the address of its Capability List:", len(found), want)
		sets = found
	}
	for i, s := range sets {
		if i == 20 {
			fmt.Fprintf(&b, " and %d more", len(sets)-i)
			break
		}
		name := ""
		if n := setNames(s); len(n) > 0 {
			name = n[0]
		}
		fmt.Fprintf(&b, " %s (%s)", name, clip.Middle(s.list))
	}
	return offered{}, errors.New(b.String())
}

func setNames(s offered) []string {
	var names []string
	add := func(n string) {
		if n != "" && n != "." && n != "/" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, a := range []string{s.list, s.about} {
		u, err := url.Parse(a)
		if err != nil || a == "" {
			continue
		}
		p := strings.Trim(u.Path, "/")
		base := path.Base(p)
		stem := strings.TrimSuffix(base, path.Ext(base))
		if a == s.list {
			if dir := path.Base(path.Dir(p)); stem == "capabilitylist" || stem == "capability-list" {
				add(dir)
			}
			add(stem)
			add(base)
			add(path.Base(path.Dir(p)))
		} else {
			add(stem)
			add(base)
			add(path.Base(path.Dir(p)))
		}
	}
	return names
}

// choose takes the only finding of a page or robots.txt, or the configured one; nil for none.
func (src *discovery) choose(found []*Offer) (*Offer, error) {
	var sets []offered
	var last *Offer
	for _, o := range found {
		s := offered{list: o.Address()}
		if want := src.opt.Set; slices.Contains(sets, s) || want != "" && s.list != want && !slices.Contains(setNames(s), want) {
			continue
		}
		sets, last = append(sets, s), o
	}
	if len(sets) > 1 {
		_, err := src.chooseSet(sets)
		return nil, err
	}
	return last, nil
}

// discoverSite looks for the ways in from a site: Link headers, links in the page, the well-known
// address, robots.txt. A way failing for the moment ends it: the next one may lead to another
// thing.
func (src *discovery) discoverSite(ctx context.Context, address string, page *Download) (*Offer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	var tried []string
	var refused error // of the first way to a forbidden host
	try := func(w Way, how, target string) (*Offer, error) {
		if slices.Contains(tried, target) || len(tried) > 50 {
			return nil, nil
		}
		tried = append(tried, target)
		o, err := src.discoverFrom(ctx, target, false)
		if err != nil {
			src.log.Debug("discover: no way in", "how", how, "address", target, "error", err)
			err = fmt.Errorf("%s led to %s: %w", how, clip.Middle(target), err)
			if passing(err) {
				return nil, err
			}
			if errors.Is(err, webguard.ErrNotAllowed) {
				refused = cmp.Or(refused, err)
			}
			return nil, nil
		}
		o.Found, o.Way = how+" led to "+o.Found, w
		return o, nil
	}
	if page != nil {
		var links []string
		for _, target := range resourcesync.HeaderLinks(page.Header.Values("Link"), resourcesync.RelResourceSync) {
			if l, err := u.Parse(target); err == nil {
				links = append(links, l.String())
			}
		}
		if r, err := page.Open(); err == nil {
			links = append(links, resourcesync.PageLinks(io.LimitReader(r, src.lim.Page), u)...)
		}
		var found []*Offer
		for _, l := range links {
			o, err := try(byPage, "a link of the page", l)
			if err != nil {
				return nil, err
			}
			if o != nil {
				found = append(found, o)
			}
		}
		if o, err := src.choose(found); o != nil || err != nil {
			return o, err
		}
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host}
	wellKnown := root.JoinPath("/.well-known/resourcesync").String()
	dl, err := src.list(ctx, fetch.Request{URL: wellKnown, Accept: acceptDocument, Gzip: true, MaxBytes: src.lim.Document, Attempts: 2}, nil)
	if err == nil {
		defer dl.Close()
		r, rerr := src.reader(dl)
		if rerr != nil && !errors.Is(rerr, errNotDocument) {
			return nil, rerr
		}
		if rerr == nil {
			o, err := src.discoverDocument(ctx, dl.URL, r)
			if err != nil {
				return nil, err // the site is a source: its fault must be told
			}
			o.Found, o.Way = "the well-known address led to "+o.Found, byWellKnown
			return o, nil
		}
	}
	if passing(err) || errors.Is(err, webguard.ErrNotAllowed) { // it leads to another host
		return nil, err
	}
	robots, err := src.fetch.Get(ctx, fetch.Request{URL: root.JoinPath("/robots.txt").String(), Gzip: true, MaxBytes: src.lim.Page, Attempts: 2})
	if err == nil {
		var found, plain []*Offer
		for _, target := range resourcesync.RobotsLinks(string(robots.Body), u) {
			o, err := try(byRobots, "robots.txt", target)
			switch {
			case err != nil:
				return nil, err
			case o != nil && o.Plain:
				plain = append(plain, o)
			case o != nil:
				found = append(found, o)
			}
		}
		if o, err := src.choose(found); o != nil || err != nil {
			return o, err
		}
		if o, err := src.choose(plain); o != nil || err != nil {
			return o, err
		}
	} else if passing(err) {
		return nil, err
	}
	for _, guess := range []string{"/resourcelist.xml", "/sitemap.xml"} {
		if o, err := try(byGuess, "a guess", root.JoinPath(guess).String()); o != nil || err != nil {
			return o, err
		}
	}
	if refused != nil {
		return nil, refused
	}
	return nil, fmt.Errorf("%w: neither the page's links, %s, robots.txt nor a sitemap led to a source; give the address of its Source Description or Capability List", errNotDocument, wellKnown)
}

// authorityOf is scheme://host of an address.
func authorityOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
