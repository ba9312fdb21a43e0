package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestReference holds the reference pages in docs/reference to the code.
func TestReference(t *testing.T) {
	schema, err := json.MarshalIndent(config.Schema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	stores, err := os.ReadFile(filepath.Join(teststores.Root(t), "docs", "reference", "stores.md"))
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- presets -->\n", "<!-- /presets -->"
	before, rest, ok := strings.Cut(string(stores), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatal("docs/reference/stores.md has no place for the presets")
	}
	for name, want := range map[string]string{"configuration.md": config.Reference(), "configuration.schema.json": string(schema) + "\n", "stores.md": before + from + sparql.PresetTable() + to + after} {
		teststores.Reference(t, *update, name, want)
	}
}
