package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/examples/schemaorg"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

func (a *app) demo() *cobra.Command {
	var once bool
	var dir, state string
	c := &cobra.Command{Use: "demo", Short: "The tour: real data in one embedded store, exposed, mirrored into another, changed, proven equal", Args: cobra.NoArgs,
		Long: `Loads a release of the schema.org vocabulary into an embedded store, exposes it,
mirrors it into a second store and audits the mirror. Then the next release arrives:
it is found, published, followed and audited. Each step is printed with its
addresses. The demo serves until an interrupt, and tells what to try next: its
configuration is the file rsbridge.yaml in its folder. With --once it ends, with exit
code 0 only for a mirror proven equal.

--json: {"equal","scans":[...],"syncs":[...],"audits":[...]}, the reports of the steps, once the mirror is proven equal`,
		Example: "  rsbridge demo --once",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if state != "" && !strings.Contains(state, "://") {
				return usage("--state takes the address of a PostgreSQL database: postgres://HOST/DATABASE")
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "rsbridge-demo-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
			} else if err := folder(dir); err != nil {
				return err
			}
			cfg, file, err := demoConfig(absolute(dir), state)
			if err != nil {
				return err
			}
			if err := cfg.Records().Own(cmd.Context(), kv.OpenOptions{Logger: a.log}); state != "" && err != nil {
				return fmt.Errorf("--state: %w", err)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			proven := false
			err = a.serve(ctx, cfg, "rsbridge demo", func(ctx context.Context, b *bridge.Bridge) error {
				t := &tour{b: b, a: a, out: a.out}
				if a.json {
					t.out = a.err
				}
				err := t.run(ctx)
				proven = err == nil
				if err == nil && a.json {
					t.report.Equal = true
					err = a.print(t.report)
				}
				if err != nil || once {
					cancel()
					return err
				}
				fmt.Fprintf(t.out, "\nStill serving, and scanning and syncing every minute. Interrupt to end.\n  source     %s/\n  dashboard  http://%s/\n  admin API  http://%s/api/v1/status\n  queries    http://%s/stores/mirror/query\n",
					cfg.Public.BaseURL, cfg.Admin.Listen, cfg.Admin.Listen, cfg.Admin.Listen)
				sayNext(t.out, called(os.Args[0]), file, cfg.Admin.Listen)
				return nil
			})
			if err == nil && !proven { // it was stopped before
				err = context.Cause(cmd.Context())
			}
			return err
		}}
	c.Flags().BoolVar(&once, "once", false, "end when the mirror is proven equal")
	c.Flags().StringVar(&dir, "dir", "", "keep the stores and the state in this `DIR` (default: a temporary one, removed at the end)")
	c.Flags().StringVar(&state, "state", "", "keep the records in the PostgreSQL database at this `URL`, empty or of a demo with the same --dir")
	return c
}

// called is the program as another terminal finds it: a path from the root, or a name in the PATH.
func called(program string) string {
	if strings.ContainsRune(program, filepath.Separator) {
		return absolute(program)
	}
	return program
}

// sayNext tells what to try in another terminal.
func sayNext(w io.Writer, program, file, admin string) {
	fmt.Fprintf(w, `
Try next, in another terminal:
  %[1]s status -c %[2]s
  curl --data-urlencode 'update=INSERT DATA { <https://schema.org/Mine> a <https://schema.org/Thing> }' http://%[3]s/stores/origin/update
  %[1]s changes schemaorg --since 0 -c %[2]s | tail -n 1      # your change, found and published
  %[1]s show mirror https://schema.org/Mine -c %[2]s   # and mirrored
  %[1]s audit -c %[2]s
Then your own store:
  %[1]s init --endpoint http://localhost:3030/ds/query
`, program, file, admin)
}

// demoHead begins a configuration that the demo may write again.
const demoHead = "# The configuration of rsbridge demo."

// demoConfig writes the configuration of the demo into its folder, and reads it.
func demoConfig(dir, state string) (cfg *bridge.Config, file string, err error) {
	file = filepath.Join(dir, "rsbridge.yaml")
	if old, err := os.ReadFile(file); err == nil && !strings.HasPrefix(string(old), demoHead) {
		return nil, "", usage("%s is not of the demo: give another --dir", file)
	}
	public, admin := freePort(publicListen), freePort(adminListen)
	where := "state: ./state"
	if state != "" {
		where = fmt.Sprintf("state: %q\nstate_folder: ./state", state)
	}
	text := fmt.Sprintf(demoHead+`
%s
public: {listen: %q}
admin: {listen: %q}
stores:
  origin: {embedded: ./origin}
  mirror: {embedded: ./mirror}
sets:
  schemaorg:
    store: origin
    prefix: https://schema.org/
    title: schema.org
    description: The schema.org vocabulary
    licence: https://creativecommons.org/licenses/by-sa/3.0/
    schedule: "@every 1m"
destinations:
  mirror:
    source: "http://%s"
    store: mirror
    graph_iri: http://example.org/mirror
`, where, public, admin, public)
	if cfg, err = bridge.Parse([]byte(text), file); err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	return cfg, file, os.WriteFile(file, []byte(text), 0o600)
}

