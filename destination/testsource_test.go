package destination

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// testSource is a ResourceSync source over resources in memory: the documents
// are written anew for every request, from a log of changes.
type testSource struct {
	t   testing.TB
	srv *httptest.Server
	mu  sync.Mutex

	now      time.Time
	bodies   map[string][]byte // by path below /r/
	types    map[string]string
	log      []logged
	versions map[string][]byte // mementos

	list, changes, dump bool // what is offered
	ours                bool // sequence, graph digests, mementos
	exact               bool // closed lists tell the sequence of their last change
	noHash, noLastmod   bool
	noTimes             bool      // of changes, nor in the index of the Change Lists
	listAt              time.Time // zero: now
	listSeq             int       // changes in the list's state, with listAt
	frozen              map[string][]byte
	dumped              *frozen // the dump of before
	parts               int     // of the Resource List; > 1: an index
	changeParts         int     // entries of a closed Change List part; > 0: an index
	bare                int     // 1: the index of the Change Lists tells nothing of them; 2: and they do not tell where they begin; 3: nor does one alone
	allNamed            bool    // that index names all there ever were
	reversed            bool    // and the newest first
	drop                int     // changes lost from the beginning of the log
	changesFrom         time.Time
	patches             map[string][]byte       // by path; nil: none are offered
	wrongPatch          bool                    // patches make something else
	bothPatches         bool                    // of a JSON document an RDF Patch too
	damage              func(doc string) string // of the Resource List
	damageChanges       func(doc string) string // of the index of the Change Lists
	folder              string                  // of the representations
	anew                time.Time               // the Change Lists begin anew here
	notModified         int                     // answers of 304
	frozenIndex         bool                    // the index of the Change Lists is always "not modified"
	lie                 map[string]bool         // paths whose body is not as promised
	hook                func(w http.ResponseWriter, r *http.Request) bool
	requests            map[string]int
	tails               bool   // the open Change List can be had from a change on
	caps                string // path of the Capability List
	inventory           bool
	changeDump          bool
	moved               map[rs.Capability]string // other paths of documents
	packed              int                      // entries of a package of the Change Dump; 0: one package with all
	alone               bool                     // nothing can be had by its own address
	noLength            bool                     // packages do not tell theirs
	contents            bool                     // packages link to copies of their manifests
	tar                 bool                     // packages are said to be no ZIP
	archive             bool                     // the lost changes are in an archive
	timegate            bool
	wholeSeconds        bool // the TimeGate compares whole seconds, as headers tell them
	pair                bool // every change is two entries: another address is deleted first, with the same number

	dialect string // "": 1.1; "no until": lists tell no end; "0.5", "D-Lib": as those of then

	date     time.Time // zero: now
	modified bool      // documents tell when they were written
}

// frozen is a dump that does not change any more.
type frozen struct {
	doc, zip, manifest []byte
}

// freezeDump makes the dump that is offered now stay.
func (s *testSource) freezeDump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	z, m := s.zips()
	s.dumped = &frozen{s.dumpDocument(), z, m}
}

func (s *testSource) dumpDocument() []byte {
	if s.dumped != nil {
		return s.dumped.doc
	}
	z, m := s.zips()
	return s.document(s.head(rs.ResourceDump, rs.Meta{At: s.stateTime()}), []rs.Entry{s.packageEntry("/set/dump.zip", z, m, rs.Meta{})})
}

type logged struct {
	name, kind string
	at         time.Time
	body       []byte
	typ        string
	folder     string
}

func newTestSource(t testing.TB) *testSource {
	s := makeTestSource(t)
	s.srv = httptest.NewServer(s)
	t.Cleanup(s.srv.Close)
	return s
}

// makeTestSource makes one that nobody serves.
func makeTestSource(t testing.TB) *testSource {
	s := &testSource{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bodies: map[string][]byte{}, types: map[string]string{}, versions: map[string][]byte{},
		list: true, changes: true, lie: map[string]bool{}, requests: map[string]int{}, caps: "/set/capabilitylist.xml", folder: "/set/r/"}
	s.changesFrom = s.now
	return s
}

