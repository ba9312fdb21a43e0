package config

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/bridge/publishto"
	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/bridge/tables"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/login"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
	"github.com/rsbridge/rsbridge/push"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Config is the whole configuration of a bridge. The file reader is [Load]; a
// program may fill it in itself and call [Config.Validate]. Field tags carry the
// name in the file, a sentence for the reference, and the allowed values.
type Config struct {
	State        string                 `yaml:"state" doc:"one folder: log, representations, cursors, documents, embedded stores. Or postgres://USER@HOST/DATABASE: the records in a PostgreSQL database, and all else in state_folder. Better than a password in it: PGPASSWORD, a password file (PGPASSFILE), or ${VARIABLE}" default:"./state"`
	StateFolder  string                 `yaml:"state_folder" doc:"beside a state in a database: the folder for published files, keys, tokens and temporary files, of this process alone; default: the name of the configuration file with .state, beside that file"`
	Public       Public                 `yaml:"public" doc:"the listener of the published documents"`
	Admin        Admin                  `yaml:"admin" doc:"the administration API and the dashboard"`
	Stores       map[string]Store       `yaml:"stores" doc:"triple stores by name"`
	Sets         map[string]Set         `yaml:"sets" doc:"the published sets"`
	Destinations map[string]Destination `yaml:"destinations" doc:"the mirrors"`
	publishto.Files
	UserAgent string `yaml:"user_agent" doc:"name of rsbridge in requests to stores and sources; some hosts want a contact address; default: rsbridge, its version, the address of the project"`

	names settings.Names // of a command without a file
	temp  string         // instead of the state's folder for temporary files
	apart apart          // from the API
	file  string
	line  map[string]int // path of a key -> line, for findings
	idle  []Finding      // keys without an effect
}

// NameSettings gives the names of settings in hints, for a command without a file: its flags, by the keys of the
// settings, or by the ends of the keys.
func (c *Config) NameSettings(flags map[string]string) { c.names = flags }

// Names are the names of settings in hints.
func (c *Config) Names() settings.Names { return c.names }

// KeepTempIn takes a folder instead of the state's for temporary files.
func (c *Config) KeepTempIn(dir string) { c.temp = dir }

// Embedded is how many stores of the configuration are embedded.
func (c *Config) Embedded() (n int) {
	for _, s := range c.Stores {
		if s.Embedded != "" {
			n++
		}
	}
	return n
}

// Public is the listener of the published documents.
type Public struct {
	Listen            string          `yaml:"listen" doc:"address and port; empty: no documents; port 0: a free one, another each time, and the documents move there" default:"127.0.0.1:8080"`
	BaseURL           string          `yaml:"base_url" doc:"the public address, without a slash at the end; default: http:// and listen, if listen names a host"`
	Title             string          `yaml:"title" doc:"of the source, for people and catalogues; default: the host of base_url"`
	Description       string          `yaml:"description" doc:"of the source, for people and catalogues"`
	Publisher         string          `yaml:"publisher" doc:"publisher of sets without one of their own: a name, or an IRI"`
	ClientConnections int             `yaml:"client_connections" doc:"connections of one client address at once (of IPv6 one /64). 0: a quarter of all, without limit for loopback, where a proxy may stand for many; all are a quarter of the process's file limit. Give a proxy on another machine as many as it needs" default:"0"`
	Hub               push.HubConfig  `yaml:"hub" doc:"the built-in WebSub hub, for sets with notify.websub"`
	TLS               tlsfiles.Config `yaml:"tls" doc:"serve HTTPS by these files; empty: HTTP"`
	Robots            bool            `yaml:"robots" doc:"answer robots.txt with the Resource Lists as Sitemaps; search engines then read them too" default:"false"`
}

// Origin is the address of the listener, before BaseURL.
func (p Public) Origin() string { return p.TLS.Scheme() + "://" + p.Listen }

// Admin is the listener of the administration.
type Admin struct {
	Listen    string          `yaml:"listen" doc:"address and port; off loopback a token is required: one of rsbridge token, or the one below with 16 characters or more, 8 of them different; port 0: a free one" default:"127.0.0.1:8081"`
	Token     Secret          `yaml:"token" doc:"an administrator's token, beside those of rsbridge token"`
	TokenFile string          `yaml:"token_file" doc:"file with the token"`
	TLS       tlsfiles.Config `yaml:"tls" doc:"serve HTTPS by these files; empty: HTTP"`
}

