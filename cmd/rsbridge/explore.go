package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

func (a *app) explore() *cobra.Command {
	var depth, limit int
	var allow []string
	c := &cobra.Command{Use: "explore URL", Short: "Walk any ResourceSync source and list its offers", Args: cobra.ExactArgs(1),
		Long: `Walks the documents of a source from any address: a site, a page, a Source
Description, a Capability List, a list, a Sitemap, a file. For each document it
reports kind, size, times, faults, and any dialect other than 1.1. Packages of dumps
and resources are reported, not fetched: validate --follow reads them. Resources on
other hosts, and at addresses of no web, are counted. Exit code 1: no ResourceSync was
found; 3: a document is unreadable, or not as announced.

--json: the tree: {"location","kind","index","dialect","bytes","entries","at","from","until","resources":{"bytes","sized","hashed","changes","types","links","elsewhere","oldest","newest"},
"warnings","faults","children":[...],"skipped"}`,
		Example: "  rsbridge explore https://data.example\n  rsbridge explore https://data.example/books/changelist.xml --depth 0 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			web, err := newFetcher(allow)
			if err != nil {
				return usage("%v", err)
			}
			defer web.close()
			last := time.Now()
			o := check.ExploreOptions{Fetch: web.fetch, Depth: depth, MaxDocuments: limit, Allowed: web.allowed, Progress: func(location string) {
				if time.Since(last) >= a.lineEvery {
					last = time.Now()
					a.note("reading %s", location)
				}
			}}
			address := args[0]
			if _, err := os.Stat(address); err != nil && !strings.HasPrefix(address, ".") && (!filepath.IsAbs(address) || strings.HasPrefix(address, "//")) {
				if address, err = webguard.WithScheme(address); err != nil {
					return usage("%w", err)
				}
			}
			tree, err := check.Explore(cmd.Context(), web.name(address), o)
			if err != nil {
				return err
			}
			if a.json {
				err = a.print(tree)
			} else {
				err = sayTree(a.out, tree)
			}
			if err == nil && hasFaults(tree) {
				return part
			}
			return err
		}}
	c.Flags().IntVar(&depth, "depth", 6, "how many links down documents are read; -1: all")
	c.Flags().IntVar(&limit, "limit", 1000, "read at most this many documents")
	addAllow(c.Flags(), &allow)
	return c
}

func hasFaults(n *check.Node) bool {
	return len(n.Faults) > 0 || slices.ContainsFunc(n.Children, hasFaults)
}

// kinds are the names of capabilities for people.
var kinds = map[string]string{
	"description": "Source Description", "capabilitylist": "Capability List", "resourcelist": "Resource List", "changelist": "Change List",
	"resourcedump": "Resource Dump", "changedump": "Change Dump", "resourcedump-manifest": "manifest of a Resource Dump", "changedump-manifest": "manifest of a Change Dump",
	"resourcelist-archive": "Resource List Archive", "changelist-archive": "Change List Archive", "resourcedump-archive": "Resource Dump Archive", "changedump-archive": "Change Dump Archive",
	"change-notification": "change notifications", "framework-notification": "framework notifications",
	"sitemap": "plain Sitemap", "page": "a page, which leads to documents", "package": "package", "topic": "channel", "": "not readable",
}

// sayTree prints a tree for people.
func sayTree(out io.Writer, n *check.Node) error {
	w := &errWriter{w: out}
	sayNode(w, n, "", "")
	if hasResources(n) {
		w.line("resources were not fetched: rsbridge validate --follow reads a sample of them")
	}
	return w.err
}

func hasResources(n *check.Node) bool {
	return n.Resources != nil && n.Entries > 0 || slices.ContainsFunc(n.Children, hasResources)
}

// errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.w, format+"\n", args...)
	}
}

