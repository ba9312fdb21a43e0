package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync/check"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// Usual addresses of the listeners.
const publicListen, adminListen = "127.0.0.1:8080", "127.0.0.1:8081"

// initArgs are what init is told.
type initArgs struct {
	endpoint, source, dumps, into, out string
	from, to                           storeLogin // for the stores of endpoint and of into
}

type storeLogin struct {
	username, passwordFile string
	password               string // given in the address
}

func (a *app) init() *cobra.Command {
	var o initArgs
	c := &cobra.Command{Use: "init", Short: "Write a commented configuration that runs as it is", Args: cobra.NoArgs,
		Long: `Looks at what is there, and writes a configuration for it: --endpoint, a SPARQL
endpoint to expose; --source, a ResourceSync source to mirror; --dumps, a pattern of
files to publish. --into names the store of the mirror, by default an embedded one;
with --endpoint or --dumps it adds a mirror of the published set. Without any it
exposes an embedded store.

The configuration proposes graphs, prefix and addresses by what the store holds, with
its numbers of triples, entities and classes, and ports that are free. It names files
with passwords, and holds none, unless one stands in an address: then only its owner
can read it. An existing file is never overwritten (exit code 2).`,
		Example: `  rsbridge init --endpoint http://localhost:3030/ds/query --username admin --password-file ./password
  rsbridge init --endpoint http://localhost:3030/ds/query --into oxigraph:http://localhost:7878
  rsbridge init --source https://data.example -o mirror.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.endpoint != "" && o.dumps != "":
				return usage("a set is made from an endpoint or from dumps, not from both")
			case o.into != "" && o.endpoint == "" && o.dumps == "" && o.source == "":
				return usage("--into is for a mirror: say of what, with --source, --endpoint or --dumps")
			case o.from.username+o.from.passwordFile != "" && o.endpoint == "":
				return usage("--username and --password-file are for --endpoint; for the store of the mirror there are --into-username and --into-password-file")
			case o.out == "":
				o.out = a.config
			case o.out != a.config && cmd.Flags().Changed("config"):
				return usage("-o %s and -c %s name two files: give one of them", o.out, a.config)
			}
			for prefix, l := range map[string]storeLogin{"": o.from, "into-": o.to} {
				if err := login(l.username, l.passwordFile, prefix); err != nil {
					return err
				}
			}
			if _, err := os.Lstat(o.out); err == nil && o.out != "-" { // before anything is asked
				return isThere(o.out)
			}
			return writeInit(a, cmd.Context(), o)
		}}
	f := c.Flags()
	f.StringVar(&o.endpoint, "endpoint", "", "SPARQL query `URL` of a store to expose")
	f.StringVar(&o.from.username, "username", "", "for the store of --endpoint")
	f.StringVar(&o.from.passwordFile, "password-file", "", "`FILE` with the password for the store of --endpoint")
	f.StringVar(&o.source, "source", "", "`URL` of a ResourceSync source to mirror")
	f.StringVar(&o.dumps, "dumps", "", "`PATTERN` of files (N-Triples, N-Quads, Turtle; gzip, zstd, bzip2) to publish; the newest is the state")
	f.StringVar(&o.into, "into", "", "the `PLACE` of the mirror: embedded:DIR, files:DIR, dump:FILE, or a product and its address, as oxigraph:http://localhost:7878 or fuseki:http://localhost:3030/ds")
	f.StringVar(&o.to.username, "into-username", "", "for the store of --into")
	f.StringVar(&o.to.passwordFile, "into-password-file", "", "`FILE` with the password for the store of --into")
	f.StringVarP(&o.out, "out", "o", "", "the `FILE` to write; - is standard output (default: the file of --config)")
	return c
}

// writeInit probes what it is given, and writes the configuration.
func writeInit(a *app, ctx context.Context, o initArgs) (err error) {
	p := proposal{initArgs: o, graphs: allInDefault, public: freePort(publicListen), admin: freePort(adminListen)}
	if o.endpoint != "" {
		if err := probeEndpoint(a, ctx, &p); err != nil {
			return err
		}
	}
	if o.source != "" {
		if p.source, err = webguard.WithScheme(o.source); err != nil {
			return usage("%w", err)
		}
		if p.sets, err = a.probeSource(ctx, p.source); err != nil {
			return fmt.Errorf("probe the source: %w", err)
		}
	}
	if shown := webguard.Masked(o.dumps); shown != o.dumps || strings.Contains(o.dumps, "://") {
		return usage("%s looks like an address: --dumps takes files", shown)
	}
	if o.dumps != "" {
		pattern := o.dumps
		if !filepath.IsAbs(pattern) && o.out != "-" { // it is relative to the configuration's folder
			pattern = filepath.Join(filepath.Dir(o.out), pattern)
		}
		if files, err := filepath.Glob(pattern); err == nil && len(files) == 0 {
			a.note("no file is there yet that %s names", o.dumps)
		}
	}
	if o.into != "" || o.source != "" {
		if err := probeInto(a, ctx, &p); err != nil {
			return err
		}
	}
	text := p.text()
	if _, err := bridge.Parse([]byte(text), filepath.Join(filepath.Dir(o.out), "rsbridge.yaml")); err != nil {
		return fmt.Errorf("the configuration for these addresses: %w", err)
	}
	if o.out == "-" {
		_, err := fmt.Fprint(a.out, text)
		return err
	}
	mode := fs.FileMode(0o644)
	for _, at := range []string{o.endpoint, p.source, o.into} {
		if webguard.Masked(at) != at { // it holds a password
			mode = 0o600
		}
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return isThere(o.out)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		if p.public != publicListen || p.admin != adminListen {
			a.note("another program listens at the usual ports; this one will at %s and %s", p.public, p.admin)
		}
		a.note("wrote %s; next: %s check -c %[1]s && %[2]s run -c %[1]s", o.out, os.Args[0])
	}
	return err
}

func isThere(file string) error { return usage("%s is there already; give another with -o", file) }

// secretOf reads a password, and warns of a file that others can read.
func secretOf(a *app, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o044 != 0 {
		a.note("others can read the password in %s: chmod 600 %[1]s", file)
	}
	return strings.TrimSpace(string(raw)), nil
}

// besideConfig is a path as the configuration names it: relative to its folder.
func besideConfig(out, file string) string {
	if filepath.IsAbs(file) || out == "-" {
		return file
	}
	if rel, err := filepath.Rel(filepath.Dir(absolute(out)), absolute(file)); err == nil {
		return rel
	}
	return absolute(file)
}

// probeEndpoint looks at the store to expose.
func probeEndpoint(a *app, ctx context.Context, p *proposal) (err error) {
	password, err := secretOf(a, p.from.passwordFile)
	if err != nil {
		return err
	}
	given := p.endpoint
	if address, user := webguard.WithoutUser(given); user != nil && p.from.username == "" { // it is for the other addresses too
		var known bool
		if password, known = user.Password(); !known {
			return usage("--endpoint has a user without a password: give --username and --password-file")
		}
		p.endpoint, p.from.username, p.from.password = address, user.Username(), password
	}
	c, err := sparql.New(sparql.Endpoint{Name: "endpoint", Query: p.endpoint, Username: p.from.username, Password: password, Retries: 1, Logger: a.log, Names: initFlags})
	if err != nil {
		return usage("--endpoint: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	caps, err := c.Probe(ctx, sparql.ProbeOptions{})
	if err == nil {
		p.graphs, p.part, err = graphsToPublish(ctx, c, caps)
	}
	if err == nil {
		p.survey, err = c.Survey(ctx, p.part, sparqlsrc.RemainderPatience)
	}
	if err != nil {
		return fmt.Errorf("probe %s: %w", sparql.Redact(given), err)
	}
	product, version := c.Behind(caps.Product, caps.Version)
	p.notes = append(p.notes, "# Probed: "+oneLine(product, version))
	if caps.RowLimit > 0 {
		p.notes = append(p.notes, fmt.Sprintf("# It cuts answers at %d rows; rsbridge reads it in parts.", caps.RowLimit))
	}
	if webguard.Masked(p.endpoint) == p.endpoint { // the other address would hold the password too
		p.graphStore = c.Found(ctx, product)["graph_store"]
	}
	return nil
}

// probeInto looks at the store of the mirror.
func probeInto(a *app, ctx context.Context, p *proposal) error {
	if p.into == "" {
		p.into = "embedded:./mirror"
	}
	st := bridge.NewStore()
	if st.Into(p.into) {
		kind, place, _ := strings.Cut(p.into, ":")
		p.mirror = []string{fmt.Sprintf("%s: %q", kind, place)}
		return nil
	}
	preset, base, repository, err := sparql.SplitPreset(p.into)
	if err != nil {
		return usage("--into %s: %w", webguard.Masked(p.into), err)
	}
	query, update, graphStore, err := sparql.Addresses(preset, base, repository, p.to.username == "")
	if err != nil {
		return usage("--into %s: %w", webguard.Masked(p.into), err)
	}
	password, err := secretOf(a, p.to.passwordFile)
	if err != nil {
		return err
	}
	c, err := sparql.New(sparql.Endpoint{Name: "mirror", Query: query, Update: update, GraphStore: graphStore, Username: p.to.username, Password: password, Retries: 1, Logger: a.log, Names: intoFlags})
	if err != nil {
		return usage("--into: %w", err)
	}
	filled, err := c.Ask(ctx, "ASK { ?s ?p ?o }")
	if err = errors.Join(err, c.Close()); err != nil {
		return fmt.Errorf("probe the store of the mirror: %w", err)
	}
	p.mirror = []string{"preset: " + preset, fmt.Sprintf("url: %q", base)}
	if repository != "" {
		p.mirror = append(p.mirror, fmt.Sprintf("repository: %q", repository))
	}
	p.mirror = append(p.mirror, credentials(p.to.username, besideConfig(p.out, p.to.passwordFile), p.to.passwordFile)...)
	p.mirrorGraph = filled
	return nil
}

// credentials are lines of a store.
func credentials(username, file, given string) (lines []string) {
	if username != "" {
		lines = append(lines, fmt.Sprintf("username: %q", username))
	}
	if given != "" {
		lines = append(lines, fmt.Sprintf("password_file: %q", file))
	}
	return lines
}

// probeSource gives the Capability Lists in a Source Description. An address without a
// document of ResourceSync is an error.
func (a *app) probeSource(ctx context.Context, source string) (sets []string, err error) {
	if err := webclient.Reach(ctx, source, "", nil); err != nil {
		return nil, err
	}
	web, err := newFetcher(nil)
	if err != nil {
		return nil, err
	}
	defer web.close()
	tree, err := check.Explore(ctx, web.name(source), check.ExploreOptions{Fetch: web.fetch, MaxDocuments: 3})
	if err == nil && len(tree.Faults) > 0 {
		err = errors.New(strings.Join(tree.Faults, "; "))
	}
	for n := tree; err == nil && sets == nil && len(n.Children) > 0; n = n.Children[0] {
		for _, c := range n.Children {
			if n.Kind == "description" && c.Announced == "capabilitylist" {
				sets = append(sets, c.Location)
			}
		}
	}
	return sets, err
}

const (
	allInDefault = "# graphs: [\"*\"]                # default: the default graph; or IRIs of named graphs"
	everyGraph   = "graphs: [\"*\"]                  # all; or IRIs of those that the set is to publish"

	exampleGraph = "http://example.org/graph"
	mostNamed    = 200 // graphs in a proposal
)

// graphsToPublish is the graphs of a set with all data of a store, in lines of YAML.
func graphsToPublish(ctx context.Context, c *sparql.Client, caps sparql.Capabilities) (string, sparql.Part, error) {
	inDefault, everything := sparql.Part{Default: true}, sparql.Part{Default: true, Named: true}
	filled, err := c.Ask(ctx, "ASK { ?s ?p ?o }")
	if err != nil {
		return "", inDefault, err
	}
	rest := c.Remainder(ctx, sparql.Part{Default: caps.Product != "Virtuoso"}, caps.Product, sparqlsrc.RemainderPatience)
	if err := context.Cause(ctx); err != nil {
		return "", inDefault, err
	}
	list := rest.Unknown == "" && int64(len(rest.Largest)) == rest.Graphs // all graphs have a name, and stand here
	var names []string
	for _, g := range rest.Largest {
		names = append(names, g.Graph)
	}
	own := sparql.SystemGraphs(caps.Product) // the default graph would show them too
	if !list && len(own) > 0 {
		asked, stop := context.WithTimeout(ctx, sparqlsrc.RemainderPatience)
		all, err := c.NamedGraphs(asked, mostNamed+len(own)+1)
		stop()
		if err == nil && (caps.RowLimit == 0 || int64(len(all)) < caps.RowLimit) {
			all = slices.DeleteFunc(all, func(g string) bool { return slices.Contains(own, g) })
			if list = len(all) <= mostNamed; list {
				names = all
			}
		}
	}
	list = list && sparqlsrc.CheckGraphs(names) == nil
	line, why, part := "graphs:"+yamlList(names), oneLine(rest.String()), sparql.Part{Graphs: names}
	switch {
	case len(own) > 0 && len(names) == 0 && (list || rest.Nothing()):
		return "# " + why + "\n    graphs:" + yamlList([]string{exampleGraph}) + "   # the graph to be published", sparql.Part{Graphs: []string{exampleGraph}}, nil
	case rest.Nothing(), caps.UnionDefault && len(names) == 0:
		return allInDefault, inDefault, nil
	case caps.UnionDefault && !list:
		line, why, part = allInDefault, "the default graph shows all: "+why, inDefault
	case caps.UnionDefault: // without those of the store itself
	case !filled:
		why = "the default graph is empty; " + why
		if !list || len(names) > 1 {
			line, part = everyGraph, sparql.Part{Named: true}
		}
	default:
		line, why, part = everyGraph, "the default graph, and "+why, everything
	}
	return "# " + why + "\n    " + line, part, nil
}

// yamlList has names in a list: a few in one line, more in a line each.
func yamlList(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	if len(quoted) > sparql.RemainderShown {
		return "\n      - " + strings.Join(quoted, "\n      - ")
	}
	return " [" + strings.Join(quoted, ", ") + "]"
}

func oneLine(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
