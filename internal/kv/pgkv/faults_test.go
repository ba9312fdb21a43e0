package pgkv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// side is a second pair of eyes on the database.
type side struct {
	t    *testing.T
	conn *pgx.Conn
}

func look(t *testing.T, url string) side {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return side{t, conn}
}

func (s side) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.conn.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s side) count(sql string) (n int) {
	s.t.Helper()
	if err := s.conn.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func put(s kv.Store, key, value string) error {
	b := s.Batch()
	defer b.Close()
	b.Set([]byte(key), []byte(value))
	return b.Commit(context.Background(), true)
}

func want(t *testing.T, s kv.Reader, key, value string) {
	t.Helper()
	if v, err := s.Get(t.Context(), []byte(key)); err != nil || string(v) != value {
		t.Errorf("%s = %q, %v; want %q", key, v, err, value)
	}
}

// TestLostConnections: connections die at any moment. Each commit takes place once, and no reading is half.
func TestLostConnections(t *testing.T) {
	base := teststores.Postgres(t)
	s := open(t, base+"&application_name="+base[len(base)-8:])
	defer s.Close()
	killer, next, done, killed := look(t, base), make(chan time.Duration), make(chan struct{}), 0
	go func() {
		defer close(done)
		for wait := range next {
			time.Sleep(wait) // so that connections of a real server die at various moments of a commit; no check waits for it
			n := 0
			if err := killer.conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1`, base[len(base)-8:]).Scan(&n); err != nil {
				t.Error(err)
				return
			}
			killed += n
		}
	}()
	const commits = 60
	for i := range commits {
		select {
		case next <- time.Duration(rand.IntN(4000)) * time.Microsecond:
		case <-done:
			t.FailNow()
		}
		b := s.Batch()
		for j := range 100 {
			b.Set(fmt.Appendf(nil, "k%02d", j), fmt.Append(nil, i))
		}
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		n := 0
		for p, err := range s.Scan(t.Context(), []byte("k"), []byte("l")) {
			if err != nil {
				t.Fatal(err)
			}
			if string(p.Value) != fmt.Sprint(i) {
				t.Fatalf("%s = %s after commit %d", p.Key, p.Value, i)
			}
			n++
		}
		if n != 100 {
			t.Fatalf("%d of 100 pairs were read", n)
		}
	}
	close(next)
	<-done
	if rev := killer.count(`SELECT rev FROM rsbridge_head`); rev != commits {
		t.Errorf("%d commits, and the head counts %d", commits, rev)
	}
	if killed < 20 {
		t.Errorf("only %d connections died", killed)
	}
}

// TestTakenOver: the right to write goes to one process at a time.
func TestTakenOver(t *testing.T) {
	defer pgkv.SetBeat(50 * time.Millisecond)()
	base := teststores.Postgres(t)
	eyes, a := look(t, base), open(t, base)
	if err := put(a, "k", "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := pgkv.Open(t.Context(), base, kv.OpenOptions{}); !errors.Is(err, kv.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("Open of a held store = %v", err)
	}
	reader, err := pgkv.Open(t.Context(), base, kv.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, reader, "k", "a")
	if err := put(reader, "k", "reader"); !errors.Is(err, pgkv.ErrReadOnly) {
		t.Errorf("Commit for reading = %v", err)
	}
	// a process that stands still is passed over, and writes no more when it goes on
	eyes.exec(`UPDATE rsbridge_head SET token = token + 1, holder = 'another one', last = gen_random_uuid(), until = '-infinity'`)
	for range 2 {
		if err := put(a, "k", "late"); !errors.Is(err, kv.ErrTakenOver) || !strings.Contains(err.Error(), "another one") {
			t.Errorf("Commit after a takeover = %v", err)
		}
	}
	b := open(t, base)
	want(t, b, "k", "a")
	if err := errors.Join(put(b, "k", "b"), a.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, reader, "k", "b")
	if err := errors.Join(put(b, "k", "c"), reader.Close(), b.Close()); err != nil { // Close of a took nothing from b
		t.Fatal(err)
	}
}

// TestHold: a process that the database does not hear waits, and goes on when nobody took over. After a takeover it ends.
func TestHold(t *testing.T) {
	defer pgkv.SetBeat(20 * time.Millisecond)()
	defer pgkv.SetLease(500 * time.Millisecond)()
	base := teststores.Postgres(t)
	eyes, s := look(t, base), open(t, base)
	defer s.Close()
	if err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := s.Leader(t.Context())
	if err != nil || !l.Leads || !strings.Contains(l.Name, fmt.Sprint(os.Getpid())) {
		t.Errorf("%+v, %v", l, err)
	}
	eyes.exec(`BEGIN`)
	eyes.exec(`LOCK TABLE rsbridge_head IN ACCESS EXCLUSIVE MODE`)
	waits := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := s.Hold(ctx)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return err != nil
	}
	for !waits() {
		if t.Context().Err() != nil {
			t.Fatal("an unheard process goes on for ever")
		}
	}
	eyes.exec(`COMMIT`)
	if err := s.Hold(t.Context()); err != nil {
		t.Errorf("heard again: %v", err)
	}
	select {
	case <-s.Lost():
		t.Error("nobody took over")
	default:
	}
	eyes.exec(`UPDATE rsbridge_head SET token = token + 1, holder = 'another one', last = gen_random_uuid(), until = 'infinity'`)
	<-s.Lost()
	if err := s.Hold(t.Context()); !errors.Is(err, kv.ErrTakenOver) || !strings.Contains(err.Error(), "another one") {
		t.Errorf("after a takeover: %v", err)
	}
}

// TestReaders: each reader has snapshots of its own. The one that has died holds nothing.
func TestReaders(t *testing.T) {
	defer pgkv.SetBeat(20 * time.Millisecond)()
	base := teststores.Postgres(t)
	eyes, s := look(t, base), open(t, base)
	defer s.Close()
	if err := put(s, "k", "1"); err != nil {
		t.Fatal(err)
	}
	var readers [2]*pgkv.Store
	for i := range readers {
		r, err := pgkv.Open(t.Context(), base, kv.OpenOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers[i] = r
	}
	first, second := readers[0].Snapshot(t.Context()), readers[1].Snapshot(t.Context())
	defer second.Close()
	want(t, first, "k", "1")
	if n := eyes.count(`SELECT count(DISTINCT token) FROM rsbridge_snapshot`); n != 2 {
		t.Errorf("two readers have %d owners of snapshots", n)
	}
	if err := readers[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := put(s, "k", "2"); err != nil {
		t.Fatal(err)
	}
	want(t, second, "k", "1")
	want(t, readers[1], "k", "2")
}

// TestLostCommits: the database went back to an earlier commit, as in a failover to a copy that lags.
func TestLostCommits(t *testing.T) {
	base := teststores.Postgres(t)
	eyes, s := look(t, base), open(t, base)
	defer s.Close()
	if err := put(s, "k", "1"); err != nil {
		t.Fatal(err)
	}
	eyes.exec(`CREATE TABLE copy_head AS SELECT * FROM rsbridge_head; CREATE TABLE copy_kv AS SELECT * FROM rsbridge_kv`)
	if err := put(s, "k", "2"); err != nil {
		t.Fatal(err)
	}
	eyes.exec(`TRUNCATE rsbridge_head, rsbridge_kv; INSERT INTO rsbridge_head SELECT * FROM copy_head; INSERT INTO rsbridge_kv SELECT * FROM copy_kv`)
	for range 2 {
		if err := put(s, "k", "3"); !errors.Is(err, kv.ErrLost) {
			t.Errorf("Commit = %v", err)
		}
	}
	want(t, s, "k", "1")
}

// TestLostCommitsAtRest: a process that writes nothing notices it too.
func TestLostCommitsAtRest(t *testing.T) {
	defer pgkv.SetBeat(20 * time.Millisecond)()
	base := teststores.Postgres(t)
	eyes, s := look(t, base), open(t, base)
	defer s.Close()
	for i := range 5 {
		if err := put(s, "k", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	before := eyes.count(`SELECT (extract(epoch FROM until) * 1000)::bigint FROM rsbridge_head`)
	for eyes.count(`SELECT (extract(epoch FROM until) * 1000)::bigint FROM rsbridge_head`) <= before { // a beat has seen them
		if t.Context().Err() != nil {
			t.Fatal("no beat")
		}
	}
	eyes.exec(`UPDATE rsbridge_head SET rev = rev - 1, last = gen_random_uuid()`)
	for s.Hold(t.Context()) == nil {
	}
	if err := s.Hold(t.Context()); !errors.Is(err, kv.ErrLost) {
		t.Errorf("Hold = %v", err)
	}
}

// TestPoints: a database has the commits of its past, by all leads, and none of another past with equal numbers. Only
// durable commits are noted.
func TestPoints(t *testing.T) {
	base := teststores.Postgres(t)
	eyes := look(t, base)
	var noted []kv.Point
	begin := func() *pgkv.Store {
		t.Helper()
		s, err := pgkv.Open(t.Context(), base, kv.OpenOptions{Noted: func(p kv.Point) error { noted = append(noted, p); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(s *pgkv.Store, sync bool) {
		t.Helper()
		b := s.Batch()
		defer b.Close()
		b.Set([]byte("k"), []byte("v"))
		if err := b.Commit(t.Context(), sync); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *pgkv.Store, what string, newest kv.Point, points map[kv.Point]bool) {
		t.Helper()
		for p, want := range points {
			if is, has, err := s.Newest(t.Context(), p); err != nil || has != want || is != newest {
				t.Errorf("%s: it has %v: %t, %v; the newest is %v, want %v", what, p, has, err, is, newest)
			}
		}
	}
	s := begin()
	check(s, "empty", kv.Point{}, map[kv.Point]bool{{}: true, {Lead: "no lead", Commit: 1}: false})
	write(s, true)
	write(s, false)
	first := noted[0]
	check(s, "first", first, map[kv.Point]bool{{}: true, first: true, {Lead: first.Lead, Commit: 3}: false})
	s.Close()
	eyes.exec(`CREATE TABLE copy_head AS SELECT * FROM rsbridge_head; CREATE TABLE copy_kv AS SELECT * FROM rsbridge_kv; CREATE TABLE copy_lead AS SELECT * FROM rsbridge_lead`)
	s = begin()
	write(s, true)
	second := noted[1]
	s.Close()
	eyes.exec(`TRUNCATE rsbridge_head, rsbridge_kv, rsbridge_lead; INSERT INTO rsbridge_head SELECT * FROM copy_head; INSERT INTO rsbridge_kv SELECT * FROM copy_kv; INSERT INTO rsbridge_lead SELECT * FROM copy_lead`)
	s = begin()
	defer s.Close()
	write(s, true)
	write(s, true)
	third := noted[3]
	if want := []kv.Point{{Lead: first.Lead, Commit: 1}, {Lead: second.Lead, Commit: 3}, {Lead: third.Lead, Commit: 3}, {Lead: third.Lead, Commit: 4}}; !slices.Equal(noted, want) {
		t.Errorf("noted %v, want %v", noted, want)
	}
	check(s, "set back", third, map[kv.Point]bool{first: true, second: false, third: true})
	if err := s.Adopt(t.Context(), second.Lead); err != nil {
		t.Fatal(err)
	}
	check(s, "adopted", kv.Point{Lead: third.Lead, Commit: 5}, map[kv.Point]bool{second: true, third: true, {Lead: first.Lead, Commit: 3}: false, {Lead: third.Lead, Commit: 6}: false})
}

// TestUnsyncedCommits: a restarted database has lost commits without sync. That loses nothing confirmed, and the store
// wants to be opened again.
func TestUnsyncedCommits(t *testing.T) {
	base := teststores.Postgres(t)
	eyes, s := look(t, base), open(t, base)
	defer s.Close()
	if err := put(s, "k", "1"); err != nil {
		t.Fatal(err)
	}
	eyes.exec(`CREATE TABLE copy_head AS SELECT * FROM rsbridge_head`)
	b := s.Batch()
	defer b.Close()
	b.Set([]byte("k"), []byte("2"))
	if err := b.Commit(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	eyes.exec(`TRUNCATE rsbridge_head; INSERT INTO rsbridge_head SELECT * FROM copy_head`)
	if err := put(s, "k", "3"); !errors.Is(err, kv.ErrUnsynced) {
		t.Errorf("Commit = %v", err)
	}
	<-s.Settled()
}

// TestUnnotedCommit: a commit that cannot be noted is no success, and ends all writing.
func TestUnnotedCommit(t *testing.T) {
	errNote := errors.New("no note")
	s, err := pgkv.Open(t.Context(), teststores.Postgres(t), kv.OpenOptions{Noted: func(kv.Point) error { return errNote }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := put(s, "k", "1"); !errors.Is(err, errNote) {
			t.Errorf("Commit = %v", err)
		}
	}
	if err := s.Hold(t.Context()); !errors.Is(err, errNote) {
		t.Errorf("Hold = %v", err)
	}
}

// TestSnapshots: one that the database has forgotten reads nothing more; what none needs goes; no session waits in
// a transaction.
func TestSnapshots(t *testing.T) {
	defer pgkv.SetBeat(20 * time.Millisecond)()
	base := teststores.Postgres(t)
	app := base[len(base)-8:]
	eyes, s := look(t, base), open(t, base+"&application_name="+app)
	defer s.Close()
	b := s.Batch()
	for i := range 3000 {
		b.Set(fmt.Appendf(nil, "%04d", i), make([]byte, 2000))
	}
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	kept, forgotten := s.Snapshot(t.Context()), s.Snapshot(t.Context())
	eyes.exec(`DELETE FROM rsbridge_snapshot WHERE id = (SELECT max(id) FROM rsbridge_snapshot)`)
	b.DeleteRange(nil, nil)
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, err := range kept.Scan(t.Context(), []byte("0500"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if string(p.Key) != fmt.Sprintf("%04d", 500+n) || len(p.Value) != 2000 {
			t.Fatalf("pair %d is %s with %d bytes", n, p.Key, len(p.Value))
		}
		if n++; n%500 == 0 {
			if idle := eyes.count(`SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND application_name = '` + app + `'`); idle > 0 {
				t.Errorf("%d sessions wait in a transaction", idle)
			}
		}
	}
	if n != 2500 {
		t.Errorf("%d of 2500 pairs", n)
	}
	if _, err := forgotten.Get(t.Context(), []byte("0001")); err == nil || errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a forgotten snapshot answers: %v", err)
	}
	for _, err := range forgotten.Scan(t.Context(), nil, nil) {
		if err == nil {
			t.Error("a forgotten snapshot answers")
		}
	}
	kept.Close()
	for began := time.Now(); eyes.count(`SELECT count(*) FROM rsbridge_kept`) > 0; {
		if time.Since(began) > time.Minute {
			t.Fatal("what no snapshot needs is kept")
		}
	}
}

// TestErrors: no error has the password, and each says what to do.
func TestErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens
	for url, word := range map[string]string{
		"postgres://u:secret@" + l.Addr().String() + "/d": "127.0.0.1",
		"postgres://u:secret@[::1/d":                      "postgres://USER@HOST",
		"postgres://u:secret@h:port/d":                    "postgres://USER@HOST",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := pgkv.Open(ctx, url, kv.OpenOptions{})
		cancel()
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), word) {
			t.Errorf("Open(%s) = %v", url, err)
		}
	}
	s := open(t, teststores.Postgres(t))
	defer s.Close()
	if err := put(s, strings.Repeat("k", pgkv.Longest+1), ""); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("Commit of a long key = %v", err)
	}
	random := make([]byte, pgkv.Longest) // the index does not make it shorter
	for i, x := uint32(0), uint32(1); int(i) < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	if err := put(s, string(random), "v"); err != nil {
		t.Error(err)
	}
	want(t, s, string(random), "v")
}

// TestRestart: a server dies and comes back while commits pass.
func TestRestart(t *testing.T) {
	bin, dir := teststores.PostgresBin(t), t.TempDir()
	as := func(program string, args ...string) {
		t.Helper()
		command := append([]string{filepath.Join(bin, program)}, args...)
		if os.Getuid() == 0 {
			command = append([]string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"}, command...)
		}
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
	}
	if os.Getuid() == 0 {
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			os.Chmod(d, 0o755)
		}
		if out, err := exec.Command("chown", "nobody", dir).CombinedOutput(); err != nil {
			t.Fatalf("chown: %v: %s", err, out)
		}
	}
	port, err := teststores.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	as("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
	control := func(args ...string) {
		t.Helper()
		as("pg_ctl", append([]string{"-D", data, "-w", "-s", "-l", filepath.Join(dir, "log"), "-o", "-h 127.0.0.1 -k '' -p " + port}, args...)...)
	}
	control("start")
	t.Cleanup(func() { control("-m", "immediate", "stop") })
	var noted kv.Point // of commits in order, then of this test
	s, err := pgkv.Open(t.Context(), "postgres://postgres@127.0.0.1:"+port+"/postgres", kv.OpenOptions{Noted: func(p kv.Point) error { noted = p; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan int)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := put(s, fmt.Sprintf("%06d", n), fmt.Sprint(n)); err != nil {
				t.Error(err)
				break
			}
		}
		done <- n
	}()
	control("-m", "immediate", "restart")
	end()
	n, found := <-done, 0
	for _, err := range s.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found != n || n == 0 {
		t.Errorf("%d commits were confirmed, and %d are there", n, found)
	}
	if newest, has, err := s.Newest(t.Context(), noted); err != nil || !has || newest != noted {
		t.Errorf("the newest commit is %v, %t, %v; noted %v", newest, has, err, noted)
	}
}
