// Package configfile reads a YAML file into a struct by its field tags, and tells all faults at
// once with their lines.
//
// Tags of a field: yaml is its key, doc a sentence for the reference, default and allowed its
// values, short marks the field set by a value in place of the whole table.
package configfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Finding is one fault of a configuration.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Key     string `json:"key"` // path, "sets.books.format"
	Value   string `json:"value,omitempty"`
	Message string `json:"message"` // the fault and the allowed values
}

func (f Finding) String() string {
	at := f.Key
	switch {
	case f.File == "": // it is made of flags, or by a program
	case f.Line > 0:
		at = f.File + ":" + strconv.Itoa(f.Line) + ": " + at
	default:
		at = f.File + ": " + at
	}
	if f.Value != "" {
		return fmt.Sprintf("%s: %q: %s", at, f.Value, f.Message)
	}
	return at + ": " + f.Message
}

// Error is all faults of a configuration at once. Err is the cause of an unreadable file.
type Error struct {
	Findings []Finding
	Err      error
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("the configuration has %d faults:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Secret prints as "redacted".
type Secret string

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "redacted"
}

// MarshalJSON hides the value.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Duration is a time.Duration written as "90s", "5m", "30d", "2w".
type Duration time.Duration

func (d Duration) String() string { return settings.FormatDuration(time.Duration(d)) }

// Bytes are the bytes of a file. An unreadable one gives an *Error.
func Bytes(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		message := "cannot be read: " + err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			message += "; `rsbridge init` writes one"
		}
		return nil, &Error{Findings: []Finding{{File: file, Key: "file", Message: message}}, Err: err}
	}
	return raw, nil
}

// Read reads a document into a struct; file is used in messages. It gives the line of each key,
// by its path, and all faults. The error is an *Error: there is no document.
func Read(raw []byte, file string, into any) (lines map[string]int, faults []Finding, err error) {
	d := &decoder{file: file, line: map[string]int{}}
	v := reflect.ValueOf(into).Elem()
	setDefaults(v)
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, &Error{Findings: []Finding{{File: file, Key: "file", Message: "is not YAML: " + err.Error()}}}
	}
	if len(doc.Content) == 0 {
		return nil, nil, &Error{Findings: []Finding{{File: file, Key: "file", Message: "is empty; `rsbridge init` writes a configuration"}}}
	}
	d.value(doc.Content[0], v, "", "")
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		d.fault(&second, "file", "", "has a second document (---): one configuration is one document")
	}
	return d.line, d.findings, nil
}

// Defaults is a value with the documented defaults.
func Defaults[T any]() (v T) {
	setDefaults(reflect.ValueOf(&v).Elem())
	return v
}

// IsName tells whether a name may be a key of a table.
func IsName(name string) bool { return nameForm.MatchString(name) }

// setDefaults fills a struct from its default tags.
func setDefaults(v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			setDefaults(v.Field(i))
			continue
		}
		if d := f.Tag.Get("default"); d != "" {
			if v.Field(i).Kind() == reflect.Slice {
				v.Field(i).Set(reflect.ValueOf(strings.Split(d, ",")))
			} else if err := setScalar(v.Field(i), d); err != nil {
				panic("default of " + f.Name + ": " + err.Error())
			}
		}
	}
}

// decoder walks a YAML tree beside a Go value and collects every fault.
type decoder struct {
	file     string
	line     map[string]int
	findings []Finding
}

func (d *decoder) fault(n *yaml.Node, path, value, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	d.findings = append(d.findings, Finding{File: d.file, Line: line, Key: path, Value: webguard.Masked(value), Message: webguard.MaskedSetting(fmt.Sprintf(format, args...))})
}

