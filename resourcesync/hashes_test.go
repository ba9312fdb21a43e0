package resourcesync

import (
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
		{"md5:" + md5 + " md5:" + strings.Repeat("0", 32), Hashes{MD5: md5, Other: []string{"md5:" + strings.Repeat("0", 32)}}, "twice"},
		{"md5:12 sha-1:" + sha1, Hashes{SHA1: sha1, Other: []string{"md5:12"}}, "32 hex digits"},
		{"sha-256:f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj", Hashes{Other: []string{"sha-256:f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj"}}, "64 hex digits"},
		{"nonsense", Hashes{Other: []string{"nonsense"}}, "algorithm:hexdigest"},
		{"md5:", Hashes{Other: []string{"md5:"}}, "algorithm:hexdigest"},
		{"md5:!!8m6CqWBJjKT5VBggoWeQ==", Hashes{Other: []string{"md5:!!8m6CqWBJjKT5VBggoWeQ=="}}, "32 hex digits"},
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

func FuzzHashes(f *testing.F) {
	f.Add("md5:1584abdf8ebdc9802ac0c6a7402c03b6 sha-1:x")
	f.Add("md5:Yx8m6CqWBJjKT5VBggoWeQ==")
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
