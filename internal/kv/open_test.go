package kv_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func TestOpen(t *testing.T) {
	place := ""
	folder := func(_ context.Context, at string, _ kv.OpenOptions) (kv.Store, error) {
		place = at
		return memkv.New(), nil
	}
	engines := kv.Engines{"": folder, "pebble": folder}
	for address, want := range map[string]string{
		"pebble:/var/lib/x": "/var/lib/x", "Pebble:x": "x", "state": "state", "./a:b": "./a:b", `C:\\state`: `C:\\state`, "": "",
	} {
		if s, err := engines.Open(t.Context(), address, kv.OpenOptions{}); err != nil || place != want {
			t.Errorf("Open(%q) = %v at %q, %v; want %q", address, s, place, err, want)
		}
	}
	_, err := engines.Open(t.Context(), "postgres://me:secret@db/state", kv.OpenOptions{})
	want := "open state: no engine for addresses that begin with postgres:"
	if err == nil || err.Error() != want || strings.Contains(err.Error(), "secret") {
		t.Errorf("Open = %v, want %s", err, want)
	}
	if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() != "use a folder (./DIR if it has a colon) or pebble:…" {
		t.Errorf("the hint is %q", h.Hint())
	}
}
