package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/hosts"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// resolve reads secrets from their files and makes paths relative to dir absolute.
func (c *Config) resolve(dir string) (faults []Finding) {
	abs := func(p string) string { return absolute(dir, p) }
	secret := func(path, file string, into *Secret) {
		if file == "" {
			return
		}
		raw, err := os.ReadFile(abs(file))
		if err != nil {
			faults = append(faults, Finding{File: c.file, Line: c.line[path], Key: c.names.Of(path), Value: file, Message: "cannot be read: " + err.Error()})
			return
		}
		if *into = Secret(strings.TrimSpace(string(raw))); *into != "" || strings.HasPrefix(path, "stores.") { // a store may have users without a password
			return
		}
		why := "is empty"
		if path == "admin.token_file" {
			why += ": nobody would be asked for a token"
		}
		faults = append(faults, Finding{File: c.file, Line: c.line[path], Key: c.names.Of(path), Value: file, Message: why})
	}
	c.place(dir)
	c.Public.TLS.Resolve(abs)
	c.Admin.TLS.Resolve(abs)
	secret("admin.token_file", c.Admin.TokenFile, &c.Admin.Token)
	for name, s := range c.Stores {
		for _, path := range s.paths() {
			*path = abs(*path)
		}
		secret("stores."+name+".password_file", s.PasswordFile, &s.Password)
		c.Stores[name] = s
	}
	for name, d := range c.Destinations {
		d.Files = abs(d.Files)
		d.Login.Resolve(abs, func(key, file string, into *Secret) { secret("destinations."+name+".login."+key, file, into) })
		c.Destinations[name] = d
	}
	for _, s := range c.Sets {
		for i, pattern := range s.Dumps {
			if !strings.Contains(pattern, "://") { // checkDumps refuses an address
				s.Dumps[i] = abs(pattern)
			}
		}
	}
	c.fill()
	return faults
}

// fill sets the settings derived from others.
func (c *Config) fill() {
	if c.Public.BaseURL == "" && hosts.Named(c.Public.Listen) {
		c.Public.BaseURL = c.Public.Origin()
	}
	c.Public.BaseURL = strings.TrimRight(c.Public.BaseURL, "/")
	for name, s := range c.Stores {
		s.agent = c.UserAgent
		c.Stores[name] = s.preset()
	}
}

// preset fills in the addresses of a preset; the check finds its faults.
func (s Store) preset() Store {
	if s.Preset == "" || !hosts.IsServer(s.URL) || s.IsLocal() {
		return s
	}
	query, update, graphStore, err := sparql.Addresses(s.Preset, s.URL, s.Repository, s.Username == "")
	if err == nil {
		s.Query, s.Update, s.GraphStore = cmp.Or(s.Query, query), cmp.Or(s.Update, update), cmp.Or(s.GraphStore, graphStore)
	}
	return s
}

// Validate checks a Config made by a program and fills in derived settings. The error is a
// *Error with all faults.
func (c *Config) Validate() error {
	c.fill()
	if f := c.check(); len(f) > 0 {
		return &Error{Findings: f}
	}
	return nil
}

