package httpapi

import (
	"encoding"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

type object = map[string]any

var pathParam = regexp.MustCompile(`:([a-z]+)`)

// openAPI describes the table of routes; a test holds docs/reference/openapi.json to it.
func (a *api) openAPI() object {
	g := &schemas{made: object{}, names: map[string]reflect.Type{}}
	problem := g.of(reflect.TypeFor[Problem]())
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
			"description": "The administration of a bridge: sets, destinations and the runs of their jobs. The type of a run's result follows from its job: " + resultNames() + ". GET also answers HEAD. The security of an operation names the least role that its token needs: read, operate, or admin; each has the powers of those before it. Without any token the API is open on loopback. Beside it: /healthz, /readyz, /metrics, the dashboard at /, and the embedded stores at /stores/NAME/query, /update and /data."},
		"servers": []object{{"url": "/", "description": "the admin listener, by default http://127.0.0.1:8081"}},
		"tags":    tags,
		"paths":   paths,
		"components": object{"schemas": g.made, "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer"},
			"basic": object{"type": "http", "scheme": "basic", "description": "any user name, the token as password"},
		}},
	}
}

// results are the types of the results of runs, by the kinds of their jobs. Those of other kinds have
// none, and a run left out because of a pause has skipped.
var results = map[string]reflect.Type{
	"scan": reflect.TypeFor[bridge.ScanReport](), "hint": reflect.TypeFor[bridge.ScanReport](), "rebase": reflect.TypeFor[bridge.RebaseReport](),
	"sync": reflect.TypeFor[bridge.SyncReport](), "audit": reflect.TypeFor[bridge.AuditReport](), "verify": reflect.TypeFor[bridge.VerifyReport](),
	"forget-set": reflect.TypeFor[bridge.ForgottenSet](), "move-set": reflect.TypeFor[bridge.MovedSet](),
	"forget-destination": reflect.TypeFor[destination.ForgetReport](), "move-destination": reflect.TypeFor[bridge.MovedDestination](),
	"retain": reflect.TypeFor[retained](),
}

// retained is the result of the retention of a set: the dropped changes.
type retained struct {
	Dropped int64 `json:"dropped"`
}

// skipped is the result of a run left out because of a pause.
type skipped struct {
	Paused bool `json:"paused"`
}

func resultNames() string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(results)) {
		out = append(out, kind+": "+results[kind].Name())
	}
	return strings.Join(out, ", ")
}

// result is the schema of the result of a run.
func (g *schemas) result() object {
	all, seen := []object{}, map[reflect.Type]bool{}
	for _, kind := range slices.Sorted(maps.Keys(results)) {
		if t := results[kind]; !seen[t] {
			seen[t] = true
			all = append(all, g.of(t))
		}
	}
	return object{"anyOf": append(all, g.of(reflect.TypeFor[skipped]()), object{"type": "null"})}
}

// tags group the operations.
var tags = []object{
	{"name": "status", "description": "how everything stands"},
	{"name": "sets", "description": "the published sets"},
	{"name": "destinations", "description": "the mirrors"},
	{"name": "runs", "description": "jobs, their runs, and what happens at the moment"},
	{"name": "access", "description": "users, and what they did"},
}

// tagOf is the tag of an address.
func tagOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	switch first {
	case "sets", "destinations", "status":
		return first
	case "actions", "me":
		return "access"
	}
	return "runs"
}

