package rdfres

import "github.com/rsbridge/rsbridge/rdfres/internal/chars"

// ShorthandType is the datatype of a bare number or boolean in Turtle and SPARQL, "" when s is
// neither.
func ShorthandType(s []byte) string {
	if string(s) == "true" || string(s) == "false" {
		return chars.XSDBoolean
	}
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	before := chars.CountDigits(s[i:])
	i += before
	after, point := 0, false
	if i < len(s) && s[i] == '.' {
		point = true
		after = chars.CountDigits(s[i+1:])
		i += 1 + after
	}
	if before+after == 0 {
		return ""
	}
	switch {
	case i == len(s) && !point:
		return chars.XSDInteger
	case i == len(s) && after > 0:
		return chars.XSDDecimal
	case i < len(s) && (s[i] == 'e' || s[i] == 'E'):
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if n := chars.CountDigits(s[i:]); n > 0 && i+n == len(s) {
			return chars.XSDDouble
		}
	}
	return ""
}
