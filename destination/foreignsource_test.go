package destination

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// foreignForm is how a source publishes that we did not write: what the specifications
// leave open, chosen once for each source.
type foreignForm struct {
	dialect                         string // as resourcesync names them
	list, dump, changes, changeDump bool   // what is offered
	alone                           bool   // resources are only in dumps
	archive                         bool   // of what left the Change Lists or the Change Dump
	stale                           bool   // list and dump are not made with every publication
	start                           string // where a destination is sent: description, wellknown, page, header, robots, capabilities, list
	listParts, changeParts          int    // documents below an index, entries of a closed Change List; 0: one document
	dumpParts                       int    // packages
	newestOnly                      bool   // the Capability List names the last Change List, and no index
	closes                          bool   // a full Change List tells its end
	indexTells                      int    // of an entry: 0 nothing, 1 lastmod, 2 times
	newestFirst                     bool   // in indexes, as the examples of before 0.9.1
	overlap                         int    // entries that a Change List or package has of the one before
	window                          int    // changes that are offered; 0: all
	early                           bool   // a list tells a time of before it was begun
	indexes                         bool   // of dumps and archives
	rewritten                       int    // Change Lists tell: 1 only the last change of a resource, 2 what it is now

	hashes           int // 1 md5, 2 sha-1, 4 sha-256
	length, lastmod  bool
	typed            bool // md:type
	contentType      int  // 0 right, 1 none, 2 general
	suffix           bool
	unit             time.Duration // of times
	zone             *time.Location
	timed            int // of a change in 1.1: 0 datetime, 1 lastmod, 2 both, 3 neither
	validators       int // 1 ETag, 2 Last-Modified
	gzip             int // of documents: 1 as content coding, 2 as files
	redirects        bool
	relative         bool // addresses in documents
	quote, nl        string
	prefix           string
	describes        bool
	canonical        bool
	memento          bool
	noise            bool // links that say nothing to a mirror
	alternates       bool // of some resources, whose address is of a page
	duplicates       bool // of some resources, whose address fails
	generic          bool // some addresses give a page to who does not ask for data
	patches          bool // and digests of graphs, as we tell them; some are wrong
	slashes, deflate bool // of packages
	shared, same     bool // triples of several resources; entities of several resources

	// Forms outside of the specification that are met, see withHabits.
	paged    int  // entries of a page; a next link leads to the one after it
	urlset   int  // an index is written as urlset: 1 its entries tell their capability, 2 times, 3 nothing
	untold   bool // lists do not tell of when they are
	backward bool // Change Lists have the newest change first
	daily    bool // a Change List a day
}

// plainForeign has nothing odd.
func plainForeign() *foreignForm {
	return &foreignForm{dialect: "1.1", list: true, changes: true, start: "capabilities", dumpParts: 1, closes: true, lastmod: true, typed: true, suffix: true, unit: time.Second, zone: time.UTC, quote: `"`, prefix: "rs"}
}

var foreignDialects = []string{"0.5", "0.6", "0.9", "0.9.1", "1.0", "1.1"}

func newForeignForm(r *rand.Rand) *foreignForm {
	yes := func(of int) bool { return r.IntN(of) == 0 }
	f := &foreignForm{dialect: foreignDialects[r.IntN(len(foreignDialects))], quote: `"`, prefix: "rs", zone: time.UTC, unit: 1}
	switch r.IntN(8) {
	case 0:
		f.list = true
	case 1:
		f.dump, f.alone = true, yes(2)
	case 2:
		f.dump, f.changeDump, f.alone = true, true, yes(2)
	case 3:
		f.changes, f.changeDump = true, yes(2)
	case 4:
		f.list, f.changeDump = true, true
	case 5:
		f.dump, f.changes = true, true
	default:
		f.list, f.changes, f.dump, f.changeDump = true, true, yes(3), yes(3)
	}
	f.start = []string{"description", "wellknown", "page", "header", "robots", "capabilities", "list"}[r.IntN(7)]
	if f.start == "robots" && !f.list || f.dialect == "0.6" && (f.start == "description" || f.start == "wellknown") {
		f.start = "capabilities"
	}
	f.archive = f.dialect != "0.5" && yes(3)
	f.stale = (f.changes || f.changeDump) && yes(2)
	f.listParts, f.dumpParts, f.changeParts = r.IntN(2)*(1+r.IntN(3)), 1+r.IntN(2), r.IntN(2)*(1+r.IntN(6))
	f.newestOnly, f.closes, f.indexTells, f.overlap = f.changeParts > 0 && yes(4), !yes(3), r.IntN(3), r.IntN(2)*r.IntN(3)
	f.newestFirst = f.dialect < "0.9.1" && f.indexTells > 0 && yes(2)
	if yes(3) {
		f.window = 4 + r.IntN(12)
	}
	if !f.list && !f.dump { // the first change is needed
		f.window, f.newestOnly = 0, false
	}
	f.early, f.indexes = yes(4), yes(3)
	if f.rewritten = max(0, r.IntN(6)-3); !f.list && !f.dump {
		f.rewritten = 0 // what was passed over would be told by nothing
	}
	if !f.intervals() && (f.stale || f.early) { // nothing would tell of changes after the list that are told no more
		f.window, f.newestOnly = 0, false
	}
	f.hashes, f.length, f.lastmod, f.typed = r.IntN(2)*r.IntN(8), yes(2), !yes(3), !yes(3)
	f.contentType, f.suffix = r.IntN(3), yes(2)
	f.unit = []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Second, time.Minute, 24 * time.Hour}[r.IntN(7)]
	if yes(2) {
		f.zone = time.FixedZone("", (r.IntN(105)-48)*15*60)
	}
	f.timed = []int{0, 0, 1, 2, 2, 3}[r.IntN(6)]
	f.validators, f.gzip = r.IntN(4), r.IntN(3)
	f.redirects, f.relative = yes(4), yes(3)
	if yes(3) {
		f.quote = "'"
	}
	if yes(3) {
		f.prefix = "x"
	}
	if yes(2) {
		f.nl = "\n  "
	}
	f.describes, f.canonical, f.memento, f.noise = yes(3), yes(4), yes(4), yes(2)
	f.alternates, f.duplicates, f.generic = yes(4), yes(4), yes(4)
	f.patches = f.hashes&4 > 0 && f.length && yes(2)
	f.slashes, f.deflate = !yes(3), yes(2)
	f.shared, f.same = yes(2), yes(4)
	if f.dump || f.changeDump { // what is in a package is no page
		f.alternates, f.generic = false, false
	}
	return f
}

