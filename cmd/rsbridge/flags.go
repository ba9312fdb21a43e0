package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// asFlags names the faults of a configuration by flags.
func asFlags(err error) error {
	var faults *bridge.ConfigError
	if !errors.As(err, &faults) {
		return err
	}
	var lines []string
	for _, f := range faults.Findings {
		line := f.Key
		if f.Value != "" {
			line += fmt.Sprintf(" %q", strings.TrimPrefix(f.Value, "@every "))
		}
		lines = append(lines, line+": "+f.Message)
	}
	return usage("%s", strings.Join(lines, "\n  "))
}

// period checks the flag --every.
func period(every string) error {
	if d, err := settings.ParseDuration(every); err != nil || d < time.Second {
		return usage("--every %s: it is no duration of a second or more, like 30s, 5m, 24h or 2d", every)
	}
	return nil
}

// duration is the value of a flag, also in days and weeks.
type duration struct{ at *time.Duration }

func (d duration) String() string {
	if d.at == nil { // pflag asks a zero value
		return "0s"
	}
	return settings.FormatDuration(*d.at)
}

func (d duration) Set(text string) (err error) {
	*d.at, err = settings.ParseDuration(text)
	return err
}

func (d duration) Type() string { return "duration" }

// The names of settings in commands without a configuration.
var (
	exposeFlags = settings.Names{
		"state": "--state", "public.listen": "--listen", "base_url": "--base-url", "admin.listen": "--admin",
		"stores": "ENDPOINT", "username": "--username", "password_file": "--password-file",
		"sets": "--name", "graphs": "--graph", "select.classes": "--class", "prefix": "--prefix", "schedule": "--every",
	}
	mirrorFlags = settings.Names{
		"state": "--state", "admin.listen": "--admin",
		"stores": "--into", "query": "--query", "update": "--update", "graph_store": "--graph-store", "username": "--username", "password_file": "--password-file",
		"source": "SOURCE", "set": "--set", "graph": "--graph", "graph_iri": "--graph-iri", "schedule": "--every", "allow": "--allow", "adopt: true": "--adopt",
		"store":                                "--update or --graph-store",
		"rsbridge accept mirror --destination": "POST /api/v1/destinations/mirror/accept to the address of --admin",
	}
	doctorFlags = settings.Names{
		"update": "--update", "graph_store": "--graph-store", "username": "--username", "password_file": "--password-file",
		"graphs": "--graph of rsbridge expose",
	}
	initFlags = settings.Names{"username": "--username", "password_file": "--password-file"}
	intoFlags = settings.Names{"username": "--into-username", "password_file": "--into-password-file"}
)

// withoutScheme matches a web address without its scheme.
var withoutScheme = regexp.MustCompile(`^(localhost(/|$)|[0-9]+(\.[0-9]+){3}(/|$)|[A-Za-z0-9.-]+:[0-9]+(/|$)|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/)`)

// folder refuses an address, perhaps a misspelt one, as the name of a folder.
func folder(arg string) error {
	if _, err := os.Stat(arg); err == nil || !strings.ContainsAny(arg, "@?") && !strings.Contains(arg, "://") && !withoutScheme.MatchString(arg) {
		return nil
	}
	return usage("%s looks like an address: give a folder (./DIR)", webguard.Masked(arg))
}

// orScheme adds to the error of a missing file how an address is written.
func orScheme(arg string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && withoutScheme.MatchString(arg) {
		return fmt.Errorf("%w; if it is an address, write http://%s", err, arg)
	}
	return err
}

// login refuses a name without a password, and a password without a name. prefix begins both flags.
func login(user, passwordFile, prefix string) error {
	switch {
	case user == "" && passwordFile != "":
		return usage("--%[1]spassword-file is for --%[1]susername, and that is missing", prefix)
	case user != "" && passwordFile == "":
		return usage("--%[1]susername needs --%[1]spassword-file too", prefix)
	}
	return nil
}
