package rdfres

import (
	"math/big"
	"strconv"
	"strings"
)

// moment is a value of the date and time types of XSD, field by field.
type moment struct {
	year                int64
	month, day          int
	hour, minute, round int    // round: whole seconds
	fraction            string // of a second, without trailing zeros
	zone                byte   // 0: none, 'Z', '+', '-'
	offset              int    // minutes, by amount
}

// layouts are the fields of each type, in their order: Y year, - a hyphen, M month, D day, T the
// letter, t the time of day.
var layouts = map[string]string{
	"dateTime": "Y-M-DTt", "dateTimeStamp": "Y-M-DTt", "date": "Y-M-D", "time": "t",
	"gYear": "Y", "gYearMonth": "Y-M", "gMonth": "--M", "gMonthDay": "--M-D", "gDay": "---D",
}

// parseMoment reads a lexical form. anyYear takes years of fewer than four
// digits and with needless zeros.
func parseMoment(s, layout string, anyYear bool) (m moment, ok bool) {
	for i := range len(layout) {
		switch f := layout[i]; f {
		case 'Y':
			m.year, s, ok = cutYear(s, anyYear)
		case 'M':
			m.month, s, ok = cutTwo(s, 1, 12)
		case 'D':
			m.day, s, ok = cutTwo(s, 1, 31)
		case 't':
			s, ok = m.cutClock(s)
		default:
			s, ok = cutByte(s, f)
		}
		if !ok {
			return m, false
		}
	}
	if strings.HasSuffix(layout, "D") || strings.HasSuffix(layout, "t") {
		year := m.year
		if !strings.HasPrefix(layout, "Y") {
			year = 2000
		}
		if m.month > 0 && m.day > daysIn(year, m.month) {
			return m, false
		}
	}
	return m, m.cutZone(s)
}

func cutByte(s string, c byte) (string, bool) {
	if s == "" || s[0] != c {
		return s, false
	}
	return s[1:], true
}

func cutTwo(s string, least, most int) (n int, rest string, ok bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, s, false
	}
	n = int(s[0]-'0')*10 + int(s[1]-'0')
	return n, s[2:], n >= least && n <= most
}

func cutYear(s string, anyYear bool) (year int64, rest string, ok bool) {
	digits := strings.TrimPrefix(s, "-")
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	if n == 0 || n > 12 || !anyYear && (n < 4 || n > 4 && digits[0] == '0') {
		return 0, s, false
	}
	year, err := strconv.ParseInt(digits[:n], 10, 64)
	if len(digits) < len(s) {
		year = -year
	}
	return year, digits[n:], err == nil
}

func (m *moment) cutClock(s string) (rest string, ok bool) {
	if m.hour, s, ok = cutTwo(s, 0, 24); !ok {
		return s, false
	}
	if s, ok = cutByte(s, ':'); !ok {
		return s, false
	}
	if m.minute, s, ok = cutTwo(s, 0, 59); !ok {
		return s, false
	}
	if s, ok = cutByte(s, ':'); !ok {
		return s, false
	}
	if m.round, s, ok = cutTwo(s, 0, 59); !ok {
		return s, false
	}
	if after, point := cutByte(s, '.'); point {
		n := 0
		for n < len(after) && after[n] >= '0' && after[n] <= '9' {
			n++
		}
		if n == 0 {
			return s, false
		}
		m.fraction, s = strings.TrimRight(after[:n], "0"), after[n:]
	}
	return s, m.hour < 24 || m.minute == 0 && m.round == 0 && m.fraction == ""
}

func (m *moment) cutZone(s string) bool {
	switch {
	case s == "":
		return true
	case s == "Z":
		m.zone = 'Z'
		return true
	case s[0] != '+' && s[0] != '-':
		return false
	}
	m.zone = s[0]
	hours, s, ok := cutTwo(s[1:], 0, 14)
	if !ok {
		return false
	}
	if s, ok = cutByte(s, ':'); !ok {
		return false
	}
	minutes, s, ok := cutTwo(s, 0, 59)
	m.offset = 60*hours + minutes
	return ok && s == "" && m.offset <= 14*60
}

