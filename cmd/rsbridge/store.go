package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// storeTool works on the folder of an embedded store, without a bridge.
type storeTool struct {
	a      *app
	budget embedstore.Budget // of one query or update
}

func (a *app) store() *cobra.Command {
	t := &storeTool{a: a}
	c := &cobra.Command{Use: "store", Short: "The embedded triple store on its own", Args: cobra.NoArgs,
		Long: "Works on the folder of an embedded store. One process holds it at a time. While a daemon does, use its address /stores/NAME.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.PersistentFlags().Var(duration{&t.budget.Time}, "query-time", "time that one query or update may take (default 10m)")
	c.PersistentFlags().Int64Var(&t.budget.MemoryBytes, "query-memory", 0, "bytes that one query or update may hold at once (default 256 MiB)")
	c.PersistentFlags().Int64Var(&t.budget.Rows, "query-rows", 0, "rows that one query or update may hold at once (default 20 million)")
	c.AddCommand(t.load(), t.dump(), t.query(), t.update(), t.serve())
	return c
}

// read opens an existing store for the time of do: a wrong name must not make an empty
// one.
func (t *storeTool) read(ctx context.Context, dir string, do func(*embedstore.Store) error) error {
	if err := thereIsAStore(dir); err != nil {
		return err
	}
	return t.open(ctx, dir, do)
}

func thereIsAStore(dir string) error {
	store, other, err := embedstore.Holds(dir)
	switch {
	case store: // perhaps a damaged one: its opening tells
		return nil
	case other != "":
		err = fmt.Errorf("the folder holds %s", other)
	case err == nil:
		err = errors.New("the folder is empty")
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // there may be one, of another user
		return fmt.Errorf("the store in %s cannot be read: %w", dir, err)
	}
	return orScheme(dir, fmt.Errorf("there is no store in %s: %w; rsbridge store load makes one", dir, err))
}

// open opens or makes the store for the time of do.
func (t *storeTool) open(ctx context.Context, dir string, do func(*embedstore.Store) error) error {
	return t.openCached(ctx, dir, 0, do)
}

// openCached is open with a cache of so many bytes.
func (t *storeTool) openCached(ctx context.Context, dir string, cache int64, do func(*embedstore.Store) error) (err error) {
	if err := folder(dir); err != nil {
		return err
	}
	s, err := embedstore.Open(dir, embedstore.Options{Logger: t.a.log, CacheBytes: cache, Context: ctx, Budget: t.budget})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

func (t *storeTool) load() *cobra.Command {
	var graph, format, base string
	var replace bool
	c := &cobra.Command{Use: "load DIR FILE...", Short: "Load files, each as one transaction; - is standard input", Args: cobra.MinimumNArgs(2),
		Long:    "Loads RDF files, compressed with gzip if their names end in .gz, each as one transaction. Prints the number of new triples.\n\n--json: {\"dir\",\"files\":[{\"file\",\"added\"}],\"triples\",\"graphs\",\"seconds\"}: triples and graphs are what the store holds then",
		Example: "  rsbridge store load ./origin data.nt.gz\n  rsbridge store load ./origin --graph http://example.org/g --format turtle -",
		RunE: func(cmd *cobra.Command, args []string) error {
			began := time.Now()
			if graph != "" {
				if err := sparqlsrc.CheckIRI(graph); err != nil {
					return usage("--graph: %w", err)
				}
			}
			if err := loadable(args[1:], format); err != nil {
				return err
			}
			return t.open(cmd.Context(), args[0], func(s *embedstore.Store) error {
				loaded := []loadedFile{}
				for _, file := range args[1:] {
					n, err := t.loadFile(cmd.Context(), s, file, graph, format, base, replace)
					if err != nil {
						return err
					}
					loaded = append(loaded, loadedFile{file, n})
				}
				if !t.a.json {
					return nil
				}
				return t.report(s, args[0], loaded, began)
			})
		}}
	f := c.Flags()
	f.StringVar(&graph, "graph", "", "into this named graph `IRI` (default: the default graph)")
	f.StringVar(&format, "format", "", "ntriples, turtle, nquads, trig, rdfxml or jsonld (default: by the name of the file)")
	f.StringVar(&base, "base", "", "base `IRI` of relative references")
	f.BoolVar(&replace, "replace", false, "empty the graph first, in the same transaction")
	return c
}

// storeReport is the JSON of store load and store update.
type storeReport struct {
	Dir     string       `json:"dir"`
	Files   []loadedFile `json:"files,omitempty"`
	Triples int64        `json:"triples"` // in all graphs, now
	Graphs  int64        `json:"graphs"`  // named ones, now
	Seconds float64      `json:"seconds"`
}

// loadedFile is one file of store load.
type loadedFile struct {
	File  string `json:"file"`
	Added int64  `json:"added"` // new triples
}

func (t *storeTool) report(s *embedstore.Store, dir string, files []loadedFile, began time.Time) error {
	st, err := s.Stats()
	if err != nil {
		return err
	}
	return t.a.print(storeReport{dir, files, st.Triples, st.Graphs, time.Since(began).Seconds()})
}

// loadFormat is the format of a file to load: as given, else by its name.
func loadFormat(file, format string) (rdfres.Format, error) {
	if format == "" {
		f, ok := rdfres.FormatBySuffix(strings.TrimSuffix(file, ".gz"))
		if !ok {
			return "", usage("%s: its name does not tell the format; give --format", file)
		}
		return f, nil
	}
	if !slices.Contains(storeFormats, format) {
		return "", usage("--format %s is none of %s", format, strings.Join(storeFormats, ", "))
	}
	return rdfres.Format(format), nil
}

// storeFormats are the formats of load and dump.
var storeFormats = []string{"ntriples", "turtle", "nquads", "trig", "rdfxml", "jsonld"}

// loadable refuses unreadable files before a store is made for them.
func loadable(files []string, format string) error {
	for _, file := range files {
		if _, err := loadFormat(file, format); err != nil {
			return err
		}
		if file == "-" {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

func (t *storeTool) loadFile(ctx context.Context, s *embedstore.Store, file, graph, format, base string, replace bool) (int64, error) {
	var r io.Reader = t.a.in
	name := strings.TrimSuffix(file, ".gz")
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		r = f
	}
	zeros := func() int64 { return 0 }
	if name != file {
		var err error
		if r, zeros, err = dumpfile.Gunzip(r); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	rf, err := loadFormat(file, format)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	n, err := s.Load(ctx, graph, rf, r, embedstore.LoadOptions{Replace: replace, Base: base})
	if err != nil {
		return 0, fmt.Errorf("load %s: %w", file, err)
	}
	if n := zeros(); n > 0 {
		t.a.note("%s: %s behind its end are ignored: is it copied whole?", file, plural(n, "zero"))
	}
	t.a.note("%s: %d triples that were not there, in %.1f s", file, n, time.Since(began).Seconds())
	return n, nil
}

func (t *storeTool) dump() *cobra.Command {
	var graph, format string
	c := &cobra.Command{Use: "dump DIR", Short: "Write a graph, or all of them as N-Quads, to standard output", Args: cobra.ExactArgs(1),
		Long:    "DIR must hold a store; only load, update and serve make one.",
		Example: "  rsbridge store dump ./origin > all.nq\n  rsbridge store dump ./origin --graph http://example.org/g > g.nt",
		RunE: func(cmd *cobra.Command, args []string) error {
			o := embedstore.DumpOptions{Graph: graph}
			if format != "" && !slices.Contains(storeFormats, format) {
				return usage("--format %s is none of %s", format, strings.Join(storeFormats, ", "))
			}
			f := rdfres.Format(format)
			if f == "" {
				f, o.All = rdfres.NQuads, !cmd.Flags().Changed("graph")
				if !o.All {
					f = rdfres.NTriples
				}
			}
			if f == rdfres.NQuads || f == rdfres.TriG {
				o.All = !cmd.Flags().Changed("graph")
			}
			return t.read(cmd.Context(), args[0], func(s *embedstore.Store) error { return s.Dump(cmd.Context(), t.a.out, f, o) })
		}}
	c.Flags().StringVar(&graph, "graph", "", "only this named graph `IRI`; \"\" is the default graph")
	c.Flags().StringVar(&format, "format", "", "of all graphs nquads (default) or trig; of --graph, else of the default graph alone: ntriples, turtle, rdfxml or jsonld")
	return c
}

func (t *storeTool) query() *cobra.Command {
	var accept string
	c := &cobra.Command{Use: "query DIR QUERY", Short: "Answer a SPARQL query; - reads it from standard input", Args: cobra.ExactArgs(2),
		Long:    "DIR must hold a store; only load, update and serve make one. Prints rows as tab-separated values and graphs as N-Triples, unless --accept names another type.\n\n--json: SPARQL 1.1 Query Results JSON.",
		Example: "  rsbridge store query ./mirror 'SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }'",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := t.text(args[1])
			if err != nil {
				return err
			}
			return t.read(cmd.Context(), args[0], func(s *embedstore.Store) error {
				req, err := http.NewRequestWithContext(cmd.Context(), http.MethodPost, "http://embedded.invalid/query", strings.NewReader(text))
				if err != nil {
					return err
				}
				req.Header.Set("Content-Type", "application/sparql-query")
				if t.a.json && accept == "" {
					accept = "application/sparql-results+json"
				}
				if accept == "" {
					accept = "text/tab-separated-values, application/n-triples;q=0.9"
				}
				req.Header.Set("Accept", accept)
				res, err := s.Transport().RoundTrip(req)
				if err != nil {
					return err
				}
				defer res.Body.Close()
				if res.StatusCode != http.StatusOK {
					why, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
					return fmt.Errorf("query: %s", strings.TrimSpace(string(why)))
				}
				_, err = io.Copy(t.a.out, res.Body)
				return err
			})
		}}
	c.Flags().StringVar(&accept, "accept", "", "media type of the answer")
	return c
}

func (t *storeTool) update() *cobra.Command {
	return &cobra.Command{Use: "update DIR UPDATE", Short: "Run a SPARQL update; - reads it from standard input", Args: cobra.ExactArgs(2),
		Long:    `--json: {"dir","triples","graphs","seconds"}: what the store holds then`,
		Example: "  rsbridge store update ./origin 'DELETE WHERE { <http://example.org/a> ?p ?o }'",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := t.text(args[1])
			if err != nil {
				return err
			}
			began := time.Now()
			return t.open(cmd.Context(), args[0], func(s *embedstore.Store) error {
				if err := s.Update(cmd.Context(), text); err != nil || !t.a.json {
					return err
				}
				return t.report(s, args[0], nil, began)
			})
		}}
}

func (t *storeTool) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	raw, err := io.ReadAll(io.LimitReader(t.a.in, 1<<30))
	return string(raw), err
}

func (t *storeTool) serve() *cobra.Command {
	var listen string
	var cache int64
	c := &cobra.Command{Use: "serve DIR", Short: "Serve SPARQL at /query and /update and the Graph Store at /data", Args: cobra.ExactArgs(1),
		Example: "  rsbridge store serve ./origin --listen 127.0.0.1:7878",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cache < 1 {
				return usage("--cache %d: it needs one megabyte or more", cache)
			}
			limitMemoryTo(200 + 2*cache) // replaced blocks wait for the collector
			serve := func(s *embedstore.Store) error {
				if _, _, err := net.SplitHostPort(listen); err != nil {
					return usage("--listen %s: it is no address with a port, like 127.0.0.1:7878", listen)
				}
				l, err := net.Listen("tcp", listen)
				if err != nil {
					return err
				}
				t.a.note("serving %s at http://%s/query, /update and /data", args[0], l.Addr())
				srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second,
					BaseContext: func(net.Listener) context.Context { return cmd.Context() }}
				defer context.AfterFunc(cmd.Context(), func() { srv.Close() })()
				if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					return err
				}
				return nil
			}
			for told := false; ; told = true {
				err := t.openCached(cmd.Context(), args[0], cache<<20, serve)
				if !bridge.IsFull(err) || cmd.Context().Err() != nil {
					return err
				}
				if !told {
					t.a.note("no room on the disk; the store is served when there is some: %v", err)
				}
				if err := untilRoom(cmd.Context()); err != nil {
					return err
				}
			}
		}}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7878", "address and port; the store is open to whoever reaches it")
	c.Flags().Int64Var(&cache, "cache", 192, "megabytes of the store to keep in memory, where what is looked up here and there need not be read again; the process takes up to twice as many, and 250 more")
	return c
}