// refusals are the problems of a route by status, with their causes.
func refusals(r route) map[int]string {
	out := map[int]string{
		http.StatusBadRequest: "the request is malformed", http.StatusUnauthorized: "the token is missing or wrong", http.StatusForbidden: "the role of the token does not allow it, or the page is of another origin",
		http.StatusTooManyRequests: "too many logins from this address have failed", http.StatusServiceUnavailable: "the bridge is starting or stopping, or too much waits",
	}
	if strings.Contains(r.path, ":") || r.status == http.StatusAccepted {
		out[http.StatusNotFound] = "there is none of this name, or nothing of the kind"
		out[http.StatusConflict] = "what there is does not allow it"
	}
	if r.method == http.MethodGet && strings.HasPrefix(r.path, "/api/v1/sets/:name/") {
		out[http.StatusGone] = "it is older than the retention of the set"
	}
	if r.method != http.MethodGet {
		out[http.StatusRequestEntityTooLarge], out[http.StatusRequestTimeout] = "the body is too long", "the body came too slowly"
	}
	if _, moves := r.body.(bridge.MoveArgs); moves {
		out[http.StatusUnprocessableEntity] = "to is no name"
	}
	if r.status == http.StatusAccepted {
		out[http.StatusConflict] = "a run of this kind is under way: it is in run and at Location; or there is nothing to do"
	}
	return out
}

func (g *schemas) operation(r route, schema object) object {
	content := object{"application/problem+json": object{"schema": schema}}
	params := []object{}
	for _, m := range pathParam.FindAllStringSubmatch(r.path, -1) {
		schema := object{"type": "string", "pattern": configfile.NameForm}
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
	responses := object{strconv.Itoa(r.status): done, "default": object{"description": "a fault of the bridge, told as RFC 9457", "content": content}}
	for status, why := range refusals(r) {
		responses[strconv.Itoa(status)] = object{"description": why, "content": content}
	}
	if _, is := r.result.(Definition); is && r.method != http.MethodGet {
		responses["201"] = object{"description": "it is declared, and in effect", "content": done["content"]}
		responses["202"] = object{"description": "it is declared, and waits for runs under way", "content": done["content"]}
		responses["422"] = object{"description": "the name or the declaration has faults; errors has all of the declaration", "content": content}
	}
	if r.status == http.StatusAccepted {
		at := object{"Location": object{"description": "address of the run", "schema": object{"type": "string"}}}
		done["headers"] = at
		responses["409"].(object)["headers"] = at
	}
	if slices.ContainsFunc(r.query, func(p param) bool { return p.name == "limit" }) {
		done["headers"] = object{"Link": object{"description": "the next page (rel=next), unless this is the last one", "schema": object{"type": "string"}}}
	}
	op := object{"summary": r.summary, "tags": []string{tagOf(r.path)}, "parameters": params, "responses": responses, "operationId": operationID(r),
		"security": []object{{"token": []access.Role{r.role}}, {"basic": []access.Role{r.role}}, {}}}
	if r.body != nil {
		body, needed := object(nil), true
		switch r.body.(type) {
		case bridge.Set:
			body = configfile.Schema[bridge.Set]()
		case bridge.Destination:
			body = configfile.Schema[bridge.Destination]()
		default:
			body, needed = g.arguments(reflect.TypeOf(r.body))
		}
		delete(body, "$schema")
		delete(body, "title")
		withoutFiles(body)
		op["requestBody"] = object{"required": needed, "content": object{"application/json": object{"schema": body}}}
	}
	return op
}

// withoutFiles takes the properties out of a schema that only the configuration file has.
func withoutFiles(schema object) {
	props, _ := schema["properties"].(object)
	for key, p := range props {
		if declared.OfMachine(key) {
			delete(props, key)
		} else if p, ok := p.(object); ok {
			withoutFiles(p)
		}
	}
	forms, _ := schema["anyOf"].([]any)
	for _, f := range forms {
		if f, ok := f.(object); ok {
			withoutFiles(f)
		}
	}
}

// operationID names an operation: getSets, getSetsNameHeld, postSetsNameScan.
func operationID(r route) string {
	id := strings.ToLower(r.method)
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(r.path, "/api/v1"), func(c rune) bool { return c == '/' || c == ':' || c == '-' }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
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
			body["not"] = object{"required": []string{"entities", "hints"}, "properties": object{"entities": object{}, "hints": object{"const": true}}}
		}
	}
	return body, needed
}

func (g *schemas) fields(t reflect.Type, props object, required *[]string) {
	if t == reflect.TypeFor[jobs.Run]() {
		defer func() { props["result"] = g.result() }()
	}
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
