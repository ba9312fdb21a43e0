package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/httpapi"
)

// schema is the part of JSON Schema that the description of requests uses.
type schema struct {
	Type, Pattern, Format          string
	AnyOf                          []schema
	Enum                           []any
	Minimum, Maximum               *int64
	MinLength, MaxLength, MinItems int
	Items                          *schema
	Properties                     map[string]schema
	Required                       []string
	Not                            *struct{ Required []string }
}

// TestValidRequests: what the description allows is never answered with 400 or as a fault of the
// server, and each answer is one that the description names. The requests have each value of an
// enumeration, the bounds of numbers, the shortest and longest texts of a pattern, and each
// parameter alone and left out.
func TestValidRequests(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(3)
	w.start("/api/v1/sets/data/scan", "")
	w.start("/api/v1/destinations/copy/sync", "")
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
				Schema   schema
			}
			RequestBody *struct {
				Required bool
				Content  map[string]struct{ Schema schema }
			}
			Responses map[string]struct{ Content map[string]any }
		}
	}
	w.get("/openapi.json", &doc)
	h := httpapi.New(w.b, httpapi.Options{})
	sent := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			paths, queries := []string{path}, []string{""}
			for _, p := range op.Parameters {
				values := examples(t, p.Schema)
				switch p.In {
				case "path":
					if p.Name == "name" {
						values = append([]any{"data", "copy", "gone"}, values...)
					}
					var filled []string
					for _, at := range paths {
						for _, v := range values {
							filled = append(filled, strings.Replace(at, "{"+p.Name+"}", url.PathEscape(fmt.Sprint(v)), 1))
						}
					}
					paths = filled
				case "query":
					var asked []string
					for _, q := range queries {
						if !p.Required {
							asked = append(asked, q)
						}
						if q != "" && !p.Required { // the parameters before are enough beside it
							continue
						}
						for _, v := range append(values, known[p.Name]...) {
							asked = append(asked, strings.Trim(q+"&"+p.Name+"="+url.QueryEscape(fmt.Sprint(v)), "&"))
						}
					}
					queries = asked
				}
			}
			bodies := []string{""}
			if op.RequestBody != nil {
				if op.RequestBody.Required {
					bodies = nil
				}
				for _, body := range examples(t, op.RequestBody.Content["application/json"].Schema) {
					raw, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					bodies = append(bodies, string(raw))
				}
			}
			for _, at := range paths {
				for _, q := range queries {
					for _, body := range bodies {
						sent++
						// A stream, and waiting for a run, have no end of their own.
						ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
						if strings.HasSuffix(path, "/events") {
							cancel()
						}
						rec := httptest.NewRecorder()
						r := httptest.NewRequestWithContext(ctx, strings.ToUpper(method), "http://localhost"+at+"?"+q, strings.NewReader(body))
						h.ServeHTTP(rec, r)
						cancel()
						told, named := op.Responses[fmt.Sprint(rec.Code)]
						if !named {
							told = op.Responses["default"]
						}
						ct := strings.TrimSpace(strings.Split(rec.Header().Get("Content-Type"), ";")[0])
						_, typed := told.Content[ct]
						if rec.Code == http.StatusBadRequest || rec.Code == http.StatusInternalServerError || !typed {
							t.Errorf("%s %s?%.200s %.200s: %d %s %.300s", method, at, q, body, rec.Code, ct, rec.Body)
						}
					}
				}
			}
		}
	}
	if sent < 500 {
		t.Errorf("%d requests only", sent)
	}
}

// known are values of parameters that this state has.
var known = map[string][]any{"entity": {"http://example.org/e1"}, "job": {"scan:data"}}

// examples are valid values of a schema, at its edges.
func examples(t *testing.T, s schema) (out []any) {
	t.Helper()
	switch {
	case s.AnyOf != nil:
		for _, one := range s.AnyOf {
			out = append(out, examples(t, one)...)
		}
	case s.Enum != nil:
		out = s.Enum
	case s.Type == "boolean":
		out = []any{true, false}
	case s.Type == "number", s.Type == "integer" && s.Maximum == nil:
		out = []any{0, 1}
	case s.Type == "integer":
		out = []any{*s.Minimum, *s.Maximum}
	case s.Type == "string" && s.Pattern != "":
		re, err := syntax.Parse(s.Pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		exact := regexp.MustCompile(s.Pattern)
		all := texts(re.Simplify())
		if n := len(all); n > 6 {
			all = append(all[:3:3], all[n-3:]...)
		}
		for _, text := range all {
			if s.MaxLength > 0 && utf8.RuneCountInString(text) > s.MaxLength || !exact.MatchString(text) {
				continue
			}
			if _, err := time.Parse(time.RFC3339, text); s.Format == "date-time" && err != nil {
				continue // the 30th of February
			}
			out = append(out, text)
		}
		if s.MaxLength > 0 {
			out = append(out, "a:"+strings.Repeat("é", s.MaxLength-2))
		}
	case s.Type == "string":
		for _, text := range []string{"", "x", "a b/%2F?&=#+", "\x00", "é\u2028😀", strings.Repeat("x", 3000)} {
			if len(text) >= s.MinLength {
				out = append(out, text)
			}
		}
	case s.Type == "array":
		items := examples(t, *s.Items)
		out = []any{items[:max(1, s.MinItems)], items, slices.Repeat(items[:1], 3)}
	case s.Type == "object":
		base := map[string]any{}
		for _, name := range s.Required {
			base[name] = examples(t, s.Properties[name])[0]
		}
		out = []any{base}
		for name, p := range s.Properties {
			for _, v := range examples(t, p) {
				one := map[string]any{name: v}
				for other, value := range base {
					if other != name {
						one[other] = value
					}
				}
				out = append(out, one)
			}
		}
	default:
		t.Fatalf("no examples of %+v", s)
	}
	return out
}

// texts are some texts of a pattern: of each choice its first and last.
func texts(re *syntax.Regexp) []string {
	join := func(before, after []string) (out []string) {
		for i := range max(len(before), len(after)) {
			out = append(out, before[min(i, len(before)-1)]+after[min(i, len(after)-1)])
		}
		return out
	}
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		last := re.Rune[len(re.Rune)-1]
		if last == utf8.MaxRune {
			last = '~'
		}
		return []string{string(re.Rune[0]), string(last)}
	case syntax.OpQuest, syntax.OpStar:
		return append([]string{""}, texts(re.Sub[0])...)
	case syntax.OpPlus, syntax.OpCapture:
		return texts(re.Sub[0])
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, texts(sub)...)
		}
		return out
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			out = join(out, texts(sub))
		}
		return out
	}
	return []string{""}
}