func (s *testSource) tick() time.Time {
	s.now = s.now.Add(1500 * time.Millisecond)
	return s.now
}

// put and remove change a resource and log it. name ends in the suffix of its format.
func (s *testSource) put(name, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "updated"
	if _, ok := s.bodies[name]; !ok {
		kind = "created"
	}
	s.bodies[name] = []byte(body)
	l := logged{name: name, kind: kind, at: s.tick(), body: []byte(body), typ: s.typeOf(name), folder: s.folder}
	s.log = append(s.log, l)
	s.versions[fmt.Sprintf("%s?v=%d", name, len(s.log))] = []byte(body)
}

func (s *testSource) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.bodies[name]; !ok {
		return
	}
	delete(s.bodies, name)
	s.log = append(s.log, logged{name: name, kind: "deleted", at: s.tick(), folder: s.folder})
}

// restore puts the source back to the state after its first n changes, as from a
// backup; its clock goes on.
func (s *testSource) restore(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = slices.Clone(s.log[:n])
	clear(s.bodies)
	for _, l := range s.log {
		if s.bodies[l.name] = l.body; l.body == nil {
			delete(s.bodies, l.name)
		}
	}
}

func (s *testSource) typeOf(name string) string {
	if t := s.types[name]; t != "" {
		return t
	}
	if f, ok := rdfres.FormatBySuffix(name); ok {
		return f.MediaType()
	}
	return "application/octet-stream"
}

func (s *testSource) url(path string) string { return s.srv.URL + path }

