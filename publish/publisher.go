package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/fileblob"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/catalogue"
	"github.com/rsbridge/rsbridge/publish/inventory"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/pages"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/publish/search"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// SetConfig configures the documents of a set.
type SetConfig struct {
	Name                        string // see naming.CheckSet
	Title, Description, Licence string // Licence: an IRI
	Publisher                   string // name or IRI of the publisher
	Log                         *changetrack.Log
	Format                      rdfres.Format                                   // main representation; default JSONLD
	Prefix                      string                                          // removed from entity IRIs in addresses
	Capabilities                []string                                        // resourcelist, changelist, resourcedump, changedump; nil: the first three
	Rotate                      time.Duration                                   // a Change List is closed when its first change is so old; 0: any age
	RotateEntries               int                                             // a Change List is closed with so many entries; default and most 50,000
	PartEntries                 int                                             // Resource List part; default 10000
	PackageBytes                int64                                           // dump package; default 64 MiB packed
	DumpPatches                 bool                                            // Change Dumps hold the patches too
	Links                       Links                                           // of list entries, beside the usual ones
	Content                     string                                          // names the rule for linked files (changetrack.LinkOptions); "": none
	FetchFiles                  func() FetchFile                                // begins to fetch files for a Resource Dump
	DumpFiles                   int64                                           // bytes of files in a Resource Dump at most; 0: none
	Alternates                  []string                                        // other sets that may describe the same entities: alternate links
	Via                         []string                                        // addresses of the sources this set is a copy of
	Services                    []Service                                       // other protocols for the data, answered by others
	SPARQL                      string                                          // address of a public endpoint over the data; "": none
	Origin                      func(ctx context.Context, entity string) string // address an entity was mirrored from, "" for none; nil: nothing was
	NoInventory                 bool                                            // no inventory
	ScheduledList               bool                                            // the Resource List is made by ListResources; false: it is always current
	ScheduledChangeDump         bool                                            // the Change Dump is made by DumpChanges; false: by Dump
	Archives                    bool                                            // keep archives (Archive, Retain)
	ArchivesKeep                time.Duration                                   // how long; 0: for ever
	Coverage                    func(context.Context) Coverage                  // for the description of the set; may be nil
	RootLinks                   func(set string) []resourcesync.Link            // further links of the Capability List of the set at an address; nil: none
	Channels                    func(set string) []resourcesync.Entry           // notification channels of the set at an address, for its Capability List; nil: none
}

// FetchFile writes a file to w, if it is the listed version and has no more than most bytes. An
// error means an unavailable file.
type FetchFile func(ctx context.Context, url string, v *changetrack.FileVersion, most int64, w io.Writer) error

// Coverage is a scan's report on completeness and content.
type Coverage struct {
	Triples, Covered int64
	Constructed      int64    // triples made by a CONSTRUCT; with any, Covered is unknown
	Graphs           []string // named graphs of the set by IRI, "*" for all; none: the default graph
	Vocabulary       Vocabulary
}

// The numbers of classes and properties.
type (
	Vocabulary = catalogue.Vocabulary
	Count      = catalogue.Count
)

// Options of Open.
type Options struct {
	BaseURL string // scheme://host[:port][/path], no trailing slash
	Dir     string // published files (dumps), or those being made for Files
	// Files keeps the published files instead of Dir; other processes may write there too. FilesURL is
	// its public address, without trailing slash: requests for packages are redirected there; "": none.
	Files    blob.Store
	FilesURL string

	Title string // of the source, for people; default: the host
	// Description and Publisher of the source are for catalogues; sets without a
	// publisher of their own have this one (a name, or an IRI).
	Description, Publisher string
	Robots                 bool                  // serve robots.txt with Sitemap lines; search engines have punished sites for it
	CacheBytes             int64                 // memory for documents; default 64 MiB
	Now                    func() time.Time      // nil: time.Now
	Logger                 *slog.Logger          // nil: silent
	Missing                func(set string)      // called once a request met a missing or cut file of a set, for Dump to make it again; may be nil
	Before                 func(context.Context) // called before a new generation becomes visible, its records being durable; may be nil
	Changed                func(set string)      // called once documents have changed, and at once; may be nil
	Names                  kv.Store              // the indexes of names, made again where they are lost; nil: with the other records
	Reading                bool                  // the store takes no writes: only Location answers
	Dry                    bool                  // nothing in Dir is made or removed

	// Progress is called now and then, with what is done of all: resources by a Resource Dump ("dump") and a first
	// publication ("publish"), changes by a Change Dump ("changedump") and the later publications. May be nil.
	Progress func(set, stage string, done, total int64)
}

