package pgkv_test

import (
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

func open(t testing.TB, url string) *pgkv.Store {
	t.Helper()
	s, err := pgkv.Open(t.Context(), url, kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	kvtest.Run(t, func(t testing.TB) kv.Store { return open(t, teststores.Postgres(t)) })
}
