package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

type suiteCase struct {
	Comment  string          `json:"comment"`
	Doc      json.RawMessage `json:"doc"`
	Patch    json.RawMessage `json:"patch"`
	Expected json.RawMessage `json:"expected"`
	Error    string          `json:"error"`
}

// TestSuite runs every case of the json-patch-tests suite, also those that it
// calls disabled.
func TestSuite(t *testing.T) {
	for _, name := range []string{"tests.json", "spec_tests.json"} {
		data, err := os.ReadFile(teststores.Shared(t, "fixtures/json-patch/"+name))
		if err != nil {
			t.Fatal(err)
		}
		var cases []suiteCase
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			got, err := Apply(c.Doc, c.Patch)
			label := fmt.Sprintf("%s %d %s %s", name, i, c.Comment, c.Patch)
			switch {
			case c.Error != "":
				if err == nil {
					t.Errorf("%s: no error, got %s, want %q", label, got, c.Error)
				}
			case err != nil:
				t.Errorf("%s: %v", label, err)
			case c.Expected != nil:
				if same, err := Equal(got, c.Expected); err != nil || !same {
					t.Errorf("%s: got %s, want %s", label, got, c.Expected)
				}
			}
		}
		if len(cases) < 10 {
			t.Errorf("%s has only %d cases", name, len(cases))
		}
	}
}

func TestDiff(t *testing.T) {
	long := strings.Repeat("long ", 40)
	tests := []struct{ from, to, want string }{
		{`{}`, `{}`, `[]`},
		{`1`, `1.0`, `[{"op":"replace","path":"","value":1.0}]`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `[]`},
		{`{"a/b":1,"m~n":"x","z":"` + long + `"}`, `{"a/b":2,"z":"` + long + `"}`, `[{"op":"replace","path":"/a~1b","value":2},{"op":"remove","path":"/m~0n"}]`},
		{`["a","b","c"]`, `["a","c"]`, `[{"op":"remove","path":"/1"}]`},
		{`["` + long + `","c"]`, `["` + long + `","b","c","d"]`, `[{"op":"add","path":"/1","value":"b"},{"op":"add","path":"/3","value":"d"}]`},
		{`{"long name that is here":[{"@value":"one"},{"@value":"two"}]}`, `{"long name that is here":[{"@value":"one"},{"@value":"three"}]}`,
			`[{"op":"replace","path":"/long name that is here/1/@value","value":"three"}]`},
		{`{"a":{"b":1}}`, `{"a":{"c":2}}`, `[{"op":"replace","path":"/a","value":{"c":2}}]`},
		{`"\ud800"`, `"\ud801"`, `[{"op":"replace","path":"","value":"\ud801"}]`},
	}
	for _, tt := range tests {
		got, err := Diff([]byte(tt.from), []byte(tt.to))
		if err != nil || string(got) != tt.want {
			t.Errorf("Diff(%s, %s) = %s, %v, want %s", tt.from, tt.to, got, err, tt.want)
		}
	}
}

func TestApplyKeepsSortedMembersAndSpelling(t *testing.T) {
	got, err := Apply([]byte(`{"a":"\u0041","c":1.50,"e":[]}`), []byte(`[{"op":"add","path":"/b","value":"<é>"},{"op":"add","path":"/d","value":null}]`))
	want := `{"a":"\u0041","b":"<é>","c":1.50,"d":null,"e":[]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestApplyErrors(t *testing.T) {
	bomb := `[` + strings.Repeat(`{"op":"copy","from":"","path":"/-"},`, 60) + `{"op":"test","path":"","value":0}]`
	deep := `[` + strings.Repeat(`{"op":"copy","from":"","path":"`+strings.Repeat("/a", 2000)+`"},`, 3) + `{"op":"test","path":"","value":0}]`
	nested := strings.Repeat(`{"a":`, 2000) + `{}` + strings.Repeat(`}`, 2000)
	tests := []struct {
		name, doc, patch, want string
	}{
		{"copies that double", `["0123456789"]`, bomb, "256 MiB"},
		{"copies that nest", nested, deep, "nested deeper"},
		{"into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/c"}]`, "into itself"},
		{"root removed", `{}`, `[{"op":"remove","path":""}]`, "cannot be removed"},
		{"bad escape", `{"~2":1}`, `[{"op":"remove","path":"/~2"}]`, "JSON Pointer"},
		{"no array", `{}`, `{}`, "array of operations"},
		{"doubled member", `{"a":1,"a":2}`, `[]`, "twice"},
		{"not UTF-8", "\"\xff\"", `[]`, "UTF-8"},
		{"not JSON", `{`, `[]`, "not usable"},
	}
	for _, tt := range tests {
		got, err := Apply([]byte(tt.doc), []byte(tt.patch))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %.80s, %v, want an error with %q", tt.name, got, err, tt.want)
		}
	}
	_, err := Apply([]byte(`{"a":1}`), []byte(`[{"op":"test","path":"/a","value":2}]`))
	var oe *OpError
	if !errors.Is(err, ErrTest) || !errors.As(err, &oe) || oe.Index != 0 || oe.Path != "/a" {
		t.Errorf("test operation: %v", err)
	}
}

func TestNumbersByValue(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"1", "1.0", true}, {"100", "1e2", true}, {"-0", "0.0", true}, {"0.10", "1E-1", true},
		{"1", "-1", false}, {"1", "true", false}, {"1e400", "10e399", true}, {"12345678901234567890", "12345678901234567891", false},
		{"1e99999999999999999999", "1e99999999999999999999", true},
	}
	for _, tt := range tests {
		if got, err := Equal([]byte(tt.a), []byte(tt.b)); err != nil || got != tt.want {
			t.Errorf("Equal(%s, %s) = %v, %v, want %v", tt.a, tt.b, got, err, tt.want)
		}
	}
}

