package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/access"
)

func create(t *testing.T, u *access.Users, name string, role access.Role) string {
	t.Helper()
	secret, err := u.Create(access.Token{Name: name, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestTokens: a token made by one process opens the door of another one at once, and no more after
// it was revoked. The folder does not tell its secret.
func TestTokens(t *testing.T) {
	dir := access.Folder(t.TempDir())
	daemon, command := access.Open(dir, ""), access.Open(dir, "")
	if daemon.Closed() {
		t.Error("it is closed without a token")
	}
	if _, err := command.Create(access.Token{Name: "web", Role: access.Reader, Sets: []string{"books"}}); err != nil {
		t.Fatal(err)
	}
	if daemon.Closed() {
		t.Error("the token of a reader closes the administration")
	}
	secret := create(t, command, "ann", access.Operate)
	user, ok := daemon.ByToken(secret)
	if !ok || user.Name != "ann" || user.Role != access.Operate || !daemon.Closed() {
		t.Fatalf("%+v %t", user, ok)
	}
	for _, wrong := range []string{"", secret[:len(secret)-1], secret + "x", strings.Replace(secret, "_", "-", 1), strings.ToUpper(secret), "rsb_local_", "rsb_local_00"} {
		if _, ok := daemon.ByToken(wrong); ok {
			t.Errorf("%q is taken", wrong)
		}
	}
	if _, err := command.Create(access.Token{Name: "ann", Role: access.Read}); !errors.Is(err, access.ErrTaken) {
		t.Error(err)
	}
	if _, err := command.Create(access.Token{Name: "a/b", Role: access.Read}); !errors.Is(err, access.ErrName) {
		t.Error(err)
	}
	if user, ok := daemon.ByToken(access.Local(dir)); !ok || user.Role != access.Admin {
		t.Errorf("a command beside the daemon: %+v %t", user, ok)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
	if err != nil || strings.Contains(string(raw), secret[len("rsb_xxxxxxxxxxxx_"):]) {
		t.Errorf("the file tells the secret: %v", err)
	}
	for _, name := range []string{"tokens.json", "key"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if err := command.Revoke("ann"); err != nil {
		t.Fatal(err)
	}
	if _, ok := daemon.ByToken(secret); ok {
		t.Error("a revoked token is taken")
	}
	if err := command.Revoke("ann"); !errors.Is(err, access.ErrUnknown) {
		t.Error(err)
	}
	if list, err := daemon.List(); err != nil || len(list) != 1 || list[0].Name != "web" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestDamagedTokens: a damaged file, or one of a newer program, lets nobody in, and opens nothing.
func TestDamagedTokens(t *testing.T) {
	for _, text := range []string{"{", `{"version": 2, "tokens": []}`} {
		dir := t.TempDir()
		u := access.Open(dir, "configured")
		secret := create(t, u, "ann", access.Admin)
		if err := os.WriteFile(filepath.Join(dir, "tokens.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := u.ByToken(secret); ok || u.Fault() == nil {
			t.Errorf("%s: the token is taken, fault %v", text, u.Fault())
		}
		if _, ok := u.ByToken("configured"); !ok {
			t.Errorf("%s: the configured token is not taken", text)
		}
		if !access.Open(dir, "").Closed() {
			t.Errorf("%s: the administration is open", text)
		}
		if _, err := u.Create(access.Token{Name: "bob", Role: access.Read}); err == nil {
			t.Errorf("%s: it was overwritten", text)
		}
	}
}

// TestTogether: processes make tokens at the same time, and none is lost.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := access.Open(dir, "").Create(access.Token{Name: fmt.Sprint("t", i), Role: access.Read}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := access.Open(dir, "").List(); err != nil || len(list) != 20 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

// TestSessions: a session is of one token. It ends with the token, with the time and by leaving, and
// a changed cookie is none.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	u := access.Open(dir, "configured")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	session := func(secret string) string {
		t.Helper()
		user, ok := u.ByToken(secret)
		if !ok {
			t.Fatal("no user")
		}
		cookie, err := u.Session(user, now)
		if err != nil {
			t.Fatal(err)
		}
		return cookie
	}
	ann := session(create(t, u, "ann", access.Read))
	configured := session("configured")
	is := func(u *access.Users, cookie string, at time.Time, name string) {
		t.Helper()
		user, _, ok := u.BySession(cookie, at)
		if ok != (name != "") || user.Name != name && ok {
			t.Errorf("%+v %t, want %q", user, ok, name)
		}
	}
	is(access.Open(dir, "configured"), ann, now, "ann") // after a restart
	is(u, configured, now, "token_file")
	is(access.Open(dir, "another"), configured, now, "")
	is(access.Open(t.TempDir(), "configured"), configured, now, "")
	is(u, ann, now.Add(access.SessionTime), "")
	is(u, ann[:len(ann)-1], now, "")
	is(u, "x"+ann, now, "")
	is(u, "", now, "")
	late := now.Add(access.SessionTime/2 + time.Second)
	_, longer, _ := u.BySession(configured, late)
	is(u, longer, now.Add(access.SessionTime), "token_file")
	other := session("configured")
	if err := u.Leave(longer, late); err != nil {
		t.Fatal(err)
	}
	for _, u := range []*access.Users{u, access.Open(dir, "configured")} { // here, and after a restart
		is(u, longer, late, "")
		is(u, configured, late, "")
		is(u, other, late, "token_file")
	}
	if err := u.Revoke("ann"); err != nil {
		t.Fatal(err)
	}
	is(u, ann, now, "")
}

// TestLeft: a damaged file of left sessions, or one of a newer program, ends all sessions. With too
// many left sessions all users log in again.
func TestLeft(t *testing.T) {
	dir := t.TempDir()
	u := access.Open(dir, "configured")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	user, _ := u.ByToken("configured")
	session := func(at time.Time) string {
		t.Helper()
		cookie, err := u.Session(user, at)
		if err != nil {
			t.Fatal(err)
		}
		return cookie
	}
	one, other := session(now), session(now)
	sessions := map[string]int64{}
	for i := range 10_000 {
		sessions[fmt.Sprint(i)] = now.Add(time.Hour).Unix()
	}
	many, err := json.Marshal(map[string]any{"version": 1, "sessions": sessions})
	if err != nil {
		t.Fatal(err)
	}
	for text, open := range map[string]bool{"{": false, `{"version": 2}`: false, `{"version": 1}`: true, string(many): true} {
		if err := os.WriteFile(filepath.Join(dir, "left.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		u := access.Open(dir, "configured")
		if _, _, ok := u.BySession(one, now); ok != open || (u.Fault() == nil) != open {
			t.Errorf("%.20s: %t, fault %v", text, ok, u.Fault())
		}
		if !open {
			continue
		}
		if err := u.Leave(one, now); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := u.BySession(one, now); ok {
			t.Errorf("%.20s: the left session is taken", text)
		}
		if _, _, ok := u.BySession(other, now); ok != (text != string(many)) {
			t.Errorf("%.20s: the other session: %t", text, ok)
		}
		if _, _, ok := u.BySession(session(now.Add(time.Minute)), now.Add(time.Minute)); !ok {
			t.Errorf("%.20s: no session begins afterwards", text)
		}
	}
}

// TestActions: the log has its newest lines in order, in pages, within its bound, also after a crash
// in the midst of a line.
func TestActions(t *testing.T) {
	dir := t.TempDir()
	l := access.OpenLog(dir)
	long := strings.Repeat("é", 1000)
	for i := range 2000 {
		if i == 1000 {
			f, err := os.OpenFile(filepath.Join(dir, "actions.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"id":99999,"who`); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := access.OpenLog(dir).Add(access.Action{Who: "ann", Action: long, Detail: long, From: long, Status: i}); err != nil {
			t.Fatal(err)
		}
	}
	var got []access.Action
	for next := uint64(0); ; {
		page, more, err := l.Read(next, 100)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page...)
		if next = more; next == 0 {
			break
		}
	}
	for i, a := range got {
		if a.ID != uint64(2000-i) || a.Status != 1999-i || len(a.Detail) > 600 {
			t.Fatalf("line %d: %+v", i, a)
		}
	}
	if len(got) < 500 || len(got) == 2000 {
		t.Errorf("%d actions are kept", len(got))
	}
	var size int64
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		st, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += st.Size()
	}
	if size > 2<<20+10_000 {
		t.Errorf("%d bytes", size)
	}
}