// withHabits adds what other implementations do.
func (f *foreignForm) withHabits(r *rand.Rand) *foreignForm {
	yes := func(of int) bool { return r.IntN(of) == 0 }
	if yes(3) {
		f.paged = 1 + r.IntN(4)
	}
	if yes(4) {
		f.urlset = []int{1, 1, 2, 2, 3}[r.IntN(5)]
	}
	if f.changes && yes(3) {
		f.daily, f.changeParts, f.newestOnly = true, 1, false
	}
	if f.changes && !f.changeDump && yes(4) && f.timed != 3 && f.rewritten == 0 { // else nothing tells the order
		f.backward, f.unit, f.newestFirst = true, min(f.unit, time.Second), false
	}
	if f.modern() && yes(4) {
		if f.untold = true; f.stale || f.early || f.changeDump || f.newestOnly || f.archive { // nothing would tell what is lost
			f.window, f.newestOnly, f.archive = 0, false, false
		}
	}
	return f
}

// modern tells of the dialects since 0.9.1, which have up, index, at and closed lists.
func (f *foreignForm) modern() bool { return f.dialect >= "0.9.1" }

// intervals tells of the dialects whose changes are of an interval.
func (f *foreignForm) intervals() bool { return f.dialect >= "0.9" }

// foreignResource is a resource as it was published once.
type foreignResource struct {
	name, entity string
	lines        string // N-Triples
	format       rdfres.Format
	modified     time.Time
	version      int
}

type foreignChange struct {
	*foreignResource
	change string
	at     time.Time
}

// foreignSnapshot is a list or dump as it was made once.
type foreignSnapshot struct {
	at  time.Time
	res map[string]*foreignResource
}

type foreignPackage struct {
	first, last int
	from, until time.Time
}

// foreignState is what a source has and tells.
type foreignState struct {
	res            map[string]*foreignResource
	log            []foreignChange
	begun          time.Time
	listed, dumped *foreignSnapshot
	packages       []foreignPackage
	begins         []int // of the Change Lists
	cut            int   // changes that are not offered any more
	published      time.Time
}

func (s *foreignState) clone() *foreignState {
	c := *s
	c.res, c.log, c.packages, c.begins = maps.Clone(s.res), slices.Clone(s.log), slices.Clone(s.packages), slices.Clone(s.begins)
	return &c
}

type foreignDoc struct {
	body     []byte
	typ      string
	modified time.Time
}

// foreignSource is a model of resources, and the static documents that tell of it.
type foreignSource struct {
	foreignState
	*foreignForm
	r        *rand.Rand
	now      time.Time
	versions map[string]*foreignResource // by address
	docs     map[string]foreignDoc
	counter  int
	next     string // page of the document that is being written
}

const (
	foreignHost = "http://source.example"
	foreignDead = "http://dead.example" // has copies by name, and not by content
)

func newForeignSource(r *rand.Rand, f *foreignForm) *foreignSource {
	s := &foreignSource{foreignForm: f, r: r, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), versions: map[string]*foreignResource{}, docs: map[string]foreignDoc{}}
	s.now = s.now.Add(time.Duration(r.Int64N(int64(48 * time.Hour))))
	s.begun, s.published, s.res, s.begins = s.now, s.now, map[string]*foreignResource{}, []int{0}
	return s
}

// pass lets time go by; often none does between two changes.
func (s *foreignSource) pass() {
	steps := []time.Duration{0, 1, time.Millisecond, 700 * time.Millisecond, 3 * time.Second, 5 * time.Minute, 7 * time.Hour}
	if d := steps[s.r.IntN(len(steps))]; d > 0 {
		s.now = s.now.Add(time.Duration(1 + s.r.Int64N(int64(d))))
	}
}

// location is the path of a resource: odd, but an address.
func (s *foreignSource) location(name string) string {
	n := strings.ReplaceAll([]string{"/r/NAME", "/r/it's/NAME", "/r/%C3%A9t%C3%A9/NAME", "/r/été-NAME", "/get?id=NAME&v=1", "/r/NAME;v=1", "/r/a%20b,NAME", "/r/~NAME:(1)", "/r//NAME", "/r/%7Enot/%2F/NAME"}[digestOf(name)%10], "NAME", name)
	if s.suffix && !s.isPage(name) && !s.isGeneric(name) && !strings.Contains(n, "?") && !strings.Contains(n, ";") && !strings.Contains(n, "(") {
		n += s.formatOf(name).Suffix()
	}
	return n
}

func digestOf(s string) uint32 {
	h := fnv.New32a()
	io.WriteString(h, s)
	return h.Sum32()
}

// formatOf is the format of a resource, which it keeps.
func (s *foreignSource) formatOf(name string) rdfres.Format {
	return []rdfres.Format{rdfres.NTriples, rdfres.Turtle, rdfres.NQuads, rdfres.TriG, rdfres.RDFXML, rdfres.JSONLD}[digestOf("f"+name)%6]
}