// Publisher publishes all sets of one base URL. Safe for concurrent use.
type Publisher struct {
	base   string // without trailing slash; as it is configured
	o      Options
	log    *slog.Logger
	now    func() time.Time
	names  []string  // of the sets, sorted
	cache  *docCache // assembled documents and converted descriptions
	hot    *docCache // descriptions as they were asked for last
	closed atomic.Bool

	former map[string]formerRecord // gone sets, by name

	sourceSets int    // sets in one Source Description
	pagePolicy string // Content-Security-Policy

	mu    sync.RWMutex             // guards sets
	sets  map[string]*set          // each as it is at its present addresses
	paths atomic.Pointer[[]string] // of all base URLs in force, escaped, without trailing slash, the longest first
}

// set is one published set at fixed addresses: at new addresses it is another one.
type set struct {
	p       *Publisher
	cfg     SetConfig
	at      place
	entries entryMaker
	kv      kv.Store // its records
	files   *kept.Folder
	archive *archive

	sizes sizes
	*locks
	inventory *inventory.Tree // guarded by publishing
	names     *search.Index

	mu  sync.RWMutex // guards cur
	cur *generation  // nil before the first complete scan

	dump        atomic.Pointer[dumpRecord]
	changeDumps atomic.Pointer[[]kept.Package] // ascending by Number
	scheduled   atomic.Pointer[archiveRecord]  // scheduled Resource List
}

// sizes of a set's documents, whatever its addresses are.
type sizes struct {
	dumpDocEntries  int // packages in one Resource Dump document
	mostLists       int // Change Lists, before older ones are merged
	timeMapVersions int // versions in one TimeMap
	documentEntries int // entries in one document at most
	partSize        partition.Size
}

// locks of a set, whatever its addresses are. Publishing is taken before dumping.
type locks struct {
	publishing sync.Mutex // one Publish or Retain at a time; guards kv writes of generations, and warnedFull
	dumping    sync.Mutex // one Dump at a time; guards kv writes of dumps
	archiving  sync.Mutex // guards kv writes of archives; taken last, for moments
	warnedFull bool       // a log line has told that an index is nearly full
}

// generation is the current one. Its moments keep snapshots of the store only while the next
// generation is on its way.
type generation struct {
	set   *set
	gen   genRecord
	parts partition.Parts
	lists []listRecord // ascending; the last is open; never empty

	log        changetrack.Moment
	records    *kv.Moment
	alternates alternateMoments // nil: not known yet
}

// snapshot is a generation opened for a reader.
type snapshot struct {
	*generation
	view  *changetrack.View
	kv    kv.Snapshot
	links *alternateSets // of the alternates
}

// unreadable is the reason why there is nothing to be read.
func (s *snapshot) unreadable() error {
	if s == nil {
		return nil
	}
	return s.view.Err()
}

func (s *snapshot) release() {
	if s != nil {
		s.set.closed(s.view.Close(), s.kv.Close(), s.links.close())
	}
}

// closed logs errors of snapshots read to their end.
func (s *set) closed(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		s.p.log.Error("closing a snapshot", "set", s.cfg.Name, "error", err)
	}
}

// acquire opens the current generation, nil when there is none. Release it.
func (s *set) acquire(ctx context.Context) *snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cur == nil {
		return nil
	}
	return &snapshot{s.cur, s.cur.log.View(ctx), s.cur.records.Snapshot(ctx), s.cur.alternates.open(ctx)}
}

// freeze keeps the records of the current generation while others are written. The caller holds
// s.publishing.
func (s *set) freeze(ctx context.Context) {
	if s.cur != nil {
		s.cur.records.Freeze(ctx)
	}
}

// replace makes a generation the current one and lets go of the one before.
func (s *set) replace(next *generation) {
	if next != nil {
		next.set, next.records = s, kv.NewMoment(s.kv)
	}
	s.mu.Lock()
	old := s.cur
	s.cur = next
	s.mu.Unlock()
	if old != nil {
		s.closed(old.log.Release(), old.records.Release(), old.alternates.release())
	}
	s.p.o.Changed(s.cfg.Name)
}

func (s *set) offersChangeDump() bool {
	return s.offers(resourcesync.ChangeDump) && s.files.Store != nil
}

func (s *set) offers(capability resourcesync.Capability) bool {
	if s.cfg.Capabilities == nil {
		return capability != resourcesync.ChangeDump
	}
	return slices.Contains(s.cfg.Capabilities, string(capability))
}

