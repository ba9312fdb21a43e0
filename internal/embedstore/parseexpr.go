package embedstore

import (
	"slices"
	"strings"
)

func (p *parser) expression() expr {
	defer p.in.deeper()()
	e := p.andExpr()
	for p.in.accept("||") {
		e = &callExpr{"||", []expr{e, p.andExpr()}}
	}
	return e
}

func (p *parser) andExpr() expr {
	e := p.relational()
	for p.in.accept("&&") {
		e = &callExpr{"&&", []expr{e, p.relational()}}
	}
	return e
}

func (p *parser) relational() expr {
	e := p.additive()
	for _, op := range []string{"=", "!=", "<=", ">=", "<", ">"} {
		if p.in.accept(op) {
			return &callExpr{op, []expr{e, p.additive()}}
		}
	}
	if p.in.word("IN") {
		return &callExpr{"IN", append([]expr{e}, p.expressionList()...)}
	}
	if p.in.isWord("NOT") {
		p.in.advance()
		p.in.expectWord("IN")
		return &callExpr{"NOT IN", append([]expr{e}, p.expressionList()...)}
	}
	return e
}

func (p *parser) expressionList() []expr {
	if p.in.tok.kind == tokNil {
		p.in.advance()
		return nil
	}
	p.in.expect("(")
	var es []expr
	for {
		es = append(es, p.expression())
		if !p.in.accept(",") {
			break
		}
	}
	p.in.expect(")")
	return es
}

func (p *parser) additive() expr {
	e := p.multiplicative()
	for {
		switch {
		case p.in.accept("+"):
			e = &callExpr{"+", []expr{e, p.multiplicative()}}
		case p.in.accept("-"):
			e = &callExpr{"-", []expr{e, p.multiplicative()}}
		default:
			return e
		}
	}
}

func (p *parser) multiplicative() expr {
	e := p.unary()
	for {
		switch {
		case p.in.accept("*"):
			e = &callExpr{"*", []expr{e, p.unary()}}
		case p.in.accept("/"):
			e = &callExpr{"/", []expr{e, p.unary()}}
		default:
			return e
		}
	}
}

func (p *parser) unary() expr {
	defer p.in.deeper()()
	switch {
	case p.in.accept("!"):
		return &callExpr{"!", []expr{p.unary()}}
	case p.in.accept("-"):
		return &callExpr{"NEG", []expr{p.unary()}}
	case p.in.accept("+"):
		return &callExpr{"POS", []expr{p.unary()}}
	}
	return p.primary()
}

func (p *parser) primary() expr {
	switch p.in.tok.kind {
	case tokPunct:
		if p.in.isPunct("(") {
			return p.bracketted()
		}
	case tokVar:
		e := &varExpr{p.slot(p.in.tok.text)}
		p.in.advance()
		return e
	case tokIRI, tokPName:
		iri := p.iri()
		if p.in.tok.kind == tokNil || p.in.isPunct("(") {
			return p.functionCall(iri)
		}
		return &constExpr{parseValue(iri)}
	case tokWord:
		if p.in.isWord("true") || p.in.isWord("false") {
			t, _ := p.literal()
			return &constExpr{parseValue(t)}
		}
		if e, ok := p.builtin(); ok {
			return e
		}
	default:
		if t, ok := p.literal(); ok {
			return &constExpr{parseValue(t)}
		}
	}
	p.in.fail("expected an expression, found %s", p.in.tok)
	return nil
}

// functionCall is a call of a function named by an IRI: the casts of XPath.
func (p *parser) functionCall(iri string) expr {
	if p.in.isPunct("(") || p.in.tok.kind == tokNil {
		distinct := false
		var args []expr
		if p.in.tok.kind == tokNil {
			p.in.advance()
		} else {
			p.in.advance()
			distinct = p.in.word("DISTINCT")
			for {
				args = append(args, p.expression())
				if !p.in.accept(",") {
					break
				}
			}
			p.in.expect(")")
		}
		name := strings.TrimSuffix(strings.TrimPrefix(iri, "<"), ">")
		if !distinct && len(args) == 1 && isCast(name) {
			return &callExpr{name, args}
		}
		panic(parseError{unsupported("the function " + iri + ": only those of SPARQL 1.1 and the casts of XML Schema are known")})
	}
	return nil
}

