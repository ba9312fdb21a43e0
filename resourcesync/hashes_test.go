package resourcesync

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseHashes(t *testing.T) {
	const (
		md5  = "1584abdf8ebdc9802ac0c6a7402c03b6"
		sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
		sha2 = "854f61290e2e197a11bc91063afce22e43f8ccc655237050ace766adc68dc784"
	)
	for _, c := range []struct {
		in   string
		want Hashes
		err  string
	}{
		{"", Hashes{}, ""},
		{"md5:" + md5, Hashes{MD5: md5}, ""},
		{"md5:" + strings.ToUpper(md5), Hashes{MD5: md5}, ""},
		{" md5:" + md5 + "\n\t sha-256:" + sha2 + " sha-1:" + sha1 + " ", Hashes{MD5: md5, SHA256: sha2, SHA1: sha1}, ""},
		{"md5:Yx8m6CqWBJjKT5VBggoWeQ==", Hashes{MD5: "631f26e82a960498ca4f9541820a1679"}, ""},
		{"sha-512:abcd crc32:x", Hashes{Other: []string{"sha-512:abcd", "crc32:x"}}, ""},
		{"SHA256:" + sha2, Hashes{SHA256: sha2}, ""},
		{"md5:" + md5 + " md5:" + md5, Hashes{MD5: md5}, ""},
		{"md5:" + md5 + " md5:" + strings.Repeat("0", 32), Hashes{MD5: md5, Broken: []string{"md5:" + strings.Repeat("0", 32)}}, "twice"},
		{"md5:12 sha-1:" + sha1, Hashes{SHA1: sha1, Broken: []string{"md5:12"}}, "32 hex digits"},
		{"sha-256:f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj", Hashes{SHA256: ofBase64("f4OxZX/x/DFGFDgghgdfb6rtSx+iosjf6735432nklj")}, ""}, // of the specification
		{"sha-256:" + baseForm(sha2), Hashes{SHA256: sha2}, ""},
		{"sha-1:" + baseForm(sha1), Hashes{SHA1: sha1}, ""},
		{"sha-1:" + strings.TrimRight(baseForm(sha1), "="), Hashes{SHA1: sha1}, ""},
		{"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ urn:md5:" + md5, Hashes{SHA1: sha1, MD5: md5}, ""},                      // web archives
		{"sha256-" + baseForm(sha2), Hashes{SHA256: sha2}, ""},                                                          // integrity attributes
		{"SHA-256=" + baseForm(sha2) + ",md5=" + baseForm(md5), Hashes{SHA256: sha2, MD5: md5}, ""},                     // Digest (RFC 3230)
		{"sha-256=:" + baseForm(sha2) + ":, sha-512=:AAAA:", Hashes{SHA256: sha2, Other: []string{"sha-512:AAAA"}}, ""}, // RFC 9530
		{"ni:///sha-256;" + urlForm(sha2) + "?ct=text/plain", Hashes{SHA256: sha2}, ""},                                 // RFC 6920
		{"{SHA256}" + baseForm(sha2), Hashes{SHA256: sha2}, ""},
		{"sha-256:" + pairForm(sha2), Hashes{SHA256: sha2}, ""},
		{md5 + " " + strings.ToUpper(sha1) + "," + sha2, Hashes{MD5: md5, SHA1: sha1, SHA256: sha2}, ""},
		{baseForm(md5) + "; " + baseForm(sha1) + "\n" + baseForm(sha2), Hashes{MD5: md5, SHA1: sha1, SHA256: sha2}, ""},
		{`"` + md5 + `"`, Hashes{MD5: md5}, ""},
		{"md5: " + md5 + " sha-256 = " + sha2, Hashes{MD5: md5, SHA256: sha2}, ""},
		{"sha-256:-" + urlForm(sha2)[1:], Hashes{SHA256: ofBase64("+" + baseForm(sha2)[1:43])}, ""},
		{"md5:" + sha2, Hashes{Broken: []string{"md5:" + sha2}}, "32 hex digits"}, // contradicts itself
		{"sha-256:" + md5, Hashes{Broken: []string{"sha-256:" + md5}}, "64 hex digits"},
		{strings.TrimRight(baseForm(md5), "="), Hashes{Broken: []string{strings.TrimRight(baseForm(md5), "=")}}, "algorithm:hexdigest"}, // any word of that length
		{"md5: sha-1:" + sha1, Hashes{SHA1: sha1, Broken: []string{"md5:"}}, "algorithm:hexdigest"},
		{"nonsense", Hashes{Broken: []string{"nonsense"}}, "algorithm:hexdigest"},
		{"md5:", Hashes{Broken: []string{"md5:"}}, "algorithm:hexdigest"},
		{"md5:!!8m6CqWBJjKT5VBggoWeQ==", Hashes{Broken: []string{"md5:!!8m6CqWBJjKT5VBggoWeQ=="}}, "32 hex digits"},
	} {
		got, err := ParseHashes(c.in)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("ParseHashes(%q) = %+v, want %+v", c.in, got, c.want)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("ParseHashes(%q): %v, want an error with %q", c.in, err, c.err)
		}
		if err == nil {
			if again, err := ParseHashes(got.String()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("%q is written %q and read as %+v (%v)", c.in, got, again, err)
			}
		}
		if got.IsZero() != (strings.TrimSpace(c.in) == "") {
			t.Errorf("ParseHashes(%q).IsZero() = %v", c.in, got.IsZero())
		}
	}
}

