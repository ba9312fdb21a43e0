package embedstore

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

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
	vOther // a literal of another datatype, or one that is not well formed
)

// value is a term taken apart for computing.
type value struct {
	kind valueKind
	term string // canonical; "" until it is asked for
	lex  string // lexical form, or the IRI, or the label
	lang string // of vLang; of the others the datatype IRI
	b    bool
	i    int64    // vInteger that fits
	r    *big.Rat // vDecimal, and vInteger that does not fit
	f    float64  // vFloat, vDouble
	t    time.Time
	zone bool // the date has a time zone
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

// splitLiteral is Literal without the copy where nothing is escaped.
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

// integerTypes are those derived from xsd:integer, with their bounds where
// these fit 64 bits.
var integerTypes = map[string][2]int64{
	"integer": {math.MinInt64, math.MaxInt64}, "nonPositiveInteger": {math.MinInt64, 0}, "negativeInteger": {math.MinInt64, -1},
	"long": {math.MinInt64, math.MaxInt64}, "int": {math.MinInt32, math.MaxInt32}, "short": {math.MinInt16, math.MaxInt16},
	"byte": {-128, 127}, "nonNegativeInteger": {0, math.MaxInt64}, "unsignedLong": {0, math.MaxInt64}, "unsignedInt": {0, math.MaxUint32},
	"unsignedShort": {0, math.MaxUint16}, "unsignedByte": {0, 255}, "positiveInteger": {1, math.MaxInt64},
}

// classify finds the value of a literal by its datatype; what is not well
// formed stays vOther.
func (v *value) classify() {
	if !strings.HasPrefix(v.lang, xsdNS) {
		return
	}
	local := v.lang[len(xsdNS):]
	switch local {
	case "string":
		v.kind = vString
	case "boolean":
		switch strings.TrimSpace(v.lex) {
		case "true", "1":
			v.kind, v.b = vBool, true
		case "false", "0":
			v.kind = vBool
		}
	case "decimal":
		if r, ok := parseDecimal(strings.TrimSpace(v.lex)); ok {
			v.kind, v.r = vDecimal, r
		}
	case "double", "float":
		if f, ok := parseFloat(strings.TrimSpace(v.lex)); ok {
			v.kind, v.f = vDouble, f
			if local == "float" {
				v.kind, v.f = vFloat, float64(float32(f))
			}
		}
	case "dateTime":
		if t, zone, ok := parseDateTime(strings.TrimSpace(v.lex)); ok {
			v.kind, v.t, v.zone = vDateTime, t, zone
		}
	default:
		bounds, ok := integerTypes[local]
		if !ok {
			return
		}
		lex := strings.TrimSpace(v.lex)
		if i, err := strconv.ParseInt(lex, 10, 64); err == nil {
			if i >= bounds[0] && i <= bounds[1] {
				v.kind, v.i = vInteger, i
			}
			return
		}
		if isInteger(lex) {
			r, _ := new(big.Rat).SetString(strings.TrimPrefix(lex, "+"))
			v.kind, v.r = vInteger, r
		}
	}
}

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

func parseFloat(s string) (float64, bool) {
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
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return f, true
}

func parseDateTime(s string) (time.Time, bool, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, strings.HasSuffix(layout, "Z07:00"), true
		}
	}
	if day, rest, ok := strings.Cut(s, "T24:00:00"); ok && (rest == "" || rest[0] == 'Z' || rest[0] == '+' || rest[0] == '-') {
		if t, zone, ok := parseDateTime(day + "T00:00:00" + rest); ok {
			return t.AddDate(0, 0, 1), zone, true
		}
	}
	return time.Time{}, false, false
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
func (v *value) isText() bool    { return v.kind == vString || v.kind == vLang }

// rat is the exact value of an integer or decimal.
func (v *value) rat() *big.Rat {
	if v.r != nil {
		return v.r
	}
	return new(big.Rat).SetInt64(v.i)
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
		// A boolean or number that is not well formed is false.
		if local, ok := strings.CutPrefix(v.lang, xsdNS); ok {
			_, integer := integerTypes[local]
			if integer || local == "boolean" || local == "decimal" || local == "double" || local == "float" {
				return false, nil
			}
		}
	}
	return false, errType
}

// compareNumbers orders two numbers; ok is false for NaN.
func compareNumbers(a, b *value) (int, bool) {
	if a.kind == vInteger && b.kind == vInteger && a.r == nil && b.r == nil {
		switch {
		case a.i < b.i:
			return -1, true
		case a.i > b.i:
			return 1, true
		}
		return 0, true
	}
	if a.kind <= vDecimal && b.kind <= vDecimal {
		return a.rat().Cmp(b.rat()), true
	}
	x, y := a.float(), b.float()
	if a.kind != vDouble && b.kind != vDouble {
		x, y = float64(float32(x)), float64(float32(y))
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	case x == y:
		return 0, true
	}
	return 0, false
}

// equalValues is the operator = (section 17.3).
func equalValues(a, b *value) (bool, error) {
	if !a.isLiteral() || !b.isLiteral() {
		return a.kind == b.kind && a.lex == b.lex, nil
	}
	switch {
	case a.isNumeric() && b.isNumeric():
		c, ok := compareNumbers(a, b)
		return ok && c == 0, nil
	case a.kind == vString && b.kind == vString:
		return a.lex == b.lex, nil
	case a.kind == vBool && b.kind == vBool:
		return a.b == b.b, nil
	case a.kind == vDateTime && b.kind == vDateTime:
		c, ok := compareTimes(a, b)
		if !ok {
			return false, errType
		}
		return c == 0, nil
	case a.kind == vLang && b.kind == vLang:
		return a.lex == b.lex && strings.EqualFold(a.lang, b.lang), nil
	}
	if a.asTerm() == b.asTerm() {
		return true, nil
	}
	// Two literals that are known to be of different value spaces differ; of
	// what is not known nothing can be said.
	if a.kind != vOther && b.kind != vOther || a.kind == vLang || b.kind == vLang {
		return false, nil
	}
	return false, errType
}

