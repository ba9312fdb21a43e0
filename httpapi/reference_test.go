package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestReference holds docs/reference/openapi.json to the table of routes.
func TestReference(t *testing.T) {
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode((&api{}).openAPI()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(teststores.Root(t), "docs", "reference", "openapi.json")
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.String(), string(got)); d != "" {
		t.Errorf("docs/reference/openapi.json is not what the code says (make generate writes it):\n%s", d)
	}
}