func sayNode(w *errWriter, n *check.Node, lead, below string) {
	w.line("%s%s", lead, n.Location)
	text := below + "  "
	if len(n.Children) > 0 {
		text = below + "│ "
	}
	w.line("%s%s", text, strings.Join(describeNode(n), ", "))
	if r := n.Resources; r != nil && n.Entries > 0 {
		for _, l := range describeResources(r, n.Entries) {
			w.line("%s%s", text, l)
		}
	}
	if n.Redirect != "" {
		w.line("%sled to %s", text, n.Redirect)
	}
	if lead == "" { // below the first, the tree shows it
		if n.IndexOf != "" {
			w.line("%spart of the index %s", text, n.IndexOf)
		}
		if n.Up != "" {
			w.line("%sbelongs to %s", text, n.Up)
		}
	}
	for _, f := range n.Faults {
		w.line("%sFAULT: %s", text, oneLine(f))
	}
	for _, f := range n.Warnings {
		w.line("%swarning: %s", text, oneLine(f))
	}
	shown := firstOf(n.Children)
	for i, c := range shown {
		if i == len(shown)-1 {
			sayNode(w, c, below+"└─ ", below+"   ")
		} else {
			sayNode(w, c, below+"├─ ", below+"│  ")
		}
	}
	if rest := n.Children[len(shown):]; len(rest) > 0 {
		faulty := 0
		for _, c := range rest {
			if hasFaults(c) {
				faulty++
			}
		}
		w.line("%s   (and %d more, %d of them with faults: --json has them)", below, len(rest), faulty)
	}
	if n.Skipped > 0 {
		w.line("%s   (%s below not read: --depth and --limit say how far)", below, plural(n.Skipped, "document"))
	}
}

func describeNode(n *check.Node) (out []string) {
	if n.Kind == "" && n.Note != "" {
		if n.Announced == "" {
			return []string{n.Note}
		}
		return []string{cmp.Or(kinds[n.Announced], n.Announced), n.Note}
	}
	kind, known := kinds[n.Kind]
	if !known {
		kind = n.Kind
	}
	if n.Kind == "" && n.Announced != "" {
		kind = "announced as " + cmp.Or(kinds[n.Announced], n.Announced)
	}
	if n.Index {
		kind += " index"
	}
	out = append(out, kind)
	switch {
	case n.Kind == "package":
		if n.Bytes > 0 {
			out = append(out, size(n.Bytes))
		}
	case n.Kind == "topic", n.Kind == "", n.Kind == "page":
	case n.Resources == nil && n.Kind == "description" && !n.Index:
		out = append(out, plural(n.Entries, "set"))
	case n.Resources == nil && !n.Index && (n.Kind == "resourcedump" || n.Kind == "changedump"):
		out = append(out, plural(n.Entries, "package"))
	case n.Resources == nil:
		out = append(out, plural(n.Entries, "document"))
	case strings.HasPrefix(n.Kind, "change"):
		out = append(out, plural(n.Entries, "change"))
	default:
		out = append(out, plural(n.Entries, "resource"))
	}
	for _, t := range []struct {
		name string
		t    *time.Time
	}{{"at", n.At}, {"completed", n.Completed}, {"from", n.From}, {"until", n.Until}} {
		if t.t != nil {
			out = append(out, t.name+" "+resourcesync.FormatTime(*t.t))
		}
	}
	if n.Open && !n.Index {
		out = append(out, "open")
	}
	if n.Pages > 0 {
		out = append(out, plural(int64(n.Pages), "page"))
	}
	if n.Bytes > 0 && n.Kind != "package" {
		out = append(out, "document of "+size(n.Bytes))
	}
	if n.Dialect != "" && n.Dialect != resourcesync.Dialect11 && n.Dialect != resourcesync.DialectSitemap {
		out = append(out, "dialect "+n.Dialect)
	}
	if n.Note != "" {
		out = append(out, n.Note)
	}
	return out
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func describeResources(r *check.Resources, entries int64) (out []string) {
	var parts []string
	if r.Sized > 0 {
		parts = append(parts, size(r.Bytes)+" of resources")
		if r.Sized < entries {
			parts = append(parts, fmt.Sprintf("%d tell no length", entries-r.Sized))
		}
	}
	add := func(m map[string]int64, form string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf(form, m[k], k))
		}
	}
	add(r.Changes, "%d %s")
	add(r.Types, "%d of type %s")
	add(r.Hashed, "%d with %s")
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, ", "))
	}
	parts = nil
	add(r.Links, "%d %s")
	if len(parts) > 0 {
		out = append(out, "links: "+strings.Join(parts, ", "))
	}
	for _, where := range slices.Sorted(maps.Keys(r.Elsewhere)) {
		if n := r.Elsewhere[where]; strings.HasSuffix(where, ":") {
			out = append(out, fmt.Sprintf("%d at %s addresses, which are never fetched", n, where))
		} else {
			out = append(out, fmt.Sprintf("%d on the host %s, which is not asked without --allow", n, where))
		}
	}
	if r.Oldest != nil {
		out = append(out, fmt.Sprintf("changed between %s and %s", resourcesync.FormatTime(*r.Oldest), resourcesync.FormatTime(*r.Newest)))
	}
	return out
}