// compareTimes orders two dates. One without a time zone may lie 14 hours to
// either side.
func compareTimes(a, b *value) (int, bool) {
	c := a.t.Compare(b.t)
	if a.zone == b.zone {
		return c, true
	}
	d := a.t.Sub(b.t)
	if d > 14*time.Hour || d < -14*time.Hour {
		return c, true
	}
	return 0, false
}

// compareValues is the operators < and >.
func compareValues(a, b *value) (int, error) {
	switch {
	case a.isNumeric() && b.isNumeric():
		if c, ok := compareNumbers(a, b); ok {
			return c, nil
		}
		return 2, nil // NaN: neither less, nor equal, nor greater
	case a.kind == vString && b.kind == vString:
		return strings.Compare(a.lex, b.lex), nil
	case a.kind == vBool && b.kind == vBool:
		switch {
		case a.b == b.b:
			return 0, nil
		case b.b:
			return -1, nil
		}
		return 1, nil
	case a.kind == vDateTime && b.kind == vDateTime:
		if c, ok := compareTimes(a, b); ok {
			return c, nil
		}
	case a.kind == vOther && b.kind == vOther && a.lang == b.lang && a.lang == xsdNS+"date":
		return strings.Compare(a.lex, b.lex), nil
	}
	return 0, errType
}

// orderValues is the total order of ORDER BY: unbound, blank nodes, IRIs,
// literals; numbers, strings, dates and booleans among themselves by value, all
// else by term.
func orderValues(a, b *value) int {
	if ra, rb := orderRank(a), orderRank(b); ra != rb {
		return ra - rb
	}
	switch {
	case a.kind == 0:
		return 0
	case a.isNumeric():
		c, ok := compareNumbers(a, b)
		if ok && c != 0 {
			return c
		}
		if !ok {
			if na, nb := math.IsNaN(a.float()), math.IsNaN(b.float()); na != nb {
				if na {
					return -1
				}
				return 1
			}
		}
	case a.kind == vDateTime:
		if c := a.t.Compare(b.t); c != 0 {
			return c
		}
	case a.kind == vBool:
		if c, err := compareValues(a, b); err == nil && c != 0 {
			return c
		}
	default:
		if c := strings.Compare(a.lex, b.lex); c != 0 {
			return c
		}
	}
	return strings.Compare(a.asTerm(), b.asTerm())
}

func orderRank(v *value) int {
	switch v.kind {
	case 0:
		return 0
	case vBlank:
		return 1
	case vIRI:
		return 2
	case vInteger, vDecimal, vFloat, vDouble:
		return 3
	case vDateTime:
		return 4
	case vBool:
		return 5
	}
	return 6
}

// isCast tells whether an IRI is one of the constructor functions (section 17.5).
func isCast(iri string) bool {
	switch strings.TrimPrefix(iri, xsdNS) {
	case "boolean", "double", "float", "decimal", "integer", "dateTime", "string":
		return strings.HasPrefix(iri, xsdNS)
	}
	return false
}

// cast converts v to a datatype.
func cast(iri string, v *value) (value, error) {
	to := iri[len(xsdNS):]
	if v.kind == vBlank || to != "string" && (v.kind == vIRI || v.kind == vLang) {
		return value{}, errType
	}
	if to == "string" {
		return stringValue(v.lex), nil
	}
	out := value{kind: vOther, lex: strings.TrimSpace(v.lex), lang: iri}
	switch {
	case v.kind == vString || v.kind == vOther && v.lang != iri:
		if v.kind == vOther {
			return value{}, errType
		}
		out.classify()
	case to == "boolean" && v.isNumeric():
		b, _ := v.truth()
		return boolValue(b), nil
	case v.kind == vBool && to != "dateTime":
		n := int64(0)
		if v.b {
			n = 1
		}
		switch to {
		case "boolean":
			return boolValue(v.b), nil
		case "integer":
			return intValue(n), nil
		case "decimal":
			return decimalValue(new(big.Rat).SetInt64(n)), nil
		case "double":
			return floatValue(vDouble, float64(n)), nil
		}
		return floatValue(vFloat, float64(n)), nil
	case v.isNumeric():
		switch to {
		case "double":
			return floatValue(vDouble, v.float()), nil
		case "float":
			return floatValue(vFloat, v.float()), nil
		case "integer", "decimal":
			r := new(big.Rat)
			if v.kind >= vFloat {
				if math.IsInf(v.f, 0) || math.IsNaN(v.f) {
					return value{}, errType
				}
				r.SetFloat64(v.f)
			} else {
				r.Set(v.rat())
			}
			if to == "decimal" {
				return decimalValue(r), nil
			}
			return bigIntValue(new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom()))), nil
		default:
			return value{}, errType
		}
	case v.kind == vDateTime && to == "dateTime":
		return *v, nil
	default:
		return value{}, errType
	}
	if out.kind == vOther {
		return value{}, errType
	}
	return out, nil
}
