package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The page and its plot are what the results beside them say.
func TestPage(t *testing.T) {
	docs, page := filepath.Join("..", "..", "docs"), filepath.Join(t.TempDir(), "benchmarks.md")
	if err := writePage(page, filepath.Join(docs, "benchmarks")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"benchmarks.md", "benchmarks.svg"} {
		want, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(filepath.Dir(page), name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("docs/%s is not what docs/benchmarks says: go run ./cmd/bench -page docs/benchmarks.md", name)
		}
	}
}
