package resourcesync

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		in, want string
		strict   bool
	}{
		{"2013", "2013-01-01T00:00:00Z", true},
		{"2013-02", "2013-02-01T00:00:00Z", true},
		{"2012-02-29", "2012-02-29T00:00:00Z", true},
		{"2013-01-03T09:00Z", "2013-01-03T09:00:00Z", true},
		{"2013-01-03T09:00:00Z", "2013-01-03T09:00:00Z", true},
		{"1997-07-16T19:20:00+01:00", "1997-07-16T18:20:00Z", true},
		{"1997-07-16T19:20:00-05:30", "1997-07-17T00:50:00Z", true},
		{"2013-01-03T09:00:00.5Z", "2013-01-03T09:00:00.500000Z", true},
		{"2013-01-03T09:00:00.123456789012345678Z", "2013-01-03T09:00:00.123456Z", true},
		{"2013-12-31T23:59:59-00:01", "2014-01-01T00:00:59Z", true},
		{"2013-01-03T09:00:00", "2013-01-03T09:00:00Z", false},
		{"2020-03-18 01:20:10", "2020-03-18T01:20:10Z", false},
		{" 2013-01-03\n", "2013-01-03T00:00:00Z", false},
		{"2013-01-03t09:00:00z", "2013-01-03T09:00:00Z", false},
		{"2013-01-03T09:00:00+0130", "2013-01-03T07:30:00Z", false},
		{"2013-01-03T09:00:00+01", "2013-01-03T08:00:00Z", false},
		{"2013-01-03Z", "2013-01-03T00:00:00Z", false},
		{"2013-01-03+02:00", "2013-01-02T22:00:00Z", false},
		{"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", false},
	} {
		got, err := ParseTime(c.in, true)
		if err != nil || FormatTime(got) != c.want {
			t.Errorf("ParseTime(%q, lenient) = %s, %v; want %s", c.in, FormatTime(got), err, c.want)
		}
		if got.Location() != time.UTC {
			t.Errorf("ParseTime(%q) is in %v, want UTC", c.in, got.Location())
		}
		if _, err := ParseTime(c.in, false); (err == nil) != c.strict {
			t.Errorf("ParseTime(%q, strict): %v, want an error: %v", c.in, err, !c.strict)
		}
	}
	for _, in := range []string{
		"", " ", "yesterday", "201", "2013-1-3", "2013-13", "2013-00-01", "2013-02-29", "2013-04-31", "2013-01-03T", "2013-01-03T9:00Z",
		"2013-01-03T24:00:00Z", "2013-01-03T09:60Z", "2013-01-03T09:00:61Z", "2013-01-03T09:00:00.Z", "2013-01-03T09:00:00+25:00",
		"2013-01-03T09:00:00+01:60", "2013-01-03T09:00:00Zebra", "2013-01-03T09:00:00+01:00x", "-2013-01-03", "2013-01-03T09Z", "20130103T090000Z", "12013-01-01",
	} {
		if got, err := ParseTime(in, true); err == nil {
			t.Errorf("ParseTime(%q) = %s, want an error", in, FormatTime(got))
		} else if !strings.Contains(err.Error(), "W3C Datetime") {
			t.Errorf("ParseTime(%q): %v, want a message that names W3C Datetime", in, err)
		}
	}
}

func TestFormatTime(t *testing.T) {
	zone := time.FixedZone("", 3*3600)
	for want, in := range map[string]time.Time{
		"2024-05-02T08:00:00Z":        time.Date(2024, 5, 2, 11, 0, 0, 999, zone),
		"2024-05-02T08:00:00.000120Z": time.Date(2024, 5, 2, 8, 0, 0, 120_999, time.UTC),
		"0001-01-01T00:00:00Z":        {},
		"9999-12-31T23:59:59.999999Z": time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		if got := FormatTime(in); got != want {
			t.Errorf("FormatTime(%v) = %s, want %s", in, got, want)
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"2013-01-03T09:00:00.5+01:00", "2013", "2013-01-03 01:02:03", "0000-01-01T00:00:00Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseTime(s, true)
		if err != nil {
			return
		}
		if y := v.Year(); y < 0 || y > 9999 {
			return // a zone can lead out of the range
		}
		again, err := ParseTime(FormatTime(v), false)
		if err != nil || !again.Equal(v.Truncate(time.Microsecond)) {
			t.Fatalf("%q is %v, written %s and read as %v (%v)", s, v, FormatTime(v), again, err)
		}
		if std, err := time.Parse(time.RFC3339Nano, s); err == nil && !strings.Contains(s, ",") && !std.Equal(v) {
			t.Fatalf("%q is %v, package time says %v", s, v, std)
		}
	})
}