func (s *foreignSource) write(name string) {
	s.counter++
	entity := "http://ex.org/" + name
	if s.same {
		entity = fmt.Sprintf("http://ex.org/e%d", digestOf(name)%5)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<%s> <http://ex.org/v> \"%d\" .\n", entity, s.counter)
	for range s.r.IntN(3) {
		fmt.Fprintf(&b, "<%s> <http://ex.org/p%d> %s .\n", entity, s.r.IntN(3), []string{`"x & <y>"@en`, `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`, `<http://ex.org/o?a=1&b=2>`, `"\"é\\"`}[s.r.IntN(4)])
	}
	if s.r.IntN(4) == 0 {
		fmt.Fprintf(&b, "<%s> <http://ex.org/q> _:b .\n_:b <http://ex.org/p> \"%d\" .\n", entity, s.r.IntN(3))
	}
	if s.shared && s.r.IntN(2) == 0 {
		fmt.Fprintf(&b, "<http://ex.org/shared> <http://ex.org/p> \"%d\" .\n", s.r.IntN(3))
	}
	if s.r.IntN(3) == 0 { // so that lengths differ
		fmt.Fprintf(&b, "<%s> <http://ex.org/w> \"%s\" .\n", entity, strings.Repeat("x", s.r.IntN(20)))
	}
	if s.patches { // so that a patch is shorter
		fmt.Fprintf(&b, "<%s> <http://ex.org/long> \"%s\" .\n", entity, strings.Repeat(name, 200))
	}
	change := "created"
	if s.res[name] != nil {
		change = "updated"
	}
	x := &foreignResource{name: name, entity: entity, lines: b.String(), format: s.formatOf(name), modified: s.now, version: s.counter}
	if was := s.res[name]; was != nil && s.hashes == 0 && !s.lastmod && s.length {
		for len(s.body(x)) == len(s.body(was)) { // nothing else would tell
			x.lines += fmt.Sprintf("<%s> <http://ex.org/w> \"%d\" .\n", entity, s.r.IntN(1000))
		}
	}
	s.res[name] = x
	s.versions[s.versionAddress(x)] = x
	s.log = append(s.log, foreignChange{x, change, s.now})
}

func (s *foreignSource) versionAddress(x *foreignResource) string {
	return fmt.Sprintf("/v/%d", x.version)
}

func (s *foreignSource) remove(name string) {
	if x := s.res[name]; x != nil && len(s.res) > 1 { // an empty list says nothing
		delete(s.res, name)
		s.log = append(s.log, foreignChange{x, "deleted", s.now})
	}
}

// edit changes something.
func (s *foreignSource) edit() {
	if s.pass(); s.backward {
		s.now = s.now.Add(2 * time.Second)
	}
	name := fmt.Sprintf("n%d", s.r.IntN(12))
	switch s.r.IntN(8) {
	case 0, 1:
		s.remove(name)
	case 2: // another address
		if s.res[name] != nil {
			s.remove(name)
			if s.r.IntN(2) == 0 {
				s.pass()
			}
			if s.backward {
				s.now = s.now.Add(2 * time.Second)
			}
			s.write(fmt.Sprintf("n%d", s.r.IntN(12)))
		}
	default:
		s.write(name)
	}
}

// body is the representation of a resource.
func (s *foreignSource) body(x *foreignResource) []byte {
	lines := strings.Split(strings.TrimSuffix(x.lines, "\n"), "\n")
	switch x.format {
	case rdfres.Turtle:
		return []byte("@prefix ex: <http://ex.org/> .\n" + strings.ReplaceAll(x.lines, "<http://ex.org/p>", "ex:p"))
	case rdfres.NQuads:
		for i, l := range lines {
			lines[i] = strings.TrimSuffix(l, ".") + "<http://ex.org/graph> ."
		}
		return []byte(strings.Join(lines, "\n") + "\n")
	case rdfres.TriG:
		return []byte("<http://ex.org/graph> {\n" + x.lines + "}\n")
	case rdfres.RDFXML, rdfres.JSONLD:
		ts, err := codec.Decode(rdfres.NTriples, []byte(x.lines), rdfres.ReadOptions{})
		if err != nil {
			panic(err)
		}
		b, err := codec.Encode(x.format, x.entity, ts)
		if err != nil {
			panic(err)
		}
		return b
	}
	return []byte(x.lines)
}

// page is what a resource has at its address that is offered as RDF elsewhere.
func (s *foreignSource) page(x *foreignResource) []byte {
	return []byte(fmt.Sprintf("<!doctype html><p>version %d", x.version) + strings.Repeat(" ", len(s.body(x))%17))
}

func (s *foreignSource) isPage(name string) bool { return s.alternates && digestOf("a"+name)%3 == 0 }

// isGeneric tells of an address of which nothing is promised, as the specification says.
func (s *foreignSource) isGeneric(name string) bool {
	return s.generic && !s.isPage(name) && digestOf("g"+name)%3 == 0
}

func (s *foreignSource) isBroken(name string) bool {
	return s.duplicates && !s.isPage(name) && digestOf("d"+name)%3 == 0
}

// foreignEntry is an entry of a document.
type foreignEntry struct {
	loc, lastmod string
	md           []string // names and values
	links        [][]string
}

// stamp writes a time.
func (s *foreignSource) stamp(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case s.unit == 24*time.Hour:
		return t.UTC().Format("2006-01-02")
	case s.unit == time.Minute:
		return t.In(s.zone).Format("2006-01-02T15:04Z07:00")
	}
	return t.In(s.zone).Truncate(s.unit).Format("2006-01-02T15:04:05.999999999Z07:00")
}

// set gives names and values without those that have none.
func set(pairs ...string) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

// promise is what is told of a body.
func (s *foreignSource) promise(body []byte, typ string) (md []string) {
	var hashes []string
	for i, h := range []string{fmt.Sprintf("md5:%x", md5.Sum(body)), fmt.Sprintf("sha-1:%x", sha1.Sum(body)), fmt.Sprintf("sha-256:%X", sha256.Sum256(body))} {
		if s.hashes>>i&1 == 1 {
			hashes = append(hashes, h)
		}
	}
	md = set("hash", strings.Join(hashes, " "))
	if s.length {
		md = append(md, "length", fmt.Sprint(len(body)))
	}
	if s.typed {
		md = append(md, "type", typ)
	}
	return md
}

func (s *foreignSource) entry(x *foreignResource) foreignEntry {
	e := foreignEntry{loc: s.location(x.name)}
	if s.lastmod {
		e.lastmod = s.stamp(x.modified)
	}
	switch {
	case s.isPage(x.name):
		e.md = s.promise(s.page(x), "text/html")
		e.links = append(e.links, append([]string{"rel", "alternate", "href", e.loc + "+data", "type", x.format.MediaType()}, s.promise(s.body(x), "")...))
		if i := slices.Index(e.links[0], ""); i > 0 {
			e.links[0] = e.links[0][:i-1]
		}
	case !s.isGeneric(x.name):
		e.md = s.promise(s.body(x), x.format.MediaType())
		if g := s.graphOf(x); g != "" {
			e.md = append(e.md, "rsb:graph", g)
		}
	}
	if s.isBroken(x.name) {
		e.links = append(e.links, []string{"rel", "duplicate", "pri", "1", "href", "gsiftp://grid.example/x"}, []string{"rel", "duplicate", "pri", "2", "href", foreignDead + "/" + x.name}, []string{"rel", "duplicate", "pri", "3", "href", e.loc + "+copy"})
	}
	if s.describes {
		e.links = append(e.links, []string{"rel", "describes", "href", x.entity})
	}
	if s.canonical {
		e.links = append(e.links, []string{"rel", "canonical", "href", x.entity})
	}
	if s.memento && !s.isPage(x.name) {
		e.links = append(e.links, []string{"rel", "memento", "href", s.versionAddress(x)})
	}
	if s.noise {
		e.links = append(e.links, []string{"rel", "collection", "href", "/set"}, []string{"rel", "http://vocab.example/odd", "href", "urn:x"}, []string{"rel", "timemap", "href", "/tm", "type", "application/link-format"})
	}
	return e
}

