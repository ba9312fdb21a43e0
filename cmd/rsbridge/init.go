package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync/check"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

func (a *app) init() *cobra.Command {
	var endpoint, source, dumps, out string
	c := &cobra.Command{Use: "init", Short: "Write a commented configuration that runs as it is", Args: cobra.NoArgs,
		Long: `Probes its argument and writes a configuration: --endpoint, a SPARQL endpoint to
expose; --source, a ResourceSync source to mirror into an embedded store; --dumps, a
pattern of files to publish. Without any it exposes an embedded store. An existing
file is never overwritten (exit code 2).`,
		Example: "  rsbridge init --endpoint http://localhost:3030/ds/query\n  rsbridge init --source https://data.example -o mirror.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if endpoint != "" && dumps != "" {
				return usage("a set is made from an endpoint or from dumps, not from both")
			}
			switch {
			case out == "":
				out = a.config
			case out != a.config && cmd.Flags().Changed("config"):
				return usage("-o %s and -c %s name two files: give one of them", out, a.config)
			}
			var notes, sets []string
			graphs := allInDefault
			if endpoint != "" {
				c, err := sparql.New(sparql.Endpoint{Name: "endpoint", Query: endpoint, Retries: 1, Logger: a.log, Names: initFlags})
				if err != nil {
					return usage("--endpoint: %w", err)
				}
				caps, err := c.Probe(cmd.Context(), sparql.ProbeOptions{})
				if err == nil {
					graphs, err = graphsToPublish(cmd.Context(), c, caps)
				}
				if err = errors.Join(err, c.Close()); err != nil {
					return fmt.Errorf("probe %s: %w", sparql.Redact(endpoint), err)
				}
				notes = append(notes, "# Probed: "+oneLine(caps.Product, caps.Version))
				if caps.RowLimit > 0 {
					notes = append(notes, fmt.Sprintf("# It cuts answers at %d rows; rsbridge reads it in parts.", caps.RowLimit))
				}
			}
			if source != "" {
				var err error
				if source, err = webguard.WithScheme(source); err != nil {
					return usage("%w", err)
				}
				if sets, err = a.probeSource(cmd.Context(), source); err != nil {
					return fmt.Errorf("probe the source: %w", err)
				}
			}
			if shown := webguard.Masked(dumps); shown != dumps || strings.Contains(dumps, "://") {
				return usage("%s looks like an address: --dumps takes files", shown)
			}
			if dumps != "" {
				pattern := dumps
				if !filepath.IsAbs(pattern) && out != "-" { // it is relative to the configuration's folder
					pattern = filepath.Join(filepath.Dir(out), pattern)
				}
				if files, err := filepath.Glob(pattern); err == nil && len(files) == 0 {
					a.note("no file is there yet that %s names", dumps)
				}
			}
			text := initText(endpoint, source, dumps, notes, graphs, sets)
			if _, err := bridge.Parse([]byte(text), "rsbridge.yaml"); err != nil {
				return fmt.Errorf("the configuration for these addresses: %w", err)
			}
			if out == "-" {
				_, err := fmt.Fprint(a.out, text)
				return err
			}
			mode := fs.FileMode(0o644)
			if webguard.Masked(endpoint) != endpoint || webguard.Masked(source) != source { // it holds a password
				mode = 0o600
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
			if errors.Is(err, fs.ErrExist) {
				return usage("%s is there already; give another with -o", out)
			}
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			if err = errors.Join(err, f.Close()); err == nil {
				a.note("wrote %s; next: rsbridge check -c %s && rsbridge run -c %s", out, out, out)
			}
			return err
		}}
	c.Flags().StringVar(&endpoint, "endpoint", "", "SPARQL query `URL` of a store to expose")
	c.Flags().StringVar(&source, "source", "", "`URL` of a ResourceSync source to mirror")
	c.Flags().StringVar(&dumps, "dumps", "", "`PATTERN` of files (N-Triples, N-Quads, Turtle; gzip, zstd, bzip2) to publish; the newest is the state")
	c.Flags().StringVarP(&out, "out", "o", "", "the `FILE` to write; - is standard output (default: the file of --config)")
	return c
}