func (s *testSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.date.IsZero() {
		w.Header().Set("Date", s.date.UTC().Format(http.TimeFormat))
	}
	if s.hook != nil && s.hook(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.URL.Path]++
	name := strings.TrimPrefix(r.URL.Path, s.folder)
	switch {
	case r.URL.Path == "/.well-known/resourcesync":
		s.serveXML(w, r, s.document(rs.Head{Meta: rs.Meta{Capability: rs.Description}}, []rs.Entry{{Loc: s.url(s.caps), HasMeta: true, Meta: rs.Meta{Capability: rs.CapabilityList, Length: -1}}}))
	case r.URL.Path == s.caps:
		var es []rs.Entry
		for _, c := range []struct {
			on  bool
			cap rs.Capability
		}{{s.list, rs.ResourceList}, {s.dump, rs.ResourceDump}, {s.changes, rs.ChangeList}, {s.archive, rs.ChangeListArchive}, {s.changeDump, rs.ChangeDump}} {
			if c.on {
				at := "/set/" + string(c.cap) + ".xml"
				at = cmp.Or(s.moved[c.cap], at)
				es = append(es, rs.Entry{Loc: s.url(at), HasMeta: true, Meta: rs.Meta{Capability: c.cap, Length: -1}})
			}
		}
		s.serveXML(w, r, s.document(rs.Head{Meta: rs.Meta{Capability: rs.CapabilityList}, Links: s.capabilityLinks()}, es))
	case r.URL.Path == "/set/resourcelist.xml" && s.list:
		s.serveList(w, r, -1)
	case strings.HasPrefix(r.URL.Path, "/set/resourcelist-"):
		var n int
		fmt.Sscanf(r.URL.Path, "/set/resourcelist-%d.xml", &n)
		s.serveList(w, r, n)
	case (r.URL.Path == "/set/changedump.xml" || r.URL.Path == s.moved[rs.ChangeDump]) && s.changeDump:
		var es []rs.Entry
		for i, p := range s.changePackages() {
			z, manifest := s.changeZip(p.first, p.last, p.meta)
			e := s.packageEntry(fmt.Sprintf("/set/changes%d.zip", i), z, manifest, p.meta)
			es = append(es, e)
		}
		h := s.head(rs.ChangeDump, rs.Meta{From: s.offeredFrom()})
		if s.ours && s.packed > 0 {
			h.Meta.Ext[rs.ExtSequence] = fmt.Sprint(len(s.log) / s.packed * s.packed)
		}
		s.serveXML(w, r, s.document(h, es))
	case strings.HasPrefix(r.URL.Path, "/set/changes") && s.changeDump:
		var n int
		fmt.Sscanf(r.URL.Path, "/set/changes%d.zip", &n)
		p := s.changePackages()[n]
		z, manifest := s.changeZip(p.first, p.last, p.meta)
		if strings.HasSuffix(r.URL.Path, ".xml") {
			z = manifest
		}
		w.Write(z)
	case strings.HasPrefix(r.URL.Path, "/set/inventory") && s.inventory:
		s.serveInventory(w, r)
	case r.URL.Path == "/set/changelist-archive.xml" && s.archive:
		var es []rs.Entry
		if s.drop > 0 {
			es = append(es, rs.Entry{Loc: s.url("/set/archived.xml"), HasMeta: true, Meta: rs.Meta{From: s.changesFrom, Until: s.log[s.drop-1].at, Length: -1}})
		}
		s.serveXML(w, r, s.document(s.head(rs.ChangeListArchive, rs.Meta{}), es))
	case (r.URL.Path == "/set/changelist.xml" || r.URL.Path == s.moved[rs.ChangeList]) && s.changes:
		s.serveChanges(w, r, -1)
	case strings.HasPrefix(r.URL.Path, "/set/changelist-from-") && s.tails:
		var n int
		fmt.Sscanf(r.URL.Path, "/set/changelist-from-%d.xml", &n)
		s.serveChangesFrom(w, r, n)
	case strings.HasPrefix(r.URL.Path, "/set/changelist-"):
		var n int
		fmt.Sscanf(r.URL.Path, "/set/changelist-%d.xml", &n)
		s.serveChanges(w, r, n)
	case r.URL.Path == "/set/archived.xml" && s.archive:
		s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: s.changesFrom, Until: s.log[s.drop-1].at}), s.changeEntries(0, s.drop)))
	case strings.HasPrefix(r.URL.Path, "/set/timegate/") && s.timegate:
		name := strings.TrimPrefix(r.URL.Path, "/set/timegate/")
		at, err := http.ParseTime(r.Header.Get("Accept-Datetime"))
		found := logged{}
		for _, l := range s.log {
			was := l.at
			if s.wholeSeconds {
				was = was.Truncate(time.Second)
			}
			if err == nil && l.name == name && l.body != nil && (!was.After(at) || found.body == nil) {
				found = l
			}
		}
		if found.body == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Memento-Datetime", found.at.UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", found.typ)
		w.Write(found.body)
	case r.URL.Path == "/set/resourcedump.xml" && s.dump:
		s.serveXML(w, r, s.dumpDocument())
	case r.URL.Path == "/set/dump.zip":
		http.ServeContent(&etagged{w, "dump"}, r, "", time.Time{}, bytes.NewReader(s.zip()))
	case r.URL.Path == "/set/dump.zip.xml":
		_, manifest := s.zips()
		w.Write(manifest)
	case s.patches[r.URL.Path] != nil:
		w.Write(s.patches[r.URL.Path])
	case strings.HasPrefix(r.URL.Path, s.folder):
		body, ok := s.bodies[name]
		typ := s.typeOf(name)
		if v := r.URL.Query().Get("v"); v != "" {
			body, ok = s.versions[name+"?v="+v]
		}
		if !ok || s.alone {
			http.NotFound(w, r)
			return
		}
		if s.lie[name] {
			body = append([]byte("# not what was promised\n"), body...)
		}
		w.Header().Set("Content-Type", typ)
		w.Write(body)
	default:
		http.NotFound(w, r)
	}
}

type etagged struct {
	http.ResponseWriter
	tag string
}

func (e *etagged) WriteHeader(code int) {
	e.Header().Set("ETag", `"`+e.tag+`"`)
	e.ResponseWriter.WriteHeader(code)
}

var times = regexp.MustCompile(` (from|until)="[^"]*"`)

