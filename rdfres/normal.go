package rdfres

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// NormalForm describes the rewriting of terms by a store. It maps every literal to one
// representative of all literals the store takes for the same, so written and read terms are equal
// under it. The zero value rewrites nothing. Rules are named and can be stored (JSON).
//
// A representative is for comparing only: it need not be the store's own form.
type NormalForm struct {
	Rules []string `json:"rules"` // sorted names of rules, at most one of each family, see normalRules
}

// normalRules are the names of all rules, sorted. A rule is a family, the kind of its literals, or
// a family, a hyphen and a variant. Variants follow measurements (testdata/normal); beyond their
// bounds a store keeps the lexical form. The meaning of a name never changes, since records were
// compared by it. A rule proved wrong is taken out and another one takes its place, so the store is
// probed again.
//
//	integer             xsd:integer and the types derived from it, each in its own type: sign, leading zeros
//	integer-56bit       the same where the value fits 56 bits and its type; white space (Jena TDB2)
//	integer-64bit-typed the same where the value fits 64 bits and its type, and has no sign that the type never has; white space (Virtuoso)
//	integer-64bit-one   where it fits 64 bits; all of them become xsd:integer (Oxigraph)
//	decimal             sign, leading and trailing zeros
//	decimal-47bit       where the digits as written fit 47 bits; white space (Jena TDB2)
//	decimal-18places    where the value fits 128 bits and 18 places (Oxigraph)
//	decimal-15places    rounded to 15 places; white space (Virtuoso)
//	double, float       by IEEE 754 value
//	double-62bit        where the exponent fits 9 bits; white space (Jena TDB2)
//	float-trimmed       white space (Jena TDB2)
//	double-lenient, float-lenient    also inf, infinity, nan (Oxigraph)
//	double-6digits, float-6digits    rounded to 6 digits (Virtuoso)
//	boolean             1 is true, 0 is false
//	boolean-trimmed     white space too (Jena TDB2)
//	time                date and time types: trailing zeros of seconds, +00:00 is Z, 24:00:00 is the next day
//	time-18places       the same up to 18 places; xsd:dateTimeStamp becomes xsd:dateTime (Oxigraph)
//	time-ms             xsd:date, dateTime, dateTimeStamp up to milliseconds in the years 0 to 7999; -00:00 is +00:00 (Jena TDB2)
//	time-us-dated       cut to microseconds; +00:00 is Z, -00:00 is no zone; not xsd:dateTimeStamp, gMonth, gDay and gMonthDay (Virtuoso)
//	duration            by months and seconds (Oxigraph)
//	language-case       case of language tags (all of these stores, RDF4J too)
//	virtuoso-values     equal numbers of different types, booleans among them, are one; so are equal moments with different zones, or of different types
var normalRules = []string{
	"boolean", "boolean-trimmed",
	"decimal", "decimal-15places", "decimal-18places", "decimal-47bit",
	"double", "double-62bit", "double-6digits", "double-lenient",
	"duration",
	"float", "float-6digits", "float-lenient", "float-trimmed",
	"integer", "integer-56bit", "integer-64bit-one", "integer-64bit-typed",
	"language-case",
	"time", "time-18places", "time-ms", "time-us-dated",
	"virtuoso-values",
}

// Unknown are rules unknown to this version. A normal form with any must not be used for comparing.
func (n NormalForm) Unknown() []string {
	return slices.DeleteFunc(slices.Clone(n.Rules), func(r string) bool { return slices.Contains(normalRules, r) })
}

// Triple is t with each term in normal form. Only the object can be a literal.
func (n NormalForm) Triple(t Triple) Triple {
	t.O = n.Term(t.O)
	return t
}

