package httpapi_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
)

// TestDeclaredStatus: a declaration in effect is 201 when it is new and 200 when it was there; one that waits
// is 202.
func TestDeclaredStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rsbridge.yaml")
	if err := os.WriteFile(file, []byte("stores:\n  local: {embedded: ./local}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	latest, err := bridge.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	waits := false
	w := newWorld(t, httpapi.Options{Change: func(_ context.Context, next httpapi.Next) (bool, error) {
		cfg, _, _, err := next(latest)
		if err == nil {
			latest = cfg
		}
		return err == nil && !waits, err
	}})
	for _, want := range []int{201, 200, 202} {
		waits = want == 202
		a := w.do("PUT", "/api/v1/sets/people", `{"store": "local"}`)
		w.is(a, want)
		if got := strings.Contains(string(a.body), `"in_effect":true`); got == waits {
			t.Errorf("%d: %s", want, a.body)
		}
	}
}