func daysIn(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// endOfDay makes 24:00:00 the start of the next day.
func (m *moment) endOfDay() {
	if m.hour < 24 {
		return
	}
	m.hour = 0
	if m.day == 0 {
		return
	}
	if m.day++; m.day > daysIn(m.year, m.month) {
		m.day = 1
		if m.month++; m.month > 12 {
			m.month = 1
			m.year++
		}
	}
}

func (m moment) append(dst []byte, layout string) []byte {
	two := func(n int) { dst = append(dst, byte('0'+n/10), byte('0'+n%10)) }
	for i := range len(layout) {
		switch f := layout[i]; f {
		case 'Y':
			year := m.year
			if year < 0 {
				dst = append(dst, '-')
				year = -year
			}
			for limit := int64(1000); limit > year && limit > 1; limit /= 10 {
				dst = append(dst, '0')
			}
			dst = strconv.AppendInt(dst, year, 10)
		case 'M':
			two(m.month)
		case 'D':
			two(m.day)
		case 't':
			two(m.hour)
			dst = append(dst, ':')
			two(m.minute)
			dst = append(dst, ':')
			two(m.round)
			if m.fraction != "" {
				dst = append(append(dst, '.'), m.fraction...)
			}
		default:
			dst = append(dst, f)
		}
	}
	if m.zone != 0 {
		dst = append(dst, m.zone)
	}
	if m.zone == '+' || m.zone == '-' {
		two(m.offset / 60)
		dst = append(dst, ':')
		two(m.offset % 60)
	}
	return dst
}

func normalTime(dst []byte, variant, lexical, local string) ([]byte, string) {
	layout := layouts[local]
	m, ok := parseMoment(lexical, layout, variant == "us-dated")
	if !ok {
		return dst, ""
	}
	zero := m.offset == 0 && (m.zone == '+' || m.zone == '-')
	switch variant {
	case "ms":
		// The store writes -00:15 for no zone and -00:30 for Z.
		if !strings.HasPrefix(layout, "Y-M-D") || m.year < 0 || m.year > 7999 || strings.HasPrefix(lexical, "-") || len(m.fraction) > 3 ||
			m.offset%15 != 0 || m.zone == '-' && (m.offset == 15 || m.offset == 30) {
			return dst, ""
		}
		if zero {
			m.zone = '+'
		}
		return m.append(dst, layout), local
	case "us-dated":
		if m.hour == 24 || local == "dateTimeStamp" || layout[0] == '-' {
			return dst, ""
		}
		if len(m.fraction) > 6 {
			m.fraction = strings.TrimRight(m.fraction[:6], "0")
		}
		if zero && m.zone == '-' {
			m.zone, zero = 0, false
		}
	case "18places":
		if len(m.fraction) > 18 {
			return dst, ""
		}
		if local == "dateTimeStamp" {
			local = "dateTime"
		}
		m.endOfDay()
	default:
		m.endOfDay()
	}
	if zero {
		m.zone = 'Z'
	}
	return m.append(dst, layout), local
}

// utc is the moment of a dateTime with a zone in UTC. The year stays in the range of parseMoment.
func (m moment) utc() moment {
	minutes := 60*m.hour + m.minute
	switch m.zone {
	case '+':
		minutes -= m.offset
	case '-':
		minutes += m.offset
	}
	if m.zone != 0 {
		m.zone, m.offset = 'Z', 0
	}
	switch {
	case minutes < 0:
		minutes += 24 * 60
		if m.day--; m.day == 0 {
			if m.month--; m.month == 0 {
				m.month = 12
				m.year--
			}
			m.day = daysIn(m.year, m.month)
		}
	case minutes >= 24*60:
		minutes -= 24 * 60
		m.hour = 24
		m.endOfDay()
	}
	m.hour, m.minute = minutes/60, minutes%60
	return m
}

// oneMoment gives equal moments one form, as xsd:dateTime in UTC, or without a zone as
// they are, and equal times of day one. A date, month or year is its first second; with
// another zone than UTC it is apart.
func oneMoment(b []byte, local string) ([]byte, string) {
	m, ok := parseMoment(string(b), layouts[local], true)
	if !ok || m.hour == 24 {
		return b, local
	}
	switch local {
	case "time":
		if m.zone == 0 {
			return b, local
		}
		m.year, m.month, m.day = 2000, 1, 2
		return m.utc().append(b[:0], layouts["time"]), local
	case "dateTime":
	case "date", "gYearMonth", "gYear":
		if m.offset != 0 {
			return b, local
		}
		m.month, m.day = max(m.month, 1), max(m.day, 1)
	default:
		return b, local
	}
	if m.year < 2 || m.year > 9998 {
		return b, local
	}
	return m.utc().append(b[:0], layouts["dateTime"]), "dateTime"
}

// span is a duration: months and seconds of one sign.
type span struct {
	minus    bool
	months   big.Int
	seconds  big.Int
	fraction string
}

// parseSpan reads a lexical form of one of the duration types, and Oxigraph's additions: a T and a
// point with nothing behind.
func parseSpan(s, local string) (d span, ok bool) {
	s, d.minus = strings.CutPrefix(s, "-")
	s, ok = strings.CutPrefix(s, "P")
	if !ok || len(s) > 200 {
		return d, false
	}
	fields, clock, any := "YMD", false, false
	var n, unit big.Int
	for s != "" {
		if s[0] == 'T' {
			if clock {
				return d, false
			}
			fields, clock, s = "HMS", true, s[1:]
			continue
		}
		k := 0
		for k < len(s) && s[k] >= '0' && s[k] <= '9' {
			k++
		}
		if k == 0 || k == len(s) {
			return d, false
		}
		n.SetString(s[:k], 10)
		if s[k] == '.' {
			f := k + 1
			for f < len(s) && s[f] >= '0' && s[f] <= '9' {
				f++
			}
			if f == len(s) || s[f] != 'S' {
				return d, false
			}
			d.fraction, k = strings.TrimRight(s[k+1:f], "0"), f
		}
		at := strings.IndexByte(fields, s[k])
		if at < 0 {
			return d, false
		}
		scale, sum := int64(1), &d.seconds
		switch {
		case s[k] == 'Y':
			scale, sum = 12, &d.months
		case s[k] == 'M' && !clock:
			sum = &d.months
		case s[k] == 'D':
			scale = 86400
		case s[k] == 'H':
			scale = 3600
		case s[k] == 'M':
			scale = 60
		}
		if sum == &d.months && local == "dayTimeDuration" || sum == &d.seconds && local == "yearMonthDuration" {
			return d, false
		}
		sum.Add(sum, n.Mul(&n, unit.SetInt64(scale)))
		fields, s, any = fields[at+1:], s[k+1:], true
	}
	return d, any
}

func (d *span) append(dst []byte, local string) []byte {
	months, seconds := d.months.Sign() != 0, d.seconds.Sign() != 0 || d.fraction != ""
	switch {
	case !months && !seconds && local == "yearMonthDuration":
		return append(dst, "P0M"...)
	case !months && !seconds:
		return append(dst, "PT0S"...)
	}
	if d.minus {
		dst = append(dst, '-')
	}
	dst = append(dst, 'P')
	var rest, unit big.Int
	part := func(n *big.Int, scale int64, letter byte) {
		var whole big.Int
		whole.QuoRem(n, unit.SetInt64(scale), &rest)
		n.Set(&rest)
		if whole.Sign() != 0 {
			dst = append(whole.Append(dst, 10), letter)
		}
	}
	m, s := new(big.Int).Set(&d.months), new(big.Int).Set(&d.seconds)
	part(m, 12, 'Y')
	part(m, 1, 'M')
	part(s, 86400, 'D')
	if s.Sign() == 0 && d.fraction == "" {
		return dst
	}
	dst = append(dst, 'T')
	part(s, 3600, 'H')
	part(s, 60, 'M')
	if s.Sign() != 0 || d.fraction != "" {
		dst = s.Append(dst, 10)
		if d.fraction != "" {
			dst = append(append(dst, '.'), d.fraction...)
		}
		dst = append(dst, 'S')
	}
	return dst
}

func normalDuration(dst []byte, lexical, local string) ([]byte, bool) {
	d, ok := parseSpan(lexical, local)
	if !ok || len(d.fraction) > 18 || d.months.BitLen() > 62 || d.seconds.BitLen() > 67 {
		return dst, false
	}
	return d.append(dst, local), true
}