// Open repairs unfinished work after a crash: it removes files without a record, and publishes the
// changes after the last generation.
//
// A set stays at the addresses of its last generation, whatever the configuration, until the log
// has a move (Addresses, changetrack.Log.Rebase).
func Open(ctx context.Context, store kv.Store, sets []SetConfig, o Options) (*Publisher, error) {
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return nil, fmt.Errorf("publish: base URL %q: want http(s)://host[:port][/path]", o.BaseURL)
	}
	p := &Publisher{base: base.String(), o: o, log: o.Logger, now: o.Now, sets: map[string]*set{}, sourceSets: sourceSets, pagePolicy: pages.Policy(base.String())}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.o.Before == nil {
		p.o.Before = func(context.Context) {}
	}
	if p.o.Changed == nil {
		p.o.Changed = func(string) {}
	}
	if p.o.Progress == nil {
		p.o.Progress = func(string, string, int64, int64) {}
	}
	if p.o.Names == nil {
		p.o.Names = store
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	p.paths.Store(&[]string{})
	if p.o.Title == "" {
		p.o.Title = base.Host
	}
	p.cache, p.hot = newDocCache(o.CacheBytes/2), newDocCache(o.CacheBytes/2)
	for _, cfg := range sets {
		s, err := p.newSet(ctx, store, cfg)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.put(s)
		p.names = append(p.names, cfg.Name)
	}
	slices.Sort(p.names)
	if o.Reading {
		return p, nil
	}
	for _, cfg := range sets { // each finds the others
		if err := p.lookup(cfg.Name).open(ctx); err != nil {
			p.Close()
			return nil, fmt.Errorf("publish: opening the set %s: %w", cfg.Name, err)
		}
	}
	if err := p.openFormer(ctx, store); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Publisher) newSet(ctx context.Context, store kv.Store, cfg SetConfig) (*set, error) {
	if err := naming.CheckSet(cfg.Name); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	if p.sets[cfg.Name] != nil {
		return nil, fmt.Errorf("publish: two sets are named %s", cfg.Name)
	}
	if cfg.Log == nil {
		return nil, fmt.Errorf("publish: the set %s has no log", cfg.Name)
	}
	if cfg.Format == "" {
		cfg.Format = rdfres.JSONLD
	}
	if cfg.Rotate <= 0 {
		cfg.Rotate = math.MaxInt64
	}
	if cfg.RotateEntries <= 0 {
		cfg.RotateEntries = mostEntries
	}
	if cfg.PartEntries <= 0 {
		cfg.PartEntries = 10000
	}
	cfg.RotateEntries, cfg.PartEntries = min(cfg.RotateEntries, mostEntries), min(cfg.PartEntries, int(partition.Large.Entries))
	if cfg.PackageBytes <= 0 {
		cfg.PackageBytes = 64 << 20
	}
	if cfg.Title == "" {
		cfg.Title = cfg.Name
	}
	for _, c := range cfg.Capabilities {
		switch resourcesync.Capability(c) {
		case resourcesync.ResourceList, resourcesync.ChangeList, resourcesync.ResourceDump, resourcesync.ChangeDump:
		default:
			return nil, fmt.Errorf("publish: the set %s: capability %q: want resourcelist, changelist, resourcedump or changedump", cfg.Name, c)
		}
	}
	for _, iri := range cfg.Via {
		if !naming.Absolute(iri) {
			return nil, fmt.Errorf("publish: the set %s: %q is no address of a source", cfg.Name, iri)
		}
	}
	if err := cfg.Links.prepare(); err != nil {
		return nil, fmt.Errorf("publish: the set %s: %w", cfg.Name, err)
	}
	s := &set{p: p, cfg: cfg, kv: setKeys(store, cfg.Name), files: &kept.Folder{Set: cfg.Name, Log: p.log, Ask: p.o.Missing, Now: p.now, Dry: p.o.Dry}, locks: &locks{}, inventory: inventory.New(setKeys(store, cfg.Name)), names: search.New(setKeys(p.o.Names, cfg.Name), cfg.Log),
		sizes: sizes{dumpDocEntries, mostLists, timeMapVersions, mostEntries, partSize(cfg.PartEntries)}}
	at, former, known, err := readAddresses(ctx, s.kv)
	if err != nil {
		return nil, fmt.Errorf("publish: the set %s: %w", cfg.Name, err)
	}
	told, err := wasTold(ctx, cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("publish: the set %s: %w", cfg.Name, err)
	}
	if !known || !told {
		at, former = Addresses{Base: p.base, Prefix: cfg.Prefix}, nil
	}
	s.settle(at, former)
	if p.o.Dir != "" && !p.o.Reading {
		s.files.Dir = filepath.Join(p.o.Dir, cfg.Name)
		s.files.Store, s.files.Local = fileblob.New(s.files.Dir), true
		if p.o.Files != nil {
			s.files.Store, s.files.Local = blob.Below(p.o.Files, cfg.Name), false
			if p.o.FilesURL != "" {
				s.files.Public = p.o.FilesURL + "/" + cfg.Name
			}
		}
		if err := s.files.Make(); err != nil {
			return nil, fmt.Errorf("publish: the folder of the set %s: %w", cfg.Name, err)
		}
	}
	return s, nil
}

