package resourcesync

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Each fixture is one rule of the tolerant reader; what is
// read of it stands in the file beside it.
func TestDialects(t *testing.T) {
	files, err := filepath.Glob("testdata/dialects/*.xml")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".xml")
		t.Run(name, func(t *testing.T) {
			r, entries, err := readAll(string(read(t, path)), ReaderOptions{BaseURL: "http://src.example/set1/here.xml", Expect: ResourceList})
			if strings.HasPrefix(name, "refused") != errors.Is(err, ErrDialect) {
				t.Errorf("error %v", err)
			}
			golden(t, filepath.Join("dialects", name+".golden"), []byte(dump(r, entries, err)))
		})
	}
}

// Strict reading takes 1.1 and nothing else.
func TestStrictRefusesOtherDialects(t *testing.T) {
	files, _ := filepath.Glob("testdata/dialects/*.xml")
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".xml")
		_, _, err := readAll(string(read(t, path)), ReaderOptions{Strict: true})
		valid := strings.HasPrefix(name, "1")
		switch name { // old, but nothing in them is against 1.1
		case "05-capabilitylist-index", "09-changelist-without-links", "capabilitylist-with-modified":
			valid = true
		}
		if (err == nil) != valid {
			t.Errorf("%s: %v, want an error: %v", name, err, !valid)
		}
	}
}

// A document without links takes its dialect from the one that led to it.
func TestInheritedDialect(t *testing.T) {
	doc := string(read(t, "testdata/dialects/09-changelist-without-links.xml"))
	for _, c := range []struct {
		dialect string
		legacy  bool
		closed  bool
	}{{"", false, false}, {Dialect09, true, false}, {Dialect05, true, false}, {Dialect10, false, true}, {Dialect11, false, true}} {
		r, _, err := readAll(doc, ReaderOptions{Dialect: c.dialect})
		if err != nil {
			t.Fatal(err)
		}
		if h := r.Head(); h.LegacyLinks != c.legacy || h.Closed() != c.closed {
			t.Errorf("led to by %q: legacy %v, closed %v; want %v, %v", c.dialect, h.LegacyLinks, h.Closed(), c.legacy, c.closed)
		}
	}
}

func TestNormalizeType(t *testing.T) {
	for in, want := range map[string]string{
		"text/turtle; charset=utf-8": "text/turtle", " Application/JSON-Patch ": "application/json-patch+json",
		"application/json-patch+json": "application/json-patch+json", "": "",
	} {
		if got := NormalizeType(in); got != want {
			t.Errorf("NormalizeType(%q) = %q, want %q", in, got, want)
		}
	}
}