// Store is a triple store: embedded, or by its addresses.
type Store struct {
	Embedded string `yaml:"embedded" doc:"folder of an embedded store; new or empty at first"`
	Sinks
	Serve        bool     `yaml:"serve" doc:"embedded only: also serve its query address, read only, on the public listener"`
	QueryTime    Duration `yaml:"query_time" doc:"embedded only: time limit of one query or update, without waiting for its reader" default:"10m"`
	QueryMemory  int64    `yaml:"query_memory" doc:"embedded only: memory limit of one query or update, in bytes" default:"268435456"`
	QueryRows    int64    `yaml:"query_rows" doc:"embedded only: limit of rows in memory of one query or update" default:"20000000"`
	Preset       string   `yaml:"preset" doc:"a product: it fills in the addresses from url and repository (docs/reference/stores.md); the addresses below override it" allowed:"oxigraph|fuseki|rdf4j|virtuoso|graphdb|blazegraph|qlever|stardog|allegrograph|neptune"`
	URL          string   `yaml:"url" doc:"with preset: address of the server"`
	Repository   string   `yaml:"repository" doc:"with preset: repository, dataset, database or namespace"`
	Query        string   `yaml:"query" doc:"SPARQL query address"`
	Update       string   `yaml:"update" doc:"SPARQL update address"`
	GraphStore   string   `yaml:"graph_store" doc:"Graph Store Protocol address"`
	Gateway      bool     `yaml:"gateway" doc:"take updates at /stores/NAME/update and /stores/NAME/data of the admin listener, forward them, and look at once at the entities that they touch (docs/howto/update-gateway.md)"`
	PatchLog     string   `yaml:"patch_log" doc:"the patch log of a Fuseki dataset (patch:LoggedDataset), a file readable here: look at once at the entities in it (docs/howto/expose-fuseki.md)"`
	Username     string   `yaml:"username" doc:"for basic or digest authentication"`
	Password     Secret   `yaml:"password" doc:"better: password_file, or ${VARIABLE}"`
	PasswordFile string   `yaml:"password_file" doc:"file with the password"`
	Timeout      Duration `yaml:"timeout" doc:"of one request without progress; an upload has a second more for each sent megabyte" default:"60s"`
	Concurrency  int      `yaml:"concurrency" doc:"requests at once" default:"2"`
	Rate         float64  `yaml:"rate" doc:"requests a second at most; 0: as many as concurrency lets through" default:"0"`
	Slow         Duration `yaml:"slow" doc:"after an answer slower than this to begin, the next request waits as long as it took, at most a minute; 0s: never" default:"10s"`
	MaxRows      int64    `yaml:"max_rows" doc:"row limit of the store, if known"`

	agent string // user_agent of the configuration
}

// IsLocal tells whether a store has no addresses.
func (s *Store) IsLocal() bool { return s.Embedded != "" || s.IsSink() }

