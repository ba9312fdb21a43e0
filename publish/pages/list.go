package pages

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// ListRows is the number of entries on a page of a document.
const ListRows = 100

// ErrNoPage is a page beyond the end of a document.
var ErrNoPage = errors.New("the document ends before")

// ListRow is an entry of a document.
type ListRow struct {
	Name, Title, Href string
	Kind              string
	At, From, Until   Time
	Type, Bytes       string
	Hash              string // "": it has none
	More              []Crumb
}

// List is a part of a document as a table.
type List struct {
	Frame       Frame
	Text        string
	XML         string // address of the document
	Facts       []Fact
	Around      []Crumb // index, Capability List
	Rows        []ListRow
	First       int64 // number of the first row
	Last, Total int64
	Prev, Next  string
	Kinds       bool // columns
	Intervals   bool
	Times       bool
	Types       bool
	Sizes       bool
	Hashes      bool
	static      bool
	there       func(entity string) bool // it has a page in the site
}

// names of documents, and their use.
var documents = map[resourcesync.Capability][2]string{
	resourcesync.Description:    {"Source Description", "The sets of this source."},
	resourcesync.CapabilityList: {"Capability List", "The documents of a set: all it takes to follow the rest."},
	resourcesync.ResourceList:   {"Resource List", "Every description with its hash."},
	resourcesync.ChangeList:     {"Change List", "Created, updated and deleted descriptions, in order."},
	resourcesync.ResourceDump:   {"Resource Dump", "All descriptions, packed: the start of a copy."},
	resourcesync.ChangeDump:     {"Change Dump", "Older changes, packed."},
}

func documentName(c resourcesync.Capability) [2]string {
	if d, ok := documents[c]; ok {
		return d
	}
	if base, ok := strings.CutSuffix(string(c), "-archive"); ok {
		d := documentName(resourcesync.Capability(base))
		return [2]string{d[0] + " Archive", "Earlier documents of this kind."}
	}
	if base, ok := strings.CutSuffix(string(c), "-manifest"); ok {
		return [2]string{documentName(resourcesync.Capability(base))[0] + " Manifest", "The content of a package."}
	}
	if c == "" {
		return [2]string{"Document", ""}
	}
	return [2]string{strings.ToUpper(string(c[:1])) + strings.ReplaceAll(string(c[1:]), "-", " "), ""}
}

// PageOf is the address of page n of the page for people of an XML document.
func PageOf(document string, n int) string {
	base := strings.TrimSuffix(document, ".xml")
	if n > 1 {
		base += "." + number(uint64(n))
	}
	return base + ".html"
}

// ListPage renders page n, from 1, of the document at an address below base. It keeps one page of entries
// in memory.
func ListPage(ctx context.Context, site *Site, set *Set, address string, document io.Reader, n int) ([]byte, error) {
	r, err := resourcesync.NewReader(document, resourcesync.ReaderOptions{BaseURL: address})
	if err != nil {
		return nil, err
	}
	h := r.Head()
	names := documentName(h.Meta.Capability)
	p := &List{Text: names[1], XML: address + "?as=xml", First: int64(n-1)*ListRows + 1}
	static := set != nil && set.Static
	if static {
		p.XML = address
	}
	title := names[0]
	if h.Index {
		title += " Index"
	}
	p.static, p.there = static, func(entity string) bool {
		st, err := set.View.Entity(ctx, entity)
		return err == nil && st.Current != nil
	}
	page := func(loc string) string { // of a document of this source, or the address itself
		if strings.HasSuffix(loc, ".xml") && strings.HasPrefix(loc, site.Base+"/") {
			return PageOf(loc, 1)
		}
		switch {
		case loc != site.WellKnown():
		case static: // the start page of a folder names its sets
			return site.Home()
		default:
			return site.Base + "/sourcedescription.html"
		}
		return loc
	}
	fact := func(name string, t Time) {
		if t.Text != "" {
			p.Facts = append(p.Facts, Fact{Name: name, Value: t.Text + " UTC"})
		}
	}
	fact("As of", At(h.Meta.At))
	fact("Completed", At(h.Meta.Completed))
	fact("From", At(h.Meta.From))
	fact("Until", At(h.Meta.Until))
	for _, l := range h.Links {
		switch l.Rel {
		case resourcesync.RelIndex:
			p.Around = append(p.Around, Crumb{"Index", page(l.Href)})
		case resourcesync.RelUp:
			if l.Href == site.WellKnown() {
				p.Around = append(p.Around, Crumb{"All sets", page(l.Href)})
			} else {
				p.Around = append(p.Around, Crumb{"Capability List", page(l.Href)})
			}
		}
	}
	var e resourcesync.Entry
	for {
		if err := r.NextInto(&e); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if static && e.Meta.Capability.Notification() {
			continue // a file server sends none
		}
		if p.Total++; p.Total >= p.First && len(p.Rows) < ListRows {
			p.Rows = append(p.Rows, p.row(&e, page))
		}
	}
	if len(p.Rows) == 0 && n > 1 {
		return nil, ErrNoPage
	}
	p.Last = p.First + int64(len(p.Rows)) - 1
	if n > 1 {
		p.Prev = PageOf(address, n-1)
	}
	if p.Last < p.Total {
		p.Next = PageOf(address, n+1)
	}
	links := []HeadLink{{Rel: "alternate", Type: "application/xml", Href: address}}
	if p.Prev != "" {
		links = append(links, HeadLink{Rel: "prev", Href: p.Prev})
	}
	if p.Next != "" {
		links = append(links, HeadLink{Rel: "next", Href: p.Next})
	}
	if set != nil {
		p.Frame = set.frame(title+" of "+set.Title, links...)
	} else {
		p.Frame = Frame{Title: title, Site: site, Links: links}
	}
	p.Frame.About = p.Text
	return write("list.html", p)
}

