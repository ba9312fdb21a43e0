package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/service"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/internal/version"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// app is the world of one invocation and its global flags.
type app struct {
	in       io.Reader
	out, err io.Writer

	config    string
	json      bool
	logFormat string
	logLevel  string

	log       *slog.Logger
	manager   *service.Manager     // of the daemon; nil: none is there
	telemetry *telemetry.Telemetry // of the daemon

	bars *bars

	lineEvery  time.Duration // between lines of progress; 0: all are told
	watchEvery time.Duration // between two looks of status --watch

	ports map[string]string // taken, by address with port 0
	left  *jobs.Run         // of the daemon; the stopped command does not wait for it
	found bool              // the stopped scan has its changes in the log

	removing bool // the command is about something removed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rsbridge",
		Short: "Publish a triple store with ResourceSync, and keep other stores equal to it",
		Long: `rsbridge makes a triple store a ResourceSync source, and keeps another store equal
to any ResourceSync source of RDF.

Exit codes: 0 done and equal, 1 failed, 2 wrong usage or configuration,
3 done in part, held, or out of sync.`,
		Version:      versionOf().String(),
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.config, "config", "c", "rsbridge.yaml", "the configuration `FILE`")
	f.BoolVar(&a.json, "json", false, "print one JSON document on standard output, and nothing else there")
	f.StringVar(&a.logFormat, "log-format", "text", "text or json")
	f.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default: warn; info for run, expose and mirror)")
	root.SetVersionTemplate("rsbridge {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if m := badFlag.FindStringSubmatch(err.Error()); m != nil {
			return usage("--%s %s: it is no %s; see %s --help", m[2], m[1], flagKinds[c.Flag(m[2]).Value.Type()], c.CommandPath())
		}
		return usage("%w%s; see %s --help", err, nearFlag(c, err), c.CommandPath())
	})
	root.AddCommand(a.demo(), a.init(), a.check(), a.run(), a.expose(), a.mirror(),
		a.scan(), a.sync(), a.audit(), a.status(), a.changes(), a.show(), a.diff(), a.accept(), a.rebase(), a.forget(), a.move(), a.verify(), backupCommand(a), restoreCommand(a), migrateCommand(a), manCommand(a),
		tokenCommand(a), actionsCommand(a), a.store(), a.simulate(), a.export(), a.doctor(), a.explore(), a.validate(), a.version())
	completeNames(a, root)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // cobra's shows its help, whatever follows
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		wrapArgs(c)
	}
	return root
}

// badFlag matches the error of a flag with an unreadable value.
var badFlag = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--(.*)" flag: `)

// nearFlag suggests a flag for an unknown one.
func nearFlag(c *cobra.Command, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return settings.Meant("--"+name, names)
}

// flagKinds names the values of flags by their types.
var flagKinds = map[string]string{
	"bool": "true or false", "duration": "duration like 30s, 5m, 24h or 30d", "float64": "number",
	"int": "whole number", "int64": "whole number", "uint": "whole number of 0 or more", "uint64": "whole number of 0 or more",
}

// wrapArgs makes wrong arguments exit with 2.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) != nil {
				if cmd.HasSubCommands() {
					return usage("unknown command %q: use %s", args[0], cmd.UseLine())
				}
				if len(args) == 0 || check(cmd, append(slices.Clone(args), "more")) == nil {
					return usage("%s needs %s; for example: %s", strings.TrimPrefix(cmd.CommandPath(), "rsbridge "), neededArg(cmd, len(args)), firstExample(cmd))
				}
				return usage("there is an argument too many, %q: use %s", args[len(args)-1], cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// argKinds tell what an argument is, by its word in the usage line.
var argKinds = map[string]string{
	"STORE or URL":   "a store of the configuration, a SPARQL query address, or the folder of an embedded store",
	"PATH or URL...": "files or addresses of ResourceSync documents",
	"SET or DEST":    "a set or destination of the configuration, or one removed from it",
	"SET":            "a set of the configuration",
	"NAME":           "a set or destination of the configuration, or a token",
	"ENTITY":         "the IRI of an entity",
	"SOURCE":         "the address of a ResourceSync source",
	"URL":            "the address of a ResourceSync source",
	"ENDPOINT":       "a SPARQL query address",
	"DIR":            "a folder",
	"FILE...":        "files of RDF, or - for standard input",
	"FILE":           "the file of a backup",
	"TO":             "the address of a database, or the state folder",
	"QUERY":          "a SPARQL query",
	"UPDATE":         "a SPARQL update, or - for standard input",

	"NAME --role read, operate or admin": "the name of a new token",

	"SET NEWNAME or DEST --to STORE": "a set and its new name, or a destination and its new store",
}

var argWords = regexp.MustCompile(`\S+( or \S+)*`)

// neededArg names the argument after n given ones, and tells what it is.
func neededArg(cmd *cobra.Command, n int) string {
	_, use, _ := strings.Cut(cmd.Use, " ")
	words := []string{use}
	if !strings.Contains(use, "--") {
		words = argWords.FindAllString(use, -1)
	}
	word := words[min(n, len(words)-1)]
	return word + " (" + argKinds[word] + ")"
}

// firstExample is the first command line of the examples.
func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(cmd.Example), " \\\n    ", " "), "\n")
	return line[max(0, strings.LastIndex(line, cmd.CommandPath())):]
}