func (s *foreignSource) changeEntry(c foreignChange) foreignEntry {
	e := foreignEntry{loc: s.location(c.name)}
	if c.change != "deleted" {
		e = s.entry(c.foreignResource)
		if s.noise && c.change == "updated" {
			e.links = append(e.links, []string{"rel", "http://www.openarchives.org/rs/terms/patch", "href", "/p", "type", "application/vnd.unknown-diff"})
		}
		if c.change == "updated" {
			e.links = append(e.links, s.patchOf(c.foreignResource)...)
		}
	} else if s.describes {
		e.links = [][]string{{"rel", "describes", "href", c.entity}}
	}
	e.md = append([]string{"change", c.change}, e.md...)
	e.lastmod = s.stamp(c.at)
	if s.dialect == "1.1" && s.timed != 1 {
		if s.timed != 3 {
			e.md = append(e.md, "datetime", s.stamp(c.at))
		}
		if e.lastmod = ""; s.timed == 2 && c.change != "deleted" {
			e.lastmod = s.stamp(c.modified)
		}
	}
	return e
}

// graphOf is the digest of a graph, "" where none is told.
func (s *foreignSource) graphOf(x *foreignResource) string {
	if !s.patches || strings.Contains(x.lines, "_:") || s.isPage(x.name) || s.isGeneric(x.name) {
		return ""
	}
	return "sha-256:" + rdfres.GraphDigest(triplesOf(x)).String()
}

func triplesOf(x *foreignResource) []rdfres.Triple {
	ts, err := codec.Decode(rdfres.NTriples, []byte(x.lines), rdfres.ReadOptions{})
	if err != nil {
		panic(err)
	}
	return rdfres.SortUnique(ts)
}

// patchOf offers a patch from the version before: some do not tell of what they are, do not
// keep what is promised of them, or make something else.
func (s *foreignSource) patchOf(x *foreignResource) [][]string {
	var before *foreignResource
	for _, c := range s.log {
		if c.name == x.name && c.version < x.version {
			before = c.foreignResource
		}
	}
	if before == nil || s.graphOf(before) == "" || s.graphOf(x) == "" {
		return nil
	}
	deleted, added := rdfres.DiffTriples(triplesOf(before), triplesOf(x))
	patch := rdfres.AppendPatch(nil, nil, deleted, added)
	kind := x.version % 5
	if kind == 0 {
		patch = rdfres.AppendPatch(nil, nil, nil, nil)
	}
	promised := patch
	if kind == 1 {
		promised = append(slices.Clone(patch), ' ')
	}
	link := []string{"rel", "http://www.openarchives.org/rs/terms/patch", "href", fmt.Sprintf("/p/%d", x.version), "type", rdfres.RDFPatchType, "length", fmt.Sprint(len(promised)), "hash", fmt.Sprintf("sha-256:%x", sha256.Sum256(promised))}
	if kind != 2 {
		link = append(link, "rsb:base", s.graphOf(before), "rsb:result", s.graphOf(x))
	}
	s.docs[fmt.Sprintf("/p/%d", x.version)] = foreignDoc{patch, rdfres.RDFPatchType, s.now}
	return [][]string{link}
}

// document writes one. up is its Capability List, or what that belongs to; index the
// document that it is a part of.
func (s *foreignSource) document(address string, index bool, capability string, md []string, up, above string, entries []foreignEntry) []byte {
	var b bytes.Buffer
	root, item := "urlset", "url"
	switch {
	case !index:
	case s.urlset == 0 || capability == "capabilitylist" || capability == "description":
		root, item = "sitemapindex", "sitemap"
	case s.urlset < 3:
		entries = s.asIndex(capability, entries)
	default:
		entries = slices.Clone(entries)
		for i := range entries {
			entries[i].md = nil
		}
	}
	esc := func(t string) string {
		var e bytes.Buffer
		xml.EscapeText(&e, []byte(t))
		return e.String()
	}
	attributes := func(pairs []string) string {
		var a strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			name := pairs[i]
			if s.dialect == "0.9" && s.prefix == "x" && !strings.Contains(name, ":") {
				name = s.prefix + ":" + name
			}
			fmt.Fprintf(&a, " %s=%s%s%s", name, s.quote, esc(pairs[i+1]), s.quote)
		}
		return a.String()
	}
	link := func(pairs []string) {
		pairs = slices.Clone(pairs)
		i := slices.Index(pairs, "href") + 1
		pairs[i] = s.address(address, pairs[i])
		fmt.Fprintf(&b, "%s<%s:ln%s/>", s.nl, s.prefix, attributes(pairs))
	}
	if s.quote == `"` {
		b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	}
	fmt.Fprintf(&b, `<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:%s="http://www.openarchives.org/rs/terms/" xmlns:rsb="urn:rsbridge:terms">`, root, s.prefix)
	if s.noise {
		b.WriteString("<!-- made > by hand -->")
	}
	rels := [2]string{"up", "index"}
	if !s.modern() {
		rels = [2]string{"resourcesync", "up"}
	}
	for i, to := range []string{up, above} {
		if to != "" {
			link([]string{"rel", rels[i], "href", to})
		}
	}
	if s.next != "" {
		link([]string{"rel", "next", "href", s.next})
	}
	if capability != "" {
		fmt.Fprintf(&b, "%s<%s:md%s/>", s.nl, s.prefix, attributes(append([]string{"capability", capability}, md...)))
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "\n<%s><loc>%s%s%s</loc>", item, s.nl, esc(s.address(address, e.loc)), s.nl)
		if e.lastmod != "" {
			fmt.Fprintf(&b, "<lastmod>%s</lastmod>", e.lastmod)
		}
		if len(e.md) > 0 {
			fmt.Fprintf(&b, "<%s:md%s/>", s.prefix, attributes(e.md))
		}
		for _, l := range e.links {
			link(l)
		}
		fmt.Fprintf(&b, "</%s>", item)
	}
	fmt.Fprintf(&b, "\n</%s>\n", root)
	return b.Bytes()
}