// row is an entry with the address of its page.
func (p *List) row(e *resourcesync.Entry, page func(string) string) ListRow {
	m := &e.Meta
	x := ListRow{Href: page(e.Loc), Title: e.Loc, Kind: m.Change, At: At(m.DateTime), From: At(m.From), Until: At(m.Until), Type: m.Type, Hash: m.Hash.SHA256}
	if x.At.Text == "" {
		x.At = At(e.LastMod)
	}
	if m.Length >= 0 && (m.Length > 0 || x.Hash != "") {
		x.Bytes = Bytes(m.Length)
	}
	switch {
	case m.Capability != "":
		x.Name = documentName(m.Capability)[0]
		if m.Capability == resourcesync.CapabilityList {
			parts := strings.Split(e.Loc, "/")
			x.Name = parts[max(0, len(parts)-2)]
		}
	default:
		if l := e.Link(resourcesync.RelDescribes); l != nil && m.Ext[resourcesync.ExtKind] != resourcesync.KindFile {
			x.Name, x.Title = localName(l.Href), l.Href
		}
	}
	if entity := m.Ext[resourcesync.ExtEntity]; entity != "" {
		x.Name, x.Title = localName(entity), entity
	}
	if x.Name == "" {
		x.Name = clip.Middle(e.Loc[strings.LastIndexByte(e.Loc, '/')+1:])
	}
	suffix, file := suffixOf(e.Loc), m.Ext[resourcesync.ExtKind] == resourcesync.KindFile
	switch deleted := m.Change == resourcesync.Deleted; {
	case deleted && (file || p.static):
		x.Href = ""
	case m.Capability == "" && suffix != "" && !file: // a description has a page
		x.Href = strings.TrimSuffix(e.Loc, suffix) + ".html"
	}
	for _, l := range e.Links {
		switch {
		case l.Rel == resourcesync.RelContents:
			x.More = append(x.More, Crumb{"contents", page(l.Href)})
		case l.Rel == resourcesync.RelPatch:
			x.More = append(x.More, Crumb{patchName(l.Type), l.Href})
		}
	}
	if l := e.Link(resourcesync.RelDescribes); p.static && l != nil && !p.there(cmp.Or(m.Ext[resourcesync.ExtEntity], l.Href)) {
		x.Href = "" // it has gone since
	}
	p.Kinds, p.Times, p.Types = p.Kinds || x.Kind != "", p.Times || x.At.Text != "", p.Types || x.Type != ""
	p.Intervals, p.Sizes, p.Hashes = p.Intervals || x.From.Text != "", p.Sizes || x.Bytes != "", p.Hashes || x.Hash != ""
	return x
}

func patchName(mediaType string) string {
	switch mediaType {
	case "application/json-patch+json":
		return "JSON Patch"
	case "application/rdf-patch":
		return "RDF Patch"
	}
	return "patch"
}

// suffixOf is the suffix of a format at the end of an address.
func suffixOf(address string) string {
	for _, s := range []string{".jsonld", ".nt", ".ttl", ".rdf", ".nq", ".trig"} {
		if strings.HasSuffix(address, s) {
			return s
		}
	}
	return ""
}