// Set is a ResourceSync set made from a store, or from a series of dumps.
type Set struct {
	Store          string              `yaml:"store" doc:"name of the scanned store"`
	Dumps          []string            `yaml:"dumps" doc:"instead of a store: patterns of files, like ./dumps/*.nt.gz; the newest complete one is the state. N-Triples (.nt), N-Quads (.nq) or Turtle (.ttl), also packed with gzip, zstd or bzip2"`
	DumpsOrder     string              `yaml:"dumps_order" doc:"order of the dumps: by name, with numbers compared as numbers, or by time of change; the last one is the newest" allowed:"name|time" default:"name"`
	DumpsProof     string              `yaml:"dumps_proof" doc:"proof of a complete dump. Empty: its checksum file (FILE.sha256, SHA256SUMS and the like) and FILE.count, its number of statements, where they are there. checksum: a required checksum file. count: a required FILE.count. Any text beginning with #: the last line of each dump"`
	DumpsSettle    Duration            `yaml:"dumps_settle" doc:"rest time of a dump before it is read; best rename complete dumps into place" default:"2s"`
	Title          string              `yaml:"title" doc:"for people and catalogues"`
	Description    string              `yaml:"description" doc:"for people and catalogues"`
	Licence        string              `yaml:"licence" doc:"the licence: its IRI, or its name as dct:rights"`
	Publisher      string              `yaml:"publisher" doc:"publisher of the set: a name, or an IRI"`
	Graphs         []string            `yaml:"graphs" doc:"default: the default graph, with describe: graph all named graphs; \"*\": all"`
	Select         tables.Select       `yaml:"select" doc:"selected entities: all keys below must allow them; default: every subject with an IRI"`
	Describe       string              `yaml:"describe" doc:"cbd, scbd, graph (each named graph is a resource, called by its IRI), or a CONSTRUCT with ?entity" default:"cbd"`
	Format         string              `yaml:"format" doc:"of the representations" allowed:"jsonld|ntriples" default:"jsonld"`
	Prefix         string              `yaml:"prefix" doc:"removed from entity IRIs to make readable addresses"`
	Schedule       string              `yaml:"schedule" doc:"when to scan: cron with five fields, @hourly, @every 5m, CRON_TZ=" default:"@every 5m"`
	Hints          tables.Hints        `yaml:"hints" doc:"names of possible changes, to spare full scans; schedule then follows hints, and hints.full reads everything"`
	Strategy       string              `yaml:"strategy" doc:"way of full scans (docs/reference/stores.md). In one answer: whole, or a certain form. In parts: predicates, hash (of the entity IRI), graphs (one by one), batches (of entities). Empty: one answer in the fastest form, and parts after a cut answer" allowed:"whole|graph-store|construct|select-tsv|select-json|select-xml|select-binary|predicates|hash|graphs|batches"`
	Batch          int                 `yaml:"batch" doc:"entities in the first query of a batch; later queries adapt to the store" default:"200"`
	MaxTriples     int                 `yaml:"max_description_triples" doc:"an entity, or a component of blank nodes, with more triples fails by name; each is held in memory" default:"2000000"`
	MaxDepth       int                 `yaml:"max_depth" doc:"an entity with deeper nested blank nodes fails by name" default:"100000"`
	MaxNaming      int                 `yaml:"max_naming_work" doc:"limit of steps for naming the blank nodes of one component; an entity with too similar ones fails by name" default:"1000000"`
	MaxDeleteRatio float64             `yaml:"max_delete_ratio" doc:"a scan with deletions of a larger part of the set is held; ten are never too many, unless they are all" default:"0.2"`
	Hashes         []string            `yaml:"hashes" doc:"beside sha-256: md5, sha-1"`
	Publish        []string            `yaml:"publish" doc:"resourcelist, changelist, resourcedump, changedump" default:"resourcelist,changelist,resourcedump"`
	ResourceList   tables.ResourceList `yaml:"resourcelist" doc:"settings of the Resource List"`
	ChangeList     tables.ChangeList   `yaml:"changelist" doc:"settings of the Change Lists"`
	ResourceDump   tables.ResourceDump `yaml:"resourcedump" doc:"settings of the Resource Dump"`
	ChangeDump     tables.ChangeDump   `yaml:"changedump" doc:"settings of the Change Dump"`
	Inventory      bool                `yaml:"inventory" doc:"publish the inventory: digests for a quick comparison" default:"true"`
	Archives       tables.Archives     `yaml:"archives" doc:"settings of the archives"`
	Retention      tables.Retention    `yaml:"retention" doc:"lifetime of the past"`
	Collections    []string            `yaml:"collections" doc:"properties whose IRIs become collection links of list entries"`
	Collection     string              `yaml:"collection" doc:"IRI of a collection of all resources: an OAI-ORE aggregation, an OAI-PMH set"`
	Content        Content             `yaml:"content" doc:"files behind descriptions (PDF, images), listed as resources and linked both ways: a list of properties, or a table"`
	Alternates     []string            `yaml:"alternates" doc:"other sets with descriptions of the same entities in another vocabulary; list entries get alternate links to them"`
	Locations      []string            `yaml:"locations" doc:"further places of the same representations, the best first: duplicate links with pri; the address of a copy of the set, or a template with {name} and {suffix}"`
	Links          []string            `yaml:"links" doc:"further links of list entries, each as REL HREF or REL HREF TYPE; in HREF {entity}, {entity_escaped}, {name}, {suffix}, {loc} and {sequence} are filled in"`
	Relations      []string            `yaml:"relations" doc:"relations of a representation's Link header that list entries and manifests have too: alternate (other formats), canonical, describedby, timegate. Each makes lists larger" allowed:"alternate|canonical|describedby|timegate"`
	Notify         push.Config         `yaml:"notify" doc:"notifications of changes"`
	Access         string              `yaml:"access" doc:"readers of the set's addresses: everybody, or those with a token (rsbridge token create NAME --set SET). Its name, title and description stay public, and it has no WebSub: a hub sends changes to others" allowed:"public|tokens" default:"public"`
	Faces          []string            `yaml:"faces" doc:"other forms of the same log: ldes (Linked Data Event Stream), iiif (IIIF Change Discovery), oai (OAI-PMH 2.0)" allowed:"ldes|iiif|oai"`
	Contact        string              `yaml:"contact" doc:"e-mail address of the set's administrator; OAI-PMH wants one, default admin@ and the host"`
}

