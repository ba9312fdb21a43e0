package jsonpatch

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with the fewest escapes: \" \\ \b \f
// \n \r \t, and \u00XX for the other control characters.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0:
			// half of a surrogate pair, as unquote keeps it
			r := 0xD000 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
			dst = append(dst, '\\', 'u')
			for shift := 12; shift >= 0; shift -= 4 {
				dst = append(dst, hexDigits[r>>shift&15])
			}
			i += 2
		default:
			dst = append(dst, c)
		}
		i++
	}
	return append(dst, '"')
}

// unquote decodes a valid JSON string. Half of a surrogate pair is kept as the
// three bytes that UTF-8 would give it, so that different strings stay
// different.
func unquote(raw []byte) string {
	var b strings.Builder
	raw = raw[1 : len(raw)-1]
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r := hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && bytes.HasPrefix(raw[i+1:], []byte(`\u`)) {
				if full := utf16.DecodeRune(r, hex4(raw[i+3:])); full != utf8.RuneError {
					r = full
					i += 6
				}
			}
			if utf16.IsSurrogate(r) {
				b.Write([]byte{0xE0 | byte(r>>12), 0x80 | byte(r>>6&0x3F), 0x80 | byte(r&0x3F)})
			} else {
				b.WriteRune(r)
			}
		default:
			b.WriteByte(raw[i])
		}
	}
	return b.String()
}

func hex4(raw []byte) rune {
	n, _ := strconv.ParseUint(string(raw[:4]), 16, 32)
	return rune(n)
}

// sameNumber tells whether two JSON numbers have the same value.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	an, ad, ae, aok := decimal(a)
	bn, bd, be, bok := decimal(b)
	return aok && bok && ad == bd && (ad == "" || an == bn && ae == be)
}

// decimal splits a number into sign, significant digits and the exponent of the
// last of them. Zero has no digits.
func decimal(raw []byte) (neg bool, digits string, exp int64, ok bool) {
	s := string(raw)
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false, "", 0, false // true, false, null
	}
	s, neg = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(strings.TrimPrefix(s[i+1:], "+"), 10, 62)
		if err != nil {
			return false, "", 0, false
		}
		exp, s = e, s[:i]
	}
	whole, frac, _ := strings.Cut(s, ".")
	exp -= int64(len(frac))
	digits = strings.TrimLeft(whole+frac, "0")
	short := strings.TrimRight(digits, "0")
	return neg, short, exp + int64(len(digits)-len(short)), true
}

// pointer splits a JSON Pointer (RFC 6901) into its tokens.
func pointer(s string) ([]string, bool) {
	if s == "" {
		return nil, true
	}
	if s[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(s[1:], "/")
	for i, t := range tokens {
		if !strings.Contains(t, "~") {
			continue
		}
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, false
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

func escapeToken(t string) string {
	if !strings.ContainsAny(t, "~/") {
		return t
	}
	return strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
}

// index reads an array index: digits without a leading zero.
func index(t string) (int, bool) {
	if t == "" || len(t) > 9 || len(t) > 1 && t[0] == '0' {
		return 0, false
	}
	for i := range len(t) {
		if t[i] < '0' || t[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(t)
	return n, err == nil
}
