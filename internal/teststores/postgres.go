package teststores

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The environment variables of the tests of a state in PostgreSQL.
const (
	EnvPostgres    = "RSBRIDGE_TEST_POSTGRES"     // URL of a server, as its superuser
	EnvPostgresBin = "RSBRIDGE_TEST_POSTGRES_BIN" // folder of its programs
)

// Postgres is the URL of a schema of its own, dropped when the test ends.
func Postgres(t testing.TB) string {
	base := need(t, EnvPostgres, "PostgreSQL")
	conn, err := pgx.Connect(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	schema := "t" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, base)
		if err != nil {
			return // a test that stops its server
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "search_path=" + schema
	return u.String()
}

// PostgresBin is the folder with the programs of PostgreSQL.
func PostgresBin(t testing.TB) string { return need(t, EnvPostgresBin, "PostgreSQL") }