// Rotation is the age of a Change List at its closing. A Change Dump holds closed lists only,
// and retention drops closed lists only.
func (s Set) Rotation() time.Duration {
	switch {
	case s.ChangeList.Rotate > 0:
		return time.Duration(s.ChangeList.Rotate)
	case slices.Contains(s.Publish, string(resourcesync.ChangeDump)):
		return 24 * time.Hour
	}
	return time.Duration(s.Retention.Changes)
}

// Destination is a mirror.
type Destination struct {
	Source         string       `yaml:"source" doc:"a site, a well-known address, a Source Description, Capability List, Resource List or Change List; a user and password in it (https://me:${PASSWORD}@data.example) go with each request to that host, and nowhere else"`
	Login          login.Config `yaml:"login" doc:"credentials for the source: they go to its host and port, and nowhere else, also over redirects (docs/howto/protect-a-set.md)"`
	Set            string       `yaml:"set" doc:"name of the set, if the source has several"`
	Store          string       `yaml:"store" doc:"name of the mirror's store"`
	Graph          string       `yaml:"graph" doc:"one graph for all, or one for each entity" allowed:"single|per-entity" default:"single"`
	GraphIRI       string       `yaml:"graph_iri" doc:"single: the graph, empty for the default graph; per-entity: a template" `
	Select         tables.Part  `yaml:"select" doc:"a part of the source: one of the keys below must match; after a change the next sync fetches or removes the difference"`
	Map            string       `yaml:"map" doc:"a CONSTRUCT of SPARQL 1.1 applied to each description before storing; ?entity is its entity; without FROM, SERVICE, NOW, RAND, UUID"`
	Keep           string       `yaml:"keep" doc:"current: as the source. deleted: deletions of the source are not followed. versions: every version stays in the state. A resource outside select.classes always leaves the mirror; its versions stay with versions" allowed:"current|deleted|versions" default:"current"`
	MaxDeleteRatio float64      `yaml:"max_delete_ratio" doc:"deletions of a larger part of the mirror are held, and descriptions that become empty count as such; ten are never too many, unless they are all" default:"0.2"`
	Adopt          bool         `yaml:"adopt" doc:"take over a graph with foreign triples, or a folder with foreign files, in the first run; audits call extra what is left, and audit --repair removes it"`
	Schedule       string       `yaml:"schedule" doc:"when to sync" default:"@every 1m"`
	Live           live.Config  `yaml:"live" doc:"notifications of the source: a mode, or a table; the schedule rests while a channel is open"`
	Report         bool         `yaml:"report" doc:"report the position of the mirror to the source, signed with a key of its own, if the source takes such reports (docs/howto/watch-the-lag.md)"`
	Audit          tables.Audit `yaml:"audit" doc:"when to audit: a schedule, or a table"`
	OnGap          string       `yaml:"on_gap" doc:"reaction to lost changes: a comparison by archives or lists, or a stop" allowed:"baseline|stop" default:"baseline"`
	Files          string       `yaml:"files" doc:"a folder for non-RDF resources (pages, images, PDFs), each at the path of its address; empty: only counted and listed"`
	Provenance     bool         `yaml:"provenance" doc:"record source, time and digest of each description in the mirror's graph urn:rsbridge:state (PROV-O, Dublin Core)"`
	Freshness      Duration     `yaml:"freshness" doc:"keep triples about the freshness of the mirror in its graph urn:rsbridge:state, written at most so often (docs/howto/watch-the-lag.md); empty: none"`
	Allow          []string     `yaml:"allow" doc:"further permitted hosts, also for JSON-LD contexts; a resource with a context elsewhere fails by name"`
	Linked         []string     `yaml:"linked" doc:"relations from an HTML page to its RDF: in the list, in a Link header, or in the head of the page" allowed:"describedby|alternate" default:"describedby,alternate"`
	Concurrency    int          `yaml:"concurrency" doc:"fetches at once" default:"8"`
	MaxBytes       int64        `yaml:"max_resource_bytes" doc:"a longer representation, unpacked or as N-Triples, fails by name; reading one takes at most six times as much memory" default:"268435456"`
	MaxTriples     int64        `yaml:"max_resource_triples" doc:"a representation with more triples fails, by name" default:"5000000"`
	MaxPackage     int64        `yaml:"max_package_bytes" doc:"a longer package of a dump is not taken; two at once may lie in the temporary folder of the state" default:"68719476736"`
	Timeout        Duration     `yaml:"timeout" doc:"of one request to the source: for the begin of its answer; half of it for a pause" default:"2m"`
}