// begin makes the logger.
func (a *app) begin() error {
	level := slog.LevelWarn
	if a.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
			return usage("--log-level %s: it is debug, info, warn or error", a.logLevel)
		}
	}
	a.setLog(level)
	a.log = slog.New(&onceEach{Handler: a.log.Handler(), told: &told{}})
	if a.logFormat != "text" && a.logFormat != "json" {
		return usage("--log-format %s: it is text or json", a.logFormat)
	}
	return nil
}

// onceEach writes a warning once: a command may open the state several times.
type onceEach struct {
	slog.Handler
	told  *told
	attrs string
}

// told are the digests of written warnings, up to 10,000.
type told struct {
	mu   sync.Mutex
	told map[[32]byte]bool
}

func (t *told) again(line string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := sha256.Sum256([]byte(line))
	if t.told[key] || len(t.told) == 10_000 {
		return t.told[key]
	}
	if t.told == nil {
		t.told = map[[32]byte]bool{}
	}
	t.told[key] = true
	return false
}

func (h *onceEach) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		line := h.attrs + r.Message
		r.Attrs(func(at slog.Attr) bool { line += " " + at.String(); return true })
		if h.told.again(line) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h *onceEach) WithAttrs(as []slog.Attr) slog.Handler {
	return &onceEach{h.Handler.WithAttrs(as), h.told, h.attrs + fmt.Sprint(as)}
}

func (h *onceEach) WithGroup(name string) slog.Handler {
	return &onceEach{h.Handler.WithGroup(name), h.told, h.attrs + name}
}

func (a *app) setLog(level slog.Level) {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: masked}
	var h slog.Handler = slog.NewTextHandler(a.err, o)
	if a.logFormat == "json" {
		h = slog.NewJSONHandler(a.err, o)
	}
	a.log = slog.New(h)
}

// masked is an attribute without the secrets of addresses in it.
func masked(_ []string, at slog.Attr) slog.Attr {
	if v := at.Value; v.Kind() == slog.KindString || v.Kind() == slog.KindAny {
		if text := v.String(); webguard.MaskedText(text) != text {
			at.Value = slog.StringValue(webguard.MaskedText(text))
		}
	}
	return at
}

// commandLog is the logger of a bridge for one command. Without --log-level it leaves out
// the lines repeated by the command's own output.
func (a *app) commandLog() *slog.Logger {
	if a.logLevel != "" {
		return a.log
	}
	return slog.New(toldLater{a.log.Handler(), a.removing})
}

// toldLater leaves ended runs and unopened destinations out of a log: reports, status
// and errors of commands have them. removing: also what is removed, since the command is about it.
type toldLater struct {
	slog.Handler
	removing bool
}

func (h toldLater) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "run failed", "a run was stopped before its end; what it finished stays, and its next run does the rest", "scan is held", "deletions are held", "a sync ended, and the mirror is not in sync", "an audit ended, and the mirror is not proven equal", "a destination cannot be opened; the rest goes on without it":
		return nil
	}
	if h.removing && strings.Contains(r.Message, "is not in the configuration any more: ") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h toldLater) WithAttrs(as []slog.Attr) slog.Handler {
	return toldLater{h.Handler.WithAttrs(as), h.removing}
}

func (h toldLater) WithGroup(name string) slog.Handler {
	return toldLater{h.Handler.WithGroup(name), h.removing}
}

// daemonLog is the logger of commands without an end: it tells all events.
func (a *app) daemonLog() {
	if a.logLevel == "" {
		a.setLog(slog.LevelInfo)
	} else if h, ok := a.log.Handler().(*onceEach); ok {
		a.log = slog.New(h.Handler)
	}
}

// note tells people a line on standard error.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, webguard.MaskedText(fmt.Sprintf(format, args...)))
}

// print writes v as one JSON document.
func (a *app) print(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Long: `--json: {"version","go","revision"}`,
		RunE: func(*cobra.Command, []string) error {
			v := versionOf()
			if a.json {
				return a.print(v)
			}
			_, err := io.WriteString(a.out, "rsbridge "+v.String()+"\n")
			return err
		}}
}

// versionInfo is `version --json`.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
}

func (v versionInfo) String() string {
	return strings.TrimSpace(v.Version + " " + v.Go + " " + v.Revision)
}

// versionOf is the build.
func versionOf() versionInfo {
	return versionInfo{Version: version.String(), Go: runtime.Version(), Revision: version.Revision()}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