// arity is how many arguments each function takes; -1 for any number.
var arity = map[string][2]int{
	"STR": {1, 1}, "LANG": {1, 1}, "LANGMATCHES": {2, 2}, "DATATYPE": {1, 1}, "BOUND": {1, 1},
	"IRI": {1, 1}, "URI": {1, 1}, "BNODE": {0, 1}, "RAND": {0, 0}, "ABS": {1, 1}, "CEIL": {1, 1}, "FLOOR": {1, 1},
	"ROUND": {1, 1}, "CONCAT": {0, -1}, "STRLEN": {1, 1}, "UCASE": {1, 1}, "LCASE": {1, 1},
	"ENCODE_FOR_URI": {1, 1}, "CONTAINS": {2, 2}, "STRSTARTS": {2, 2}, "STRENDS": {2, 2}, "STRBEFORE": {2, 2},
	"STRAFTER": {2, 2}, "YEAR": {1, 1}, "MONTH": {1, 1}, "DAY": {1, 1}, "HOURS": {1, 1}, "MINUTES": {1, 1},
	"SECONDS": {1, 1}, "TIMEZONE": {1, 1}, "TZ": {1, 1}, "NOW": {0, 0}, "UUID": {0, 0}, "STRUUID": {0, 0},
	"MD5": {1, 1}, "SHA1": {1, 1}, "SHA256": {1, 1}, "SHA384": {1, 1}, "SHA512": {1, 1}, "COALESCE": {0, -1},
	"IF": {3, 3}, "STRLANG": {2, 2}, "STRDT": {2, 2}, "SAMETERM": {2, 2}, "ISIRI": {1, 1}, "ISURI": {1, 1},
	"ISBLANK": {1, 1}, "ISLITERAL": {1, 1}, "ISNUMERIC": {1, 1}, "REGEX": {2, 3}, "SUBSTR": {2, 3}, "REPLACE": {3, 4},
}

func (p *parser) builtin() (expr, bool) {
	name := strings.ToUpper(p.in.tok.text)
	switch name {
	case "EXISTS":
		p.in.advance()
		return &existsExpr{in: p.group()}, true
	case "NOT":
		p.in.advance()
		p.in.expectWord("EXISTS")
		return &existsExpr{not: true, in: p.group()}, true
	case "COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT":
		return p.aggregate(name), true
	}
	n, ok := arity[name]
	if !ok {
		return nil, false
	}
	if p.lasting && slices.Contains([]string{"NOW", "RAND", "UUID", "STRUUID"}, name) {
		p.in.fail("%s gives another result each time, and what is made of a description must stay as long as it does", name)
	}
	p.in.advance()
	var args []expr
	if p.in.tok.kind == tokNil {
		p.in.advance()
	} else {
		p.in.expect("(")
		for {
			args = append(args, p.expression())
			if !p.in.accept(",") {
				break
			}
		}
		p.in.expect(")")
	}
	if len(args) < n[0] || n[1] >= 0 && len(args) > n[1] {
		p.in.fail("%s has %d arguments, which is not what it takes", name, len(args))
	}
	if _, isVar := append(args, nil)[0].(*varExpr); name == "BOUND" && !isVar {
		p.in.fail("BOUND takes a variable")
	}
	return &callExpr{name, args}, true
}

func (p *parser) aggregate(name string) expr {
	if p.aggs == nil || p.inAgg {
		p.in.fail("the aggregate %s is not allowed here", name)
	}
	p.in.advance()
	p.inAgg = true
	defer func() { p.inAgg = false }()
	a := aggregate{name: name, sep: " "}
	p.in.expect("(")
	a.distinct = p.in.word("DISTINCT")
	if name == "COUNT" && p.in.accept("*") {
		p.in.expect(")")
	} else {
		a.arg = p.expression()
		if name == "GROUP_CONCAT" && p.in.accept(";") {
			p.in.expectWord("SEPARATOR")
			p.in.expect("=")
			if p.in.tok.kind != tokString {
				p.in.fail("expected a string after SEPARATOR =, found %s", p.in.tok)
			}
			a.sep = p.in.tok.text
			p.in.advance()
		}
		p.in.expect(")")
	}
	*p.aggs = append(*p.aggs, a)
	return &aggExpr{len(*p.aggs) - 1}
}
