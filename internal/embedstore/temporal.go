package embedstore

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// span is a length of time in seconds and 10^-18 seconds; atto is never negative.
type span struct{ sec, atto int64 }

const attos = 1_000_000_000_000_000_000

func (a span) plus(b span) span {
	a.sec += b.sec
	if a.atto += b.atto; a.atto >= attos {
		a.sec, a.atto = a.sec+1, a.atto-attos
	}
	return a
}

func (a span) negative() span {
	if a.atto == 0 {
		return span{-a.sec, 0}
	}
	return span{-a.sec - 1, attos - a.atto}
}

func (a span) compare(b span) int {
	switch {
	case a == b:
		return 0
	case a.sec < b.sec || a.sec == b.sec && a.atto < b.atto:
		return -1
	}
	return 1
}

// all is the span in 10^-18 seconds.
func (a span) all() *big.Int {
	n := new(big.Int).Mul(big.NewInt(a.sec), big.NewInt(attos))
	return n.Add(n, big.NewInt(a.atto))
}

func spanOf(all *big.Int) (span, bool) {
	q, m := new(big.Int).DivMod(all, big.NewInt(attos), new(big.Int))
	return span{q.Int64(), m.Int64()}, q.IsInt64() && inRange(q.Int64(), mostSeconds)
}

// Bounds of computation. Values beyond them are compared as terms.
const (
	mostYear    = 99_999_999_999
	mostMonths  = 12 * mostYear
	mostSeconds = mostYear * 31_556_952
)

func inRange(n, most int64) bool { return n >= -most && n <= most }

// ---- the calendar: proleptic Gregorian, with a year 0 (XML Schema 1.1)

const daySeconds = 86400

// floorDiv is a/b towards minus infinity, for b > 0.
func floorDiv(a, b int64) (q, m int64) {
	q, m = a/b, a%b
	if m < 0 {
		q, m = q-1, m+b
	}
	return q, m
}

