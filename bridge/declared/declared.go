// Package declared keeps the sets and destinations that users have declared through the API, in a
// file of the state beside the configuration file.
//
// The configuration file is stronger: a name declared in it belongs to it. A definition of the API
// names no files of the machine and no variables of the environment, so that the API gives nobody
// more of the machine than its data.
package declared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// The kinds of what is declared: keys of the configuration.
const (
	Sets         = "sets"
	Destinations = "destinations"
)

const version = 1

// Declarations are the definitions by kind and name.
type Declarations struct {
	Version int                                   `json:"version"`
	Parts   map[string]map[string]json.RawMessage `json:"parts"`
}

// File is the file of a state.
func File(state string) string { return filepath.Join(state, "declared.json") }

// Read reads the file of a state; without one there are no declarations.
func Read(state string) (d Declarations, err error) {
	raw, err := os.ReadFile(File(state))
	if ownfile.IsAbsent(err) {
		return Declarations{}, nil
	}
	if err != nil {
		return d, fmt.Errorf("cannot be read: %w", err)
	}
	var f struct {
		Version int
		Parts   map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return d, fmt.Errorf("is damaged: %w", err)
	}
	if f.Version > version {
		return d, fmt.Errorf("has version %d of a newer rsbridge; this one reads version %d", f.Version, version)
	}
	d = Declarations{Version: f.Version, Parts: map[string]map[string]json.RawMessage{}}
	for kind, raw := range f.Parts {
		var part map[string]json.RawMessage
		if kind != Sets && kind != Destinations {
			return d, fmt.Errorf("is damaged: parts.%s is neither %s nor %s", kind, Sets, Destinations)
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return d, fmt.Errorf("is damaged: parts.%s is no table of names", kind)
		}
		d.Parts[kind] = part
	}
	return d, nil
}

// Write replaces the file of a state, whole or not at all.
func (d Declarations) Write(state string) error {
	d.Version = version
	err := ownfile.Replace(File(state), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(d)
	})
	if err != nil {
		return err
	}
	return ownfile.Sync(state)
}

// With gives the declarations with a definition; a nil one takes it away.
func (d Declarations) With(kind, name string, definition json.RawMessage) Declarations {
	out := Declarations{Parts: maps.Clone(d.Parts)}
	if out.Parts == nil {
		out.Parts = map[string]map[string]json.RawMessage{}
	}
	part := maps.Clone(out.Parts[kind])
	if part == nil {
		part = map[string]json.RawMessage{}
	}
	if part[name] = definition; definition == nil {
		delete(part, name)
	}
	out.Parts[kind] = part
	return out
}

// Document is all of it as a document of configuration: JSON is YAML.
func (d Declarations) Document() ([]byte, error) {
	parts := d.Parts
	if parts == nil {
		parts = map[string]map[string]json.RawMessage{}
	}
	return plain(parts)
}

// plain is JSON without escapes of characters beyond ASCII: YAML knows no pairs of surrogates.
func plain(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// Fault is a fault of a definition, at a JSON Pointer in it.
type Fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Clean reads a definition and gives its plain form. The faults are of values that only the
// configuration file may have.
func Clean(definition []byte) (json.RawMessage, []Fault, error) {
	d := json.NewDecoder(bytes.NewReader(definition))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, nil, err
	}
	out, err := plain(v)
	return out, forbidden("", v), err
}

// ofMachine are the keys with names of files.
var ofMachine = []string{"dumps", "files"}

// OfMachine tells whether a key names files of the machine: definitions of the API have none.
func OfMachine(key string) bool {
	return slices.Contains(ofMachine, key) || strings.HasSuffix(key, "_file")
}

func forbidden(at string, v any) (faults []Fault) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			p := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			if OfMachine(key) {
				faults = append(faults, Fault{p, "names files of this machine: only the configuration file may"})
				continue
			}
			faults = append(faults, forbidden(p, v[key])...)
		}
	case []any:
		for i, x := range v {
			faults = append(faults, forbidden(fmt.Sprintf("%s/%d", at, i), x)...)
		}
	case string:
		if strings.Contains(v, "${") {
			faults = append(faults, Fault{at, "names a variable of the environment: only the configuration file may"})
		}
	}
	return faults
}

// Pointer is the JSON Pointer of a key below a name: sets.books.select.classes[1].
func Pointer(key, kind, name string) string {
	rest, ok := strings.CutPrefix(key, kind+"."+name)
	if !ok {
		return ""
	}
	return strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "").Replace(rest)
}

// secrets are keys whose values are not shown.
var secrets = []string{"password", "token", "client_secret"}

// Shown is a definition without its secrets.
func Shown(definition json.RawMessage) json.RawMessage {
	var v any
	if err := json.Unmarshal(definition, &v); err != nil {
		return nil
	}
	out, err := plain(shown("", v))
	if err != nil {
		return nil
	}
	return out
}

func shown(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = shown(k, x)
		}
	case []any:
		for i, x := range v {
			v[i] = shown(key, x)
		}
	case string:
		if v != "" && slices.Contains(secrets, key) {
			return "redacted"
		}
		return webguard.MaskedSetting(webguard.Masked(v))
	}
	return v
}
