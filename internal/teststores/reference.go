package teststores

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Reference holds a generated page of docs/reference to the code; update writes it.
func Reference(t testing.TB, update bool, name, want string) {
	t.Helper()
	file := filepath.Join(Root(t), "docs", "reference", name)
	if update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/reference/%s is not what the code says (make generate writes it):\n%s", name, d)
	}
}