// check finds faults across fields.
func (c *Config) check() (out []Finding) {
	fault := func(path, value, format string, args ...any) {
		line := c.line[path]
		for p := path; line == 0 && p != ""; line = c.line[p] { // the nearest written key
			p = p[:max(strings.LastIndexByte(p, '.'), 0)]
		}
		out = append(out, Finding{File: c.file, Line: line, Key: c.names.Of(path), Value: webguard.Masked(value), Message: webguard.MaskedSetting(fmt.Sprintf(format, args...))})
	}
	httpURL := func(path, v string) {
		u, err := webguard.Parse(v)
		with, wrong := webguard.WithScheme(v)
		switch {
		case wrong == nil && with != v && strings.ContainsAny(v, ".:/"):
			fault(path, v, "has no scheme: write %s, or https://", webguard.Masked(with))
		case err != nil || u.Hostname() == "" || !hosts.IsPort(u.Port()) || (u.Scheme != "http" && u.Scheme != "https"):
			fault(path, v, "is no http or https address")
		}
	}
	schedule := func(path, v string) {
		if v == "" {
			return
		}
		if err := jobs.CheckSchedule(v); err != nil {
			fault(path, v, "is no schedule (five fields, @hourly, @every 5m): %v", err)
		}
	}
	if err := c.Public.Hub.Check(); err != nil {
		fault("public.hub", "", "%v", err)
	}
	if key, value, err := c.Files.Check(); err != nil {
		fault(key, value, "%v", err)
	}
	if err := webclient.CheckAgent(c.UserAgent); err != nil {
		fault("user_agent", c.UserAgent, "%v", err)
	}
	ratio := func(path string, v float64) {
		if !(v >= 0 && v <= 1) {
			fault(path, fmt.Sprint(v), "is a share: between 0 and 1")
		}
	}
	classes := func(path string, iris []string) {
		for _, iri := range iris {
			if err := sparqlsrc.CheckIRI(iri); err != nil {
				fault(path, iri, "is no class: %v", err)
			}
		}
	}
	atLeast := func(path string, v, least int64) {
		if v < least {
			fault(path, fmt.Sprint(v), "is %d or more", least)
		}
	}
	if key, why := records.Fault(c.State, c.StateFolder); key != "" {
		fault(key, "", "%s", why)
	}
	derived := c.Public.BaseURL == c.Public.Origin() // a fault of listen is told once
	if c.Public.BaseURL != "" && !derived {
		httpURL("public.base_url", c.Public.BaseURL)
		if strings.ContainsAny(c.Public.BaseURL, "?#") {
			fault("public.base_url", c.Public.BaseURL, "has a query or a fragment: the addresses of all documents begin with it")
		}
		if u, err := url.Parse(c.Public.BaseURL); err == nil && u.User != nil {
			fault("public.base_url", c.Public.BaseURL, "names a user: it is what everybody sees")
		} else if err == nil && u.Hostname() != "" && !hosts.IsHost(u.Hostname()) {
			fault("public.base_url", c.Public.BaseURL, "names no host that others could ask")
		}
	} else if len(c.Sets) > 0 && c.Public.BaseURL == "" && (c.Public.Listen == "" || hosts.Listens(c.Public.Listen)) {
		why := ""
		if c.Public.Listen != "" {
			why = fmt.Sprintf(", and %s %q names no host", c.names.Of("public.listen"), c.Public.Listen)
		}
		fault("public.base_url", "", "is needed: all published addresses begin with it%s; give the address that others use, like http://data.example.org", why)
	}
	for _, l := range []struct{ path, v string }{{"public.listen", c.Public.Listen}, {"admin.listen", c.Admin.Listen}} {
		if l.v != "" && !hosts.Listens(l.v) {
			fault(l.path, l.v, "is no address with a port, like 127.0.0.1:8080")
		}
	}
	for path, files := range map[string]tlsfiles.Config{"public.tls": c.Public.TLS, "admin.tls": c.Admin.TLS} {
		if err := files.Check(); err != nil {
			fault(path, "", "%v", err)
		}
	}
	if c.Admin.Listen != "" && c.Admin.Listen == c.Public.Listen && !strings.HasSuffix(c.Admin.Listen, ":0") {
		fault("admin.listen", c.Admin.Listen, "is where the documents are served: give it another port")
	}
	if c.Admin.Listen != "" && !hosts.Loopback(c.Admin.Listen) {
		token := "admin.token"
		if c.Admin.TokenFile != "" {
			token = "admin.token_file"
		}
		switch {
		case c.Admin.Token == "" && access.Open(access.Folder(c.Folder()), "").Closed(): // by tokens of the state
		case c.Admin.Token == "":
			fault("admin.listen", c.Admin.Listen, "is not loopback, and there is no token: make one with rsbridge token create, set %s, or listen on 127.0.0.1", c.names.Of("admin.token_file"))
		case !access.Strong(string(c.Admin.Token)):
			fault(token, "", "is easy to guess: off loopback a token has %d characters or more, %d of them different; make one with: openssl rand -hex 16", access.TokenLength, access.TokenVariety)
		}
	}
	c.checkStores(fault, httpURL)
	for _, name := range slices.Sorted(maps.Keys(c.Sets)) {
		s, p := c.Sets[name], "sets."+name
		if err := naming.CheckSet(name); err != nil && (configfile.IsName(name) || c.file == "") { // else the reader has told it
			fault(p, "", "%v", err)
		}
		if len(s.Dumps) > 0 {
			s.checkDumps(p, fault)
		} else if _, ok := c.Stores[s.Store]; !ok {
			fault(p+".store", s.Store, "is not one of the stores: %s%s", NamesOf(c.Stores), settings.Meant(s.Store, slices.Collect(maps.Keys(c.Stores))))
		} else if st := c.Stores[s.Store]; st.IsSink() {
			fault(p+".store", s.Store, "is a place for mirrors (dump, files) and cannot be scanned")
		}
		s.checkHints(p, fault)
		if err := sparqlsrc.CheckGraphs(s.Graphs); err != nil {
			fault(p+".graphs", "", "%v", err)
		}
		classes(p+".select.classes", s.Select.Classes)
		if s.Select.Query != "" && len(s.Dumps) == 0 {
			if err := sparqlsrc.CheckSelect(s.Select.Query); err != nil {
				fault(p+".select.query", "", "is no SELECT of ?entity: %v", err)
			}
		}
		schedule(p+".hints.full", s.Hints.Full)
		if s.Describe != "" && s.Describe != "cbd" && s.Describe != "scbd" && s.Describe != "graph" && !strings.Contains(strings.ToUpper(s.Describe), "CONSTRUCT") {
			fault(p+".describe", s.Describe, "is not one of cbd, scbd, graph, or a CONSTRUCT with ?entity")
		} else if err := sparqlsrc.CheckDescribe(s.Describe); err != nil {
			fault(p+".describe", "", "%v", err)
		}
		schedule(p+".schedule", s.Schedule)
		schedule(p+".resourcedump.schedule", s.ResourceDump.Schedule)
		schedule(p+".resourcelist.schedule", s.ResourceList.Schedule)
		schedule(p+".changedump.schedule", s.ChangeDump.Schedule)
		schedule(p+".archives.schedule", s.Archives.Schedule)
		ratio(p+".max_delete_ratio", s.MaxDeleteRatio)
		if err := sparqlsrc.CheckStrategy(s.Strategy, s.Describe); err != nil {
			fault(p+".strategy", s.Strategy, "%v", err)
		}
		atLeast(p+".batch", int64(s.Batch), 1)
		atLeast(p+".max_description_triples", int64(s.MaxTriples), 1)
		atLeast(p+".max_depth", int64(s.MaxDepth), 1)
		atLeast(p+".max_naming_work", int64(s.MaxNaming), 1)
		for _, h := range s.Hashes {
			if h != "md5" && h != "sha-1" && h != "sha-256" {
				fault(p+".hashes", h, "is not one of md5, sha-1, sha-256")
			}
		}
		for _, v := range s.Publish {
			if !slices.Contains([]string{"resourcelist", "changelist", "resourcedump", "changedump"}, v) {
				fault(p+".publish", v, "is not one of resourcelist, changelist, resourcedump, changedump%s", settings.Meant(v, []string{"resourcelist", "changelist", "resourcedump", "changedump"}))
			}
		}
		for _, text := range s.Links {
			if _, err := publish.ParseLink(text); err != nil {
				fault(p+".links", text, "%v", err)
			}
		}
		for _, l := range []struct {
			key   string
			links publish.Links
		}{
			{"collections", publish.Links{Collections: s.Collections}},
			{"collection", publish.Links{Collection: s.Collection}},
			{"locations", publish.Links{Locations: s.Locations}},
		} {
			if err := l.links.Check(); err != nil {
				fault(p+"."+l.key, "", "%v", err)
			}
		}
		for i, other := range s.Alternates {
			if _, ok := c.Sets[other]; !ok || other == name || slices.Contains(s.Alternates[:i], other) {
				fault(p+".alternates", other, "is not one of the other sets, each once: %s", NamesOf(c.Sets))
			}
		}
		if s.IsProtected() && len(s.Notify.Hubs) > 0 {
			fault(p+".notify.hubs", "", "send changes to others, and the set is for readers with a token")
		}
		if err := s.Notify.Check(); err != nil {
			fault(p+".notify", "", "%v", err)
		}
		cc := s.FollowerConfig()
		if err := cc.Check(); err != nil {
			fault(p+".content", "", "%v", err)
		}
		if len(s.Content.Properties) == 0 && (len(s.Content.Allow) > 0 || s.Content.Hash || s.Content.Private) {
			fault(p+".content.properties", "", "is needed: which properties lead to files")
		}
		for _, e := range []struct{ key, text string }{{"title", s.Title}, {"description", s.Description}, {"licence", s.Licence}, {"publisher", s.Publisher}} {
			if e.text != "" && strings.TrimSpace(e.text) == "" {
				fault(p+"."+e.key, e.text, "is blank: leave it out, or say which")
			}
		}
		if s.Contact != "" && !contactForm.MatchString(s.Contact) {
			fault(p+".contact", s.Contact, "is no e-mail address, like who@data.example")
		}
		for _, e := range []struct {
			key string
			n   int
		}{{"resourcelist.part_entries", s.ResourceList.PartEntries}, {"changelist.entries", s.ChangeList.Entries}} {
			if e.n > 50000 {
				fault(p+"."+e.key, fmt.Sprint(e.n), "is at most 50000, the limit of a Sitemap")
			}
		}
	}
	folders := map[string]string{} // of files, by their owner
	for name, st := range c.Stores {
		if st.Files != "" {
			folders["store "+name] = filepath.Clean(st.Files)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d, p := c.Destinations[name], "destinations."+name
		if _, ok := c.Stores[d.Store]; !ok {
			fault(p+".store", d.Store, "is not one of the stores: %s%s", NamesOf(c.Stores), settings.Meant(d.Store, slices.Collect(maps.Keys(c.Stores))))
		} else if st := c.Stores[d.Store]; !st.IsLocal() && st.Update == "" && st.GraphStore == "" {
			fault(p+".store", d.Store, "can only be read: it has neither %s nor %s", c.names.Of("update"), c.names.Of("graph_store"))
		}
		httpURL(p+".source", d.Source)
		d.Login.Check(d.Source, func(key, value, format string, args ...any) {
			fault(strings.TrimSuffix(p+".login."+key, "."), value, format, args...)
		})
		schedule(p+".schedule", d.Schedule)
		schedule(p+".audit", d.Audit.Schedule)
		if err := d.Live.Check(); err != nil {
			fault(p+".live", "", "%v", err)
		}
		classes(p+".select.classes", d.Select.Classes)
		ratio(p+".max_delete_ratio", d.MaxDeleteRatio)
		for _, host := range d.Allow {
			if _, err := webguard.ParseRule(host); err != nil {
				fault(p+".allow", "", "%v", err)
			}
		}
		if d.Concurrency < 1 || d.Concurrency > 256 {
			fault(p+".concurrency", fmt.Sprint(d.Concurrency), "is between 1 and 256")
		}
		atLeast(p+".max_resource_bytes", d.MaxBytes, 1)
		atLeast(p+".max_resource_triples", d.MaxTriples, 1)
		atLeast(p+".max_package_bytes", d.MaxPackage, 1)
		if time.Duration(d.Timeout) < time.Second {
			fault(p+".timeout", d.Timeout.String(), "is 1s or longer")
		}
		if d.Map != "" {
			if _, err := embedstore.ParseMapping(d.Map); err != nil {
				fault(p+".map", "", "%v", err)
			} else if st := c.Stores[d.Store]; st.Files != "" {
				fault(p+".map", "", "is for stores and dumps; a folder has the representations as they are")
			}
		}
		switch st, other := c.Stores[d.Store], c.besides(name); {
		case other == "":
		case st.Dump != "" && c.Destinations[other].GraphIRI != d.GraphIRI:
			fault(p+".graph_iri", d.GraphIRI, "is another graph than %q of destination %s, whose dump it is too: a dump has one graph", c.Destinations[other].GraphIRI, other)
		case st.Files != "" && !d.Adopt:
			fault(p+".store", d.Store, "is the folder of destination %s too: a folder is for one", other)
		}
		if st := c.Stores[d.Store]; st.IsSink() && d.Graph == "per-entity" {
			fault(p+".graph", d.Graph, "is for stores; a mirror in files has no graphs")
		} else if st.Files != "" && d.Keep == "versions" {
			fault(p+".keep", d.Keep, "is for stores and dumps; a folder has one file for each resource")
		}
		if st := c.Stores[d.Store]; d.Provenance && (st.IsSink() || !st.IsLocal() && st.Update == "") {
			fault(p+".provenance", "true", "is for stores that take SPARQL updates")
		}
		if st := c.Stores[d.Store]; d.Freshness > 0 && (st.IsSink() || !st.IsLocal() && st.Update == "") {
			fault(p+".freshness", time.Duration(d.Freshness).String(), "is for stores that take SPARQL updates")
		} else if d.Freshness != 0 && time.Duration(d.Freshness) < time.Second {
			fault(p+".freshness", time.Duration(d.Freshness).String(), "is less than a second")
		}
		if d.Files != "" {
			if st := c.Stores[d.Store]; st.Files != "" {
				fault(p+".files", d.Files, "is not needed: the store is a folder of files and has them already")
			}
			if c.inState(d.Files) {
				fault(p+".files", d.Files, "is where the state keeps its own files: choose another place")
			}
			for other, path := range folders {
				if path == filepath.Clean(d.Files) {
					fault(p+".files", d.Files, "is also the folder of %s", other)
				}
			}
			folders["destination "+name] = filepath.Clean(d.Files)
		}
		if d.Graph == "per-entity" && d.GraphIRI != "" && !strings.Contains(d.GraphIRI, "{entity}") {
			fault(p+".graph_iri", d.GraphIRI, "must contain {entity} when %s is per-entity", c.names.Of(p+".graph"))
		} else if d.GraphIRI != "" {
			graph := d.GraphIRI
			if d.Graph == "per-entity" {
				graph = strings.ReplaceAll(graph, "{entity}", "http://e.example/")
			}
			if err := sparqlsrc.CheckIRI(graph); err != nil {
				fault(p+".graph_iri", d.GraphIRI, "is no name of a graph: %v", err)
			} else if sparql.IsOwnGraph(graph) {
				fault(p+".graph_iri", d.GraphIRI, "is no name of a graph for data: rsbridge keeps its own records there")
			}
		}
	}
	return out
}

// contactForm is an e-mail address for OAI-PMH, or less.
var contactForm = regexp.MustCompile(`^\S+@\S+$`)

func (c *Config) checkStores(fault func(path, value, format string, args ...any), httpURL func(path, v string)) {
	places := map[string]string{} // cleaned path -> store
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s, p := c.Stores[name], "stores."+name
		remote := s.Query != "" || s.Update != "" || s.GraphStore != ""
		byPreset := s.Preset != "" || s.URL != "" || s.Repository != ""
		if byPreset {
			_, _, _, err := sparql.Addresses(s.Preset, s.URL, s.Repository, s.Username == "")
			switch {
			case s.Preset == "" || s.URL == "" || s.IsLocal():
				fault(p, "", "preset and url go together, in a store that is neither embedded nor a sink; repository goes with them")
			case !hosts.IsServer(s.URL):
				fault(p+".url", s.URL, "is no http or https address of a server, without a question in it")
			case err != nil:
				fault(p+".preset", s.Preset, "%v", err)
			}
		}
		switch {
		case s.Embedded != "" && remote:
			fault(p, "", "is either embedded or has addresses, not both")
		case s.IsSink() && (remote || s.Embedded != ""), len(s.kinds()) > 1:
			fault(p, "", "is either %s, and nothing else", sinkKeys())
		case byPreset && !remote: // told
		case !s.IsLocal() && !remote:
			fault(p, "", "needs a folder (embedded) or addresses (query, update, graph_store), or for destinations %s", sinkKeys())
		case !s.IsLocal() && s.Query == "":
			fault(p+".query", "", "is needed: the address of SPARQL queries")
		}
		for _, k := range s.kinds() {
			if at := *k.at(&s.Sinks); k.check != nil {
				if err := k.check(at); err != nil {
					fault(p+"."+k.key, at, "%v", err)
				}
			}
		}
		switch password := s.Password != "" || s.PasswordFile != ""; {
		case s.IsLocal() && (password || s.Username != ""):
			fault(p, "", "has no use for a username and a password: they are for a remote store")
		case password && s.Username == "":
			fault(p+".username", "", "is missing: a password goes with one")
		case !password && s.Username != "":
			fault(p+".username", s.Username, "needs %s too", c.names.Of(p+".password_file"))
		}
		if s.Gateway && (s.IsSink() || s.Embedded == "" && s.Update == "" && s.GraphStore == "") {
			fault(p+".gateway", "", "needs an address for updates: update, graph_store, or a preset")
		}
		if s.PatchLog != "" && s.IsLocal() {
			fault(p+".patch_log", s.PatchLog, "is for a remote store, a dataset of Fuseki")
		}
		if s.Serve && s.Embedded == "" {
			fault(p+".serve", "true", "is for embedded stores")
		}
		if s.QueryTime < 0 || s.QueryMemory < 0 || s.QueryRows < 0 {
			fault(p, "", "query_time, query_memory and query_rows are bounds: give a number above 0")
		}
		paths := s.paths()
		for _, key := range slices.Sorted(maps.Keys(paths)) {
			at := paths[key]
			path := filepath.Clean(*at)
			if other := places[path]; other != "" {
				fault(p+"."+key, *at, "is also the place of store %s", other)
			} else if c.inState(path) {
				fault(p+"."+key, *at, "is where the state keeps its own files: choose another place")
			}
			places[path] = name
		}
		for _, a := range []struct{ key, v string }{{"query", s.Query}, {"update", s.Update}, {"graph_store", s.GraphStore}} {
			if a.v != "" {
				httpURL(p+"."+a.key, a.v)
			}
		}
		if s.Concurrency < 1 || s.Concurrency > 256 {
			fault(p+".concurrency", fmt.Sprint(s.Concurrency), "is between 1 and 256")
		}
		if !(s.Rate >= 0) {
			fault(p+".rate", fmt.Sprint(s.Rate), "is 0 or more requests a second")
		}
		if s.Slow < 0 {
			fault(p+".slow", s.Slow.String(), "is 0s or longer")
		}
	}
}

// besides is the first of the other destinations into the same store, "" if none is before
// this one.
func (c *Config) besides(name string) string {
	for _, other := range slices.Sorted(maps.Keys(c.Destinations)) {
		if other == name {
			break
		}
		if c.Destinations[other].Store == c.Destinations[name].Store {
			return other
		}
	}
	return ""
}

// inState tells whether a path is the state's folder, or in its temporary part: each start
// empties it.
func (c *Config) inState(path string) bool {
	rel, err := filepath.Rel(c.Folder(), path)
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return err == nil && slices.Contains([]string{".", "kv", "tmp", "stage", "published", "access", "lock", "holder.json"}, first)
}

// NamesOf are the keys of a table, for people.
func NamesOf[T any](m map[string]T) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