// asIndex makes entries of a urlset tell that they lead to lists.
func (s *foreignSource) asIndex(capability string, entries []foreignEntry) []foreignEntry {
	entries = slices.Clone(entries)
	for i := range entries {
		e := &entries[i]
		switch {
		case s.urlset == 2 && capability == "resourcelist" && len(e.md) == 0:
			e.md = []string{"at", s.stamp(s.listed.at)}
		case s.urlset == 1 || len(e.md) == 0 || slices.Contains(e.md, "modified") || strings.Contains(capability, "dump"):
			e.md = append([]string{"capability", capability}, e.md...)
		}
	}
	return entries
}

// address writes a path below the host as documents have it.
func (s *foreignSource) address(document, to string) string {
	switch {
	case !strings.HasPrefix(to, "/"):
		return to
	case s.relative && document != "" && strings.HasPrefix(to, path.Dir(document)+"/") && !strings.Contains(to, "//"):
		return strings.TrimPrefix(to, path.Dir(document)+"/")
	case s.relative && document != "" && !strings.HasPrefix(to, "//"):
		return to
	}
	return s.absolute(to)
}

// absolute is the address that a reader finds in a document.
func (s *foreignSource) absolute(to string) string {
	if s.relative {
		base, _ := url.Parse(foreignHost + "/set/x.xml")
		u, err := base.Parse(to)
		if err != nil {
			panic(err)
		}
		return u.String()
	}
	return foreignHost + to
}

// put publishes a document; with the gzip of files it is one.
func (s *foreignSource) put(address string, body []byte, typ string) {
	was := s.docs[address]
	d := foreignDoc{body: body, typ: typ, modified: s.now}
	if bytes.Equal(was.body, body) {
		d.modified = was.modified
	}
	s.docs[address] = d
}

// doc publishes a document of ResourceSync, and gives its address.
func (s *foreignSource) doc(name string, index bool, capability string, md []string, up, above string, entries []foreignEntry) string {
	address := s.at(name)
	if s.paged > 0 && len(entries) > s.paged {
		for n := (len(entries) - 1) / s.paged; n > 0; n-- { // the last page first
			s.putDoc(s.pageOf(address, n), index, capability, md, up, above, entries[n*s.paged:min(len(entries), (n+1)*s.paged)], s.pageOf(address, n+1), n*s.paged+s.paged < len(entries))
		}
		s.putDoc(address, index, capability, md, up, above, entries[:s.paged], s.pageOf(address, 1), true)
		return address
	}
	s.putDoc(address, index, capability, md, up, above, entries, "", false)
	return address
}

func (s *foreignSource) pageOf(address string, n int) string {
	return fmt.Sprintf("%s?page=%d", address, n+1)
}

func (s *foreignSource) putDoc(address string, index bool, capability string, md []string, up, above string, entries []foreignEntry, next string, more bool) {
	if s.next = ""; more {
		s.next = next
	}
	body := s.document(address, index, capability, md, up, above, entries)
	s.next = ""
	if s.gzip == 2 {
		body = gz(body)
	}
	s.put(address, body, "application/xml")
}

// at is the address that doc gives.
func (s *foreignSource) at(name string) string {
	if s.gzip == 2 {
		return "/set/" + name + ".xml.gz"
	}
	return "/set/" + name + ".xml"
}

func (s *foreignSource) snapshot() *foreignSnapshot {
	at := s.now
	if s.early {
		at = at.Add(-time.Duration(s.r.Int64N(int64(10 * time.Minute))))
		if at.Before(s.published) {
			at = s.published
		}
		if s.listed != nil && s.stamp(at) == s.stamp(s.listed.at) { // an index of another list would look the same
			at = s.now
		}
	}
	return &foreignSnapshot{at: at, res: maps.Clone(s.res)}
}

// atOf is the root time of a snapshot.
func (s *foreignSource) atOf(at time.Time) []string {
	switch {
	case !s.intervals():
		return set("modified", s.stamp(at))
	case !s.modern():
		return set("from", s.stamp(at))
	}
	return set("at", s.stamp(at))
}

// intervalOf is the root time of changes; until is zero for a document that is still open.
func (s *foreignSource) intervalOf(from, until time.Time) []string {
	switch {
	case s.untold:
		return nil
	case !s.intervals():
		return set("modified", s.stamp(s.now))
	case !s.modern() && until.IsZero():
		until = s.now
	}
	return set("from", s.stamp(from), "until", s.stamp(until))
}

// told is an entry of an index or dump.
func (s *foreignSource) told(address string, times []string, lastmod time.Time) foreignEntry {
	e := foreignEntry{loc: address}
	if s.indexTells == 1 {
		e.lastmod = s.stamp(lastmod)
	}
	if s.indexTells == 2 && s.modern() {
		e.md = times
	} else if s.indexTells == 2 {
		e.lastmod = s.stamp(lastmod)
	}
	return e
}

// turned is the order of an index: the newest first only where its times tell so.
func (s *foreignSource) turned(entries []foreignEntry) []foreignEntry {
	if n := len(entries); s.newestFirst && n > 0 && entries[0].lastmod != entries[n-1].lastmod {
		slices.Reverse(entries)
	}
	return entries
}

// pack writes a package and publishes it.
func (s *foreignSource) pack(address, capability string, md []string, entries []foreignEntry, bodies [][]byte) foreignEntry {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	method := zip.Store
	if s.deflate {
		method = zip.Deflate
	}
	add := func(name string, body []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(body)
		}
		if err != nil {
			panic(err)
		}
	}
	for i := range entries {
		if bodies[i] == nil {
			continue
		}
		name := fmt.Sprintf("resources/%d", i)
		add(name, bodies[i])
		if s.slashes {
			name = "/" + name
		}
		entries[i].md = append(entries[i].md, "path", name)
	}
	add("manifest.xml", s.document("", false, capability, md, s.at("capabilitylist"), "", entries))
	z.Close()
	s.put(address, b.Bytes(), "application/zip")
	e := foreignEntry{loc: address, md: []string{"type", "application/zip", "length", fmt.Sprint(b.Len())}}
	if s.hashes > 0 {
		e.md = append(e.md, "hash", fmt.Sprintf("md5:%x", md5.Sum(b.Bytes())))
	}
	return e
}

