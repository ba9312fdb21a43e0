package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
)

// asFlags tells the faults of a configuration that was made of flags in words of those
// flags. flags are the flags and arguments by the keys that they set.
func asFlags(err error, flags map[string]string) error {
	var faults *bridge.ConfigError
	if !errors.As(err, &faults) {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(flags), func(a, b string) int { return len(b) - len(a) }) // the longest first
	words := []string{"admin.token_file", "admin.token_file in a configuration file (rsbridge init writes one)"}
	for _, key := range keys {
		words = append(words, key, flags[key])
	}
	inWords := strings.NewReplacer(words...)
	var lines []string
	for _, f := range faults.Findings {
		line := f.Key
		for _, key := range keys {
			if f.Key == key || strings.HasPrefix(f.Key, key+".") {
				line = flags[key]
				break
			}
		}
		if f.Value != "" {
			line += fmt.Sprintf(" %q", strings.TrimPrefix(f.Value, "@every "))
		}
		lines = append(lines, line+": "+inWords.Replace(f.Message))
	}
	return usage("%s", strings.Join(lines, "\n  "))
}

// period checks the flag --every.
func period(every string) error {
	if d, err := time.ParseDuration(every); err != nil || d < time.Second {
		return usage("--every %s: it is no duration of a second or more, like 30s, 5m or 24h", every)
	}
	return nil
}

// exposeFlags are those of rsbridge expose.
func exposeFlags(name string) map[string]string {
	set := "sets." + name
	return map[string]string{
		"state": "--state", "public.listen": "--listen", "public.base_url": "--base-url", "admin.listen": "--admin",
		"stores.endpoint": "ENDPOINT", "stores.endpoint.query": "ENDPOINT", "stores.endpoint.username": "--username", "stores.endpoint.password_file": "--password-file",
		set: "--name", set + ".graphs": "--graph", set + ".select.classes": "--class", set + ".prefix": "--prefix", set + ".schedule": "--every",
	}
}

// mirrorFlags are those of rsbridge mirror.
var mirrorFlags = map[string]string{
	"state": "--state", "admin.listen": "--admin",
	"stores.mirror": "--into", "stores.mirror.query": "--query", "stores.mirror.update": "--update", "stores.mirror.graph_store": "--graph-store",
	"stores.mirror.username": "--username", "stores.mirror.password_file": "--password-file",
	"destinations.mirror.source": "SOURCE", "destinations.mirror.set": "--set", "destinations.mirror.graph": "--graph", "destinations.mirror.graph_iri": "--graph-iri",
	"destinations.mirror.schedule": "--every", "destinations.mirror.allow": "--allow", "destinations.mirror.store": "--update or --graph-store",
}

// inFlags makes all that a command prints from now on name flags, where hints name keys of
// a configuration that nobody wrote. words are hints, each before its replacement.
func (a *app) inFlags(words ...string) {
	r := strings.NewReplacer(words...)
	a.out, a.err = worded{a.out, r}, worded{a.err, r}
	a.setLog(a.level)
}

// worded replaces words in what is written, piece by piece.
type worded struct {
	io.Writer
	words *strings.Replacer
}

func (w worded) Write(p []byte) (int, error) {
	if _, err := w.words.WriteString(w.Writer, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// screen is the writer itself, perhaps a terminal.
func screen(w io.Writer) io.Writer {
	if worded, ok := w.(worded); ok {
		return worded.Writer
	}
	return w
}

// storeWords are hints about a store with addresses from flags.
var storeWords = []string{
	"raise its timeout", "a configuration file (rsbridge init writes one) can raise its timeout",
	"lower the concurrency of this store", "a configuration file (rsbridge init writes one) can lower the concurrency",
	"set the graph_store address of this store", "give --graph-store",
	"the query, update and graph_store addresses", "the addresses of the flags",
	"set username and password of this store", "give --username and --password-file",
	"check username and password of this store", "check --username and --password-file",
	"give it an update or graph_store address", "give --update or --graph-store",
	"the graph_store address", "the address of --graph-store", "its graph_store address", "the address of --graph-store", "a graph_store address", "--graph-store",
	" (max_delete_ratio ", " (max_delete_ratio of a configuration file, ", "that max_delete_ratio ", "that max_delete_ratio (of a configuration file) ",
	"name the graphs of a set (\"*\": all)", "give --graph",
}

var (
	exposeWords = append(slices.Clone(storeWords),
		"name them (graphs; of expose --graph; ", "name them (--graph; ",
		"name them in the graphs of a set (", "give them as --graph (")
	doctorWords = append(slices.Clone(storeWords),
		"name them in the graphs of a set (", "give them as --graph of rsbridge expose (",
		"give graph_store ", "give ", "give update ", "give ")
	initWords = append([]string{
		"set username and password of this store", "write http://USER:PASSWORD@HOST/",
		"check username and password of this store", "check the user and the password of the address"}, storeWords...)
	mirrorWords = append(slices.Clone(storeWords),
		"add it to allow: if", "give it as --allow if", "name them in allow: if", "give them as --allow if",
		"set adopt: true", "give --adopt", " graph_iri", " --graph-iri", "with set:", "with --set:",
		"(max_resource_bytes)", "(max_resource_bytes of a configuration file)",
		"rsbridge accept mirror", "POST /api/v1/destinations/mirror/accept to the address of --admin",
		"`rsbridge sync`", "`rsbridge mirror`")
)

// withoutScheme matches what looks like an address of the web whose scheme is missing.
var withoutScheme = regexp.MustCompile(`^(localhost(/|$)|[0-9]+(\.[0-9]+){3}(/|$)|[A-Za-z0-9.-]+:[0-9]+(/|$)|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/)`)

// orScheme adds to the error of a missing file how an address is written.
func orScheme(arg string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && withoutScheme.MatchString(arg) {
		return fmt.Errorf("%w; if it is an address, write http://%s", err, arg)
	}
	return err
}