// tour is the steps of the demo.
type tour struct {
	a      *app
	b      *bridge.Bridge
	out    io.Writer // for a person
	step   int
	report demoReport
}

// demoReport is `demo --json`, printed when the mirror was proven equal.
type demoReport struct {
	Equal  bool                      `json:"equal"`
	Scans  []bridge.ScanReport       `json:"scans"`
	Syncs  []destination.SyncReport  `json:"syncs"`
	Audits []destination.AuditReport `json:"audits"`
}

func (t *tour) say(format string, args ...any) {
	t.step++
	fmt.Fprintf(t.out, "\n%d. "+format+"\n", append([]any{t.step}, args...)...)
}

func (t *tour) run(ctx context.Context) error {
	if err := ownAddresses(ctx, t.b); err != nil { // of a run before, with --dir and other ports
		return err
	}
	old, latest := schemaorg.Releases[0], schemaorg.Releases[1]
	t.say("Loading the schema.org vocabulary, release %s, into an embedded triple store", old.Version)
	if err := t.load(ctx, old); err != nil {
		return err
	}
	t.say("Scanning the store: every entity's description becomes a resource with fixity, and is published")
	if err := t.scan(ctx); err != nil {
		return err
	}
	t.say("A destination that knows nothing but http://%s takes the baseline into a second store", t.b.Config().Public.Listen)
	if err := t.sync(ctx); err != nil {
		return err
	}
	t.say("Auditing: is what the mirror really holds what the source says?")
	if err := t.audit(ctx); err != nil {
		return err
	}
	t.say("Release %s arrives in the source store. Nobody tells the bridge what changed", latest.Version)
	if err := t.load(ctx, latest); err != nil {
		return err
	}
	t.say("Scanning again finds it")
	if err := t.scan(ctx); err != nil {
		return err
	}
	t.say("The destination follows the Change List")
	if err := t.sync(ctx); err != nil {
		return err
	}
	t.say("Auditing again")
	return t.audit(ctx)
}

func (t *tour) load(ctx context.Context, r schemaorg.Release) error {
	z, err := gzip.NewReader(bytes.NewReader(r.NTriplesGz))
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := t.b.LoadStore(ctx, "origin", "", rdfres.NTriples, z, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "   %d triples in %.1f s\n", n, time.Since(began).Seconds())
	return nil
}

func (t *tour) do(ctx context.Context, action, name string, report any) error {
	run, err := local{b: t.b}.Do(ctx, action, name, nil, t.a.progress)
	t.a.endProgress()
	if err != nil {
		return err
	}
	if run.State != jobs.Done {
		return errors.New(run.Error)
	}
	return json.Unmarshal(run.Result, report)
}

func (t *tour) scan(ctx context.Context) error {
	var r bridge.ScanReport
	if err := t.do(ctx, "scan", "schemaorg", &r); err != nil {
		return err
	}
	t.report.Scans = append(t.report.Scans, r)
	sayScan(indented{t.out}, r)
	if r.Held != nil || r.Failed > 0 {
		return errors.New("the scan is held or failed in part")
	}
	return nil
}

func (t *tour) sync(ctx context.Context) error {
	var r destination.SyncReport
	if err := t.do(ctx, "sync", "mirror", &r); err != nil {
		return err
	}
	t.report.Syncs = append(t.report.Syncs, r)
	saySync(indented{t.out}, r)
	if !r.InSync {
		return errors.New("the mirror is not in sync")
	}
	return nil
}

func (t *tour) audit(ctx context.Context) error {
	var r destination.AuditReport
	if err := t.do(ctx, "audit", "mirror", &r); err != nil {
		return err
	}
	t.report.Audits = append(t.report.Audits, r)
	sayAudit(indented{t.out}, r)
	if !r.Equal {
		return errors.New("the mirror is not equal to the source")
	}
	return nil
}

// indented puts three blanks before each write.
type indented struct{ w io.Writer }

func (i indented) Write(p []byte) (int, error) {
	if _, err := i.w.Write([]byte("   ")); err != nil {
		return 0, err
	}
	return i.w.Write(p)
}
