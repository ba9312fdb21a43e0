package jsonld_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// unpacked gives the files of a shared tar archive.
func unpacked(tb testing.TB, name string) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{}
	for in := tar.NewReader(bytes.NewReader(teststores.ReadShared(tb, name))); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			tb.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			tb.Fatal(err)
		}
	}
}

// jsonldExceptions are the tests of the W3C suite that do not hold, with the reason;
// docs/reference/rdf-formats.md names each.
var jsonldExceptions = map[string]string{
	"#te003": "a name that is no IRI, in a document without a context: it is refused, since JSON that is no JSON-LD would be an empty description",
	"#tli12": badIRIReason, "#twf01": badIRIReason, "#twf02": badIRIReason, "#twf03": badIRIReason, "#twf04": badIRIReason, "#twf07": badIRIReason,
	"#tli14": "an item of a list that is relative where @base is null: it is refused, and not left out of the list",
	"#twf05": "a language tag that is none: it is refused, and the literal is not left out",
}

const badIRIReason = "an IRI with a character that no IRI may have: it is refused, and its triples are not left out"

// TestJSONLDSuite runs the W3C suite for JSON-LD 1.1 toRdf: what it calls an error is one,
// and no other triples come than it expects.
func TestJSONLDSuite(t *testing.T) {
	const root = "https://w3c.github.io/json-ld-api/tests/"
	files := unpacked(t, "fixtures/w3c/json-ld-toRdf.tar.gz")
	type option struct {
		Base, SpecVersion, ProcessingMode, ExpandContext, RdfDirection string
		ProduceGeneralizedRdf                                          bool
	}
	var manifest struct {
		Sequence []struct {
			ID      string   `json:"@id"`
			Type    []string `json:"@type"`
			Name    string
			Input   string
			Expect  string
			Option  option
			Purpose string
		}
	}
	if err := json.Unmarshal(files["tests/toRdf-manifest.jsonld"], &manifest); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	held := map[string]int{}
	for _, c := range manifest.Sequence {
		kind := strings.TrimPrefix(c.Type[0], "jld:")
		if c.Option.SpecVersion == "json-ld-1.0" || c.Option.ProcessingMode == "json-ld-1.0" || c.Option.ProduceGeneralizedRdf || c.Option.RdfDirection != "" {
			continue // of JSON-LD 1.0, of what is no RDF, and of directions, which RDF 1.1 has not
		}
		count[kind]++
		o := rdfres.ReadOptions{CheckIRIs: true, Base: root + c.Input, Name: c.ID, Context: func(address string) ([]byte, string, error) {
			data, ok := files["tests/"+strings.TrimPrefix(address, root)]
			if !ok {
				return nil, "", fmt.Errorf("%s is not there", address)
			}
			return data, address, nil
		}}
		if c.Option.Base != "" {
			o.Base = c.Option.Base
		}
		if c.Option.ExpandContext != "" {
			o.LinkedContext = root + c.Option.ExpandContext
		}
		var got []rdfres.Quad
		var failed error
		for q, err := range codec.Read(bytes.NewReader(files["tests/"+c.Input]), rdfres.JSONLD, o) {
			if failed = err; err == nil {
				got = append(got, q)
			}
		}
		why := ""
		switch kind {
		case "NegativeEvaluationTest":
			if failed == nil {
				why = "no error"
			}
		case "PositiveSyntaxTest":
			if failed != nil {
				why = failed.Error()
			}
		default:
			var want []rdfres.Quad
			for q, err := range codec.Read(bytes.NewReader(files["tests/"+c.Expect]), rdfres.NQuads, rdfres.ReadOptions{}) {
				if err != nil {
					t.Fatalf("%s: %v", c.ID, err)
				}
				want = append(want, q)
			}
			a, _, err1 := rdfres.Canonicalize(got, rdfres.CanonOptions{})
			b, _, err2 := rdfres.Canonicalize(want, rdfres.CanonOptions{})
			if failed = errors.Join(failed, err1, err2); failed != nil {
				why = failed.Error()
			} else if !bytes.Equal(a, b) {
				why = fmt.Sprintf("got\n%swant\n%s", a, b)
			}
		}
		switch reason, known := jsonldExceptions[c.ID]; {
		case why == "":
			if held[kind]++; known {
				t.Errorf("%s holds, although it is said not to: %s", c.ID, reason)
			}
		case !known:
			t.Errorf("%s %s (%s): %s\n%s", kind, c.ID, c.Name, why, files["tests/"+c.Input])
		case kind == "PositiveEvaluationTest" && failed == nil:
			t.Errorf("%s is silently wrong: %s", c.ID, why)
		}
	}
	page, err := os.ReadFile(filepath.Join(teststores.Root(t), "docs", "reference", "rdf-formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	for id := range jsonldExceptions {
		if !bytes.Contains(page, []byte("`"+id[1:]+"`")) {
			t.Errorf("docs/reference/rdf-formats.md does not name %s", id)
		}
	}
	if said := fmt.Sprintf("%d positive tests for toRdf of the W3C suite %d hold", count["PositiveEvaluationTest"], held["PositiveEvaluationTest"]); !bytes.Contains(page, []byte(said)) {
		t.Errorf("docs/reference/rdf-formats.md does not say: %s", said)
	}
	for _, kind := range slices.Sorted(func(yield func(string) bool) {
		for k := range count {
			if !yield(k) {
				return
			}
		}
	}) {
		t.Logf("%s: %d of %d hold", kind, held[kind], count[kind])
	}
}

// TestSuiteData reads the data and the manifests of the W3C suite for SPARQL: Turtle and
// RDF/XML of many hands.
func TestSuiteData(t *testing.T) {
	read := map[rdfres.Format]int{}
	for name, data := range unpacked(t, "fixtures/w3c/rdf-tests-sparql.tar.gz") {
		f, ok := rdfres.FormatBySuffix(name)
		if !ok || f == rdfres.JSONLD || !strings.HasSuffix(name, f.Suffix()) {
			continue
		}
		read[f]++
		for _, err := range codec.Read(bytes.NewReader(data), f, rdfres.ReadOptions{Base: "http://example.org/" + name, Name: name}) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if read[rdfres.Turtle] < 500 || read[rdfres.RDFXML] == 0 {
		t.Errorf("read %v", read)
	}
}
