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
		"GET http:/us:pw@h/q":               "GET http:/...@h/q",
		"open us:pw@h//q":                   "open ...@h//q",
		"http://h/a@b and http://h:80/@me":  "http://h/a@b and http://h:80/@me",
		"sync mirror: mail a@b.example: no": "sync mirror: mail a@b.example: no",
	} {
		if got := MaskedText(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestMaskedSpellings: whatever somebody may have meant as an address with a password is masked, alone
// and in texts, once and again.
func TestMaskedSpellings(t *testing.T) {
	const secret = "s3kret"
	var users, hosts []string
	for _, colon := range []string{":", "%3A", "%3a", "%253A", "："} {
		for _, password := range []string{secret, "p@" + secret, "p/" + secret, secret + "/p", "7" + secret, "7" + secret + "/1", "p?" + secret, "p#" + secret, "p:" + secret, secret + "%zz", "p'" + secret, `p\` + secret, "%" + secret, "7%2F" + secret, "p=" + secret, "p://" + secret, "1234" + secret} {
			users = append(users, "us"+colon+password)
		}
	}
	users = append(users, ":"+secret, secret+":", "us:p%20"+secret, "us:p%22"+secret)
	for _, host := range []string{"127.0.0.1:1", "h.example", "localhost/q", "[::1]:80/q?a=b", "h:x/", "", "h/a@b"} {
		for _, at := range []string{"@", "%40", "%2540", "＠"} {
			hosts = append(hosts, at+host)
		}
	}
	n := 0
	try := func(address string) {
		n++
		for _, s := range []string{Masked(address), MaskedText(address), MaskedText("GET " + address + ": no such host"), MaskedText(fmt.Sprintf("sync: %q is no address", address)),
			MaskedText(fmt.Sprintf(`{"error":%q}`, fmt.Sprintf("parse %q: no", address))), MaskedText("error=" + address + " at=1"), MaskedText("http://h.example:80/a@b " + address)} {
			if strings.Contains(s, secret) {
				t.Fatalf("%s becomes %s", address, s)
			}
			if again := MaskedText(s); strings.Contains(again, secret) || len(again) > len(s) {
				t.Fatalf("%s becomes %s, and then %s", address, s, again)
			}
		}
	}
	for _, scheme := range []string{"http://", "https://", "HTTP://", "htp://", "http:/", "http:", "http:///", "http//", "http;//", "://", "//", "", `http:\\`, `http:\`, `\\`, `http:/\`,
		"http://http://", "http://http:/", "http://https//", "https://http:", "http:http://", "http%3A%2F%2F", "http%3a//", "http://h.example/q?url=", "http://h.example/?u=http%3A%2F%2F", "http://h.example:80/", "url:http://", "'http://", "view-source:http://", "s3://"} {
		for _, user := range users {
			try(scheme + user + hosts[(n*5+n/len(hosts))%len(hosts)]) // every host with others
		}
		if strings.Contains(scheme, "//") && !strings.HasSuffix(scheme, "=") && !strings.HasSuffix(scheme, "80/") { // a token in place of a user
			try(scheme + secret + "@h.example/q")
		}
	}
	for _, address := range []string{"http://us:p " + secret + "@h/", "http:/us:p " + secret + "@h/", `http://us:p"` + secret + "@h/", "us:p " + secret + "@h/", "http://us:p<" + secret + ">@h/"} {
		for _, s := range []string{Masked(address), MaskedText(fmt.Sprintf("read %q: no", address))} {
			if strings.Contains(s, secret) {
				t.Errorf("%s becomes %s", address, s)
			}
		}
	}
	t.Logf("%d spellings", n)
	for _, address := range []string{"http://h.example/@me", "http://h.example:80/a/@me?x=a@b", "https://h.example/q?mail=a@b.example", "a@b.example", "urn:x:y", "http://h.example/%40me", "http://h.example/a:b/c", "see a@b.example: no",
		"http://h.example:8080", "http://[::1]:80/@a", "the store at http://h.example/ and a@b.example"} {
		if Masked(address) != address || MaskedText(address) != address || MaskedText(fmt.Sprintf("%q: no", address)) != fmt.Sprintf("%q: no", address) {
			t.Errorf("%s becomes %s, %s, %s", address, Masked(address), MaskedText(address), MaskedText(fmt.Sprintf("%q: no", address)))
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
