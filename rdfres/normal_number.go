package rdfres

import (
	"math"
	"strconv"
	"strings"
)

// integerRange holds the least and the greatest value of xsd:integer and the types derived from it,
// "" without a bound.
var integerRange = map[string][2]string{
	"integer":            {"", ""},
	"long":               {"-9223372036854775808", "9223372036854775807"},
	"int":                {"-2147483648", "2147483647"},
	"short":              {"-32768", "32767"},
	"byte":               {"-128", "127"},
	"nonNegativeInteger": {"0", ""},
	"positiveInteger":    {"1", ""},
	"nonPositiveInteger": {"", "0"},
	"negativeInteger":    {"", "-1"},
	"unsignedLong":       {"0", "18446744073709551615"},
	"unsignedInt":        {"0", "4294967295"},
	"unsignedShort":      {"0", "65535"},
	"unsignedByte":       {"0", "255"},
}

// number is a decimal number: its digits without leading zeros, how many of
// them follow the point, and whether it is below 0.
type number struct {
	minus          bool
	whole, decimal string // as written, leading zeros of whole cut off
}

// parseNumber reads [+-]?[0-9]*(\.[0-9]*)? with at least one digit.
func parseNumber(s string) (n number, ok bool) {
	if s == "" {
		return n, false
	}
	if s[0] == '-' || s[0] == '+' {
		n.minus = s[0] == '-'
		s = s[1:]
	}
	point := -1
	for i := range len(s) {
		if s[i] == '.' && point < 0 {
			point = i
		} else if s[i] < '0' || s[i] > '9' {
			return n, false
		}
	}
	n.whole = s
	if point >= 0 {
		n.whole, n.decimal = s[:point], s[point+1:]
	}
	if n.whole == "" && n.decimal == "" {
		return n, false
	}
	n.whole = strings.TrimLeft(n.whole, "0")
	return n, true
}

// append writes the shortest form: no sign of 0, no needless zeros, no point
// without a digit after it.
func (n number) append(dst []byte) []byte {
	places := strings.TrimRight(n.decimal, "0")
	if n.minus && (n.whole != "" || places != "") {
		dst = append(dst, '-')
	}
	if n.whole == "" {
		dst = append(dst, '0')
	}
	dst = append(dst, n.whole...)
	if places != "" {
		dst = append(append(dst, '.'), places...)
	}
	return dst
}

// digitsWithin tells whether digits, without leading zeros, are at most max.
func digitsWithin(digits, max string) bool {
	return len(digits) < len(max) || len(digits) == len(max) && digits <= max
}

// within tells whether an integer is within the bounds, each "" for none.
func (n number) within(least, greatest string) bool {
	minus := n.minus && n.whole != ""
	if greatest != "" {
		if bound, negative := strings.CutPrefix(greatest, "-"); negative {
			if !minus || !digitsWithin(bound, n.whole) {
				return false
			}
		} else if !minus && !digitsWithin(n.whole, strings.TrimLeft(greatest, "0")) {
			return false
		}
	}
	if least != "" {
		if bound, negative := strings.CutPrefix(least, "-"); negative {
			if minus && !digitsWithin(n.whole, bound) {
				return false
			}
		} else if minus || !digitsWithin(strings.TrimLeft(least, "0"), n.whole) {
			return false
		}
	}
	return true
}

func normalInteger(dst []byte, variant, lexical, local string) ([]byte, string) {
	n, ok := parseNumber(lexical)
	if !ok || strings.IndexByte(lexical, '.') >= 0 {
		return dst, ""
	}
	switch variant {
	case "56bit":
		bounds := integerRange[local]
		ok = n.within("-36028797018963968", "36028797018963967") && n.within(bounds[0], bounds[1])
	case "64bit-one":
		ok = n.within("-9223372036854775808", "9223372036854775807")
	case "64bit-typed":
		bounds := integerRange[local]
		ok = n.within("-9223372036854775808", "9223372036854775807") && n.within(bounds[0], bounds[1]) &&
			(lexical[0] != '-' || bounds[0] != "0") && (lexical[0] != '+' || bounds[1] != "0")
	}
	if !ok {
		return dst, ""
	}
	if variant == "64bit-one" {
		local = "integer"
	}
	return n.append(dst), local
}

