package check

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// faulty are the official examples that break rules.
var faulty = map[int]string{1: "E30", 2: "E30", 3: "E30", 4: "E30 W71", 5: "E30", 8: "E30", 27: "E47"}

func exampleNumber(t *testing.T, path string) int {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(path), ".xml")
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '_')+1:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOfficialExamplesValidate(t *testing.T) {
	for _, path := range sharedFiles(t, "fixtures/spec-1.1") {
		n := exampleNumber(t, path)
		_, findings, err := Validate(bytes.NewReader(read(t, path)), ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, f := range findings {
			if key := f.Severity + strconv.Itoa(f.Rule); f.Severity != SeverityInfo && !seen[key] {
				seen[key] = true
				if !strings.Contains(" "+faulty[n]+" ", " "+key+" ") {
					t.Errorf("example %d: %s", n, f)
				}
			}
		}
		for want := range strings.FieldsSeq(faulty[n]) {
			if !seen[want] {
				t.Errorf("example %d: %s was not found", n, want)
			}
		}
	}
}

// The examples of 0.9 keep to 0.9, but for the hashes of one, and not to 1.1. What
// these versions say of times is told apart.
func TestVersionsOfTheSpecification(t *testing.T) {
	n := 0
	for _, path := range sharedFiles(t, "fixtures/spec-0.9") {
		doc := read(t, path)
		if bytes.Contains(doc, []byte("<html")) {
			continue
		}
		n++
		faults := func(version string) (out []Finding) {
			_, all, err := Validate(bytes.NewReader(doc), ValidateOptions{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				if f.Severity == SeverityError && f.Rule != 47 || f.Rule == 11 {
					out = append(out, f)
				}
			}
			return out
		}
		if got := faults("0.9"); len(got) > 0 {
			t.Errorf("%s: %v", filepath.Base(path), got)
		}
		if capability := bytes.Contains(doc, []byte(`from="`)); capability && len(faults("1.1")) == 0 {
			t.Errorf("%s keeps to 1.1 too", filepath.Base(path))
		}
	}
	if n < 30 {
		t.Errorf("%d examples of 0.9", n)
	}
	list := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:ln rel="up" href="http://src.example/c"/>` +
		`<rs:md capability="changelist" from="2024-05-01T00:00:00Z"/><url><loc>http://src.example/a</loc>%s<rs:md change="updated"/></url></urlset>`
	for version, want := range map[string]string{"0.9": "E20 E91", "1.0": "E91", "1.1": "I91"} {
		_, all, err := Validate(strings.NewReader(strings.ReplaceAll(list, "%s", "")), ValidateOptions{Version: version})
		var got []string
		for _, f := range all {
			got = append(got, f.Severity+strconv.Itoa(f.Rule))
		}
		slices.SortFunc(got, func(a, b string) int { return strings.Compare(a[1:], b[1:]) })
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v %v, want %s", version, got, err, want)
		}
	}
}
