package webguard

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestMaskedText(t *testing.T) {
	for in, want := range map[string]string{
		"GET http://us:pw@h/q: no":          "GET http://...@h/q: no",
		"GET http://us@h/q":                 "GET http://...@h/q",
		`"http://us:p/w@h/q"`:               `"http://...@h/q"`,
		"http://us:7a/w@h/q":                "http://...@h/q",
		"http://us:p@w@h/q":                 "http://...@h/q",
		"GET http:/us:pw@h/q":               "GET ...@h/q",
		"open us:pw@h//q":                   "open ...@h//q",
		"http://h/a@b and http://h:80/@me":  "http://h/a@b and http://h:80/@me",
		"sync mirror: mail a@b.example: no": "sync mirror: mail a@b.example: no",
	} {
		if got := MaskedText(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestMaskedError: neither the error nor what callers take out of it shows a password.
func TestMaskedError(t *testing.T) {
	err := MaskedError(&url.Error{Op: "Get", URL: "http://us:pw@h/", Err: errors.New(`parse "http://us:pw@h/%zz"`)})
	u, ok := errors.AsType[*url.Error](err)
	if !ok || strings.Contains(err.Error()+u.Error()+u.Err.Error()+u.URL, "pw") {
		t.Error(err, u)
	}
	badPort := strings.Join([]string{"http://us:7pw", "@h/"}, "/")
	_, err = url.Parse(badPort)
	if err = MaskedError(fmt.Errorf("failed to parse Location header %q: %w", badPort, err)); strings.Contains(err.Error(), "pw") {
		t.Error(err)
	}
	for _, a := range []string{"http://us:pw@h:x/", "http://us:7pw/@h", "http://us:pw%zz@h/", "http://us:pw@[::1/"} {
		if _, err := Parse(a); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", a, err)
		}
	}
}
