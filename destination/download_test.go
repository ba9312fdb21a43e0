package destination

import (
	"net/http"
	"testing"
	"time"
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
		d := &download{header: http.Header{"Last-Modified": {c.modified}, "Date": {c.date}, "Etag": {c.tag}}}
		if d.etag() != c.wantTag || d.modified() != c.wantModified {
			t.Errorf("%s: etag %q, modified %q, want %q, %q", c.name, d.etag(), d.modified(), c.wantTag, c.wantModified)
		}
	}
}

// A list is told by its time alone only when that cannot stand for another state of the
// source: a day stands for all of it.
func TestSettled(t *testing.T) {
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		at, answered string
		settled      bool
	}{
		{"2026-02-01T10:00:07Z", "2026-02-01T10:00:08Z", false},
		{"2026-02-01T10:00:07Z", "2026-02-01T10:00:09Z", true},
		{"2026-02-01T10:07:00Z", "2026-02-01T10:07:30Z", false},
		{"2026-02-01T10:07:00Z", "2026-02-01T10:08:02Z", true},
		{"2026-02-01T00:00:00Z", "2026-02-01T15:00:00Z", false},
		{"2026-02-01T00:00:00Z", "2026-02-02T00:00:02Z", true},
	} {
		d := &download{header: http.Header{"Date": {at(c.answered).Format(http.TimeFormat)}}}
		if d.settled(at(c.at)) != c.settled {
			t.Errorf("%+v", c)
		}
	}
}