func normalDecimal(dst []byte, variant, lexical string) ([]byte, bool) {
	n, ok := parseNumber(lexical)
	if !ok {
		return dst, false
	}
	switch variant {
	case "47bit":
		// The digits as written, trailing zeros too. But the store shows 100000000000000 as
		// 100000000000000.0, itself with one digit too many.
		digits := strings.TrimLeft(n.whole+n.decimal, "0")
		if n.decimal == "0" && strings.TrimPrefix(lexical, "-") == n.whole+".0" {
			digits = n.whole
		}
		greatest := "140737488355327"
		if n.minus {
			greatest = "140737488355328"
		}
		if !digitsWithin(digits, greatest) || len(n.decimal) > 127 {
			return dst, false
		}
	case "18places":
		places := strings.TrimRight(n.decimal, "0")
		if len(places) > 18 {
			return dst, false
		}
		greatest := "170141183460469231731687303715884105727"
		if n.minus {
			greatest = "170141183460469231731687303715884105728"
		}
		if n.whole != "" && !digitsWithin(n.whole+places+strings.Repeat("0", 18-len(places)), greatest) {
			return dst, false
		}
	case "15places":
		n = n.round(15)
	}
	return n.append(dst), true
}

// round rounds half away from zero to the given number of places.
func (n number) round(places int) number {
	if len(n.decimal) <= places {
		return n
	}
	up := n.decimal[places] >= '5'
	digits := []byte("0" + n.whole + n.decimal[:places])
	for i := len(digits) - 1; up; i-- {
		if digits[i] == '9' {
			digits[i] = '0'
			continue
		}
		digits[i]++
		up = false
	}
	point := len(digits) - places
	return number{n.minus, strings.TrimLeft(string(digits[:point]), "0"), string(digits[point:])}
}

// normalFloat writes a floating-point value with the fewest digits for it, -0 apart from 0.
func normalFloat(dst []byte, variant, lexical string, single bool) ([]byte, bool) {
	v, ok := parseFloat(lexical, single, variant == "lenient" || variant == "6digits")
	if !ok {
		return dst, false
	}
	bits := 64
	if single {
		bits = 32
	}
	switch variant {
	case "62bit":
		if exponent := int(math.Float64bits(v)>>52&0x7ff) - 1023; exponent != -1023 && exponent != 1024 && (exponent < -254 || exponent > 255) {
			return dst, false
		}
	case "6digits":
		if single && math.Abs(v) <= 0x1p-126 { // no denormal numbers, no -0
			v = 0
		} else if !math.IsInf(v, 0) && !math.IsNaN(v) {
			var b [32]byte
			v, _ = strconv.ParseFloat(string(strconv.AppendFloat(b[:0], v, 'e', 5, 64)), bits)
		}
	}
	return appendFloat(dst, v, bits), true
}

func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "INF"...)
	case math.IsInf(v, -1):
		return append(dst, "-INF"...)
	}
	return strconv.AppendFloat(dst, v, 'E', -1, bits)
}

// parseFloat reads the lexical forms of xsd:double and xsd:float; too large values are infinite.
// lenient takes inf, infinity and nan in any case and with a sign too.
func parseFloat(s string, single, lenient bool) (float64, bool) {
	digits := false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.', c == '+', c == '-', (c == 'e' || c == 'E') && digits:
		default:
			return parseSpecial(s, lenient)
		}
	}
	if !digits {
		return 0, false
	}
	bits := 64
	if single {
		bits = 32
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

func parseSpecial(s string, lenient bool) (float64, bool) {
	switch s {
	case "INF", "+INF":
		return math.Inf(1), true
	case "-INF":
		return math.Inf(-1), true
	case "NaN":
		return math.NaN(), true
	}
	if lenient {
		sign := 1
		switch {
		case strings.HasPrefix(s, "-"):
			sign, s = -1, s[1:]
		case strings.HasPrefix(s, "+"):
			s = s[1:]
		}
		switch {
		case strings.EqualFold(s, "inf"), strings.EqualFold(s, "infinity"):
			return math.Inf(sign), true
		case strings.EqualFold(s, "nan"):
			return math.NaN(), true
		}
	}
	return 0, false
}

// oneNumber gives equal numbers of any type one form, as xsd:decimal.
func oneNumber(b []byte, local string) ([]byte, string) {
	s := string(b)
	var out [96]byte
	switch {
	case local == "boolean":
		switch s {
		case "true", "1":
			return append(b[:0], '1'), "decimal"
		case "false", "0":
			return append(b[:0], '0'), "decimal"
		}
		return b, local
	case local == "double" || local == "float":
		v, ok := parseFloat(s, local == "float", false)
		if !ok || math.IsInf(v, 0) || math.IsNaN(v) || math.Abs(v) > 1e40 || v != 0 && math.Abs(v) < 1e-40 {
			return b, local
		}
		bits := 64
		if local == "float" {
			bits = 32
		}
		s = string(strconv.AppendFloat(out[:0], v, 'f', -1, bits))
		if exact, err := strconv.ParseFloat(s, 64); err != nil || exact != v {
			return b, local // 0.1 with 32 bits is not the number 0.1
		}
	}
	n, ok := parseNumber(s)
	if !ok {
		return b, local
	}
	return n.append(b[:0]), "decimal"
}
