package embedstore

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// errType is an error of an expression: the filter is not passed, the variable
// stays unbound.
var errType = errors.New("type error")

type valueKind byte

const (
	vIRI valueKind = iota + 1
	vBlank
	vString // xsd:string and simple literals
	vLang
	vBool
	vInteger
	vDecimal
	vFloat
	vDouble
	vDateTime
	vDate
	vTime
	vYearMonth
	vYear
	vMonthDay
	vMonth
	vDay
	vDuration
	vHex
	vBase64
	vOther // a literal of another datatype, or an ill-formed one
)

// value is a term taken apart for computing.
type value struct {
	kind valueKind
	term string // canonical; "" until it is asked for
	lex  string // lexical form, or the IRI, or the label
	lang string // of vLang; of the others the datatype IRI
	b    bool
	i    int64    // of a vInteger in range; months of vDuration
	r    *big.Rat // vDecimal, and vInteger out of range
	f    float64  // vFloat, vDouble
	at   span     // of an instant: since 1970-01-01, on its own clock; of vDuration: its part without months
	off  int16    // of an instant: minutes its clock is ahead of UTC
	zone bool     // the instant has a time zone
}

// parseValue takes a canonical term apart.
func parseValue(term string) value {
	v := value{term: term}
	switch kindOf(term) {
	case idIRI:
		v.kind, v.lex = vIRI, rdfres.Term(term).IRI()
		return v
	case idBlank:
		v.kind, v.lex = vBlank, term[2:]
		return v
	}
	lex, lang, dt := splitLiteral(term)
	v.lex = lex
	if lang != "" {
		v.kind, v.lang = vLang, lang
		return v
	}
	v.lang = dt
	v.kind = vOther
	v.classify()
	return v
}

// splitLiteral is Literal without the copy of an unescaped literal.
func splitLiteral(term string) (lex, lang, dt string) {
	if strings.IndexByte(term, '\\') < 0 {
		n := strings.LastIndexByte(term, '"')
		lex = term[1:n]
		rest := term[n+1:]
		switch {
		case rest == "":
			return lex, "", xsdNS + "string"
		case rest[0] == '@':
			return lex, rest[1:], rdfNS + "langString"
		}
		return lex, "", rest[3 : len(rest)-1]
	}
	return rdfres.Term(term).Literal()
}

// integerTypes are those derived from xsd:integer, with their bounds; nil is none.
var integerTypes = map[string][2]*big.Int{
	"integer": {}, "nonPositiveInteger": {1: bound("0")}, "negativeInteger": {1: bound("-1")}, "nonNegativeInteger": {0: bound("0")}, "positiveInteger": {0: bound("1")},
	"long": {bound("-9223372036854775808"), bound("9223372036854775807")}, "int": {bound("-2147483648"), bound("2147483647")},
	"short": {bound("-32768"), bound("32767")}, "byte": {bound("-128"), bound("127")}, "unsignedLong": {bound("0"), bound("18446744073709551615")},
	"unsignedInt": {bound("0"), bound("4294967295")}, "unsignedShort": {bound("0"), bound("65535")}, "unsignedByte": {bound("0"), bound("255")},
}

func bound(s string) *big.Int {
	n, _ := new(big.Int).SetString(s, 10)
	return n
}

// stringTypes are the types with strings as values, and xsd:anyURI, compared as a string by XPath.
var stringTypes = map[string]bool{
	"string": true, "normalizedString": true, "token": true, "language": true, "NMTOKEN": true, "Name": true, "NCName": true,
	"ID": true, "IDREF": true, "ENTITY": true, "anyURI": true,
}

// trimSpace removes XML's white space.
func trimSpace(s string) string { return strings.Trim(s, " \t\r\n") }

