package embedstore

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// isCast tells whether an IRI is a constructor function: those of SPARQL (section 17.5), and those
// of XPath for all types with known values.
func isCast(iri string) bool {
	local, ok := strings.CutPrefix(iri, xsdNS)
	if !ok {
		return false
	}
	switch local {
	case "boolean", "double", "float", "decimal", "string":
		return true
	}
	_, integer := integerTypes[local]
	_, duration := durationParts[local]
	_, instant := instantKinds[local]
	return integer || duration || instant && local != "dateTimeStamp"
}

// cast converts v to a datatype.
func cast(iri string, v *value) (value, error) {
	to := iri[len(xsdNS):]
	if to == "string" {
		return castToString(v)
	}
	switch {
	case v.kind == vString:
		out := value{kind: vOther, lex: trimSpace(v.lex), lang: iri}
		if out.classify(); out.kind != vOther {
			return out.canonical(), nil
		}
	case v.isNumeric(), v.kind == vBool:
		return castNumber(to, v)
	case v.isInstant():
		if kind, ok := instantKinds[to]; ok && v.kind == kind {
			return v.canonical(), nil
		} else if ok && (v.kind == vDateTime || v.kind == vDate && kind != vTime) {
			return instantValue(kind, v.fields(), v.off, v.zone), nil
		}
	case v.kind == vDuration:
		has, ok := durationParts[to]
		if !ok {
			break
		}
		months, at := v.i, v.at
		if !has[0] {
			months = 0
		}
		if !has[1] {
			at = span{}
		}
		return durationValue(to, months, at)
	}
	return value{}, errType
}

// castNumber converts a number or a boolean.
func castNumber(to string, v *value) (value, error) {
	if v.kind == vBool {
		n := intValue(0)
		if v.b {
			n = intValue(1)
		}
		if to == "boolean" {
			return boolValue(v.b), nil
		}
		v = &n
	}
	switch to {
	case "boolean":
		b, _ := v.truth()
		return boolValue(b), nil
	case "double":
		return floatValue(vDouble, v.float()), nil
	case "float":
		return floatValue(vFloat, v.float()), nil
	}
	r, ok := v.exact()
	if !ok {
		return value{}, errType
	}
	if to == "decimal" {
		return decimalValue(r), nil
	}
	bounds, ok := integerTypes[to]
	if !ok {
		return value{}, errType
	}
	out := value{kind: vOther, lex: new(big.Int).Quo(r.Num(), r.Denom()).String(), lang: xsdNS + to}
	if out.classifyInteger(out.lex, bounds); out.kind == vOther {
		return value{}, errType
	}
	return out, nil
}

// canonical is the same value in its canonical form.
func (v *value) canonical() value {
	switch {
	case v.kind == vFloat, v.kind == vDouble:
		return floatValue(v.kind, v.f)
	case v.isInstant():
		return instantValue(v.kind, v.fields(), v.off, v.zone)
	case v.kind == vDuration:
		d, _ := durationValue(v.lang[len(xsdNS):], v.i, v.at)
		return d
	}
	out := *v
	out.term = ""
	switch v.kind {
	case vBool:
		out.lex = strconv.FormatBool(v.b)
	case vInteger:
		out.lex = v.rat().Num().String()
	case vDecimal:
		out.lex = decimalText(v.r)
	case vHex, vBase64:
		out.lex = v.content()
	}
	return out
}

// castToString writes a value in its canonical form (XPath, 19.1.1). A literal of a type without a
// known value keeps its lexical form; an ill-formed one has none.
func castToString(v *value) (value, error) {
	switch {
	case v.kind == vIRI, v.isText():
		return stringValue(v.lex), nil
	case v.kind == vFloat, v.kind == vDouble:
		return stringValue(floatText(v)), nil
	case v.kind > vLang && v.kind < vOther:
		c := v.canonical()
		return stringValue(c.lex), nil
	case v.kind == vOther && !knownType(v.lang):
		return stringValue(v.lex), nil
	}
	return value{}, errType
}

// knownType tells whether the values of a datatype are known.
func knownType(iri string) bool {
	local, ok := strings.CutPrefix(iri, xsdNS)
	return ok && (isCast(iri) || local == "dateTimeStamp" || local == "hexBinary" || local == "base64Binary")
}

// decimalText writes all digits of a decimal.
func decimalText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// floatText is how XPath writes a float or double: usual numbers without an exponent.
func floatText(v *value) string {
	bits := 64
	if v.kind == vFloat {
		bits = 32
	}
	if f := math.Abs(v.f); f >= 1e-6 && f < 1e6 || f == 0 {
		return strconv.FormatFloat(v.f, 'f', -1, bits)
	}
	c := v.canonical()
	return c.lex
}