func rawDigest(digest string) []byte {
	b, err := hex.DecodeString(digest)
	if err != nil {
		panic(err)
	}
	return b
}

func baseForm(digest string) string { return base64.StdEncoding.EncodeToString(rawDigest(digest)) }
func urlForm(digest string) string  { return base64.RawURLEncoding.EncodeToString(rawDigest(digest)) }
func pairForm(digest string) string {
	return strings.ReplaceAll(fmt.Sprintf("% X", rawDigest(digest)), " ", ":")
}

func ofBase64(s string) string {
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(b)
}

func FuzzHashes(f *testing.F) {
	f.Add("md5:1584abdf8ebdc9802ac0c6a7402c03b6 sha-1:x")
	f.Add("md5:Yx8m6CqWBJjKT5VBggoWeQ==")
	f.Add("ni:///sha-256;f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj?ct=text/plain, sha-256=:AA==:")
	f.Add(`{sha} "1584abdf8ebdc9802ac0c6a7402c03b6"; sha-512=x`)
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHashes(s)
		if err != nil {
			return
		}
		if again, err := ParseHashes(h.String()); err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("%q is written %q and read as %+v (%v)", s, h, again, err)
		}
	})
}

// Digests of a body are computed, checked and compared by their algorithms.
func TestHashesOf(t *testing.T) {
	body := []byte("a body")
	all := HashesOf(body, Hashes{MD5: "x", SHA1: "x", Other: []string{"crc32:1"}})
	if len(all.SHA256) != 64 || len(all.SHA1) != 40 || len(all.MD5) != 32 || len(all.Other) != 1 {
		t.Fatalf("%+v", all)
	}
	if h := HashesOf(body, Hashes{}); h.SHA256 != all.SHA256 || h.MD5+h.SHA1 != "" {
		t.Fatalf("%+v", h)
	}
	other := HashesOf([]byte("another"), all)
	for _, c := range []struct {
		name  string
		h     Hashes
		fails string
	}{
		{"none", Hashes{Other: []string{"crc32:2"}}, ""},
		{"all", all, ""},
		{"upper case", Hashes{SHA256: strings.ToUpper(all.SHA256)}, ""},
		{"sha-256", Hashes{SHA256: other.SHA256, MD5: other.MD5}, "sha-256 is " + all.SHA256 + ", promised was " + other.SHA256},
		{"sha-1", Hashes{SHA256: all.SHA256, SHA1: other.SHA1}, "sha-1 is " + all.SHA1},
		{"md5", Hashes{MD5: other.MD5}, "md5 is " + all.MD5},
	} {
		err := c.h.Check(body)
		if (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range []struct {
		a, b         Hashes
		equal, known bool
	}{
		{all, all, true, true},
		{Hashes{MD5: all.MD5}, Hashes{SHA1: all.SHA1}, false, false},
		{Hashes{MD5: all.MD5}, Hashes{MD5: strings.ToUpper(all.MD5), SHA1: all.SHA1}, true, true},
		{all, Hashes{SHA256: all.SHA256, MD5: other.MD5}, false, true},
		{Hashes{}, Hashes{}, false, false},
	} {
		if equal, known := c.a.Compare(c.b); equal != c.equal || known != c.known {
			t.Errorf("%+v, %+v: %t %t", c.a, c.b, equal, known)
		}
	}
}
