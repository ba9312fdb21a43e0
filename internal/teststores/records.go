package teststores

import (
	"net"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
)

// EnvRecords is "postgres" for tests with their records in PostgreSQL. Otherwise they are in memory.
const EnvRecords = "RSBRIDGE_TEST_RECORDS"

// InPostgres tells whether Records are in PostgreSQL.
func InPostgres() bool { return os.Getenv(EnvRecords) == "postgres" }

// Records is an empty store for the records of a test. It is closed when the test ends.
func Records(t testing.TB) kv.Store {
	t.Helper()
	if !InPostgres() {
		return memkv.New()
	}
	return openRecords(t, Postgres(t))
}

func openRecords(t testing.TB, address string) kv.Store {
	t.Helper()
	// A test may open many of them: connections without work are given back.
	s, err := pgkv.Open(t.Context(), address+"&pool_max_conn_idle_time=1s&pool_health_check_period=1s", kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// CountedRecords are Records in PostgreSQL, and the round trips to it so far: its answers that came after a
// question.
func CountedRecords(t testing.TB) (kv.Store, *atomic.Int64) {
	t.Helper()
	Sequential(t)
	address, err := url.Parse(Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := address.Host
	address.Host = l.Addr().String()
	trips := &atomic.Int64{}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() }) // after the store is closed
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { countTrips(client, server, trips) })
		}
	})
	return openRecords(t, address.String()), trips
}

// countTrips passes the bytes of a connection on, until both sides have ended.
func countTrips(client net.Conn, server string, trips *atomic.Int64) {
	defer client.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	var asked atomic.Bool
	pass := func(into, from net.Conn, met func()) {
		defer into.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				met()
				if _, err := into.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(to, client, func() { asked.Store(true) }) })
	both.Go(func() {
		pass(client, to, func() {
			if asked.Swap(false) {
				trips.Add(1)
			}
		})
	})
	both.Wait()
}

// ExecPostgres runs statements in the schema of an address of Postgres.
func ExecPostgres(t testing.TB, address string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// RunInPostgres runs tests once more, with their Records in PostgreSQL.
func RunInPostgres(t *testing.T, tests ...func(*testing.T)) {
	Sequential(t)
	need(t, EnvPostgres, "PostgreSQL")
	t.Setenv(EnvRecords, "postgres")
	for _, test := range tests {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(name[strings.LastIndex(name, ".")+1:], test)
	}
}
