package httpapi

import (
	"reflect"
	"regexp"
	"strings"
	"time"
)

type object = map[string]any

var pathParam = regexp.MustCompile(`:([a-z]+)`)

// openAPI describes the table of routes; a test holds docs/openapi.json to it.
func (a *api) openAPI() object {
	g := &schemas{made: object{}}
	paths := object{}
	problem := g.of(reflect.TypeFor[Problem]())
	for _, r := range a.routes() {
		path := pathParam.ReplaceAllString(r.path, "{$1}")
		params := []object{}
		for _, m := range pathParam.FindAllStringSubmatch(r.path, -1) {
			params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, q := range r.query {
			params = append(params, object{"name": q, "in": "query", "required": false, "schema": object{"type": "string"}})
		}
		content := "application/json"
		if strings.HasSuffix(r.path, "/events") {
			content = "text/event-stream"
		}
		responses := object{
			status(r.status): object{"description": "done", "content": object{content: object{"schema": g.of(reflect.TypeOf(r.result))}}},
			"default":        object{"description": "a problem, told as RFC 9457", "content": object{"application/problem+json": object{"schema": problem}}},
		}
		if r.status == 202 {
			responses["409"] = object{"description": "a run of this kind is under way", "content": object{"application/problem+json": object{"schema": problem}}}
		}
		op := object{"summary": r.summary, "parameters": params, "responses": responses, "operationId": operation(r)}
		if r.method == "POST" && r.query != nil {
			op["requestBody"] = object{"required": false, "content": object{"application/json": object{"schema": object{"type": "object"}}}}
		}
		p, ok := paths[path].(object)
		if !ok {
			p = object{}
			paths[path] = p
		}
		p[strings.ToLower(r.method)] = op
	}
	return object{
		"openapi":    "3.1.0",
		"info":       object{"title": "rsbridge administration", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths":      paths,
		"components": object{"schemas": g.made, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
		"security":   []object{{"token": []string{}}, {}},
	}
}

func status(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func operation(r route) string {
	return strings.ToLower(r.method) + strings.Join(strings.FieldsFunc(strings.TrimPrefix(r.path, "/api/v1"), func(c rune) bool { return c == '/' || c == ':' }), "_")
}

// schemas makes JSON Schemas from Go types, by their json tags.
type schemas struct{ made object }

func (g *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return object{"anyOf": []object{g.of(t.Elem()), {"type": "null"}}}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return object{} // json.RawMessage: any value
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": g.of(t.Elem())}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": g.of(t.Elem())}
	case t.Kind() == reflect.Struct:
		return g.structure(t)
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	case t.Kind() == reflect.Float64:
		return object{"type": "number"}
	default:
		return object{"type": "integer"}
	}
}

func (g *schemas) structure(t reflect.Type) object {
	name := t.Name()
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := g.made[name]; done {
		return ref
	}
	g.made[name] = nil // against cycles
	props := object{}
	g.fields(t, props)
	g.made[name] = object{"type": "object", "properties": props}
	return ref
}

func (g *schemas) fields(t reflect.Type, props object) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			g.fields(f.Type, props)
		case !f.IsExported() || key == "-":
		default:
			if key == "" {
				key = f.Name
			}
			props[key] = g.of(f.Type)
		}
	}
}
