package naming

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

const dbp = "http://dbpedia.org/resource/"

func TestEncodeName(t *testing.T) {
	tests := []struct{ entity, prefix, want string }{
		{dbp + "Berlin", dbp, "Berlin"},
		{dbp + "Category:Cities_in_Germany", dbp, "Category~3ACities_in_Germany"},
		{dbp + "12:30", dbp, "12:30"},
		{dbp + "AC/DC", dbp, "AC/DC"},
		{dbp + "Zürich", dbp, "Z~C3~BCrich"},
		{dbp + "a~b", dbp, "a~7Eb"},
		{dbp + "a%20b", dbp, "a~2520b"},
		{dbp + "x.html", dbp, "x~2Ehtml"},
		{dbp + "x.nt/y", dbp, "x~2Ent/y"},
		{dbp + "x.y", dbp, "x.y"},
		{dbp + "../..", dbp, "~2E~2E/~2E~2E"},
		{dbp + "a//b/", dbp, "a/~2Fb~2F"},
		{dbp + "/", dbp, "~2F"},
		{dbp, dbp, "http:/~2Fdbpedia.org/resource~2F"},
		{"https://schema.org/Person", "", "https:/~2Fschema.org/Person"},
		{"urn:rsbridge:component:ab-0", dbp, "urn:rsbridge:component:ab-0"},
		{dbp + "urn:rsbridge:component:ab-0", dbp, "urn~3Arsbridge:component:ab-0"},
		{dbp + "x+y:z", dbp, "x~2By~3Az"},
		{"no scheme", dbp, "~~no~20scheme"},
		{"", dbp, "~~"},
		{"", "", "~~"},
		{"/a", "", "~2Fa"},
	}
	for _, tt := range tests {
		got := Encode(tt.entity, tt.prefix)
		if got != tt.want {
			t.Errorf("Encode(%q, %q) = %q, want %q", tt.entity, tt.prefix, got, tt.want)
		}
		back, err := Decode(got, tt.prefix)
		if err != nil || back != tt.entity {
			t.Errorf("Decode(%q, %q) = %q, %v, want %q", got, tt.prefix, back, err, tt.entity)
		}
	}
}

// fits tells whether a NAME can be a file, with a suffix.
func fits(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		if len(segment) > maxSegment {
			return false
		}
	}
	return len(name) <= maxName
}

func TestLongName(t *testing.T) {
	var beginnings []string
	for n := range 300 {
		beginnings = append(beginnings, strings.Repeat("x", n), strings.Repeat("segment/", 100)+strings.Repeat("x", n))
	}
	for n := 900; n < 1100; n++ {
		beginnings = append(beginnings, strings.Repeat("y/", n/2)+strings.Repeat("x", n%2), strings.Repeat("y", 200)+"/"+strings.Repeat("z", n))
	}
	hashedOnes := 0
	for _, beginning := range beginnings {
		for _, tail := range []string{"a", "é", " ", "/b"} {
			e := dbp + beginning + strings.Repeat(tail, 40)
			name := Encode(e, dbp)
			if !fits(name) || fits(fullName(e, dbp)) != (name == fullName(e, dbp)) {
				t.Fatalf("%d bytes: %s", len(name), name)
			}
			back, err := Decode(name, dbp)
			key, hashed := Hashed(name)
			if hashed {
				hashedOnes++
			}
			switch {
			case hashed != errors.Is(err, ErrHashed):
				t.Fatalf("Hashed(%q) = %v, Decode says %v", name, hashed, err)
			case hashed && key != rdfres.EntityKey(e):
				t.Fatalf("Hashed(%q) = %s", name, key)
			case !hashed && back != e:
				t.Fatalf("Decode(%q) = %q, %v", name, back, err)
			}
		}
	}
	if all := 4 * len(beginnings); hashedOnes < all/4 || hashedOnes > all*9/10 {
		t.Fatalf("%d of %d names end in a hash", hashedOnes, all)
	}
}

func TestDecodeNameRefuses(t *testing.T) {
	for _, name := range []string{"", "~", "~4", "~7e", "~41", "a//b", "../x", "a/", "/a", "x.html", "a b", "a%20b", "~~http:x", "~-" + strings.Repeat("0", 64), "Z\xfc"} {
		if e, err := Decode(name, dbp); err == nil {
			t.Errorf("Decode(%q) = %q, want an error", name, e)
		}
	}
}

func TestCheckSetName(t *testing.T) {
	for _, ok := range []string{"data", "a", "schema.org", "A-b_c.9", "1"} {
		if err := CheckSet(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".well-known", "about", "Stores", "a/b", "a b", "a.xml", "robots.txt", "é", strings.Repeat("a", 101), "a."} {
		if CheckSet(bad) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// It is told why a name is none.
func TestCheckSetNameTells(t *testing.T) {
	for name, why := range map[string]string{"about": "address of the site", "con": "reserved on Windows", "AUX": "reserved on Windows", "a.": "ends in a dot"} {
		if err := CheckSet(name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", name, err, why)
		}
	}
}

// FuzzName: every entity has a name that is a clean path, survives an address
// and leads back to it.
func FuzzName(f *testing.F) {
	f.Add(dbp+"Berlin", dbp)
	f.Add("a//./..//x.html/~", "")
	f.Add("http://a/http://b", "http://a/")
	f.Add(dbp+strings.Repeat("й", 300), dbp)
	f.Fuzz(func(t *testing.T, entity, prefix string) {
		name := Encode(entity, prefix)
		if !fits(name) {
			t.Fatalf("Encode(%q, %q) = %q is too long", entity, prefix, name)
		}
		full := "/s/r/" + name + ".jsonld"
		if path.Clean(full) != full {
			t.Fatalf("Encode(%q, %q) = %q is no clean path", entity, prefix, name)
		}
		u, err := url.Parse("http://h" + full)
		if err != nil || u.Path != full || u.EscapedPath() != full || u.RawQuery != "" {
			t.Fatalf("Encode(%q, %q) = %q does not survive an address: %v", entity, prefix, name, err)
		}
		for _, x := range Suffixes {
			if strings.HasSuffix(name, x) {
				t.Fatalf("Encode(%q, %q) = %q ends in a suffix", entity, prefix, name)
			}
		}
		back, err := Decode(name, prefix)
		if errors.Is(err, ErrHashed) {
			if key, ok := Hashed(name); !ok || key != rdfres.EntityKey(entity) {
				t.Fatalf("Encode(%q, %q) = %q has another key", entity, prefix, name)
			}
			return
		}
		if err != nil || back != entity {
			t.Fatalf("Decode(%q, %q) = %q, %v, want %q", name, prefix, back, err, entity)
		}
	})
}

// FuzzDecodeName: what is accepted is the name of exactly that entity.
func FuzzDecodeName(f *testing.F) {
	f.Add("Berlin", dbp)
	f.Add("~~x", "http://a/")
	f.Fuzz(func(t *testing.T, name, prefix string) {
		entity, err := Decode(name, prefix)
		if err == nil && Encode(entity, prefix) != name {
			t.Fatalf("Decode(%q, %q) = %q, whose name is %q", name, prefix, entity, Encode(entity, prefix))
		}
	})
}
