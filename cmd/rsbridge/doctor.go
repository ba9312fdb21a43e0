package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

func (a *app) doctor() *cobra.Command {
	var e sparql.Endpoint
	var passwordFile string
	var o sparql.ProbeOptions
	c := &cobra.Command{Use: "doctor STORE or URL", Short: "Probe a store: its abilities, its limits, and the consequences for rsbridge", Args: cobra.ExactArgs(1),
		Long: `Asks a store some bounded questions: one of the configuration, a SPARQL endpoint, or
an embedded store in a folder. It reports product, ways of reading and their speed,
row limits, default graph, other graphs, sizes of VALUES and queries, formats, sorting, DESCRIBE,
and blank-node labels.

--write also writes into a scratch graph, and removes it: rewritten literals, size and
speed of updates, and whether several operations of a request are atomic.

At the end stand the consequences for rsbridge, and advice for the store.

--json: {"store","addresses","product","version","found","graphs","outside","readings","speed","sample","batch_speed","row_limit","union_default","values_limit","stable_labels","written","writable",
"write_error","removed","update_triples","transactional","normal_form","unexplained","write_speed","manners","limits","unanswered","will","could","seconds"}`,
		Example: "  rsbridge doctor http://localhost:3030/ds/query --update http://localhost:3030/ds/update --write\n  rsbridge doctor fuseki -c rsbridge.yaml",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := sparqlsrc.CheckGraphs(o.Graphs); err != nil {
				return usage("--graph: %v", err)
			}
			if err := login(e.Username, passwordFile, ""); err != nil {
				return err
			}
			if passwordFile != "" {
				raw, err := os.ReadFile(passwordFile)
				if err != nil {
					return err
				}
				e.Password = strings.TrimSpace(string(raw))
			}
			var names settings.Names
			if onWeb(args[0]) || strings.ContainsAny(args[0], `/\`) { // no configuration names it
				names = doctorFlags
			}
			e.Names = names
			client, end, err := a.storeClient(args[0], e)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, client.Close(), end()) }()
			found, err := client.Examine(cmd.Context(), o)
			if err != nil {
				return fmt.Errorf("doctor %s: %w", shownName(args[0]), err)
			}
			if strings.HasPrefix(found.Addresses["query"], embeddedAt) { // asked in this process
				found.Addresses = map[string]string{"embedded": args[0]}
				found.Could = slices.DeleteFunc(found.Could, func(s string) bool { return s == sparql.CouldCompress })
			}
			published, err := a.publishedOf(args[0], o.Graphs)
			if err != nil {
				return err
			}
			found.Outside = client.Remainder(cmd.Context(), published, found.Product, sparqlsrc.RemainderPatience)
			if a.json {
				return a.print(found)
			}
			return sayExamination(a.out, found, names)
		}}
	f := c.Flags()
	f.BoolVar(&o.Write, "write", false, "write into a scratch graph too, and remove it")
	f.StringArrayVar(&o.Graphs, "graph", nil, "read this named `IRI` (again for more; \"*\" for all; default: the default graph)")
	f.StringVar(&e.Update, "update", "", "SPARQL update `URL` of the store")
	f.StringVar(&e.GraphStore, "graph-store", "", "Graph Store `URL` of the store")
	f.StringVar(&e.Username, "username", "", "for the store")
	f.StringVar(&passwordFile, "password-file", "", "`FILE` with the password for the store")
	return c
}

// publishedOf is the published graphs of a store: the given ones, or else those of its
// sets in the configuration.
func (a *app) publishedOf(store string, graphs []string) (sparql.Part, error) {
	if len(graphs) == 0 && !onWeb(store) && !strings.ContainsAny(store, `/\`) {
		cfg, err := bridge.Load(a.config)
		if err != nil {
			return sparql.Part{}, err
		}
		if p, sets := cfg.Published(store); sets {
			return p, nil
		}
	}
	return sparqlsrc.PartOf(graphs, ""), nil
}

// shownName is the name, folder or address of a store as it may be printed.
func shownName(store string) string {
	if onWeb(store) {
		return sparql.Redact(store)
	}
	return store
}

// embeddedAt is the address of an embedded store in the same process.
const embeddedAt = "http://embedded.invalid"

// storeClient reaches a store by address, by folder, or by its name in the
// configuration.
func (a *app) storeClient(name string, e sparql.Endpoint) (c *sparql.Client, end func() error, err error) {
	end = func() error { return nil }
	e.Name, e.Logger, e.Retries = shownName(name), a.log, -1
	dir := ""
	switch {
	case onWeb(name):
		e.Query = name
	case strings.ContainsAny(name, `/\`):
		dir = name
	default:
		cfg, err := bridge.Load(a.config)
		if errors.Is(err, fs.ErrNotExist) {
			err = usage("%s is no address (http://...) and no folder (./%[1]s), and there is no configuration %s with a store of this name", name, a.config)
		}
		if err != nil {
			return nil, nil, err
		}
		s, ok := cfg.Stores[name]
		if !ok {
			return nil, nil, usage("store %s is not in the configuration; there are: %s", name, listed(slices.Sorted(maps.Keys(cfg.Stores))))
		}
		dir = s.Embedded
		if dir == "" {
			e.Query, e.MaxRows = s.Query, s.MaxRows
			e.Update, e.GraphStore = cmp.Or(e.Update, s.Update), cmp.Or(e.GraphStore, s.GraphStore)
			if e.Username == "" && e.Password == "" {
				e.Username, e.Password = s.Username, string(s.Password)
			}
			e.Timeout, e.Concurrency, e.Rate, e.Slow = time.Duration(s.Timeout), s.Concurrency, s.Rate, time.Duration(s.Slow)
		}
	}
	if dir != "" {
		if err := thereIsAStore(dir); err != nil {
			return nil, nil, err
		}
		s, err := embedstore.Open(dir, embedstore.Options{Logger: a.log})
		if errors.Is(err, embedstore.ErrLocked) {
			err = fmt.Errorf("%w; of a running daemon, give the address http://ADMIN/stores/NAME/query", err)
		}
		if err != nil {
			return nil, nil, err
		}
		e.Query, e.Update, e.GraphStore, e.Transport, end = embeddedAt+"/query", embeddedAt+"/update", embeddedAt+"/data", s.Transport(), s.Close
	}
	c, err = sparql.New(e)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return c, end, nil
}

func sayExamination(out io.Writer, x sparql.Examination, names settings.Names) error {
	w := &errWriter{w: out}
	w.line("%s: %s", x.Store, oneLine(cmp.Or(x.Product, "a store that does not say what it is"), x.Version))
	for _, k := range slices.Sorted(maps.Keys(x.Addresses)) {
		w.line("  %-12s %s", k, x.Addresses[k])
	}
	for _, k := range slices.Sorted(maps.Keys(x.Found)) {
		w.line("  %-12s %s (found, not given)", k, x.Found[k])
	}
	if len(x.Unanswered) > 0 {
		w.line("not answered  %s: the store was busy or broke off; ask again", strings.Join(x.Unanswered, ", "))
	}
	w.line("asking        GET %s; form %s; direct %s", x.Manners.Get, x.Manners.Form, x.Manners.Direct)
	w.line("graph store   %s", yes(x.Found["graph_store"] != "", "not given, and found", x.Manners.GraphStore))
	w.line("compression   %s", yes(x.Manners.Gzip, "gzip", "none seen"))
	asked := x.Manners.Authentication != ""
	w.line("credentials   %s", oneLine(x.Manners.Authentication, yes(x.Manners.Authenticated, "sent", yes(asked, "asked for, none given", "not asked for"))))
	for _, r := range x.Readings {
		if speed, tried := x.Speed[r]; tried && x.Sample == 0 {
			w.line("reading       %-13s works; there is nothing to measure it on", r)
		} else if tried {
			w.line("reading       %-13s %9.0f triples/s on %d", r, speed, yes(x.RowLimit > 0, min(x.RowLimit, x.Sample), x.Sample))
		} else {
			w.line("reading       %-13s not tried: on a large graph it costs this store too much", r)
		}
	}
	for _, way := range slices.Sorted(maps.Keys(x.BatchSpeed)) {
		w.line("entities      %-13s %9.0f triples/s", way, x.BatchSpeed[way])
	}
	found := func(step, what string) string {
		return yes(slices.Contains(x.Unanswered, step), "not known", what)
	}
	w.line("row limit     %s", yes(x.RowLimit > 0, fmt.Sprint(x.RowLimit), found("row limit", fmt.Sprintf("none seen on %d triples", x.Sample))))
	_, known := sparql.KnownUnion(x.Product)
	union := yes(known || x.Written && x.Writable, "shows the named graphs too", "shows what was looked at of the named graphs too, or holds the same triples (--write tells which)")
	w.line("default graph %s", yes(x.UnionDefault, union, found("union default graph", "is a graph of its own")))
	w.line("other graphs  %s", yes(x.Outside.Nothing(), x.Outside.String(), x.Outside.String()+howToPublish(names)))
	w.line("VALUES        %d IRIs passed", x.ValuesLimit)
	w.line("DESCRIBE      %s", x.Manners.Describe)
	l := x.Limits
	w.line("sorting       %s", yes(l.Sorted == 0 && l.SortError == "", "there is nothing to sort", oneLine(fmt.Sprintf("%d rows in %.2f s", l.Sorted, l.SortSeconds), yes(l.SortError != "", "(of more: "+l.SortError+")", ""))))
	body := func(bytes int) string { return yes(bytes > 0, fmt.Sprintf("%d bytes", bytes), "none") }
	w.line("query bodies  %s as they are, %s as a form", body(l.DirectBody), body(l.FormBody))
	var works, not []string
	for _, name := range slices.Sorted(maps.Keys(l.Formats)) {
		if l.Formats[name] == "ok" {
			works = append(works, name)
		} else {
			not = append(not, name+" ("+l.Formats[name]+")")
		}
	}
	w.line("formats       %s%s", strings.Join(works, ", "), yes(len(not) > 0, "; not "+strings.Join(not, ", "), ""))
	w.line("blank nodes   %s", yes(x.StableLabels, "keep their labels between answers", "get new labels, or it could not be seen"))
	for _, g := range x.Removed {
		w.line("removed       %s, which a probe that was killed had left", g)
	}
	switch {
	case !x.Written:
		w.line("writing       not tried: %s", yes(x.Addresses["update"]+x.Addresses["embedded"] == "", "no update address was given (--update)", "only with --write"))
	case !x.Writable:
		w.line("writing       %s", yes(x.WriteError != "", oneLine("refused:", x.WriteError), "nothing came back"))
	default:
		w.line("writing       INSERT DATA of %d triples passed; several operations are %s", x.UpdateTriples, yes(x.Transactional, "atomic", found("atomic requests", "not atomic")))
		for _, way := range slices.Sorted(maps.Keys(x.WriteSpeed)) {
			w.line("              %-13s %9.0f triples/s", way, x.WriteSpeed[way])
		}
		w.line("literals      %s", yes(len(x.NormalForm.Rules)+len(x.Unexplained) > 0, oneLine("rewritten:", strings.Join(x.NormalForm.Rules, ", ")), found("normal form", "kept as they are")))
		for _, t := range x.Unexplained {
			w.line("              rewritten in another way: %s", t)
		}
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"rsbridge will", x.Will}, {"you could", x.Could}} {
		if len(part.lines) > 0 {
			w.line("%s", part.title)
		}
		for _, l := range part.lines {
			w.line("  - %s", l)
		}
	}
	return w.err
}

// howToPublish ends the lines about graphs of no set.
func howToPublish(n settings.Names) string {
	return fmt.Sprintf("; to publish them, name them by %s (\"*\": all)", n.Of("graphs"))
}

func yes[T any](is bool, text, other T) T {
	if is {
		return text
	}
	return other
}
