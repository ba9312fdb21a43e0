package bridge_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestReference holds the reference pages in docs/ to the code.
func TestReference(t *testing.T) {
	schema, err := json.MarshalIndent(bridge.Schema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"configuration.md": bridge.Reference(), "configuration.schema.json": string(schema) + "\n"} {
		file := filepath.Join(teststores.Root(t), "docs", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("docs/%s is not what the code says (make generate writes it):\n%s", name, d)
		}
	}
}