// packed is what a package has of a resource; a page is there as what it is offered as.
func (s *foreignSource) packed(x *foreignResource) (foreignEntry, []byte) {
	e := s.entry(x)
	if s.isPage(x.name) {
		e.md, e.links = s.promise(s.body(x), x.format.MediaType()), e.links[1:]
	}
	return e, s.body(x)
}

// publish writes all documents anew.
func (s *foreignSource) publish() {
	if !s.stale || s.listed == nil || s.r.IntN(3) == 0 {
		s.listed = s.snapshot()
	}
	if !s.stale || s.dumped == nil || s.r.IntN(3) == 0 {
		s.dumped = s.snapshot()
	}

	clear(s.docs)
	var offered []foreignEntry
	offer := func(capability, address string) {
		e := foreignEntry{loc: address, md: []string{"capability", capability}}
		offered = append(offered, e)
	}
	caps := s.at("capabilitylist")
	if s.list {
		offer("resourcelist", s.writeList(caps))
	}
	if s.dump {
		offer("resourcedump", s.writeDump(caps))
	}
	for n := s.cut + 1; s.window > 0 && n <= len(s.log)-s.window; n++ {
		if s.divides(n) {
			s.cut = n
		}
	}
	if s.changes {
		address, archive := s.writeChanges(caps)
		offer("changelist", address)
		if archive != "" {
			offer("changelist-archive", archive)
		}
	}
	if s.changeDump {
		address, archive := s.writeChangeDump(caps)
		offer("changedump", address)
		if archive != "" {
			offer("changedump-archive", archive)
		}
	}
	top, topCapability := s.at("description"), "description"
	switch s.dialect {
	case "0.5":
		topCapability = "capabilitylist"
	case "0.6":
		top = ""
	case "0.9":
		topCapability = "resourcesync"
	}
	up, above := top, ""
	if s.dialect == "0.5" {
		up, above = "", top
	}
	var md []string
	if !s.intervals() {
		md = set("modified", s.stamp(s.now))
	}
	s.doc("capabilitylist", false, "capabilitylist", md, up, above, offered)
	if top != "" {
		s.doc("description", s.dialect == "0.5", topCapability, md, "", "", []foreignEntry{{loc: caps, md: []string{"capability", "capabilitylist"}}})
	}
	s.put("/.well-known/resourcesync", s.document("", s.dialect == "0.5", topCapability, md, "", "", []foreignEntry{{loc: caps, md: []string{"capability", "capabilitylist"}}}), "text/xml")
	s.published = s.now
}

func (s *foreignSource) writeList(caps string) string {
	names := slices.Sorted(maps.Keys(s.listed.res))
	md := s.atOf(s.listed.at)
	part := func(n int) (entries []foreignEntry) {
		for i, name := range names {
			if n < 0 || i%s.listParts == n {
				entries = append(entries, s.entry(s.listed.res[name]))
			}
		}
		return entries
	}
	if s.listParts == 0 {
		return s.doc("resourcelist", false, "resourcelist", md, caps, "", part(-1))
	}
	var parts []foreignEntry
	for n := range s.listParts {
		address := s.doc(fmt.Sprintf("resourcelist-%d", n), false, "resourcelist", md, caps, s.at("resourcelist"), part(n))
		parts = append(parts, s.told(address, md, s.listed.at))
	}
	return s.doc("resourcelist", true, "resourcelist", md, caps, "", parts)
}

func (s *foreignSource) writeDump(caps string) string {
	names := slices.Sorted(maps.Keys(s.dumped.res))
	md := s.atOf(s.dumped.at)
	var packages []foreignEntry
	for n := range s.dumpParts {
		var entries []foreignEntry
		var bodies [][]byte
		for i, name := range names {
			if i%s.dumpParts == n {
				e, body := s.packed(s.dumped.res[name])
				entries, bodies = append(entries, e), append(bodies, body)
			}
		}
		p := s.pack(fmt.Sprintf("/set/dump-%d.zip", n), "resourcedump-manifest", md, entries, bodies)
		t := s.told(p.loc, md, s.dumped.at)
		p.lastmod, p.md = t.lastmod, append(p.md, t.md...)
		packages = append(packages, p)
	}
	return s.indexed("resourcedump", md, &s.dumped.at, caps, packages)
}

// indexed publishes what names packages or archived lists, in one document or in several
// below an index, which tells the time at of them if there is one.
func (s *foreignSource) indexed(name string, md []string, at *time.Time, caps string, entries []foreignEntry) string {
	if !s.indexes || len(entries) == 0 {
		return s.doc(name, false, name, md, caps, "", entries)
	}
	var parts []foreignEntry
	for i := range entries {
		part := foreignEntry{loc: s.doc(fmt.Sprintf("%s-part-%d", name, i), false, name, md, caps, s.at(name), entries[i:i+1])}
		if at != nil {
			part = s.told(part.loc, md, *at)
		}
		parts = append(parts, part)
	}
	return s.doc(name, true, name, md, caps, "", parts)
}

// since is a time from which all changes after the first n are.
func (s *foreignSource) since(n int) time.Time {
	if n == 0 {
		return s.begun
	}
	return s.log[n-1].at
}

// divides tells whether times tell the first n changes from the others, and the last of
// them from those before: what lies between two lists could not be told else.
func (s *foreignSource) divides(n int) bool {
	at := func(i int) string {
		switch {
		case i < 0:
			return ""
		case i == len(s.log):
			return s.stamp(s.now)
		}
		return s.stamp(s.log[i].at)
	}
	for _, l := range []*foreignSnapshot{s.listed, s.dumped} {
		if l != nil && n > 0 && s.log[n-1].at.After(l.at) && at(n-1) == s.stamp(l.at) {
			return false // it would seem to be in the list
		}
	}
	return at(n-2) != at(n-1) && at(n-1) != at(n)
}

