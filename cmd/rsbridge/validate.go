package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// validated is one document of `validate --json`.
type validated struct {
	Location string          `json:"location"`
	Kind     string          `json:"kind"`
	Index    bool            `json:"index"`
	Dialect  string          `json:"dialect"`
	Entries  int64           `json:"entries"`
	Errors   []check.Finding `json:"errors"`
	Warnings []check.Finding `json:"warnings"`
	Advice   []check.Finding `json:"advice"`
}

// validation is one run of validate.
type validation struct {
	a      *app
	web    *fetcher
	follow bool
	o      check.CheckerOptions

	docs             []validated
	seen             map[string]bool
	errors, warnings int
	told             map[string]int // findings of a rule, as E40
}

func (a *app) validate() *cobra.Command {
	v := &validation{a: a}
	var allow []string
	c := &cobra.Command{Use: "validate PATH or URL...", Short: "Check ResourceSync documents against the rules of the specification", Args: cobra.MinimumNArgs(1),
		Long: `Checks documents: files, packages (ZIP), all documents below a folder, or addresses
on the web. The address of a site stands for its Source Description, at
/.well-known/resourcesync, and for the documents that its page links to.

--follow goes on to linked documents in all directions, and checks their links. It
fetches the packages of dumps, and a sample of resources from each set, compares them
with the promises of the lists, and reads their RDF. It may begin at a site, or at a
list alone.

Each finding has its line, rule and remedy: E errors, W warnings, I advice. Exit
code 3: there are errors.

--json: {"documents":[{"location","kind","index","dialect","entries","errors":[{"rule","message","line","more"}],"warnings":[...],"advice":[...]}]}`,
		Example: `  rsbridge validate capabilitylist.xml changelist.xml
  rsbridge validate --follow https://data.example/.well-known/resourcesync`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(check.Versions, v.o.Version) {
				return usage("--spec %s: want %s", v.o.Version, strings.Join(check.Versions, ", "))
			}
			var err error
			if v.web, err = newFetcher(allow); err != nil {
				return usage("%v", err)
			}
			defer v.web.close()
			v.o.Now, v.seen, v.docs, v.told = time.Now(), map[string]bool{}, []validated{}, map[string]int{}
			v.o.Fetch, v.o.Allowed = v.web.fetch, v.web.allowed
			for _, arg := range args {
				arg = v.web.name(arg)
				if err := v.argument(cmd.Context(), arg); err != nil {
					return fmt.Errorf("validate %s: %w", arg, orScheme(arg, err))
				}
			}
			if err := v.end(); err != nil {
				return err
			}
			if v.errors > 0 {
				return part
			}
			return nil
		}}
	f := c.Flags()
	f.BoolVar(&v.follow, "follow", false, "check also what the documents lead to, and the rules between documents")
	addAllow(f, &allow)
	f.StringVar(&v.o.Version, "spec", "1.1", "`VERSION` of the specification that is meant: "+strings.Join(check.Versions, ", "))
	f.BoolVar(&v.o.Strict, "strict", false, "warnings are errors")
	f.IntVar(&v.o.MaxDocuments, "limit", 10_000, "with --follow: read at most this many documents")
	f.IntVar(&v.o.Sample, "sample", 20, "with --follow: fetch this many resources of each set")
	f.BoolVar(&v.o.SkipPackages, "skip-packages", false, "with --follow: leave out the packages of dumps")
	return c
}

func (v *validation) argument(ctx context.Context, arg string) error {
	if !onWeb(arg) {
		if st, err := os.Stat(arg); err == nil && st.IsDir() {
			files, err := documentsIn(arg)
			for _, file := range files {
				err = errors.Join(err, v.one(ctx, file))
			}
			return err
		}
	}
	if !v.follow {
		return v.one(ctx, arg)
	}
	c := check.NewChecker(v.o)
	reports, err := c.Check(ctx, arg)
	for _, r := range reports {
		v.add(r)
	}
	return err
}

