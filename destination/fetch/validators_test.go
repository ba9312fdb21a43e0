package fetch

import (
	"net/http"
	"testing"
)

// TestValidators holds that a document written in the seconds of its answer is
// fetched again: what is written twice in one second keeps its Last-Modified,
// and with many servers its entity tag.
func TestValidators(t *testing.T) {
	const then, soon, later = "Sat, 21 Nov 2026 10:00:00 GMT", "Sat, 21 Nov 2026 10:00:01 GMT", "Sat, 21 Nov 2026 10:00:02 GMT"
	for _, c := range []struct {
		name, modified, date, tag, wantTag, wantModified string
	}{
		{"old enough", then, later, `"a"`, `"a"`, then},
		{"of the same second", then, then, `"a"`, "", ""},
		{"of the second before", then, soon, `"a"`, "", ""},
		{"from the future", later, then, `"a"`, "", ""},
		{"no date", then, "", `"a"`, "", ""},
		{"a tag alone", "", then, `"a"`, `"a"`, ""},
		{"a wrong time", "yesterday", then, `"a"`, `"a"`, ""},
		{"nothing", "", then, "", "", ""},
	} {
		d := &Body{Header: http.Header{"Last-Modified": {c.modified}, "Date": {c.date}, "Etag": {c.tag}}}
		if d.ETag() != c.wantTag || d.Modified() != c.wantModified {
			t.Errorf("%s: etag %q, modified %q, want %q, %q", c.name, d.ETag(), d.Modified(), c.wantTag, c.wantModified)
		}
	}
}