// begin finds where Change Lists begin.
func (s *foreignSource) begin() {
	for n := s.begins[len(s.begins)-1] + 1; s.daily && n < len(s.log); n++ {
		if day := 24 * time.Hour; !s.log[n].at.Truncate(day).Equal(s.log[n-1].at.Truncate(day)) && (s.window == 0 || s.divides(n)) {
			s.begins = append(s.begins, n)
		}
	}
	for n := s.begins[len(s.begins)-1] + s.changeParts; !s.daily && s.changeParts > 0 && n <= len(s.log); n++ {
		if n-s.begins[len(s.begins)-1] >= s.changeParts && (!s.newestOnly && s.window == 0 || s.divides(n)) {
			s.begins = append(s.begins, n)
		}
	}
}

func (s *foreignSource) entries(first, last int) (entries []foreignEntry) {
	for i, c := range s.log[first:last] {
		later := slices.ContainsFunc(s.log[first+i+1:last], func(l foreignChange) bool { return l.name == c.name })
		if s.rewritten == 1 && later {
			continue
		}
		if x := s.res[c.name]; s.rewritten == 2 && x != nil && c.change != "deleted" {
			c.foreignResource = x
		}
		entries = append(entries, s.changeEntry(c))
	}
	if s.backward {
		slices.Reverse(entries)
	}
	return entries
}

// writeChanges writes the Change Lists, and the archive of those that are not offered.
func (s *foreignSource) writeChanges(caps string) (address, archive string) {
	if s.changeParts == 0 {
		return s.doc("changelist", false, "changelist", s.intervalOf(s.since(s.cut), time.Time{}), caps, "", s.entries(s.cut, len(s.log))), ""
	}
	index := s.at("changelist")
	if s.newestOnly {
		index = ""
	}
	var parts, archived []foreignEntry
	offered := 0 // where they begin
	s.begin()
	for i, first := range s.begins {
		last, full := len(s.log), i+1 < len(s.begins)
		if full {
			last = s.begins[i+1]
		}
		var until time.Time
		if full && (s.closes || s.dialect == "0.9") {
			until = s.since(last)
		}
		for first = max(0, first-s.overlap); first > 0 && !s.divides(first); first-- {
		}
		if !s.archive && last <= s.cut && full {
			continue
		}
		times := s.intervalOf(s.since(first), until)
		a := s.doc(fmt.Sprintf("changelist-%d", i), false, "changelist", times, caps, index, s.entries(first, last))
		e := s.told(a, times, s.since(last))
		if address = a; last <= s.cut && full || s.newestOnly && full {
			archived = append(archived, e)
		} else {
			if len(parts) == 0 {
				offered = first
			}
			parts = append(parts, e)
		}
	}
	if !s.newestOnly {
		address = s.doc("changelist", true, "changelist", s.intervalOf(s.since(offered), time.Time{}), caps, "", s.turned(parts))
	}
	if s.archive {
		archive = s.indexed("changelist-archive", nil, nil, caps, archived)
	}
	return address, archive
}

// writeChangeDump packs what is new, and offers the packages.
func (s *foreignSource) writeChangeDump(caps string) (address, archive string) {
	begin := 0
	if n := len(s.packages); n > 0 {
		begin = s.packages[n-1].last
	}
	if begin < len(s.log) {
		first := max(0, begin-s.overlap)
		s.packages = append(s.packages, foreignPackage{first, len(s.log), s.since(first), s.since(len(s.log))})
	}
	var parts, archived []foreignEntry
	from, gone := s.begun, 0
	for i, p := range s.packages {
		if p.last <= s.cut && s.divides(s.packages[i+1].first) {
			gone = i + 1
		}
	}
	for i, p := range s.packages {
		if i < gone && !s.archive {
			from = p.until
			continue
		}
		var entries []foreignEntry
		var bodies [][]byte
		for _, c := range s.log[p.first:p.last] {
			e, body := s.changeEntry(c), []byte(nil)
			if c.change != "deleted" {
				var as foreignEntry
				as, body = s.packed(c.foreignResource)
				at := slices.Index(e.md, "datetime")
				md := append([]string{"change", c.change}, as.md...)
				if at > 0 {
					md = append(md, "datetime", e.md[at+1])
				}
				e.md, e.links = md, as.links
			}
			entries, bodies = append(entries, e), append(bodies, body)
		}
		times := s.intervalOf(p.from, p.until)
		e := s.pack(fmt.Sprintf("/set/changes-%d.zip", i), "changedump-manifest", times, entries, bodies)
		t := s.told(e.loc, times, p.until)
		e.lastmod, e.md = t.lastmod, append(e.md, t.md...)
		if i < gone {
			archived, from = append(archived, e), p.until
		} else {
			parts = append(parts, e)
		}
	}
	times := s.intervalOf(from, time.Time{})
	address = s.indexed("changedump", times, &s.now, caps, s.turned(parts))
	if s.archive {
		old := s.doc("changedump-old", false, "changedump", s.intervalOf(s.begun, from), caps, "", archived)
		archive = s.indexed("changedump-archive", nil, nil, caps, []foreignEntry{s.told(old, s.intervalOf(s.begun, from), from)})
	}
	return address, archive
}

// source is the address that a destination is given.
func (s *foreignSource) source() string {
	switch s.start {
	case "description":
		return foreignHost + s.at("description")
	case "capabilities":
		return foreignHost + s.at("capabilitylist")
	case "list":
		for _, c := range []struct {
			on   bool
			name string
		}{{s.list, "resourcelist"}, {s.changes && !s.newestOnly, "changelist"}, {s.dump, "resourcedump"}, {s.changeDump, "changedump"}} {
			if c.on {
				return foreignHost + s.at(c.name)
			}
		}
	case "page", "header":
		return foreignHost + "/about"
	}
	return foreignHost
}