// Types of settings, and faults of a configuration file.
type (
	Secret   = configfile.Secret
	Duration = configfile.Duration
	Finding  = configfile.Finding
	Error    = configfile.Error
)

// Reference is the reference of the configuration file as Markdown.
func Reference() string { return configfile.Reference[Config]() }

// Schema is a JSON Schema of the configuration file.
func Schema() map[string]any { return configfile.Schema[Config]() }

// Load reads and validates a configuration file. Paths in it are relative to
// its folder. The error is a *Error naming every fault with its line.
func Load(file string) (*Config, error) {
	raw, err := configfile.Bytes(file)
	if err != nil {
		return nil, err
	}
	return Parse(raw, file)
}

// StateOf reads the place of the state from a configuration file, whatever else in the file is wrong.
func StateOf(file string) (records.Place, error) {
	cfg := &Config{}
	raw, err := configfile.Bytes(file)
	if err == nil {
		_, _, err = configfile.Read(raw, file, cfg)
	}
	cfg.file = file
	cfg.resolve(filepath.Dir(file))
	return cfg.Records(), err
}

// Parse is Load for bytes at hand; file is used in messages and for relative paths.
func Parse(raw []byte, file string) (*Config, error) { return parse(raw, file, declared.Read) }

func parse(raw []byte, file string, more func(state string) (declared.Declarations, error)) (*Config, error) {
	cfg, dir := &Config{apart: apart{file: raw}}, filepath.Dir(file)
	lines, own, err := configfile.Read(raw, file, cfg)
	if err != nil {
		return nil, err
	}
	faults := slices.Clone(own)
	cfg.file, cfg.line = file, lines
	at := *cfg // resolve makes it the folder of the configuration
	at.place(dir)
	state := at.Folder()
	all, err := more(state)
	if err == nil {
		var wrong []Finding
		wrong, err = cfg.apply(all, declared.File(state))
		faults = append(faults, wrong...)
	}
	if err != nil {
		faults = append(faults, Finding{File: declared.File(state), Key: "file", Message: err.Error()})
	}
	against, idle := cfg.beside()
	cfg.idle = idle
	faults = cfg.andChecked(slices.Concat(faults, against, cfg.resolve(dir)))
	// A bad name in the file, such as a.b, is no fault of a declaration a.
	faults = append(own, cfg.leaveOut(faults[len(own):])...)
	if len(cfg.apart.faults) > 0 {
		faults = cfg.andChecked(faults) // parts of the file that need one of them
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b Finding) int { return a.Line - b.Line })
		return nil, &Error{Findings: faults}
	}
	return cfg, nil
}
