package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/internal/configfile"
)

// apart has the declarations of the API, beside the file of the configuration.
type apart struct {
	file     []byte // the content of the configuration file
	all      declared.Declarations
	used     map[string]bool // by path: "sets.books"
	faults   []Finding       // of those left out
	overruls []string        // paths in the file too
}

// Errors of declarations.
var (
	ErrInFile  = errors.New("it is declared in the configuration file: change it there")
	ErrUnknown = errors.New("not found") // a name outside of the configuration
	ErrNoFile  = errors.New("this bridge has no configuration file, and takes no declarations")
)

// apply adds the declarations of the API, kept in a file. The configuration file is stronger: a name in both is its own.
func (c *Config) apply(all declared.Declarations, file string) ([]Finding, error) {
	c.apart.all, c.apart.used = all, map[string]bool{}
	raw, err := c.named(all, file).Document()
	if err != nil {
		return nil, err
	}
	var more Config
	lines, faults, err := configfile.Read(raw, file, &more)
	if err != nil {
		return nil, err
	}
	add(c, declared.Sets, &c.Sets, more.Sets)
	add(c, declared.Destinations, &c.Destinations, more.Destinations)
	for path := range lines {
		if c.declaredAt(path) != "" {
			c.line[path] = 0 // of another file
		}
	}
	return slices.DeleteFunc(faults, func(f Finding) bool { return c.declaredAt(f.Key) == "" }), nil
}

// named gives the declarations without those of bad names, which are left out.
func (c *Config) named(all declared.Declarations, file string) declared.Declarations {
	for _, kind := range []string{declared.Sets, declared.Destinations} {
		for _, name := range slices.Sorted(maps.Keys(all.Parts[kind])) {
			if err := configfile.CheckName(name); err != nil {
				all = all.With(kind, name, nil)
				c.apart.faults = append(c.apart.faults, Finding{File: file, Key: kind + "." + name, Message: err.Error()})
			}
		}
	}
	return all
}

// declaredAt is the path of the declaration of the API with a key, "" for a key of the file.
func (c *Config) declaredAt(key string) string {
	for path := range c.apart.used {
		if below(key, path) {
			return path
		}
	}
	return ""
}

// below tells whether a key is a path, or below it.
func below(key, path string) bool {
	rest, is := strings.CutPrefix(key, path)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// andChecked adds the faults across fields to those of single settings. A setting with a fault of its own is not
// told twice.
func (c *Config) andChecked(faults []Finding) []Finding {
	told := map[string]bool{}
	for _, f := range faults {
		told[f.Key] = true
	}
	return append(faults, slices.DeleteFunc(c.check(), func(f Finding) bool { return told[f.Key] })...)
}

func add[T any](c *Config, kind string, into *map[string]T, more map[string]T) {
	for name, v := range more {
		path := kind + "." + name
		if _, inFile := (*into)[name]; inFile {
			c.apart.overruls = append(c.apart.overruls, path)
			continue
		}
		if *into == nil {
			*into = map[string]T{}
		}
		(*into)[name], c.apart.used[path] = v, true
	}
}

// leaveOut removes declarations with faults, so that they stop neither the file nor other declarations. It
// gives the faults of the file.
func (c *Config) leaveOut(faults []Finding) (rest []Finding) {
	for _, f := range faults {
		path := c.declaredAt(f.Key)
		if path == "" {
			rest = append(rest, f)
			continue
		}
		f.File, f.Line = declared.File(c.Folder()), 0
		c.apart.faults = append(c.apart.faults, f)
		if kind, name, _ := strings.Cut(path, "."); kind == declared.Sets {
			delete(c.Sets, name)
		} else {
			delete(c.Destinations, name)
		}
	}
	return rest
}

// LeftOut gives the faults of declarations of the API that were left out, and the paths of those that the file
// overrules.
func (c *Config) LeftOut() (faults []Finding, overruled []string) {
	return c.apart.faults, c.apart.overruls
}

// Declared gives the definition of a set or destination of the API, nil for one of the file.
func (c *Config) Declared(kind, name string) json.RawMessage {
	if !c.apart.used[kind+"."+name] {
		return nil
	}
	return c.apart.all.Parts[kind][name]
}

// Declare gives the next configuration: with a definition of the API, or without it for nil. save writes the
// declarations, and undo writes the former ones. A fault of the definition is a *Error.
func (c *Config) Declare(kind, name string, definition json.RawMessage) (next *Config, save, undo func() error, err error) {
	_, set := c.Sets[name]
	_, dest := c.Destinations[name]
	is := kind == declared.Sets && set || kind == declared.Destinations && dest
	path, known := kind+"."+name, c.apart.all.Parts[kind][name] != nil
	switch {
	case c.apart.file == nil:
		return nil, nil, nil, ErrNoFile
	case is && !c.apart.used[path]:
		return nil, nil, nil, fmt.Errorf("%s %s: %w", strings.TrimSuffix(kind, "s"), name, ErrInFile)
	case definition == nil && !known:
		return nil, nil, nil, fmt.Errorf("%s %s: %w", strings.TrimSuffix(kind, "s"), name, ErrUnknown)
	}
	all := c.apart.all.With(kind, name, definition)
	if next, err = parse(c.apart.file, c.file, func(string) (declared.Declarations, error) { return all, nil }); err != nil {
		return nil, nil, nil, err
	}
	var own []Finding
	for _, f := range next.apart.faults {
		if below(f.Key, path) {
			own = append(own, f)
		}
	}
	if len(own) > 0 {
		return nil, nil, nil, &Error{Findings: own}
	}
	before := c.apart.all
	return next, func() error { return all.Write(next.Folder()) }, func() error { return before.Write(next.Folder()) }, nil
}

// absolute is a path of a configuration, relative to its folder.
func absolute(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