func (s *foreignSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now.UTC().Format(http.TimeFormat))
	if r.Host == "dead.example" {
		switch {
		case s.hashes > 0 && !s.isGeneric(strings.TrimPrefix(r.URL.Path, "/")) && digestOf(r.URL.Path)%2 == 0:
			io.WriteString(w, "<http://ex.org/dead> <http://ex.org/p> \"1\" .\n")
		case digestOf(r.URL.Path)%3 == 0:
			panic(http.ErrAbortHandler)
		default:
			http.NotFound(w, r)
		}
		return
	}
	address := r.URL.EscapedPath()
	if q := r.URL.RawQuery; q != "" {
		address += "?" + q
	}
	if s.redirects && strings.HasPrefix(address, "/moved/") {
		address = strings.TrimPrefix(address, "/moved")
	} else if s.redirects && digestOf(address)%3 == 0 {
		w.Header().Set("Location", "/moved"+address) // http.Redirect would clean it
		w.WriteHeader([]int{301, 302, 303, 307, 308}[digestOf(address)%5])
		return
	}
	body, typ, modified, ok := s.answer(address, r.Header.Get("Accept"), w.Header())
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header()["Content-Type"] = nil
	if typ != "" {
		w.Header().Set("Content-Type", typ)
	}
	if s.validators&1 == 1 {
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(body)))
	}
	if s.validators&2 == 2 {
		w.Header().Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	}
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	tag := r.Header.Get("If-None-Match")
	if tag != "" && tag == w.Header().Get("ETag") || tag == "" && err == nil && s.validators&2 == 2 && !modified.Truncate(time.Second).After(since) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if s.gzip == 1 {
		writePacked(w, r, body)
		return
	}
	w.Write(body)
}

// answer is what the source has at an address.
func (s *foreignSource) answer(address, accept string, h http.Header) (body []byte, typ string, modified time.Time, ok bool) {
	switch address {
	case "", "/", "/about":
		link := ""
		switch caps := s.at("capabilitylist"); {
		case s.start == "header":
			h.Set("Link", "<"+caps+`>; rel="resourcesync"`)
		case s.start == "page":
			link = `<link href="` + caps + `" rel=resourcesync>`
		}
		return []byte("<!DOCTYPE html><html><head>" + link + "</head><body>Hello</body></html>"), "text/html", s.begun, true
	case "/.well-known/resourcesync":
		if s.start != "wellknown" {
			return nil, "", s.begun, false
		}
		d, ok := s.docs["/.well-known/resourcesync"]
		return d.body, d.typ, d.modified, ok
	case "/robots.txt":
		return []byte("User-agent: *\nSitemap: " + foreignHost + s.at("resourcelist") + "\n"), "text/plain", s.begun, s.start == "robots"
	}
	if d, ok := s.docs[address]; ok {
		return d.body, d.typ, d.modified, true
	}
	if x := s.versions[address]; x != nil && s.memento {
		return s.body(x), s.typeOf(x), x.modified, true
	}
	if s.alone {
		return nil, "", s.begun, false
	}
	for name, x := range s.res {
		u, err := url.Parse(s.location(name))
		if err != nil {
			panic(err)
		}
		at := u.EscapedPath()
		if u.RawQuery != "" {
			at += "?" + u.RawQuery
		}
		switch {
		case address == at && (s.isPage(name) || s.isGeneric(name) && !strings.Contains(accept, x.format.MediaType())):
			return s.page(x), "text/html", x.modified, true
		case address == at && !s.isBroken(x.name), address == at+"+data" && s.isPage(x.name), address == at+"+copy" && s.isBroken(x.name):
			return s.body(x), s.typeOf(x), x.modified, true
		}
	}
	return nil, "", s.begun, false
}

// typeOf is the Content-Type of a representation.
func (s *foreignSource) typeOf(x *foreignResource) string {
	switch s.contentType {
	case 1:
		return ""
	case 2:
		switch x.format {
		case rdfres.RDFXML:
			return "text/xml; charset=utf-8"
		case rdfres.JSONLD:
			return "application/json"
		}
		return "text/plain; charset=utf-8"
	}
	return x.format.MediaType()
}

// want is what a mirror has.
func (s *foreignSource) want() []string {
	lines := map[string]bool{}
	for _, x := range s.res {
		for _, l := range s.linesOf(x) {
			lines[l] = true
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// until is what a mirror of a time has.
func (s *foreignSource) until(t time.Time) []string {
	then := *s
	then.res = map[string]*foreignResource{}
	for _, c := range s.log {
		switch at := c.at.Truncate(s.unit); { // as it is told
		case at.After(t):
		case c.change == "deleted":
			delete(then.res, c.name)
		default:
			then.res[c.name] = c.foreignResource
		}
	}
	return then.want()
}

// linesOf are the triples of a resource as they stand in a mirror.
func (s *foreignSource) linesOf(x *foreignResource) (lines []string) {
	ts, _, err := rdfres.NameBlanks(triplesOf(x), rdfres.NameOptions{Scope: s.absolute(s.location(x.name))})
	if err != nil {
		panic(err)
	}
	for _, t := range ts {
		lines = append(lines, string(t.AppendLine(nil)))
	}
	return lines
}

// knowable leaves out the lines of resources of which the source had another version, in
// another history, that looks the same in its documents.
func (s *foreignSource) knowable(lines []string) []string {
	drop := map[string]bool{}
	for _, x := range s.res {
		var same []*foreignResource
		for _, y := range s.versions {
			if y.name == x.name && y.lines != x.lines && s.looks(y) == s.looks(x) {
				same = append(same, y)
			}
		}
		if len(same) == 0 {
			continue
		}
		for _, y := range append(same, x) {
			for _, l := range s.linesOf(y) {
				drop[l] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return drop[l] })
}

// looks is how documents tell a version of a resource from others.
func (s *foreignSource) looks(x *foreignResource) string {
	e := s.entry(x)
	if s.changes || s.changeDump {
		e.lastmod = s.stamp(x.modified)
	}
	if e.lastmod == "" && s.hashes == 0 && !s.length { // it is fetched each time
		return fmt.Sprint(x.version)
	}
	e.links = slices.DeleteFunc(e.links, func(l []string) bool { return l[1] == "memento" }) // which promises nothing by itself
	return fmt.Sprint(e)
}

// setBack restores a state of before; the source has gone on from there since.
func (s *foreignSource) setBack(to *foreignState) {
	s.foreignState = *to.clone()
	if s.validators != 2 && s.r.IntN(4) == 0 { // its times come again
		s.now = s.published
	}
	if d := []time.Duration{0, 1, time.Millisecond, time.Second, time.Hour}[s.r.IntN(5)]; d > 0 {
		s.now = s.now.Add(d)
	}
	for range s.r.IntN(6) {
		s.edit()
	}
}

// bodies are the representations of what a mirror has, in the order of their bytes.
func (s *foreignSource) bodies() (bodies []string) {
	for _, x := range s.res {
		bodies = append(bodies, string(s.body(x)))
	}
	slices.Sort(bodies)
	return bodies
}

func (s *foreignSource) String() string { return fmt.Sprintf("%+v", *s.foreignForm) }