func (s *testSource) serveXML(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("Content-Type", "application/xml")
	if s.damage != nil && r.URL.Path == "/set/resourcelist.xml" {
		b = []byte(s.damage(string(b)))
	}
	if s.damageChanges != nil && r.URL.Path == "/set/changelist.xml" {
		b = []byte(s.damageChanges(string(b)))
	}
	if s.bare == 2 && strings.HasPrefix(r.URL.Path, "/set/changelist-") || s.bare == 3 && strings.HasPrefix(r.URL.Path, "/set/changelist") {
		b = times.ReplaceAll(b, nil)
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	if s.modified {
		w.Header().Set("Last-Modified", s.stateTime().UTC().Format(http.TimeFormat))
	}
	if r.Header.Get("If-None-Match") == tag || s.frozenIndex && r.URL.Path == "/set/changelist.xml" && r.Header.Get("If-None-Match") != "" {
		s.notModified++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writePacked(w, r, b)
}

// writePacked answers with gzip where that is taken.
func writePacked(w http.ResponseWriter, r *http.Request, body []byte) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Write(body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(gz(body))
}

// packers are kept, and quick: the sources pack all that they say.
var packers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is none
	}
	return z
}}

func gz(body []byte) []byte {
	var b bytes.Buffer
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	z.Reset(&b)
	z.Write(body)
	z.Close()
	return b.Bytes()
}

func (s *testSource) head(c rs.Capability, m rs.Meta) rs.Head {
	m.Capability = c
	m.Length = -1
	if s.ours {
		m.Ext = map[string]string{rs.ExtSequence: fmt.Sprint(len(s.log))}
		if c == rs.ResourceList && s.frozen != nil {
			m.Ext[rs.ExtSequence] = fmt.Sprint(s.listSeq)
		}
	}
	return rs.Head{Meta: m, Links: []rs.Link{{Rel: "up", Href: s.url(s.caps), Length: -1}}}
}

func (s *testSource) stateTime() time.Time {
	if !s.listAt.IsZero() {
		return s.listAt
	}
	return s.now
}

func (s *testSource) entry(name string, body []byte, version int, m rs.Meta) rs.Entry {
	return s.entryIn(s.folder, name, body, version, m)
}

// moveAll gives every resource another address: as pairs of changes, or, when
// not, with lists that begin anew.
func (s *testSource) moveAll(folder string, pairs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for k := range s.bodies {
		names = append(names, k)
	}
	slices.Sort(names)
	old := s.folder
	s.folder = folder
	if !pairs {
		s.anew, s.drop = s.tick(), len(s.log)
		return
	}
	for _, k := range names {
		at := s.tick()
		s.log = append(s.log, logged{name: k, kind: "deleted", at: at, folder: old},
			logged{name: k, kind: "created", at: at, body: s.bodies[k], typ: s.typeOf(k), folder: folder})
		s.versions[fmt.Sprintf("%s?v=%d", k, len(s.log))] = s.bodies[k]
	}
}

func (s *testSource) entryIn(folder, name string, body []byte, version int, m rs.Meta) rs.Entry {
	e := rs.Entry{Loc: s.url(folder + name), HasMeta: true, Meta: m}
	e.Meta.Length = -1
	if s.timegate {
		e.Links = append(e.Links, rs.Link{Rel: rs.RelTimeGate, Href: s.url("/set/timegate/" + name), Length: -1})
	}
	if body == nil {
		return e
	}
	e.Meta.Type = s.typeOf(name)
	if !s.noHash {
		sum := sha256.Sum256(body)
		e.Meta.Hash.SHA256 = hex.EncodeToString(sum[:])
		e.Meta.Length = int64(len(body))
	}
	if s.ours {
		if f, ok := rdfres.FormatBySuffix(name); ok {
			ts, err := codec.Decode(f, body, rdfres.ReadOptions{Base: e.Loc})
			if err == nil {
				e.Meta.Ext = map[string]string{rs.ExtGraph: "sha-256:" + rdfres.GraphDigest(rdfres.SortUnique(ts)).String()}
			}
		}
		if version > 0 {
			e.Links = append(e.Links, rs.Link{Rel: rs.RelMemento, Href: fmt.Sprintf("%s?v=%d", e.Loc, version), Length: -1})
		}
		e.Links = append(e.Links, rs.Link{Rel: rs.RelDescribes, Href: "http://ex.org/" + strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".nt"), ".ttl"), ".jsonld"), Length: -1})
	}
	return e
}