func isLeap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func monthDays(year int64, month int) int {
	switch month {
	case 2:
		if isLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysTo counts the days from 1970-01-01 to a date. A year begins in March here, so its leap day is
// the last one.
func daysTo(year int64, month, day int) int64 {
	m := int64(month)
	if m <= 2 {
		year, m = year-1, m+12
	}
	era, y := floorDiv(year, 400)
	return era*146097 + y*365 + y/4 - y/100 + (153*(m-3)+2)/5 + int64(day) - 719469
}

// dateAt is the date so many days after 1970-01-01.
func dateAt(days int64) (year int64, month, day int) {
	era, d := floorDiv(days+719468, 146097)
	y := (d - d/1460 + d/36524 - d/146096) / 365
	d -= y*365 + y/4 - y/100
	m := (5*d + 2) / 153
	day, month, year = int(d-(153*m+2)/5)+1, int(m)+3, era*400+y
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}

// ---- instants: xsd:dateTime and the types with a part of it

// instantKinds are the datatypes of instants. A missing part is taken from 1972-12-01T00:00:00, of
// a leap year and a long month.
var instantKinds = map[string]valueKind{
	"dateTime": vDateTime, "dateTimeStamp": vDateTime, "date": vDate, "time": vTime,
	"gYearMonth": vYearMonth, "gYear": vYear, "gMonthDay": vMonthDay, "gMonth": vMonth, "gDay": vDay,
}

// The parts of an instant.
const (
	hasYear = 1 << iota
	hasMonth
	hasDay
	hasTime
)

func (k valueKind) parts() int {
	switch k {
	case vDateTime:
		return hasYear | hasMonth | hasDay | hasTime
	case vDate:
		return hasYear | hasMonth | hasDay
	case vTime:
		return hasTime
	case vYearMonth:
		return hasYear | hasMonth
	case vYear:
		return hasYear
	case vMonthDay:
		return hasMonth | hasDay
	case vMonth:
		return hasMonth
	case vDay:
		return hasDay
	}
	return 0
}

// fields are the parts of an instant as they are written.
type fields struct {
	year                            int64
	month, day, hour, minute, secAt int
	atto                            int64
}

var noFields = fields{year: 1972, month: 12, day: 1}

func (v *value) fields() fields {
	days, rest := floorDiv(v.at.sec, daySeconds)
	f := fields{hour: int(rest / 3600), minute: int(rest / 60 % 60), secAt: int(rest % 60), atto: v.at.atto}
	f.year, f.month, f.day = dateAt(days)
	return f
}

// only keeps some parts.
func (f fields) only(parts int) fields {
	kept := noFields
	if parts&hasYear != 0 {
		kept.year = f.year
	}
	if parts&hasMonth != 0 {
		kept.month = f.month
	}
	if parts&hasDay != 0 {
		kept.day = f.day
	}
	if parts&hasTime != 0 {
		kept.hour, kept.minute, kept.secAt, kept.atto = f.hour, f.minute, f.secAt, f.atto
	}
	return kept
}

func (f *fields) span() span {
	return span{daysTo(f.year, f.month, f.day)*daySeconds + int64(f.hour)*3600 + int64(f.minute)*60 + int64(f.secAt), f.atto}
}

// utc is the position of an instant; one without a time zone counts as UTC.
func (v *value) utc() span { return span{v.at.sec - int64(v.off)*60, v.at.atto} }

// cutter takes a lexical form apart from its beginning.
type cutter struct {
	s    string
	good bool
}

func (c *cutter) sign(b byte) {
	if c.s == "" || c.s[0] != b {
		c.good = false
		return
	}
	c.s = c.s[1:]
}

func (c *cutter) accept(b byte) bool {
	if c.s == "" || c.s[0] != b {
		return false
	}
	c.s = c.s[1:]
	return true
}

func (c *cutter) digits() string {
	n := 0
	for n < len(c.s) && isDigit(c.s[n]) {
		n++
	}
	d := c.s[:n]
	c.s = c.s[n:]
	return d
}

func (c *cutter) two(least, most int) int {
	if len(c.s) < 2 || !isDigit(c.s[0]) || !isDigit(c.s[1]) {
		c.good = false
		return 0
	}
	n := int(c.s[0]-'0')*10 + int(c.s[1]-'0')
	c.s = c.s[2:]
	c.good = c.good && n >= least && n <= most
	return n
}

func (c *cutter) year() int64 {
	minus := c.accept('-')
	d := c.digits()
	n, err := strconv.ParseInt(d, 10, 64)
	if err != nil || len(d) < 4 || len(d) > 4 && d[0] == '0' || n > mostYear {
		c.good = false
	}
	if minus {
		return -n
	}
	return n
}

// fraction reads the digits behind a point; digits beyond the eighteenth are dropped.
func (c *cutter) fraction() (atto int64) {
	if !c.accept('.') {
		return 0
	}
	d := c.digits()
	c.good = c.good && d != ""
	atto, _ = strconv.ParseInt((d + strings.Repeat("0", 18))[:18], 10, 64)
	return atto
}

func parseInstant(kind valueKind, s string) (at span, off int16, zone, ok bool) {
	c := cutter{s, true}
	f, parts := noFields, kind.parts()
	if parts&hasYear != 0 {
		f.year = c.year()
	} else if parts&hasTime == 0 {
		c.sign('-')
	}
	if parts&hasMonth != 0 {
		c.sign('-')
		f.month = c.two(1, 12)
	} else if kind == vDay {
		c.sign('-')
	}
	if parts&hasDay != 0 {
		c.sign('-')
		f.day = c.two(1, 31)
		c.good = c.good && f.day <= monthDays(f.year, f.month)
	}
	midnight := false
	if parts&hasTime != 0 {
		if kind == vDateTime {
			c.sign('T')
		}
		f.hour = c.two(0, 24)
		c.sign(':')
		f.minute = c.two(0, 59)
		c.sign(':')
		f.secAt = c.two(0, 59)
		f.atto = c.fraction()
		if midnight = f.hour == 24; midnight {
			f.hour = 0
			c.good = c.good && f.minute == 0 && f.secAt == 0 && f.atto == 0
		}
	}
	switch {
	case c.accept('Z'):
		zone = true
	case c.s != "":
		zone = true
		west := c.accept('-')
		if !west {
			c.sign('+')
		}
		h := c.two(0, 14)
		c.sign(':')
		off = int16(h*60 + c.two(0, 59))
		c.good = c.good && off <= 14*60
		if west {
			off = -off
		}
	}
	if !c.good || c.s != "" {
		return span{}, 0, false, false
	}
	at = f.span()
	if midnight && kind == vDateTime {
		at.sec += daySeconds
	}
	return at, off, zone, true
}

// instantValue writes an instant in its canonical form.
func instantValue(kind valueKind, f fields, off int16, zone bool) value {
	var b []byte
	two := func(n int) { b = append(b, byte('0'+n/10), byte('0'+n%10)) }
	parts := kind.parts()
	f = f.only(parts)
	switch {
	case f.year < 0 && parts&hasYear != 0:
		b = fmt.Appendf(b, "%05d", f.year)
	case parts&hasYear != 0:
		b = fmt.Appendf(b, "%04d", f.year)
	case parts&hasTime == 0:
		b = append(b, '-')
	}
	if parts&hasMonth != 0 {
		b = append(b, '-')
		two(f.month)
	} else if kind == vDay {
		b = append(b, '-')
	}
	if parts&hasDay != 0 {
		b = append(b, '-')
		two(f.day)
	}
	if parts&hasTime != 0 {
		if kind == vDateTime {
			b = append(b, 'T')
		}
		two(f.hour)
		b = append(b, ':')
		two(f.minute)
		b = append(b, ':')
		two(f.secAt)
		b = appendFraction(b, f.atto)
	}
	switch {
	case !zone:
	case off == 0:
		b = append(b, 'Z')
	default:
		n := int(off)
		if n < 0 {
			b, n = append(b, '-'), -n
		} else {
			b = append(b, '+')
		}
		two(n / 60)
		b = append(b, ':')
		two(n % 60)
	}
	return value{kind: kind, lex: string(b), lang: xsdNS + instantNames[kind], at: f.span(), off: off, zone: zone}
}

var instantNames = map[valueKind]string{
	vDateTime: "dateTime", vDate: "date", vTime: "time", vYearMonth: "gYearMonth", vYear: "gYear", vMonthDay: "gMonthDay", vMonth: "gMonth", vDay: "gDay",
}

func appendFraction(b []byte, atto int64) []byte {
	if atto == 0 {
		return b
	}
	d := strconv.FormatInt(attos+atto, 10)
	return append(append(b, '.'), strings.TrimRight(d[1:], "0")...)
}

// compareInstants orders two instants of one kind. One without a time zone may lie 14
// hours to either side.
func compareInstants(a, b *value) (int, bool) {
	x, y := a.utc(), b.utc()
	if a.zone == b.zone {
		return x.compare(y), true
	}
	const most = 14 * 3600
	switch {
	case x.plus(span{most, 0}).compare(y) < 0:
		return -1, true
	case y.plus(span{most, 0}).compare(x) < 0:
		return 1, true
	}
	return 0, false
}

// ---- durations

// durationParts are the parts of each type: months, seconds.
var durationParts = map[string][2]bool{"duration": {true, true}, "yearMonthDuration": {true, false}, "dayTimeDuration": {false, true}}

// parseDuration reads a duration: months, and seconds.
func parseDuration(local, s string) (months int64, at span, ok bool) {
	c := cutter{s, true}
	minus := c.accept('-')
	c.sign('P')
	has, some := durationParts[local], false
	// add reads numbers with the letters of units, in their order.
	add := func(to *int64, most int64, units string, sizes ...int64) {
		for i, unit := range []byte(units) {
			n := 0
			for n < len(c.s) && isDigit(c.s[n]) {
				n++
			}
			if n == 0 || n == len(c.s) || c.s[n] != unit {
				continue
			}
			k, err := strconv.ParseInt(c.s[:n], 10, 64)
			if c.s, some = c.s[n+1:], true; err != nil || k > (most-*to)/sizes[i] {
				c.good = false
				return
			}
			*to += k * sizes[i]
		}
	}
	if has[0] {
		add(&months, mostMonths, "YM", 12, 1)
	}
	if has[1] {
		add(&at.sec, mostSeconds, "D", daySeconds)
		if c.accept('T') {
			some = false // something must follow
			add(&at.sec, mostSeconds, "HM", 3600, 60)
			if whole := c.digits(); whole != "" {
				k, err := strconv.ParseInt(whole, 10, 64)
				if err != nil || k > mostSeconds-at.sec {
					return 0, span{}, false
				}
				at.sec, at.atto, some = at.sec+k, c.fraction(), true
				c.sign('S')
			}
		}
	}
	if !c.good || !some || c.s != "" {
		return 0, span{}, false
	}
	if minus {
		return -months, at.negative(), true
	}
	return months, at, true
}

// durationValue writes a duration. Its two parts must not have different signs.
func durationValue(local string, months int64, at span) (value, error) {
	minus := months < 0 || at.sec < 0
	if months < 0 && at.compare(span{}) > 0 || months > 0 && at.sec < 0 || !inRange(months, mostMonths) || !inRange(at.sec, mostSeconds) {
		return value{}, errType
	}
	v := value{kind: vDuration, lang: xsdNS + local, i: months, at: at}
	b := []byte("P")
	if minus {
		b, months, at = []byte("-P"), -months, at.negative()
	}
	unit := func(n int64, letter byte) {
		if n != 0 {
			b = append(strconv.AppendInt(b, n, 10), letter)
		}
	}
	unit(months/12, 'Y')
	unit(months%12, 'M')
	unit(at.sec/daySeconds, 'D')
	if at.sec%daySeconds != 0 || at.atto != 0 {
		b = append(b, 'T')
		unit(at.sec/3600%24, 'H')
		unit(at.sec/60%60, 'M')
		if at.sec%60 != 0 || at.atto != 0 {
			b = append(appendFraction(strconv.AppendInt(b, at.sec%60, 10), at.atto), 'S')
		}
	}
	if len(b) == 1 {
		b = []byte("PT0S")
		if local == "yearMonthDuration" {
			b = []byte("P0M")
		}
	}
	v.lex = string(b)
	return v, nil
}

// durationDates are the dates for comparing durations (XML Schema, 3.2.6.2).
var durationDates = [...]fields{{year: 1696, month: 9, day: 1}, {year: 1697, month: 2, day: 1}, {year: 1903, month: 3, day: 1}, {year: 1903, month: 7, day: 1}}

// compareDurations is the partial order of durations: a month has 28 to 31 days.
func compareDurations(a, b *value) (int, bool) {
	if a.i == b.i {
		return a.at.compare(b.at), true
	}
	last := 0
	for i := range durationDates {
		x, y := durationDates[i].plusMonths(a.i), durationDates[i].plusMonths(b.i)
		c := x.span().plus(a.at).compare(y.span().plus(b.at))
		if c == 0 || i > 0 && c != last {
			return 0, false
		}
		last = c
	}
	return last, true
}

// plusMonths is the same day of another month, or the last one of it.
func (f fields) plusMonths(n int64) fields {
	year, month := floorDiv(f.year*12+int64(f.month-1)+n, 12)
	f.year, f.month = year, int(month)+1
	f.day = min(f.day, monthDays(f.year, f.month))
	return f
}

// ---- arithmetic (XQuery and XPath functions and operators, 8 and 9)

// temporalArithmetic is + - * / with an instant or a duration on one side.
func temporalArithmetic(op string, a, b *value) (value, error) {
	switch {
	case op == "+" && a.kind == vDuration && b.isInstant():
		return shift(b, a.i, a.at)
	case op == "+" && a.isInstant() && b.kind == vDuration:
		return shift(a, b.i, b.at)
	case op == "-" && a.isInstant() && b.kind == vDuration:
		return shift(a, -b.i, b.at.negative())
	case op == "-" && a.kind == b.kind && (a.kind == vDateTime || a.kind == vDate || a.kind == vTime) && a.zone == b.zone:
		return durationValue("dayTimeDuration", 0, a.utc().plus(b.utc().negative()))
	case (op == "+" || op == "-") && a.kind == vDuration && b.kind == vDuration:
		months, at := b.i, b.at
		if op == "-" {
			months, at = -months, at.negative()
		}
		return durationValue(commonDuration(a, b), a.i+months, a.at.plus(at))
	case op == "*" && a.kind == vDuration && b.isNumeric():
		return scale(a, b, false)
	case op == "*" && a.isNumeric() && b.kind == vDuration:
		return scale(b, a, false)
	case op == "/" && a.kind == vDuration && b.isNumeric():
		return scale(a, b, true)
	case op == "/" && a.kind == vDuration && b.kind == vDuration:
		return ratio(a, b)
	}
	return value{}, errType
}

// commonDuration is the type for both.
func commonDuration(a, b *value) string {
	if a.lang == b.lang {
		return a.lang[len(xsdNS):]
	}
	return "duration"
}

func shift(v *value, months int64, by span) (value, error) {
	f := v.fields()
	switch {
	case v.kind != vDateTime && v.kind != vDate && (v.kind != vTime || months != 0):
		return value{}, errType
	case months != 0:
		f = f.plusMonths(months)
	}
	at := f.span().plus(by)
	if !inRange(f.year, mostYear) || !inRange(at.sec, mostSeconds) {
		return value{}, errType
	}
	moved := value{at: at}
	return instantValue(v.kind, moved.fields(), v.off, v.zone), nil
}

// scale multiplies or divides a duration of months or of seconds by a number.
func scale(d, n *value, divide bool) (value, error) {
	by, ok := n.exact()
	if !ok || d.i != 0 && d.at != (span{}) || divide && by.Sign() == 0 {
		return value{}, errType
	}
	if divide {
		by.Inv(by)
	}
	local := d.lang[len(xsdNS):]
	if d.i != 0 || local == "yearMonthDuration" {
		months := by.Mul(by, new(big.Rat).SetInt64(d.i))
		whole := floorRat(months.Add(months, big.NewRat(1, 2)))
		if !whole.IsInt64() {
			return value{}, errType
		}
		return durationValue(local, whole.Int64(), span{})
	}
	all := by.Mul(by, new(big.Rat).SetInt(d.at.all()))
	at, ok := spanOf(new(big.Int).Quo(all.Num(), all.Denom()))
	if !ok {
		return value{}, errType
	}
	return durationValue(local, 0, at)
}

// ratio divides two durations, either both of months only or both of seconds only.
func ratio(a, b *value) (value, error) {
	x, y := new(big.Int), new(big.Int)
	switch none := (span{}); {
	case a.at == none && b.at == none && b.i != 0:
		x.SetInt64(a.i)
		y.SetInt64(b.i)
	case a.i == 0 && b.i == 0 && b.at != none:
		x, y = a.at.all(), b.at.all()
	default:
		return value{}, errType
	}
	return decimalValue(new(big.Rat).SetFrac(x, y)), nil
}

// ---- parts

// datePart is YEAR and its like: of an instant with the part, or of a duration.
func datePart(name string, v *value) (value, error) {
	switch {
	case v.kind == vDuration:
		return durationPart(name, v)
	case !v.isInstant():
		return value{}, errType
	}
	f, need := v.fields(), 0
	var n int
	switch name {
	case "TZ":
		return stringValue(v.zoneText()), nil
	case "TIMEZONE":
		if !v.zone {
			return value{}, errType
		}
		return durationValue("dayTimeDuration", 0, span{int64(v.off) * 60, 0})
	case "YEAR":
		if v.kind.parts()&hasYear == 0 {
			return value{}, errType
		}
		return intValue(f.year), nil
	case "MONTH":
		need, n = hasMonth, f.month
	case "DAY":
		need, n = hasDay, f.day
	case "HOURS":
		need, n = hasTime, f.hour
	case "MINUTES":
		need, n = hasTime, f.minute
	case "SECONDS":
		if v.kind.parts()&hasTime == 0 {
			return value{}, errType
		}
		return secondsValue(int64(f.secAt), f.atto), nil
	}
	if v.kind.parts()&need == 0 {
		return value{}, errType
	}
	return intValue(int64(n)), nil
}

// zoneText is the time zone as it is written.
func (v *value) zoneText() string {
	lex := trimSpace(v.lex)
	switch {
	case !v.zone:
		return ""
	case lex[len(lex)-1] == 'Z':
		return "Z"
	}
	return lex[len(lex)-6:]
}

func secondsValue(sec, atto int64) value {
	return decimalValue(new(big.Rat).SetFrac(span{sec, atto}.all(), big.NewInt(attos)))
}

func durationPart(name string, v *value) (value, error) {
	months, at, sign := v.i, v.at, int64(1)
	if months < 0 || at.sec < 0 {
		months, at, sign = -months, at.negative(), -1
	}
	var n int64
	switch name {
	case "YEAR":
		n = months / 12
	case "MONTH":
		n = months % 12
	case "DAY":
		n = at.sec / daySeconds
	case "HOURS":
		n = at.sec / 3600 % 24
	case "MINUTES":
		n = at.sec / 60 % 60
	case "SECONDS":
		s := secondsValue(at.sec%60, at.atto)
		if sign > 0 {
			return s, nil
		}
		return decimalValue(s.r.Neg(s.r)), nil
	default:
		return value{}, errType
	}
	return intValue(sign * n), nil
}
