package embedstore

import (
	"math"
	"math/big"
)

// arithmetic is + - * / on numbers, with the promotions of XPath, and on instants and durations.
func arithmetic(op string, a, b *value) (value, error) {
	if !a.isNumeric() || !b.isNumeric() {
		return temporalArithmetic(op, a, b)
	}
	kind := max(a.kind, b.kind)
	if kind >= vFloat {
		x, y := a.float(), b.float()
		switch op {
		case "+":
			x += y
		case "-":
			x -= y
		case "*":
			x *= y
		case "/":
			x /= y
		}
		return floatValue(kind, x), nil
	}
	if kind == vInteger && a.r == nil && b.r == nil {
		const small = 1 << 31
		fits := a.i > -small && a.i < small && b.i > -small && b.i < small
		const wide = 1 << 61
		sums := a.i > -wide && a.i < wide && b.i > -wide && b.i < wide
		switch {
		case op == "+" && sums:
			return intValue(a.i + b.i), nil
		case op == "-" && sums:
			return intValue(a.i - b.i), nil
		case op == "*" && fits:
			return intValue(a.i * b.i), nil
		}
	}
	r := new(big.Rat)
	switch op {
	case "+":
		r.Add(a.rat(), b.rat())
	case "-":
		r.Sub(a.rat(), b.rat())
	case "*":
		r.Mul(a.rat(), b.rat())
	case "/":
		if b.rat().Sign() == 0 {
			return value{}, errType
		}
		return decimalValue(r.Quo(a.rat(), b.rat())), nil
	}
	if kind == vInteger {
		return bigIntValue(r), nil
	}
	return decimalValue(r), nil
}

// floorRat is the largest whole number not above r.
func floorRat(r *big.Rat) *big.Int {
	q, _ := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int)) // towards minus infinity
	return q
}

// rounding is ABS, CEIL, FLOOR and ROUND.
func rounding(name string, v *value) (value, error) {
	if !v.isNumeric() {
		return value{}, errType
	}
	if v.kind >= vFloat {
		f := v.f
		switch name {
		case "ABS":
			f = math.Abs(f)
		case "CEIL":
			f = math.Ceil(f)
		case "FLOOR":
			f = math.Floor(f)
		default:
			f = math.Floor(f + 0.5)
		}
		return floatValue(v.kind, f), nil
	}
	r := new(big.Rat).Set(v.rat())
	if name == "ABS" {
		r.Abs(r)
		if v.kind == vInteger {
			return bigIntValue(r), nil
		}
		return decimalValue(r), nil
	}
	if v.kind == vInteger {
		return bigIntValue(r), nil
	}
	if name == "ROUND" {
		r.Add(r, big.NewRat(1, 2))
	}
	q := floorRat(r)
	if name == "CEIL" && !r.IsInt() {
		q.Add(q, big.NewInt(1))
	}
	return decimalValue(new(big.Rat).SetInt(q)), nil
}