// TestRandom makes documents and changed copies of them, and checks that the
// patch gives back the target: its very bytes by our own Apply, its value by
// another library. RSBRIDGE_PAIRS says how many: a million in make campaign.
func TestRandom(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 500
	}
	if s := os.Getenv("RSBRIDGE_PAIRS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		a, b := randomValue(r, 0), any(nil)
		if r.IntN(4) == 0 {
			b = randomValue(r, 0)
		} else {
			b = mutate(r, a)
		}
		checkPair(t, compact(t, a), compact(t, b), i%3 == 0)
	}
	t.Logf("%d pairs", n)
}

func checkPair(t *testing.T, from, to []byte, other bool) {
	t.Helper()
	patch, err := Diff(from, to)
	if err != nil {
		t.Fatalf("Diff(%s, %s): %v", from, to, err)
	}
	again, _ := Diff(from, to)
	if !bytes.Equal(patch, again) {
		t.Fatalf("Diff(%s, %s) is not deterministic", from, to)
	}
	got, err := Apply(from, patch)
	if err != nil || !bytes.Equal(got, to) {
		t.Fatalf("Apply(%s, %s) = %s, %v, want %s", from, patch, got, err, to)
	}
	if !other {
		return
	}
	p, err := evanphx.DecodePatch(patch)
	if err != nil {
		t.Fatalf("another library refuses %s: %v", patch, err)
	}
	// it does not know empty member names and scalar documents
	o := evanphx.NewApplyOptions()
	o.SupportNegativeIndices = false
	if len(from) > 0 && (from[0] == '{' || from[0] == '[') && (to[0] == from[0]) && len(p) > 0 && !bytes.Contains(patch, []byte(`"path":""`)) && !bytes.Contains(patch, []byte("//")) {
		got, err := p.ApplyWithOptions(from, o)
		if err != nil {
			t.Fatalf("another library cannot apply %s to %s: %v", patch, from, err)
		}
		if same, err := Equal(got, to); err != nil || !same {
			t.Fatalf("another library makes %s of %s with %s, want %s", got, from, patch, to)
		}
	}
}

// compact writes sorted, without blanks and without HTML escapes.
func compact(t *testing.T, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

var words = []string{"a", "b", "@id", "@value", "http://example.org/p", "x~y/z", "", "é", "\"q\"", "0", "-", "1"}

func randomValue(r *rand.Rand, depth int) any {
	k := r.IntN(8)
	if depth == 0 {
		k = r.IntN(4)
	}
	if depth > 4 {
		k = 4 + r.IntN(4)
	}
	switch k {
	case 0, 1:
		o := map[string]any{}
		for range r.IntN(5) {
			o[words[r.IntN(len(words))]] = randomValue(r, depth+1)
		}
		return o
	case 2, 3:
		var l []any
		for range r.IntN(6) {
			l = append(l, randomValue(r, depth+1))
		}
		if l == nil {
			l = []any{}
		}
		return l
	case 4:
		return words[r.IntN(len(words))]
	case 5:
		return json.Number([]string{"1", "1.0", "0", "-3", "1e2"}[r.IntN(5)])
	case 6:
		return r.IntN(2) == 0
	}
	return nil
}

func mutate(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) { // the same pairs in every run
			if x := v[k]; r.IntN(6) != 0 {
				o[k] = mutate(r, x)
			}
		}
		if r.IntN(4) == 0 {
			o[words[r.IntN(len(words))]] = randomValue(r, 3)
		}
		return o
	case []any:
		l := []any{}
		for _, x := range v {
			if r.IntN(6) == 0 {
				continue
			}
			if r.IntN(6) == 0 {
				l = append(l, randomValue(r, 3))
			}
			l = append(l, mutate(r, x))
		}
		return l
	}
	if r.IntN(5) == 0 {
		return randomValue(r, 5)
	}
	return v
}

// FuzzDiff: what Diff says of two documents makes the second out of the first.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,3]}`), []byte(`{"a":[1,3,4],"b":null}`))
	f.Add([]byte(`[]`), []byte(`"\ud83d\ude00"`))
	f.Add([]byte(`{"a":{"b":[{"c":1},{"d":2}]}}`), []byte(`{"a":{"b":[{"d":2},{"c":1}]}}`))
	f.Fuzz(func(t *testing.T, from, to []byte) {
		patch, err := Diff(from, to)
		if err != nil {
			return
		}
		got, err := Apply(from, patch)
		if err != nil {
			t.Fatalf("Apply(%q, %q): %v", from, patch, err)
		}
		if rest, err := Diff(got, to); err != nil || string(rest) != "[]" {
			t.Fatalf("Apply(%q, %q) = %q, want %q", from, patch, got, to)
		}
	})
}

// FuzzApply: no input may panic, and what comes out is JSON.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"a":[1]}`), []byte(`[{"op":"move","from":"/a/0","path":"/b"}]`))
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		got, err := Apply(doc, patch)
		if err == nil && !json.Valid(got) {
			t.Fatalf("Apply(%q, %q) = %q", doc, patch, got)
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	var from, to []string
	for i := range 40 {
		from = append(from, fmt.Sprintf(`{"@value":"literal number %d"}`, i))
		to = append(to, fmt.Sprintf(`{"@value":"literal number %d"}`, i+i/39))
	}
	x := []byte(`[{"@id":"http://example.org/e","http://example.org/p":[` + strings.Join(from, ",") + `]}]`)
	y := []byte(`[{"@id":"http://example.org/e","http://example.org/p":[` + strings.Join(to, ",") + `]}]`)
	for b.Loop() {
		if _, err := Diff(x, y); err != nil {
			b.Fatal(err)
		}
	}
}