// classify finds the value of a literal by its datatype; an ill-formed one stays vOther.
func (v *value) classify() {
	local, ok := strings.CutPrefix(v.lang, xsdNS)
	if !ok {
		return
	}
	if stringTypes[local] {
		v.kind = vString
		return
	}
	lex := trimSpace(v.lex)
	switch local {
	case "boolean":
		switch lex {
		case "true", "1":
			v.kind, v.b = vBool, true
		case "false", "0":
			v.kind = vBool
		}
	case "decimal":
		if r, ok := parseDecimal(lex); ok {
			v.kind, v.r = vDecimal, r
		}
	case "double":
		if f, ok := parseFloat(lex, 64); ok {
			v.kind, v.f = vDouble, f
		}
	case "float":
		if f, ok := parseFloat(lex, 32); ok {
			v.kind, v.f = vFloat, f
		}
	case "duration", "yearMonthDuration", "dayTimeDuration":
		if months, at, ok := parseDuration(local, lex); ok {
			v.kind, v.i, v.at = vDuration, months, at
		}
	case "hexBinary":
		if _, err := hex.DecodeString(lex); err == nil {
			v.kind = vHex
		}
	case "base64Binary":
		if _, err := base64.StdEncoding.Strict().DecodeString(withoutSpace(lex)); err == nil {
			v.kind = vBase64
		}
	default:
		if bounds, ok := integerTypes[local]; ok {
			v.classifyInteger(lex, bounds)
		} else if kind, ok := instantKinds[local]; ok {
			at, off, zone, ok := parseInstant(kind, lex)
			if ok && (zone || local != "dateTimeStamp") {
				v.kind, v.at, v.off, v.zone = kind, at, off, zone
			}
		}
	}
}