// lastOf is the number of the last change of a resource within the first n, and its time.
func (s *testSource) lastOf(name string, n int) (int, time.Time) {
	for i := n - 1; i >= 0; i-- {
		if s.log[i].name == name {
			return i + 1, s.log[i].at
		}
	}
	return 0, time.Time{}
}

func (s *testSource) serveList(w http.ResponseWriter, r *http.Request, part int) {
	bodies, n := s.bodies, len(s.log)
	if s.frozen != nil {
		bodies, n = s.frozen, s.listSeq
	}
	var names []string
	for k := range bodies {
		names = append(names, k)
	}
	slices.Sort(names)
	h := s.head(rs.ResourceList, rs.Meta{At: s.stateTime()})
	if s.parts > 1 && part < 0 {
		h.Index = true
		var es []rs.Entry
		for i := range s.parts {
			es = append(es, rs.Entry{Loc: s.url(fmt.Sprintf("/set/resourcelist-%d.xml", i)), HasMeta: true, Meta: rs.Meta{At: s.stateTime(), Length: -1, Ext: maps.Clone(h.Meta.Ext)}})
		}
		s.serveXML(w, r, s.document(h, es))
		return
	}
	var es []rs.Entry
	for i, k := range names {
		if part >= 0 && i%s.parts != part {
			continue
		}
		v, at := s.lastOf(k, n)
		e := s.entry(k, bodies[k], v, rs.Meta{})
		if !s.noLastmod {
			e.LastMod = at
		}
		es = append(es, e)
	}
	s.serveXML(w, r, s.document(h, es))
}

// offeredFrom is where the changes that are offered begin.
func (s *testSource) offeredFrom() time.Time {
	switch {
	case !s.anew.IsZero():
		return s.anew
	case s.drop > 0:
		return s.log[s.drop-1].at
	}
	return s.changesFrom
}

func (s *testSource) serveChanges(w http.ResponseWriter, r *http.Request, part int) {
	from, first, last := s.offeredFrom(), s.drop, len(s.log)
	var until time.Time
	if s.changeParts > 0 {
		if part < 0 {
			h := s.head(rs.ChangeList, rs.Meta{From: from})
			h.Index = true
			var es []rs.Entry
			begin := s.drop / s.changeParts
			if s.allNamed {
				begin = 0
			}
			for i := begin; i*s.changeParts <= len(s.log); i++ {
				m := rs.Meta{From: s.changesFrom, Length: -1}
				if i > 0 {
					m.From = s.log[i*s.changeParts-1].at
				}
				if (i+1)*s.changeParts < len(s.log) {
					m.Until = s.log[(i+1)*s.changeParts-1].at
				}
				if s.ours {
					m.Ext = map[string]string{rs.ExtSequence: fmt.Sprint(min(len(s.log), (i+1)*s.changeParts))}
				}
				e := rs.Entry{Loc: s.url(fmt.Sprintf("/set/changelist-%d.xml", i)), HasMeta: !s.noTimes && s.bare == 0, Meta: m}
				if n := min(len(s.log), (i+1)*s.changeParts); s.dialect != "" && n > 0 {
					e.LastMod = s.log[n-1].at
				}
				es = append(es, e)
			}
			if s.reversed {
				slices.Reverse(es)
			}
			s.serveXML(w, r, s.document(h, es))
			return
		}
		first, from = part*s.changeParts, s.changesFrom
		if part > 0 {
			from = s.log[first-1].at
		}
		if last = min(len(s.log), first+s.changeParts); first+s.changeParts < len(s.log) {
			until = s.log[last-1].at
		}
	}
	h := s.head(rs.ChangeList, rs.Meta{From: from, Until: until})
	if s.exact && !until.IsZero() {
		h.Meta.Ext[rs.ExtSequence] = fmt.Sprint(last)
	}
	s.serveXML(w, r, s.document(h, s.changeEntries(first, last)))
}

// serveChangesFrom gives the open Change List from a change on.
func (s *testSource) serveChangesFrom(w http.ResponseWriter, r *http.Request, n int) {
	from, first := s.offeredFrom(), s.drop
	if s.changeParts > 0 {
		if first, from = len(s.log)/s.changeParts*s.changeParts, s.changesFrom; first > 0 {
			from = s.log[first-1].at
		}
	}
	if n <= first || n > len(s.log) {
		http.NotFound(w, r)
		return
	}
	s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: from}), s.changeEntries(n-1, len(s.log))))
}