// one checks a document by itself. The address of a page stands for the documents that it leads to.
func (v *validation) one(ctx context.Context, location string) error {
	got, err := v.web.fetch(ctx, location)
	if !onWeb(location) {
		return v.document(ctx, location, got, err)
	}
	ways, page, werr := check.Ways(ctx, v.web.fetch, location, got, err)
	if !page {
		return v.document(ctx, location, got, err)
	}
	if got.Body.Close(); werr != nil {
		return werr
	}
	for _, way := range ways {
		got, err := v.web.fetch(ctx, way)
		if err := v.document(ctx, way, got, err); err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	return nil
}

// document checks what the fetch of a location gave.
func (v *validation) document(ctx context.Context, location string, got *check.Fetched, err error) error {
	if err != nil {
		return err
	}
	defer got.Body.Close()
	if got.Status != http.StatusOK {
		return fmt.Errorf("it answers status %d", got.Status)
	}
	body, base := got.Body, location
	if got.URL != "" {
		base = got.URL
	}
	if f, ok := body.(*os.File); ok && isPackage(f) {
		p, err := resourcesync.OpenPackage(f, got.ContentLength, v.o.Package)
		if err != nil {
			return err
		}
		if body, err = p.Open(resourcesync.ManifestName); err != nil {
			return err
		}
		defer body.Close()
		location += "!/" + resourcesync.ManifestName
	}
	r := check.Report{Location: location}
	o := check.ValidateOptions{Location: base, ContentType: got.ContentType, Strict: v.o.Strict, Now: v.o.Now, Version: v.o.Version}
	o.Entry = func(*resourcesync.Head, *resourcesync.Entry) error {
		r.Entries++
		return ctx.Err()
	}
	head, found, err := check.Validate(body, o)
	if err != nil {
		return err
	}
	r.Capability, r.Index, r.Dialect, r.Findings = head.Meta.Capability, head.Index, head.Dialect, found
	v.add(r)
	return nil
}

// add adds the report of a document, once.
func (v *validation) add(r check.Report) {
	if v.seen[r.Location] {
		return
	}
	v.seen[r.Location] = true
	d := validated{
		Location: r.Location, Kind: string(r.Capability), Index: r.Index, Dialect: r.Dialect, Entries: r.Entries,
		Errors: []check.Finding{}, Warnings: []check.Finding{}, Advice: []check.Finding{},
	}
	for _, f := range r.Findings {
		switch f.Severity {
		case check.SeverityError:
			d.Errors = append(d.Errors, f)
			v.errors += f.Count()
		case check.SeverityWarning:
			d.Warnings = append(d.Warnings, f)
			v.warnings += f.Count()
		default:
			d.Advice = append(d.Advice, f)
		}
		rule := fmt.Sprintf("%s%d", f.Severity, f.Rule)
		if v.told[rule] >= shownAtMost {
			v.told[rule] += f.Count()
			continue
		}
		if v.told[rule]++; !v.a.json {
			at := r.Location
			if f.Line > 0 {
				at = fmt.Sprintf("%s:%d", at, f.Line)
			}
			fmt.Fprintf(v.a.out, "%s: %s: %s\n", at, rule, f.Message)
		}
	}
	v.docs = append(v.docs, d)
}

func (v *validation) end() error {
	if v.a.json {
		return v.a.print(map[string]any{"documents": v.docs})
	}
	for _, rule := range slices.Sorted(maps.Keys(v.told)) {
		if n := v.told[rule] - shownAtMost; n > 0 {
			fmt.Fprintf(v.a.out, "%s: and %d more findings of this rule (--json has more)\n", rule, n)
		}
	}
	_, err := fmt.Fprintf(v.a.out, "%s, %s, %s\n", plural(int64(len(v.docs)), "document"), plural(int64(v.errors), "error"), plural(int64(v.warnings), "warning"))
	return err
}