// probeSource gives the Capability Lists in a Source Description. An address without a
// document of ResourceSync is an error.
func (a *app) probeSource(ctx context.Context, source string) (sets []string, err error) {
	if err := bridge.ReachSource(ctx, source, ""); err != nil {
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
)

// graphsToPublish is the graphs of a set with all data of a store, in lines of YAML.
func graphsToPublish(ctx context.Context, c *sparql.Client, caps sparql.Capabilities) (string, error) {
	filled, err := c.Ask(ctx, "ASK { ?s ?p ?o }")
	if err != nil {
		return "", err
	}
	rest := c.Remainder(ctx, sparql.Part{Default: caps.Product != "Virtuoso"}, caps.Product, sparqlsrc.RemainderPatience)
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	list := rest.Unknown == "" && int64(len(rest.Largest)) == rest.Graphs // all graphs have a name, and stand here
	var names []string
	for _, g := range rest.Largest {
		list = list && sparqlsrc.CheckGraphs([]string{g.Graph}) == nil
		names = append(names, fmt.Sprintf("%q", g.Graph))
	}
	line, why := "graphs: ["+strings.Join(names, ", ")+"]", oneLine(rest.String())
	switch {
	case rest.Nothing(), caps.UnionDefault && len(names) == 0:
		return allInDefault, nil
	case caps.UnionDefault && !list:
		line, why = allInDefault, "the default graph shows all: "+why
	case caps.UnionDefault: // without those of the store itself
	case !filled:
		why = "the default graph is empty; " + why
		if !list || len(names) > 1 {
			line = everyGraph
		}
	default:
		line, why = everyGraph, "the default graph, and "+why
	}
	return "# " + why + "\n    " + line, nil
}

func oneLine(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// initText is a configuration, ready to run. YAML reads the JSON-like strings of %q.
func initText(endpoint, source, dumps string, notes []string, graphs string, sets []string) string {
	var b strings.Builder
	b.WriteString(`# rsbridge configuration. All keys and their defaults: docs/reference/configuration.md
state: ./state                     # log, representations, cursors, documents
public: {listen: 127.0.0.1:8080}   # the documents; base_url: if others see another address
admin: {listen: 127.0.0.1:8081}    # API and dashboard; off loopback a token_file is needed
`)
	if dumps == "" || source != "" || endpoint != "" {
		b.WriteString("\nstores:\n")
	}
	if endpoint != "" {
		for _, n := range notes {
			b.WriteString("  " + n + "\n")
		}
		fmt.Fprintf(&b, "  origin: {query: %q}   # username: and password_file: if it asks for them\n", endpoint)
	} else if source == "" && dumps == "" {
		b.WriteString("  origin: {embedded: ./origin}   # load it: rsbridge store load ./origin FILE, or PUT to http://127.0.0.1:8081/stores/origin/data?default\n")
	}
	if source != "" {
		b.WriteString("  mirror: {embedded: ./mirror}   # SPARQL at http://127.0.0.1:8081/stores/mirror/query\n")
	}
	if endpoint != "" || source == "" || dumps != "" {
		b.WriteString(`
sets:
  data:                            # published below http://127.0.0.1:8080/data/
`)
		if dumps != "" {
			fmt.Fprintf(&b, "    dumps: [%q]   # the newest complete file is the state\n", dumps)
		} else {
			b.WriteString("    store: origin\n")
		}
		b.WriteString("    " + graphs + "\n")
		b.WriteString(`    # select: {classes: [], prefixes: []}   # default: every subject that is an IRI
    # prefix: http://example.org/  # removed from entity IRIs to make readable addresses
    schedule: "@every 5m"
`)
	}
	if source != "" {
		set := "# set: NAME                    # when the source has several"
		if len(sets) > 1 {
			set = fmt.Sprintf("set: %q   # one of %d; another: %s", sets[0], len(sets), sets[1])
		}
		fmt.Fprintf(&b, `
destinations:
  mirror:
    source: %q
    %s
    store: mirror
    schedule: "@every 1m"
    audit: "@daily"
`, source, set)
	}
	return b.String()
}
