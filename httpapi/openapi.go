package httpapi

import (
	"encoding"
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
)

type object = map[string]any

var pathParam = regexp.MustCompile(`:([a-z]+)`)

// openAPI describes the table of routes; a test holds docs/reference/openapi.json to it.
func (a *api) openAPI() object {
	g := &schemas{made: object{}, names: map[string]reflect.Type{}}
	problem := object{"description": "a problem, told as RFC 9457", "content": object{"application/problem+json": object{"schema": g.of(reflect.TypeFor[Problem]())}}}
	for _, t := range []reflect.Type{reflect.TypeFor[bridge.ScanReport](), reflect.TypeFor[bridge.SyncReport](), reflect.TypeFor[bridge.AuditReport](), reflect.TypeFor[bridge.VerifyReport]()} {
		g.of(t) // the result of a run
	}
	paths := object{}
	for _, r := range a.routes() {
		path := pathParam.ReplaceAllString(r.path, "{$1}")
		p, ok := paths[path].(object)
		if !ok {
			p = object{}
			paths[path] = p
		}
		p[strings.ToLower(r.method)] = g.operation(r, problem)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "rsbridge administration", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The administration of a bridge: sets, destinations and the runs of their jobs. The result of a run is a ScanReport (scan, accept), a SyncReport, an AuditReport (audit, repair), or a VerifyReport. GET also answers HEAD. Beside it: /healthz, /readyz, /metrics, the dashboard at /, and the embedded stores at /stores/NAME/query, /update and /data."},
		"paths": paths,
		"components": object{"schemas": g.made, "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer"},
			"basic": object{"type": "http", "scheme": "basic", "description": "any user name, the token as password"},
		}},
		"security": []object{{"token": []string{}}, {"basic": []string{}}, {}},
	}
}

func (g *schemas) operation(r route, problem object) object {
	params := []object{}
	for _, m := range pathParam.FindAllStringSubmatch(r.path, -1) {
		schema := object{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}
		if m[1] == "id" {
			schema = object{"type": "integer", "minimum": 0, "maximum": 1 << 53}
		}
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, q := range r.query {
		params = append(params, object{"name": q.name, "in": "query", "required": q.required, "description": q.doc, "schema": q.schema})
	}
	done := object{"description": http.StatusText(r.status)}
	switch r.result.(type) {
	case representation:
		done["content"] = object{"application/ld+json": object{}, "application/n-triples": object{}, "text/turtle": object{}, "application/rdf+xml": object{}, "application/json": object{}}
	case archive:
		done["content"] = object{"application/x-tar": object{"schema": object{"type": "string", "format": "binary"}}}
	case stream:
		done["content"] = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	default:
		done["content"] = object{"application/json": object{"schema": g.of(reflect.TypeOf(r.result))}}
	}
	responses := object{strconv.Itoa(r.status): done, "default": problem}
	if r.status == http.StatusAccepted {
		at := object{"Location": object{"description": "address of the run", "schema": object{"type": "string"}}}
		done["headers"] = at
		responses["409"] = object{"description": "a run of this kind is under way: it is in run and at Location; or there is nothing to do", "headers": at, "content": problem["content"]}
	}
	op := object{"summary": r.summary, "parameters": params, "responses": responses, "operationId": operationID(r)}
	if r.body != nil {
		body, needed := g.arguments(reflect.TypeOf(r.body))
		op["requestBody"] = object{"required": needed, "content": object{"application/json": object{"schema": body}}}
	}
	return op
}

func operationID(r route) string {
	return strings.ToLower(r.method) + strings.Join(strings.FieldsFunc(strings.TrimPrefix(r.path, "/api/v1"), func(c rune) bool { return c == '/' || c == ':' }), "_")
}

// schemas makes JSON Schemas from Go types, by their json tags.
type schemas struct {
	made  object
	names map[string]reflect.Type // of the types in made
}

func (g *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []object{g.of(t.Elem()), {"type": "null"}}}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.structure(t)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	default:
		return object{"type": "integer"}
	}
}

// structure names a struct's schema; of two types with one name the later one
// has its package before it.
func (g *schemas) structure(t reflect.Type) object {
	name := t.Name()
	if other, taken := g.names[name]; taken && other != t {
		pkg := path.Base(t.PkgPath())
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := g.made[name]; done {
		return ref
	}
	g.names[name], g.made[name] = t, nil // against cycles
	props, required := object{}, []string{}
	g.fields(t, props, &required)
	g.made[name] = object{"type": "object", "properties": props, "required": required}
	return ref
}

// arguments is the schema of a body: nothing but its fields. Those without omitempty are needed,
// and so is the body.
func (g *schemas) arguments(t reflect.Type) (body object, needed bool) {
	props, required := object{}, []string{}
	g.fields(t, props, &required)
	if depth, ok := props["depth"].(object); ok {
		depth["enum"] = depths
	}
	if _, ok := props["until"]; ok {
		props["until"] = timeSchema
	}
	body = object{"type": "object", "properties": props, "additionalProperties": false}
	if needed = len(required) > 0; needed {
		body["required"] = required
		for _, name := range required {
			props[name].(object)["minLength"] = 1
		}
	}
	if entities, ok := props["entities"].(object); ok {
		entities["minItems"], entities["maxItems"] = 1, bridge.MaxNamed
		entities["items"] = object{"type": "string", "pattern": bridge.EntityPattern, "maxLength": bridge.MaxEntityLen}
		delete(entities, "minLength") // it is of texts
		if _, both := props["hints"]; both {
			body["not"] = object{"required": []string{"entities", "hints"}, "properties": object{"hints": object{"const": true}}}
		}
	}
	return body, needed
}

func (g *schemas) fields(t reflect.Type, props object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			g.fields(f.Type, props, required)
		case !f.IsExported() || key == "-":
		default:
			if key == "" {
				key = f.Name
			}
			props[key] = g.of(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, key)
			}
		}
	}
}