// settle puts a new set at its addresses.
func (s *set) settle(at Addresses, former []string) {
	s.at = newPlace(s.cfg.Name, at, former)
	s.entries = entryMaker{&s.cfg, &s.at}
	s.changeDumps.Store(&[]kept.Package{})
	s.archive = &archive{cfg: &s.cfg, at: &s.at, files: s.files, kv: s.kv, log: s.p.log, now: s.p.now, docEntries: archiveDocEntries, writing: &s.archiving}
	s.archive.list.Store(&[]archiveRecord{})
}

// Close releases the views. Running requests and a running Dump keep their own until they end. So
// stop the HTTP server and the jobs before, and close the store after. It may be called twice.
func (p *Publisher) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.sets)) { // the map itself stays as it is from here on
		s := p.lockPublishing(name)
		s.names.Close()
		s.replace(nil)
		s.publishing.Unlock()
	}
	return nil
}

func (p *Publisher) set(name string) (*set, error) {
	if p.closed.Load() {
		return nil, errors.New("publish: the publisher is closed")
	}
	s := p.lookup(name)
	if s == nil {
		return nil, fmt.Errorf("publish: there is no set %q", name)
	}
	return s, nil
}

// lookup gives the present set, nil when there is none of that name.
func (p *Publisher) lookup(name string) *set {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sets[name]
}

// lockPublishing takes the lock of a set, and gives the set present then.
func (p *Publisher) lockPublishing(name string) *set {
	p.lookup(name).publishing.Lock()
	return p.lookup(name)
}

// lockDumping is the same with the other lock.
func (p *Publisher) lockDumping(name string) *set {
	p.lookup(name).dumping.Lock()
	return p.lookup(name)
}

// Generation is a numbered publication. The zero value: none yet.
type Generation struct {
	Number   uint64
	Sequence uint64    // last position of the log in it
	At       time.Time // time of that position: every change up to it is included
}

// Names is the index of the names in a set, nil for an unknown set. It ends with the publisher.
func (p *Publisher) Names(name string) *search.Index {
	if s := p.lookup(name); s != nil {
		return s.names
	}
	return nil
}

// Generation returns the current publication of a set; false before the first.
func (p *Publisher) Generation(name string) (Generation, bool) {
	if _, err := p.set(name); err != nil {
		return Generation{}, false
	}
	s := p.lookup(name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cur == nil {
		return Generation{}, false
	}
	return s.cur.gen.public(), true
}

// Recorded is the last publication of a set in a store, opened or not; false before the first.
func Recorded(ctx context.Context, store kv.Store, name string) (Generation, bool, error) {
	var gen genRecord
	known, err := getJSON(ctx, setKeys(store, name), []byte("g"), &gen)
	return gen.public(), known, err
}

func (g *genRecord) public() Generation {
	return Generation{Number: g.Number, Sequence: g.Sequence, At: g.At}
}

// Location is the address of an entity's main representation: of its current version, or in the
// set's format when it has none.
func (p *Publisher) Location(ctx context.Context, name, entity string) (string, error) {
	if _, err := p.set(name); err != nil {
		return "", err
	}
	s, snap := p.present(ctx, name)
	format := s.cfg.Format
	var view *changetrack.View
	switch {
	case snap != nil:
		defer snap.release()
		view = snap.view
	case p.o.Reading:
		view = s.cfg.Log.View(ctx)
		defer view.Close()
	}
	if view != nil {
		st, err := view.Entity(ctx, entity)
		switch {
		case err == nil && st.Current != nil:
			format = st.Current.Format
		case err == nil && st.Deleted != nil && st.Deleted.Before != nil:
			format = st.Deleted.Before.Format
		case err != nil && !errors.Is(err, kv.ErrNotFound):
			return "", fmt.Errorf("publish: location of %s in %s: %w", clip.Middle(entity), name, err)
		}
	}
	return s.at.address(entity, format), nil
}
