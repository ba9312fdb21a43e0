package embedstore

import (
	"cmp"
	"math"
	"strings"
)

// How values compare, for =, <, IN, ORDER BY, MIN and MAX alike. DISTINCT, GROUP BY and
// joins compare terms.

// compareNumbers orders two numbers; ok is false for NaN.
func compareNumbers(a, b *value) (int, bool) {
	if a.kind == vInteger && b.kind == vInteger && a.r == nil && b.r == nil {
		return cmp.Compare(a.i, b.i), true
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
	}
	return 0, x == y
}

// content is the part of texts and binaries for comparison with others of their kind.
func (v *value) content() string {
	switch v.kind {
	case vHex:
		return strings.ToUpper(trimSpace(v.lex))
	case vBase64:
		return withoutSpace(v.lex)
	}
	return v.lex
}

// equalValues is the operator = (section 17.3).
func equalValues(a, b *value) (bool, error) {
	switch {
	case !a.isLiteral() || !b.isLiteral():
		return a.kind == b.kind && a.lex == b.lex, nil
	case a.isNumeric() && b.isNumeric():
		c, ok := compareNumbers(a, b)
		return ok && c == 0, nil
	case a.kind == vLang && b.kind == vLang:
		return a.lex == b.lex && a.lang == b.lang, nil
	case a.kind == b.kind && a.kind != vOther:
		switch {
		case a.kind == vBool:
			return a.b == b.b, nil
		case a.kind == vDuration:
			return a.i == b.i && a.at == b.at, nil
		case a.isInstant():
			c, ok := compareInstants(a, b)
			if !ok {
				return false, errType
			}
			return c == 0, nil
		}
		return a.content() == b.content(), nil
	}
	// Values of different kinds differ. A literal without a known value equals itself for certain,
	// and has no language; more is not known of it.
	if a.kind != vOther && b.kind != vOther || a.kind == vLang || b.kind == vLang {
		return false, nil
	}
	if a.asTerm() == b.asTerm() {
		return true, nil
	}
	return false, errType
}

// compareValues is the operators < and >. Of NaN it gives 2: neither less, nor equal,
// nor greater.
func compareValues(a, b *value) (int, error) {
	switch {
	case a.isNumeric() && b.isNumeric():
		if c, ok := compareNumbers(a, b); ok {
			return c, nil
		}
		return 2, nil
	case a.kind != b.kind:
	case a.kind == vString:
		return strings.Compare(a.lex, b.lex), nil
	case a.kind == vBool:
		return compareBools(a.b, b.b), nil
	case a.kind == vDuration:
		if c, ok := compareDurations(a, b); ok {
			return c, nil
		}
	case a.isInstant():
		if c, ok := compareInstants(a, b); ok {
			return c, nil
		}
	}
	return 0, errType
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// orderValues is the order of ORDER BY: unbound, blank nodes, IRIs, numbers, instants of each type,
// durations, booleans, all else by its lexical form. It agrees with < for comparable values. 0
// means equal values: the next key decides.
func orderValues(a, b *value) int {
	if c := orderRank(a) - orderRank(b); c != 0 {
		return c
	}
	switch {
	case a.kind == 0:
		return 0
	case a.kind == vBlank || a.kind == vIRI:
		return strings.Compare(a.lex, b.lex)
	case a.isNumeric():
		return orderNumbers(a, b)
	case a.isInstant(): // one without a time zone before the same one in UTC
		return cmp.Or(a.utc().compare(b.utc()), compareBools(a.zone, b.zone))
	case a.kind == vDuration:
		return cmp.Or(a.length().compare(b.length()), cmp.Compare(a.i, b.i))
	case a.kind == vBool:
		return compareBools(a.b, b.b)
	}
	tag := func(v *value) string {
		switch v.kind {
		case vString:
			return ""
		case vLang:
			return "@" + v.lang
		}
		return v.lang
	}
	return cmp.Or(strings.Compare(a.content(), b.content()), strings.Compare(tag(a), tag(b)))
}

// length is a duration in seconds, with months of a usual length.
func (v *value) length() span { return v.at.plus(span{v.i * 2_629_746, 0}) }

// orderNumbers compares exactly, since comparing a decimal with a double as < does is not
// transitive. NaN comes first.
func orderNumbers(a, b *value) int {
	if a.kind == vInteger && b.kind == vInteger && a.r == nil && b.r == nil {
		return cmp.Compare(a.i, b.i)
	}
	x, y := a.float(), b.float()
	if c := cmp.Compare(x, y); c != 0 || math.IsNaN(x) {
		return c
	}
	if a.kind >= vFloat && b.kind >= vFloat {
		return 0
	}
	p, finite := a.exact()
	q, also := b.exact()
	switch {
	case finite && also:
		return p.Cmp(q)
	case x < 0: // an infinity, and a decimal beyond all doubles
		return compareBools(finite, also)
	}
	return compareBools(also, finite)
}

func orderRank(v *value) int {
	switch {
	case v.kind == 0:
		return 0
	case v.kind == vBlank:
		return 1
	case v.kind == vIRI:
		return 2
	case v.isNumeric():
		return 3
	case v.isInstant(), v.kind == vDuration:
		return 4 + int(v.kind-vDateTime)
	case v.kind == vBool:
		return 50
	}
	return 51
}
