package check

import (
	"bytes"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// FuzzValidate: no input makes the validator panic, and it finds an error in
// everything that the strict reader refuses for its XML.
func FuzzValidate(f *testing.F) {
	files, _ := filepath.Glob("../testdata/dialects/*.xml")
	for _, path := range files {
		f.Add(read(f, path))
	}
	f.Add([]byte(openList + "<url><loc>http://src.example/a</loc></url></urlset>"))
	f.Add([]byte("<\xc3\xa9 \xc3\xbc='\xc3\xb6'/>"))
	offline := offlineRules(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		n := 0
		_, findings, err := Validate(bytes.NewReader(doc), ValidateOptions{Location: "http://src.example/x", Now: at("2024-05-01T00:00:00Z"), MaxPerRule: 3,
			Entry: func(*resourcesync.Head, *resourcesync.Entry) error { n++; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		failed := false
		for _, f := range findings {
			failed = failed || f.Severity == SeverityError
			if !offline[strconv.Itoa(f.Rule)] {
				t.Fatalf("finding of no rule: %s", f)
			}
		}
		if _, entries, err := readAll(string(doc), resourcesync.ReaderOptions{Strict: true}); err != nil && !failed {
			if _, _, lenient := readAll(string(doc), resourcesync.ReaderOptions{}); lenient != nil {
				t.Fatalf("the reader says %v after %d entries, the validator found nothing", err, len(entries))
			}
		}
	})
}
