package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/naming"
)

//go:embed templates style.css favicon.svg
var files embed.FS

var (
	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"digits": Digits, "withLinks": withLinks, "thousands": func(n int) string { return Digits(int64(n)) },
	}).ParseFS(files, "templates/*.html"))
	style   = read("style.css")
	favicon = read("favicon.svg")
)

func read(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// Favicon is the icon of the site, as SVG.
func Favicon() []byte { return []byte(favicon) }

// FaviconType is the media type of Favicon.
const FaviconType = "image/svg+xml"

// Policy is the Content-Security-Policy of the pages of a source: no scripts, nothing is loaded, and
// forms go to the source alone.
func Policy(base string) string {
	sum := sha256.Sum256([]byte(style))
	own := "'self'"
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		own += " " + u.Scheme + "://" + u.Host
	}
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src 'self' data:; base-uri 'none'; form-action " + own + "; frame-ancestors 'none'"
}

// Site is the source of all pages.
type Site struct{ Title, Base string }

// Home is the address of the start page.
func (s *Site) Home() string { return s.Base + "/" }

// WellKnown is the address of the Source Description.
func (s *Site) WellKnown() string { return s.Base + "/.well-known/resourcesync" }

// Set is one published state of a set.
type Set struct {
	*Site
	Name, Title string
	URL         string // of the set
	Prefix      string // removed from entity IRIs in addresses
	View        *changetrack.View
	Static      bool // for files: without pages of a program
}

// Generic is the negotiating address of a description.
func (s *Set) Generic(entity string) string { return s.URL + "/r/" + naming.Encode(entity, s.Prefix) }

func (s *Set) about() string { return s.URL + "/about.html" }

func (s *Set) capabilityList() string { return s.URL + "/capabilitylist.xml" }

// HeadLink is a link in the head of a page.
type HeadLink struct{ Rel, Type, Href string }

// Crumb is a named link.
type Crumb struct{ Name, Href string }

// Fact is a named value.
type Fact struct{ Name, Value, Href string }

// Frame is the common part of all pages.
type Frame struct {
	Title  string
	Site   *Site
	Crumbs []Crumb // the way from the start page
	Links  []HeadLink
	Search string // address of the set's search, "" without one
	Query  string // in the search box
	About  string // description of the page, for search engines
}

// StyleTag is the style of the page.
func (*Frame) StyleTag() template.HTML { return template.HTML("<style>" + style + "</style>") }

// Icon is the icon as an address.
func (*Frame) Icon() template.URL {
	return template.URL("data:" + FaviconType + ";base64," + base64.StdEncoding.EncodeToString([]byte(favicon)))
}

// Frame is that of a page of a set.
func (s *Set) Frame(title string) Frame { return s.frame(title) }

// frame begins a page of a set.
func (s *Set) frame(title string, links ...HeadLink) Frame {
	f := Frame{Title: title, Site: s.Site, Crumbs: []Crumb{{s.Title, s.about()}}, Links: append([]HeadLink{{Rel: "resourcesync", Href: s.capabilityList()}}, links...)}
	if !s.Static && s.View != nil {
		f.Search = s.URL + "/search"
	}
	return f
}

// write renders a page. An address may hold bytes of no text.
func write(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd")), nil
}

var addressInText = regexp.MustCompile(`https?://[^\s<>"]*[^\s<>".,;]`)

// withLinks is a text with links for its addresses.
func withLinks(text string) template.HTML {
	var b strings.Builder
	done := 0
	for _, m := range addressInText.FindAllStringIndex(text, -1) {
		address := template.HTMLEscapeString(text[m[0]:m[1]])
		b.WriteString(template.HTMLEscapeString(text[done:m[0]]) + `<a href="` + address + `">` + address + "</a>")
		done = m[1]
	}
	return template.HTML(b.String() + template.HTMLEscapeString(text[done:]))
}

// Problem is an error for people.
type Problem struct {
	Frame  Frame
	Reason string
	Detail []string // advice, line by line
}

// Write renders the page.
func (p *Problem) Write() ([]byte, error) { return write("problem.html", p) }