// Term is the representative of t. A term without a rule, or already its own representative, is
// returned as it is, without allocation.
func (n NormalForm) Term(t Term) Term {
	if len(n.Rules) == 0 || len(t) < 3 || t[0] != '"' || t[len(t)-1] == '"' {
		return t
	}
	quote := strings.LastIndexByte(string(t), '"')
	if t[quote+1] == '@' {
		if n.rule("language") == "" {
			return t
		}
		return lowerTag(t, quote+2)
	}
	lexical, datatype := string(t[1:quote]), string(t[quote+4:len(t)-1])
	local, ok := strings.CutPrefix(datatype, chars.XSD)
	if !ok {
		return t
	}
	family := familyOf(local)
	if family == "" {
		return t
	}
	var buf [64]byte
	out, newLocal := buf[:0], ""
	rule := n.rule(family)
	if rule != "" {
		out, newLocal = normalize(out, family, rule, lexical, local)
	}
	if family != "duration" && n.rule("virtuoso") != "" && (newLocal != "" || rule == "") { // else it is kept as it is written
		if newLocal == "" {
			out, newLocal = append(buf[:0], lexical...), local
		}
		if family == "time" {
			out, newLocal = oneMoment(out, newLocal)
		} else {
			out, newLocal = oneNumber(out, newLocal)
		}
	}
	if newLocal == "" { // no rule concerns it
		return t
	}
	if string(out) == lexical && newLocal == local {
		return t
	}
	b := make([]byte, 0, len(out)+len(chars.XSD)+len(newLocal)+6)
	b = append(append(append(b, '"'), out...), `"^^<`+chars.XSD...)
	return Term(append(append(b, newLocal...), '>'))
}

// rule is the rule of a family, "" when there is none.
func (n NormalForm) rule(family string) string {
	for _, r := range n.Rules {
		if strings.HasPrefix(r, family) && (len(r) == len(family) || r[len(family)] == '-') {
			return r
		}
	}
	return ""
}

func lowerTag(t Term, at int) Term {
	for i := at; i < len(t); i++ {
		if t[i] >= 'A' && t[i] <= 'Z' {
			return t[:at] + Term(strings.ToLower(string(t[at:])))
		}
	}
	return t
}

// familyOf is the family of rules for an XSD type, by local name.
func familyOf(local string) string {
	switch local {
	case "decimal", "double", "float", "boolean":
		return local
	case "date", "dateTime", "dateTimeStamp", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay":
		return "time"
	case "duration", "dayTimeDuration", "yearMonthDuration":
		return "duration"
	}
	if _, ok := integerRange[local]; ok {
		return "integer"
	}
	return ""
}

// normalize appends the lexical form of a literal under rule, and gives its type; "" without a rule
// for it.
func normalize(dst []byte, family, rule, lexical, local string) ([]byte, string) {
	variant := strings.TrimPrefix(rule[len(family):], "-")
	switch variant {
	case "56bit", "64bit-typed", "47bit", "15places", "62bit", "trimmed", "6digits", "ms", "us-dated":
		lexical = trimSpace(lexical)
	}
	ok := false
	switch family {
	case "integer":
		return normalInteger(dst, variant, lexical, local)
	case "decimal":
		dst, ok = normalDecimal(dst, variant, lexical)
	case "double", "float":
		dst, ok = normalFloat(dst, variant, lexical, local == "float")
	case "boolean":
		switch lexical {
		case "true", "1":
			dst, ok = append(dst, "true"...), true
		case "false", "0":
			dst, ok = append(dst, "false"...), true
		}
	case "time":
		return normalTime(dst, variant, lexical, local)
	case "duration":
		dst, ok = normalDuration(dst, lexical, local)
	}
	if !ok {
		return dst, ""
	}
	return dst, local
}

// trimSpace cuts the white space of XSD from both ends of an escaped lexical form.
func trimSpace(s string) string {
	for {
		switch {
		case strings.HasPrefix(s, " "), strings.HasSuffix(s, " "):
			s = strings.Trim(s, " ")
		case len(s) >= 2 && s[0] == '\\' && isSpaceEscape(s[1]):
			s = s[2:]
		case len(s) >= 2 && s[len(s)-2] == '\\' && isSpaceEscape(s[len(s)-1]) && !strings.HasSuffix(s, `\\`+s[len(s)-1:]):
			s = s[:len(s)-2]
		default:
			return s
		}
	}
}

func isSpaceEscape(c byte) bool { return c == 't' || c == 'n' || c == 'r' }