// aliased resolves an alias.
func aliased(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path, allowed string) {
	n = aliased(n)
	d.line[path] = n.Line
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.table(n, v, path)
	case reflect.Slice:
		d.list(n, v, path, allowed)
	default:
		d.scalar(n, v, path, allowed)
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if f, ok := shortField(v.Type()); ok && n.Kind != yaml.MappingNode { // it stands for the whole
		d.value(n, v.FieldByIndex(f.Index), path, f.Tag.Get("allowed"))
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, n.Value, "must be a table of %s", strings.Join(keys(v.Type()), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		p := join(path, k.Value)
		if seen[k.Value] {
			d.fault(k, p, "", "stands here twice")
		}
		seen[k.Value] = true
		f, ok := fieldByKey(v.Type(), k.Value)
		if !ok {
			d.fault(k, p, "", "is not known%s", cmp.Or(settings.Meant(k.Value, keys(v.Type())), "; allowed here: "+strings.Join(keys(v.Type()), ", ")))
			continue
		}
		d.value(c, v.FieldByIndex(f.Index), p, f.Tag.Get("allowed"))
	}
}

// NameForm is the form of names, such as those of sets and destinations.
const NameForm = `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`

var nameForm = regexp.MustCompile(NameForm)

// ErrName tells the form of names in words.
var ErrName = errors.New("is no name: letters, digits, - and _, at most 64; the first is a letter or a digit")

// CheckName gives ErrName for a text out of the form.
func CheckName(text string) error {
	if !nameForm.MatchString(text) {
		return ErrName
	}
	return nil
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, n.Value, "must be a table of names")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		p := join(path, k.Value)
		if err := CheckName(k.Value); err != nil {
			d.fault(k, p, "", "%s", err)
		}
		if v.MapIndex(reflect.ValueOf(k.Value)).IsValid() {
			d.fault(k, p, "", "stands here twice")
		}
		e := reflect.New(v.Type().Elem()).Elem()
		setDefaults(e)
		d.value(c, e, p, "")
		d.line[p] = k.Line
		v.SetMapIndex(reflect.ValueOf(k.Value), e)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path, allowed string) {
	items := n.Content
	if n.Kind == yaml.ScalarNode { // one value stands for a list of one
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "", "must be a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, c := range items {
		d.scalar(aliased(c), out.Index(i), fmt.Sprintf("%s[%d]", path, i), allowed)
	}
	v.Set(out)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path, allowed string) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, path, "", "must be one value, not a list or a table")
		return
	}
	s := variable.ReplaceAllStringFunc(n.Value, func(m string) string {
		val, ok := os.LookupEnv(m[2 : len(m)-1])
		if !ok {
			d.fault(n, path, m, "names an environment variable that is not set")
		}
		return val
	})
	if allowed != "" && !slices.Contains(strings.Split(allowed, "|"), s) {
		d.fault(n, path, s, "is not one of %s%s", strings.ReplaceAll(allowed, "|", ", "), settings.Meant(s, strings.Split(allowed, "|")))
	}
	if err := setScalar(v, s); err != nil {
		if v.Type() == reflect.TypeFor[Secret]() {
			s = "redacted"
		}
		d.fault(n, path, s, "%s", err)
	}
}

// setScalar parses s into v by v's type.
func setScalar(v reflect.Value, s string) error {
	if v.Type() == reflect.TypeFor[Duration]() {
		t, err := settings.ParseDuration(s)
		if err != nil || t < 0 {
			return fmt.Errorf("is no duration; write 90s, 5m, 24h, 30d or 2w")
		}
		v.SetInt(int64(t))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		switch s {
		case "true", "yes", "on":
			v.SetBool(true)
		case "false", "no", "off":
			v.SetBool(false)
		default:
			return fmt.Errorf("is neither true nor false")
		}
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("is no whole number of 0 or more")
		}
		v.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0) || math.IsInf(f, 0) { // nothing is more than NaN
			return fmt.Errorf("is no number of 0 or more")
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("has a type that the reader does not know: %s", v.Type())
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func fieldByKey(t reflect.Type, key string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && f.Tag.Get("yaml") == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// shortField is the field set by a value instead of a table.
func shortField(t reflect.Type) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("short") != "" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func keys(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if k := f.Tag.Get("yaml"); k != "" {
			out = append(out, k)
		}
	}
	return out
}
