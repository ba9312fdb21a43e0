package resourcesync

import (
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// FormatTime writes a time as the documents have it: in UTC, to the second, and
// with six digits of fraction when the microseconds are not zero
// ("2024-05-02T08:00:00Z", "2024-05-02T08:00:00.000120Z"). Finer parts are cut
// off. Years outside 0 to 9999 cannot be written so; the Writer refuses them.
func FormatTime(t time.Time) string { return string(AppendTime(nil, t)) }

// AppendTime is FormatTime into dst.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, time.RFC3339)
	}
	dst = append2(dst, year/100)
	dst = append2(dst, year%100)
	dst = append2(append(dst, '-'), int(month))
	dst = append2(append(dst, '-'), day)
	dst = append2(append(dst, 'T'), hour)
	dst = append2(append(dst, ':'), minute)
	dst = append2(append(dst, ':'), second)
	if micro := t.Nanosecond() / 1000; micro != 0 {
		dst = append2(append(dst, '.'), micro/10000)
		dst = append2(dst, micro/100%100)
		dst = append2(dst, micro%100)
	}
	return append(dst, 'Z')
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// ParseTime reads a W3C Datetime: a year, a month, a day, or a time with zone, with any number of
// fraction digits (those beyond nanoseconds are cut off). The result is in UTC; a year, month or
// day is its first instant.
//
// When lenient, it also reads forms of known sources: no zone (taken as UTC), a blank or a small t
// instead of T, a small z, a zone without colon, a zone after a day, a second of 60, blanks around.
func ParseTime(s string, lenient bool) (time.Time, error) {
	t, lapse, ok := ScanTime(s)
	switch {
	case !ok:
		return time.Time{}, fmt.Errorf("resourcesync: %q is no W3C Datetime: %w", clip(s), ErrTime)
	case lapse != "" && !lenient:
		return time.Time{}, fmt.Errorf("resourcesync: %q is no W3C Datetime: %s", clip(s), lapse)
	}
	return t, nil
}

// ErrTime shows the allowed forms of a time.
var ErrTime = errors.New("want YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.s]] with Z, +hh:mm or -hh:mm")

// ScanTime is a lenient ParseTime without an error. lapse names a readable form outside W3C
// Datetime.
func ScanTime(raw string) (t time.Time, lapse string, ok bool) {
	p := timeParser{s: trimSpace(raw)}
	if len(p.s) != len(raw) {
		p.lapse = "blanks around it"
	}
	t, ok = p.parse()
	return t, p.lapse, ok
}

type timeParser struct {
	s     string
	lapse string
}

// number takes exactly n digits.
func (p *timeParser) number(n int) (v int, ok bool) {
	if len(p.s) < n {
		return 0, false
	}
	for i := range n {
		c := p.s[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + int(c)
	}
	p.s = p.s[n:]
	return v, true
}

func (p *timeParser) next(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

func (p *timeParser) parse() (t time.Time, ok bool) {
	year, ok := p.number(4)
	if !ok {
		return t, false
	}
	month, day := 1, 1
	var hour, minute, second, nano, offset int
	switch {
	case p.s == "":
	case !p.next('-'):
		return t, false
	default:
		if month, ok = p.number(2); !ok || month < 1 || month > 12 {
			return t, false
		}
		if p.s == "" {
			break
		}
		if !p.next('-') {
			return t, false
		}
		if day, ok = p.number(2); !ok || day < 1 || day > daysIn(year, month) {
			return t, false
		}
		if p.s == "" {
			break
		}
		switch p.s[0] {
		case 'T':
			p.s = p.s[1:]
		case 't', ' ':
			p.lapse = "a capital T stands between date and time"
			p.s = p.s[1:]
		default: // 2013-01-03Z, 2013-01-03+01:00
			p.lapse = "a date has no zone"
			if offset, ok = p.zone(); !ok {
				return t, false
			}
			return time.Date(year, time.Month(month), day, 0, -offset, 0, 0, time.UTC), true
		}
		if hour, minute, second, nano, ok = p.clock(); !ok {
			return t, false
		}
		if offset, ok = p.zone(); !ok {
			return t, false
		}
	}
	return time.Date(year, time.Month(month), day, hour, minute-offset, second, nano, time.UTC), true
}

func (p *timeParser) clock() (hour, minute, second, nano int, ok bool) {
	if hour, ok = p.number(2); !ok || hour > 23 || !p.next(':') {
		return 0, 0, 0, 0, false
	}
	if minute, ok = p.number(2); !ok || minute > 59 {
		return 0, 0, 0, 0, false
	}
	if !p.next(':') {
		return hour, minute, 0, 0, true
	}
	if second, ok = p.number(2); !ok || second > 60 {
		return 0, 0, 0, 0, false
	}
	if second == 60 {
		p.lapse = "a minute has the seconds 00 to 59"
	}
	if !p.next('.') {
		return hour, minute, second, 0, true
	}
	digits, unit := 0, 100_000_000
	for p.s != "" && p.s[0]-'0' <= 9 {
		nano += int(p.s[0]-'0') * unit
		unit /= 10
		digits++
		p.s = p.s[1:]
	}
	return hour, minute, second, nano, digits > 0
}

// zone takes the rest as a zone and gives it in minutes east.
func (p *timeParser) zone() (minutes int, ok bool) {
	if p.s == "" {
		p.lapse = "a time needs a zone (Z, +hh:mm or -hh:mm)"
		return 0, true
	}
	if p.s[0] == ' ' && len(p.s) > 1 {
		p.lapse = "no blank stands before the zone"
		p.s = p.s[1:]
	}
	sign := p.s[0]
	p.s = p.s[1:]
	switch sign {
	case 'Z':
		return 0, p.s == ""
	case 'z':
		p.lapse = "the zone Z is a capital letter"
		return 0, p.s == ""
	case '+', '-':
	default:
		return 0, false
	}
	hours, ok := p.number(2)
	if !ok || hours > 23 {
		return 0, false
	}
	if !p.next(':') {
		p.lapse = "a zone is +hh:mm or -hh:mm"
		if p.s == "" {
			p.s = "00"
		}
	}
	mins, ok := p.number(2)
	if !ok || mins > 59 || p.s != "" {
		return 0, false
	}
	minutes = hours*60 + mins
	if sign == '-' {
		minutes = -minutes
	}
	return minutes, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// trimSpace removes XML white space from both ends.
func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return xmlscan.IsSpace(c) }

func clip(s string) string { return xmlscan.Clip(s) }