func (v *value) classifyInteger(lex string, bounds [2]*big.Int) {
	if !isInteger(lex) {
		return
	}
	n, err := strconv.ParseInt(lex, 10, 64)
	if err == nil && bounds == [2]*big.Int{} {
		v.kind, v.i = vInteger, n
		return
	}
	whole, _ := new(big.Int).SetString(strings.TrimPrefix(lex, "+"), 10)
	if bounds[0] != nil && whole.Cmp(bounds[0]) < 0 || bounds[1] != nil && whole.Cmp(bounds[1]) > 0 {
		return
	}
	if v.kind, v.i = vInteger, n; err != nil {
		v.i, v.r = 0, new(big.Rat).SetInt(whole)
	}
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

func isInteger(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	if s == "" || len(s) > 10000 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func parseDecimal(s string) (*big.Rat, bool) {
	body := s
	if body != "" && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	whole, frac, _ := strings.Cut(body, ".")
	if whole == "" && frac == "" || len(body) > 10000 {
		return nil, false
	}
	for _, part := range []string{whole, frac} {
		for i := 0; i < len(part); i++ {
			if !isDigit(part[i]) {
				return nil, false
			}
		}
	}
	if frac == "" {
		s = strings.TrimSuffix(s, ".")
	}
	if whole == "" {
		s = strings.Replace(s, ".", "0.", 1)
	}
	r, ok := new(big.Rat).SetString(strings.TrimPrefix(s, "+"))
	return r, ok
}

// parseFloat reads a double, or with 32 bits a float.
func parseFloat(s string, bits int) (float64, bool) {
	switch s {
	case "INF", "+INF":
		return math.Inf(1), true
	case "-INF":
		return math.Inf(-1), true
	case "NaN":
		return math.NaN(), true
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isDigit(c) && strings.IndexByte("+-.eE", c) < 0 {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(s, bits)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

func boolValue(b bool) value {
	return value{kind: vBool, b: b, lex: strconv.FormatBool(b), lang: xsdNS + "boolean"}
}
func intValue(i int64) value {
	return value{kind: vInteger, i: i, lex: strconv.FormatInt(i, 10), lang: xsdNS + "integer"}
}
func stringValue(s string) value { return value{kind: vString, lex: s, lang: xsdNS + "string"} }
func langValue(s, tag string) value {
	return value{kind: vLang, lex: s, lang: tag}
}
func iriValue(iri string) value { return value{kind: vIRI, lex: iri} }

func bigIntValue(r *big.Rat) value {
	if r.Num().IsInt64() {
		return intValue(r.Num().Int64())
	}
	return value{kind: vInteger, r: r, lex: r.Num().String(), lang: xsdNS + "integer"}
}

// decimalDigits is how many digits after the point a computed decimal has.
const decimalDigits = 18

func decimalValue(r *big.Rat) value {
	s := r.FloatString(decimalDigits)
	s = strings.TrimRight(s, "0")
	s = strings.TrimSuffix(s, ".")
	if s == "-0" || s == "" {
		s = "0"
	}
	cut, _ := new(big.Rat).SetString(s)
	return value{kind: vDecimal, r: cut, lex: s, lang: xsdNS + "decimal"}
}

func floatValue(kind valueKind, f float64) value {
	v := value{kind: kind, f: f, lang: xsdNS + "double"}
	bits := 64
	if kind == vFloat {
		v.lang, bits, v.f = xsdNS+"float", 32, float64(float32(f))
	}
	switch {
	case math.IsInf(f, 1):
		v.lex = "INF"
	case math.IsInf(f, -1):
		v.lex = "-INF"
	case math.IsNaN(f):
		v.lex = "NaN"
	default:
		s := strconv.FormatFloat(f, 'E', -1, bits)
		m, e, _ := strings.Cut(s, "E")
		if !strings.Contains(m, ".") {
			m += ".0"
		}
		n, _ := strconv.Atoi(e)
		v.lex = m + "E" + strconv.Itoa(n)
	}
	return v
}

// asTerm is the canonical term of a value.
func (v *value) asTerm() string {
	if v.term == "" {
		switch v.kind {
		case vIRI:
			v.term = iriTerm(v.lex)
		case vBlank:
			v.term = "_:" + v.lex
		case vLang:
			v.term = string(rdfres.NewLiteral(v.lex, v.lang, ""))
		default:
			v.term = string(rdfres.NewLiteral(v.lex, "", v.lang))
		}
	}
	return v.term
}

func (v *value) isLiteral() bool { return v.kind >= vString }
func (v *value) isNumeric() bool { return v.kind >= vInteger && v.kind <= vDouble }
func (v *value) isInstant() bool { return v.kind >= vDateTime && v.kind <= vDay }
func (v *value) isText() bool    { return v.kind == vString || v.kind == vLang }

// rat is the exact value of an integer or decimal.
func (v *value) rat() *big.Rat {
	if v.r != nil {
		return v.r
	}
	return new(big.Rat).SetInt64(v.i)
}

// exact is rat of any number with an exact value.
func (v *value) exact() (*big.Rat, bool) {
	switch {
	case v.kind == vInteger || v.kind == vDecimal:
		return new(big.Rat).Set(v.rat()), true
	case !v.isNumeric() || math.IsNaN(v.f) || math.IsInf(v.f, 0):
		return nil, false
	}
	return new(big.Rat).SetFloat64(v.f), true
}

func (v *value) float() float64 {
	if v.kind == vFloat || v.kind == vDouble {
		return v.f
	}
	f, _ := v.rat().Float64()
	return f
}

// truth is the effective boolean value (section 17.2.2).
func (v *value) truth() (bool, error) {
	switch v.kind {
	case vBool:
		return v.b, nil
	case vString:
		return v.lex != "", nil
	case vInteger, vDecimal:
		return v.rat().Sign() != 0, nil
	case vFloat, vDouble:
		return v.f != 0 && !math.IsNaN(v.f), nil
	case vOther:
		// An ill-formed boolean or number is false.
		if local, ok := strings.CutPrefix(v.lang, xsdNS); ok {
			_, integer := integerTypes[local]
			if integer || local == "boolean" || local == "decimal" || local == "double" || local == "float" {
				return false, nil
			}
		}
	}
	return false, errType
}
