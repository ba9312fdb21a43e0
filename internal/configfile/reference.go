package configfile

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference is the reference of a configuration file as Markdown, made from the field tags of T.
func Reference[T any]() string {
	var b strings.Builder
	b.WriteString(`# Configuration

YAML. All faults are reported at once, with file, line, value and allowed values. A key without an effect, because of another one, is no fault: ` + "`check`" + ` and the log name it. A [JSON Schema](configuration.schema.json) helps editors. This page is made from the code.

* ` + "`${NAME}`" + ` takes a value from the environment. ` + "`token_file` and `password_file`" + ` take secrets from files.
* Paths are relative to the configuration's folder.
* Durations are ` + "`90s`, `5m`, `24h`, `30d` or `2w`; a day has 24 hours" + `.
* Schedules are five cron fields, ` + "`@hourly`, `@daily` or `@every 5m` (any duration from `1s` on), with `CRON_TZ=Europe/Berlin`" + ` before them if wanted.

A schedule in an hour skipped in spring comes at its begin; in an hour repeated in autumn it comes twice. Missed runs are made up for once at the next start, as is a run interrupted by the last end. Periods (` + "`@every`" + `) go on over restarts.
`)
	section(&b, reflect.TypeFor[T](), "Top level", "")
	return b.String()
}

func section(b *strings.Builder, t reflect.Type, title, path string) {
	fmt.Fprintf(b, "\n## %s\n\n| key | meaning | default |\n|---|---|---|\n", title)
	type sub struct {
		t           reflect.Type
		title, path string
	}
	var subs []sub
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		doc := f.Tag.Get("doc")
		if a := f.Tag.Get("allowed"); a != "" {
			doc += ": `" + strings.ReplaceAll(a, "|", "`, `") + "`"
		}
		def := f.Tag.Get("default")
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, strings.ReplaceAll(doc, "|", "\\|"), def)
		switch {
		case f.Type.Kind() == reflect.Struct:
			subs = append(subs, sub{f.Type, "`" + path + key + "`", path + key + "."})
		case f.Type.Kind() == reflect.Map:
			subs = append(subs, sub{f.Type.Elem(), "`" + path + key + ".NAME`", path + key + ".NAME."})
		}
	}
	for _, s := range subs {
		section(b, s.t, s.title, s.path)
	}
}

// Schema is a JSON Schema of a configuration file, made from the same tags.
func Schema[T any]() map[string]any {
	s := schemaOf(reflect.TypeFor[T](), "", "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "rsbridge configuration"
	return s
}

func schemaOf(t reflect.Type, doc, allowed string) map[string]any {
	s := map[string]any{}
	if doc != "" {
		s["description"] = doc
	}
	switch {
	case t == reflect.TypeFor[Duration]():
		s["type"], s["pattern"] = "string", `^(0|([0-9.]+(w|d|h|m|s|ms|us|µs|ns))+)$`
	case t.Kind() == reflect.Struct:
		props := map[string]any{}
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("yaml") != "" {
				props[f.Tag.Get("yaml")] = schemaOf(f.Type, f.Tag.Get("doc"), f.Tag.Get("allowed"))
			}
		}
		s["type"], s["properties"], s["additionalProperties"] = "object", props, false
		if f, ok := shortField(t); ok {
			table := map[string]any{"type": s["type"], "properties": props, "additionalProperties": false}
			delete(s, "type")
			delete(s, "properties")
			delete(s, "additionalProperties")
			short := schemaOf(f.Type, "", f.Tag.Get("allowed"))
			forms, several := short["anyOf"].([]any)
			if !several {
				forms = []any{short}
			}
			s["anyOf"] = append(forms, table)
		}
	case t.Kind() == reflect.Map:
		s["type"], s["additionalProperties"] = "object", schemaOf(t.Elem(), "", "")
		s["propertyNames"] = map[string]any{"pattern": nameForm.String()}
	case t.Kind() == reflect.Slice:
		item := schemaOf(t.Elem(), "", allowed)
		s["anyOf"] = []any{map[string]any{"type": "array", "items": item}, item}
	case t.Kind() == reflect.Bool:
		s["type"] = "boolean"
	case t.Kind() == reflect.Float64:
		s["type"], s["minimum"] = "number", 0
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s["type"], s["minimum"] = "integer", 0
	default:
		s["type"] = "string"
		if allowed != "" {
			s["enum"] = strings.Split(allowed, "|")
		}
	}
	return s
}
