package feed

import (
	"net/http"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
)

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
		d := &Download{Body: &fetch.Body{Header: http.Header{"Date": {at(c.answered).Format(http.TimeFormat)}}}}
		if d.settled(at(c.at)) != c.settled {
			t.Errorf("%+v", c)
		}
	}
}