func (s *testSource) changeEntries(first, last int) []rs.Entry {
	var es []rs.Entry
	for i := first; i < last; i++ {
		l := s.log[i]
		e := s.entryIn(l.folder, l.name, l.body, i+1, rs.Meta{Change: l.kind, DateTime: l.at})
		if s.noTimes {
			e.Meta.DateTime = time.Time{}
		} else if !s.noLastmod {
			e.LastMod = l.at
		}
		if s.ours {
			if e.Meta.Ext == nil {
				e.Meta.Ext = map[string]string{}
			}
			e.Meta.Ext[rs.ExtSequence] = fmt.Sprint(i + 1)
		}
		if s.patches != nil && l.kind == "updated" {
			s.offerPatch(i, &e)
		}
		if s.pair {
			es = append(es, rs.Entry{Loc: e.Loc + ".old", HasMeta: true, Meta: rs.Meta{Change: "deleted", DateTime: l.at, Length: -1, Ext: map[string]string{rs.ExtSequence: fmt.Sprint(i + 1)}}})
		}
		es = append(es, e)
	}
	return es
}

// offerPatch adds a patch from the version before to the entry of change i.
func (s *testSource) offerPatch(i int, e *rs.Entry) {
	l := s.log[i]
	var before []byte
	for _, b := range s.log[:i] {
		if b.name == l.name {
			before = b.body
		}
	}
	f, _ := rdfres.FormatBySuffix(l.name)
	var graphs [2][]rdfres.Triple
	for k, body := range [][]byte{before, l.body} {
		ts, err := codec.Decode(f, body, rdfres.ReadOptions{Base: e.Loc})
		if err != nil {
			s.t.Error(err)
		}
		graphs[k] = rdfres.SortUnique(ts)
	}
	deleted, added := rdfres.DiffTriples(graphs[0], graphs[1])
	ofGraph := rdfres.AppendPatch(nil, nil, deleted, added)
	if f == rdfres.JSONLD {
		patch, err := jsonpatch.Diff(before, l.body)
		if err != nil {
			s.t.Error(err)
		}
		s.linkPatch(e, fmt.Sprintf("/set/patch/%d.json", i+1), "application/json-patch+json", patch, "[]", sha256.Sum256(before), sha256.Sum256(l.body))
		if !s.bothPatches {
			return
		}
	}
	s.linkPatch(e, fmt.Sprintf("/set/patch/%d.rdfp", i+1), rdfres.RDFPatchType, ofGraph, "TX .\nTC .\n", rdfres.GraphDigest(graphs[0]), rdfres.GraphDigest(graphs[1]))
}

func (s *testSource) linkPatch(e *rs.Entry, path, typ string, patch []byte, wrong string, base, result rdfres.Digest) {
	if s.wrongPatch {
		patch = []byte(wrong)
	}
	if _, ok := s.patches[path]; !ok {
		s.patches[path] = patch
	}
	sum := sha256.Sum256(patch)
	e.Links = append(e.Links, rs.Link{Rel: rs.RelPatch, Href: s.url(path), Type: typ, Length: int64(len(patch)), Hash: rs.Hashes{SHA256: hex.EncodeToString(sum[:])},
		Ext: map[string]string{rs.ExtBase: "sha-256:" + base.String(), rs.ExtResult: "sha-256:" + result.String()}})
}

