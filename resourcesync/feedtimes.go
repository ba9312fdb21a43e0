package resourcesync

import (
	"strings"
	"time"
)

// zones are those of RFC 822, and a few more with one meaning found in feeds.
var zones = map[string]int{
	"ut": 0, "utc": 0, "gmt": 0, "z": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
	"wet": 0, "west": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9,
}

var monthNames = [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
var dayNames = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// scanMailTime reads the dates of RFC 822, and their variants in feeds: names in full, two digits
// for a year, the order of ctime, no time of the day. It tells the parts apart by their form.
func scanMailTime(s string) (t time.Time, lapse string, ok bool) {
	day, month, year, offset := 0, 0, -1, 0
	var clock []string
	zoned := false
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		if d := strings.Split(w, "-"); len(d) == 3 { // 02-May-24
			if day != 0 || month != 0 || year >= 0 {
				return t, "", false
			}
			day, month, year = atMost(d[0], 2), nameAt(monthNames[:], d[1]), yearOf(d[2])
			continue
		}
		switch {
		case strings.HasPrefix(w, "(") && strings.HasSuffix(w, ")"):
		case strings.Contains(w, ":") && clock == nil && !strings.HasPrefix(w, "+") && !strings.HasPrefix(w, "-"):
			clock = strings.Split(w, ":")
		case w[0] == '+' || w[0] == '-':
			if offset, ok = zoneOffset(w); !ok || zoned {
				return t, "", false
			}
			zoned = true
		case w[0] >= '0' && w[0] <= '9':
			switch n := atMost(w, 4); {
			case n < 0:
				return t, "", false
			case day == 0 && len(w) <= 2:
				day = n
			case year < 0:
				year = yearOf(w)
			default:
				return t, "", false
			}
		case nameAt(monthNames[:], w) > 0 && month == 0:
			month = nameAt(monthNames[:], w)
		case nameAt(dayNames[:], w) > 0:
		default:
			name, rest := w, ""
			if i := strings.IndexAny(w, "+-"); i > 0 {
				name, rest = w[:i], w[i:]
			}
			hours, known := zones[name]
			if !known || zoned {
				return t, "", false
			}
			if offset = hours * 3600; rest != "" {
				if offset, ok = zoneOffset(rest); !ok {
					return t, "", false
				}
			}
			zoned = true
		}
	}
	var hms [3]int
	if len(clock) == 1 || len(clock) > 3 || month < 1 || day < 1 || year < 0 {
		return t, "", false
	}
	for i, part := range clock {
		if hms[i] = atMost(part, 2); hms[i] < 0 || hms[i] > 59+i/2 {
			return t, "", false
		}
	}
	t = time.Date(year, time.Month(month), day, hms[0], hms[1], hms[2], 0, time.UTC)
	if t.Day() != day && hms[2] < 60 || hms[0] > 23 {
		return time.Time{}, "", false
	}
	if !zoned && clock != nil {
		lapse = "it has no zone and is taken as UTC"
	}
	return t.Add(-time.Duration(offset) * time.Second), lapse, true
}

// atMost reads a number of at most so many digits, -1 for none.
func atMost(s string, digits int) (n int) {
	if s == "" || len(s) > digits {
		return -1
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// yearOf reads a year, by RFC 2822 if it has two or three digits; -1 for none.
func yearOf(s string) int {
	switch n := atMost(s, 4); {
	case n >= 0 && len(s) == 2 && n < 50:
		return 2000 + n
	case n >= 0 && (len(s) == 2 || len(s) == 3):
		return 1900 + n
	case len(s) == 4:
		return n
	}
	return -1
}

// nameAt is the place, from 1, of the name equal to w or beginning with it, 0 for none.
func nameAt(names []string, w string) int {
	w = strings.TrimSuffix(w, ".")
	for i, name := range names {
		if len(w) >= 3 && strings.HasPrefix(name, w) {
			return i + 1
		}
	}
	return 0
}

// zoneOffset reads +hhmm, +hh:mm or +hh, in seconds.
func zoneOffset(s string) (seconds int, ok bool) {
	d := strings.Replace(s[1:], ":", "", 1)
	if len(d) <= 2 {
		d += "00"
	}
	n := atMost(d, 4)
	if n < 0 || n%100 > 59 || n/100 > 14 {
		return 0, false
	}
	seconds = n/100*3600 + n%100*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
