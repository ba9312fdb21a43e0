package config

import (
	"path/filepath"
	"testing"
)

// TestRelativePaths: paths are relative to the folder of the configuration, once, wherever it is read from.
func TestRelativePaths(t *testing.T) {
	cfg, err := Parse([]byte("state: ./state\nstores: {origin: {embedded: ./origin}}\nsets: {data: {store: origin}}\n"), filepath.Join("conf", "rsbridge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("conf", "state"); cfg.State != want {
		t.Errorf("the state is in %s, want %s", cfg.State, want)
	}
	if want := filepath.Join("conf", "origin"); cfg.Stores["origin"].Embedded != want {
		t.Errorf("the store is in %s, want %s", cfg.Stores["origin"].Embedded, want)
	}
}
