package position

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestSealed: a report is read as it was written; any other bytes are refused.
func TestSealed(t *testing.T) {
	key, err := KeyOf(make([]byte, 32), "copy")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := KeyOf(make([]byte, 32), "another"); err != nil || Name(other) == Name(key) {
		t.Errorf("two mirrors of a state have the key %s, %v", Name(key), err)
	}
	seal := func(mirror string, pending uint64) []byte {
		raw, err := Seal(Report{To: "http://source.example/data/notify/position", Mirror: mirror, Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Sequence: 7, Pending: pending, InSync: true}, key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	raw := seal("copy", 2)
	got, by, err := Open(raw)
	if err != nil || by != Name(key) || by.Check() != nil || got.Sequence != 7 || got.Pending != 2 || !got.InSync || got.Mirror != "copy" {
		t.Fatalf("%+v by %s, %v", got, by, err)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, body := range map[string]string{
		"another position": strings.Replace(string(raw), `"sequence":7`, `"sequence":8`, 1),
		"another key":      strings.Replace(string(raw), string(Name(key)), string(Name(stranger)), 1),
		"no signature":     string(raw[:strings.Index(string(raw), `,"signature"`)]) + "}",
	} {
		if _, _, err := Open([]byte(body)); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v, want %v", what, err, ErrForged)
		}
	}
	for _, body := range []string{"", "{}", "[]", "null", string(raw) + "{}", `{"report":1,"key":"AA","signature":""}`, strings.Replace(string(raw), `{"report"`, `{"more":1,"report"`, 1)} {
		if _, _, err := Open([]byte(body)); err == nil {
			t.Errorf("%.50q is a report", body)
		}
	}
	broken := Name(key)[:5] + "\n" + Name(key)[5:] // the decoder of base64 passes over it
	if err := broken.Check(); err == nil {
		t.Errorf("%q is another key", broken)
	}
	if _, _, err := Open(seal("copy", 1<<53+1)); err == nil {
		t.Error("a number that wraps around is taken")
	}
	for _, name := range []string{"", strings.Repeat("x", 65), "two\nlines", "\x1b[2J", "\u202etxt.exe"} {
		if _, _, err := Open(seal(name, 2)); err == nil {
			t.Errorf("a mirror is called %q", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key, err := KeyOf(make([]byte, 32), "copy")
	if err != nil {
		f.Fatal(err)
	}
	raw, err := Seal(Report{Mirror: "copy"}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, by, err := Open(body)
		if err != nil {
			return
		}
		if by.Check() != nil || !json.Valid(body) || checkName(r.Mirror) != nil {
			t.Errorf("%q is a report", body)
		}
	})
}