func (s *testSource) document(h rs.Head, es []rs.Entry) []byte {
	var b bytes.Buffer
	h.Meta.Length = -1
	if s.dialect == "D-Lib" && h.Meta.Capability == rs.ChangeList || s.dialect == "0.5" && h.Index {
		slices.Reverse(es) // the newest first
	}
	w, err := rs.NewWriter(&b, h)
	if err == nil {
		for i := range es {
			if err == nil {
				err = w.Write(&es[i])
			}
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		s.t.Error("test source:", err)
	}
	return s.inDialect(b.Bytes())
}

var (
	untilAttribute   = regexp.MustCompile(` until="[^"]*"`)
	laterAttributes  = regexp.MustCompile(` (from|until|datetime)="[^"]*"`)
	modifiedOfBefore = strings.NewReplacer(` at="`, ` modified="`, `rel="up"`, `rel="resourcesync"`, ` capability="changelist"`, ` capability="changelist" modified="2026-02-01T00:00:00Z"`)
)

// inDialect writes a document as the source's dialect has it.
func (s *testSource) inDialect(doc []byte) []byte {
	switch s.dialect {
	case "":
		return doc
	case "no until":
		return untilAttribute.ReplaceAll(doc, nil)
	}
	text := modifiedOfBefore.Replace(string(laterAttributes.ReplaceAll(doc, nil)))
	if s.dialect == "D-Lib" {
		text = strings.NewReplacer("http://www.openarchives.org/rs/terms/", "http://www.openarchives.org/rs/", `rel="resourcesync"`, `rel="top"`).Replace(text)
	}
	return []byte(text)
}

// packageEntry tells of a package.
func (s *testSource) packageEntry(path string, z, manifest []byte, m rs.Meta) rs.Entry {
	sum := sha256.Sum256(z)
	e := rs.Entry{Loc: s.url(path), HasMeta: true, Meta: m}
	e.Meta.Type, e.Meta.Length = "application/zip", int64(len(z))
	if !s.noHash {
		e.Meta.Hash.SHA256 = hex.EncodeToString(sum[:])
	}
	if s.noLength {
		e.Meta.Length = -1
	}
	if s.tar {
		e.Meta.Type = "application/x-tar"
	}
	if s.contents {
		e.Links = append(e.Links, rs.Link{Rel: rs.RelContents, Href: s.url(path + ".xml"), Type: "application/xml", Length: int64(len(manifest))})
	}
	return e
}

type changePack struct {
	first, last int
	meta        rs.Meta
}

// changePackages cuts the log into packages.
func (s *testSource) changePackages() (out []changePack) {
	if s.packed == 0 {
		return []changePack{{s.drop, len(s.log), rs.Meta{From: s.offeredFrom(), Until: s.now}}}
	}
	for i := s.drop / s.packed; (i+1)*s.packed <= len(s.log); i++ {
		p := changePack{first: i * s.packed, last: (i + 1) * s.packed, meta: rs.Meta{From: s.changesFrom}}
		if i > 0 {
			p.meta.From = s.log[p.first-1].at
		}
		p.meta.Until = s.log[p.last-1].at
		out = append(out, p)
	}
	return out
}

func (s *testSource) zip() []byte {
	z, _ := s.zips()
	return z
}

func (s *testSource) zips() (z, manifest []byte) {
	if s.dumped != nil {
		return s.dumped.zip, s.dumped.manifest
	}
	var b bytes.Buffer
	w, err := rs.NewPackageWriter(&b, s.head(rs.ResourceDumpManifest, rs.Meta{At: s.stateTime()}))
	if err != nil {
		s.t.Error(err)
		return nil, nil
	}
	var names []string
	for k := range s.bodies {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		v, at := s.lastOf(k, len(s.log))
		e := s.entry(k, s.bodies[k], v, rs.Meta{})
		e.LastMod = at
		body := s.bodies[k]
		if s.lie[k] {
			body = append([]byte("# not what was promised\n"), body...)
		}
		if err := w.Add("/resources/"+k, body, &e); err != nil {
			s.t.Error(err)
		}
	}
	manifest, err = w.Close()
	if err != nil {
		s.t.Error(err)
	}
	return b.Bytes(), manifest
}

// want is what a mirror of the source holds: the named triples of all resources.
func (s *testSource) want() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := map[string]bool{}
	for name, body := range s.bodies {
		f, ok := rdfres.FormatBySuffix(name)
		if !ok {
			continue
		}
		loc := s.url(s.folder + name)
		ts, err := codec.Decode(f, body, rdfres.ReadOptions{Base: loc})
		if err != nil {
			continue
		}
		if !s.ours {
			if ts, _, err = rdfres.NameBlanks(ts, rdfres.NameOptions{Scope: loc}); err != nil {
				s.t.Error(err)
			}
		}
		for _, t := range ts {
			set[string(t.AppendLine(nil))] = true
		}
	}
	var out []string
	for l := range set {
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

var _ = io.EOF

func (s *testSource) capabilityLinks() []rs.Link {
	links := []rs.Link{{Rel: "up", Href: s.url("/.well-known/resourcesync"), Length: -1}}
	if s.inventory {
		links = append(links, rs.Link{Rel: feed.InventoryRel, Href: s.url("/set/inventory.json"), Length: -1})
	}
	if s.tails {
		links = append(links, rs.Link{Rel: rs.RelChangesFrom, Href: s.url("/set/changelist-from-"), Length: -1})
	}
	return links
}

// serveInventory gives the nodes of docs/reference/inventory.md.
func (s *testSource) serveInventory(w http.ResponseWriter, r *http.Request) {
	nodes := map[string]rdfres.InventoryNode{}
	names := map[rdfres.Digest]string{}
	var entries []rdfres.InventoryEntry
	for k, body := range s.bodies {
		e := s.entry(k, body, 0, rs.Meta{})
		d, err := item.ParseGraph(e.Meta.Ext[rs.ExtGraph])
		if err != nil {
			s.t.Error(err)
		}
		entity := e.Links[len(e.Links)-1].Href
		key := rdfres.EntityKey(entity)
		names[key] = entity
		entries = append(entries, rdfres.InventoryEntry{Key: key, Graph: d})
	}
	slices.SortFunc(entries, func(a, b rdfres.InventoryEntry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	root, err := rdfres.BuildInventory("", entries, func(path string, n rdfres.InventoryNode) error { nodes[path] = n; return nil })
	if err != nil {
		s.t.Error(err)
	}
	nodes[""] = root
	path := ""
	doc := map[string]any{"sequence": len(s.log)}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/set/inventory/node"); ok {
		path = strings.TrimSuffix(rest, ".json")
		var children, leaf []map[string]any
		n, ok := nodes[path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if n.Children != nil {
			for i, c := range n.Children {
				if p := path + "0123456789abcdef"[i:i+1]; c.Count > 0 {
					children = append(children, map[string]any{"path": p, "entities": c.Count, "digest": "sha-256:" + c.Digest.String(), "address": s.url("/set/inventory/node" + p + ".json")})
				}
			}
		}
		for _, e := range n.Entries {
			leaf = append(leaf, map[string]any{"key": e.Key.String(), "graph": "sha-256:" + e.Graph.String(), "entity": names[e.Key]})
		}
		doc["children"], doc["leaf"] = children, leaf
	} else {
		doc["root"] = s.url("/set/inventory/node.json")
	}
	doc["path"], doc["entities"], doc["digest"] = path, nodes[path].Count, "sha-256:"+nodes[path].Digest.String()
	json.NewEncoder(w).Encode(doc)
}

// changeZip packages the changes of the Change List.
func (s *testSource) changeZip(first, last int, m rs.Meta) (z, manifest []byte) {
	var b bytes.Buffer
	h := s.head(rs.ChangeDumpManifest, m)
	if s.ours {
		h.Meta.Ext[rs.ExtSequence] = fmt.Sprint(last)
	}
	w, err := rs.NewPackageWriter(&b, h)
	if err != nil {
		s.t.Error(err)
		return nil, nil
	}
	for i, e := range s.changeEntries(first, last) {
		body := s.log[first+i].body
		e.Links = slices.DeleteFunc(e.Links, func(l rs.Link) bool { return l.Rel == rs.RelMemento })
		if body == nil {
			if err := w.AddEntry(&e); err != nil {
				s.t.Error(err)
			}
			continue
		}
		if s.lie[s.log[first+i].name] {
			body = append([]byte("# not what was promised\n"), body...)
		}
		if err := w.Add(fmt.Sprintf("/changes/%d", i), body, &e); err != nil {
			s.t.Error(err)
		}
	}
	manifest, err = w.Close()
	if err != nil {
		s.t.Error(err)
	}
	return b.Bytes(), manifest
}
