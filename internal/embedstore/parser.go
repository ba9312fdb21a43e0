package embedstore

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	rdfNS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xsdNS = "http://www.w3.org/2001/XMLSchema#"

	rdfType  = "<" + rdfNS + "type>"
	rdfFirst = "<" + rdfNS + "first>"
	rdfRest  = "<" + rdfNS + "rest>"
	rdfNil   = "<" + rdfNS + "nil>"
)

// parser reads SPARQL 1.1 by recursive descent over its tokens.
type parser struct {
	in       tokenReader
	base     string
	prefixes map[string]string

	slots  int
	scope  *scope
	blanks map[blankLabel]patternBlank
	basic  int // number of the present basic graph pattern
	basics int // how many there were

	// inTemplate makes blank nodes fresh ones of a template.
	inTemplate bool
	noVars     bool // variables are not allowed
	tmplBlanks map[string]int
	tmplSlots  []int

	first   *valuesNode // begin of the next group, nil: nothing
	lasting bool        // nothing may give another result each time
	simple  bool        // no sub-selects with a limit or an aggregate

	// aggs collects aggregates in places for them.
	aggs  *[]aggregate
	inAgg bool
}

func newParser(r io.Reader, base string) *parser {
	return &parser{in: tokenReader{lex: newLexer(r)}, base: base, prefixes: map[string]string{}, blanks: map[blankLabel]patternBlank{}, tmplBlanks: map[string]int{}}
}

// ---- scopes

func (p *parser) pushScope() *scope {
	old := p.scope
	p.scope = &scope{names: map[string]int{}}
	return old
}

func (p *parser) newSlot() int {
	p.slots++
	return p.slots - 1
}

// slot is the slot of a variable by its name.
func (p *parser) slot(name string) int {
	if p.noVars {
		p.in.fail("variables are not allowed in INSERT DATA and DELETE DATA")
	}
	if n, ok := p.scope.names[name]; ok {
		return n
	}
	n := p.newSlot()
	p.scope.names[name] = n
	p.scope.order = append(p.scope.order, name)
	return n
}

// ---- the prologue and whole requests

func (p *parser) prologue() {
	for {
		switch {
		case p.in.word("BASE"):
			if p.in.tok.kind != tokIRI {
				p.in.fail("expected an IRI after BASE, found %s", p.in.tok)
			}
			p.base = p.resolve(p.in.tok.text)
			p.in.advance()
		case p.in.word("PREFIX"):
			if p.in.tok.kind != tokPName || strings.IndexByte(p.in.tok.text, ':') != len(p.in.tok.text)-1 {
				p.in.fail("expected a prefix that ends in a colon, found %s", p.in.tok)
			}
			name := p.in.tok.text
			p.in.advance()
			if p.in.tok.kind != tokIRI {
				p.in.fail("expected an IRI for the prefix %s, found %s", name, p.in.tok)
			}
			p.prefixes[name] = p.resolve(p.in.tok.text)
			p.in.advance()
		default:
			return
		}
	}
}

func parseQuery(text, base string) (*query, error) {
	q, _, err := newParser(strings.NewReader(text), base).request("")
	return q, err
}

// parseGiven reads a query with one variable given: its WHERE begins with the returned values, as
// if written there. It refuses functions with another result each time.
func parseGiven(text, name string) (*query, *valuesNode, error) {
	p := newParser(strings.NewReader(text), "")
	p.lasting = true
	return p.request(name)
}

func (p *parser) request(name string) (q *query, given *valuesNode, err error) {
	err = p.in.guarded(func() {
		p.in.advance()
		p.prologue()
		p.pushScope()
		if name != "" {
			given = &valuesNode{slots: []int{p.slot(name)}, rows: [][]string{{"<urn:given>"}}}
			p.first = given
		}
		q = p.query()
		if p.in.tok.kind != tokEOF {
			p.in.fail("expected the end of the query, found %s", p.in.tok)
		}
		q.slots, q.base = p.slots, p.base
	})
	return q, given, err
}

// begin is the first group of a WHERE: empty, except for the given values.
func (p *parser) begin() *joinNode {
	j := &joinNode{}
	if p.first != nil {
		j.parts = append(j.parts, p.first)
		p.first = nil
	}
	return j
}

func (p *parser) query() *query {
	q := &query{limit: -1, scope: p.scope}
	switch {
	case p.in.isWord("SELECT"):
		q.form = formSelect
		p.selectClause(q)
	case p.in.word("CONSTRUCT"):
		q.form = formConstruct
		if p.in.isPunct("{") {
			q.construct.triples = p.constructTemplate()
			q.construct.blanks = p.tmplSlots
		} else {
			q.from = p.fromClauses("FROM")
			p.in.expectWord("WHERE")
			p.constructShort(q)
			p.modifiers(q)
			p.trailingValues(q)
			return q
		}
	case p.in.word("ASK"):
		q.form = formAsk
	case p.in.word("DESCRIBE"):
		q.form = formDescribe
		if p.in.accept("*") {
			q.star = true
		} else {
			for p.in.tok.kind == tokVar || p.in.tok.kind == tokIRI || p.in.tok.kind == tokPName {
				q.describe = append(q.describe, p.varOrIRI())
			}
			if len(q.describe) == 0 {
				p.in.fail("expected what to describe: variables, IRIs or *, found %s", p.in.tok)
			}
		}
	default:
		p.in.fail("expected SELECT, CONSTRUCT, ASK or DESCRIBE, found %s", p.in.tok)
	}
	q.from = p.fromClauses("FROM")
	if q.form == formDescribe && !p.in.isWord("WHERE") && !p.in.isPunct("{") {
		q.where = &joinNode{}
		p.modifiers(q)
		p.trailingValues(q)
		return q
	}
	p.in.word("WHERE")
	q.where = p.group()
	p.modifiers(q)
	p.trailingValues(q)
	p.finishSelect(q)
	return q
}

// fromClauses reads the clauses that begin with a word, FROM or USING.
func (p *parser) fromClauses(word string) (f fromClauses) {
	for p.in.word(word) {
		f.given = true
		if p.in.word("NAMED") {
			f.named = append(f.named, p.iri())
		} else {
			f.graphs = append(f.graphs, p.iri())
		}
	}
	return f
}

// selectClause reads from SELECT to the last column.
func (p *parser) selectClause(q *query) {
	p.in.expectWord("SELECT")
	if p.in.word("DISTINCT") {
		q.distinct = true
	} else if p.in.word("REDUCED") {
		q.reduced = true
	}
	if p.in.accept("*") {
		q.star = true
		return
	}
	p.aggs = &q.aggs
	defer func() { p.aggs = nil }()
	seen := map[string]bool{}
	for {
		switch {
		case p.in.tok.kind == tokVar:
			name := p.in.tok.text
			p.in.advance()
			q.vars = append(q.vars, projection{name: name, slot: p.slot(name)})
			seen[name] = true
		case p.in.accept("("):
			e := p.expression()
			p.in.expectWord("AS")
			if p.in.tok.kind != tokVar {
				p.in.fail("expected a variable after AS, found %s", p.in.tok)
			}
			name := p.in.tok.text
			if seen[name] {
				p.in.fail("the variable ?%s is selected twice", name)
			}
			seen[name] = true
			p.in.advance()
			p.in.expect(")")
			q.vars = append(q.vars, projection{name: name, slot: p.slot(name), e: e})
		default:
			if len(q.vars) == 0 {
				p.in.fail("expected variables or * after SELECT, found %s", p.in.tok)
			}
			return
		}
	}
}

// modifiers reads GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET.
func (p *parser) modifiers(q *query) {
	p.aggs = &q.aggs
	defer func() { p.aggs = nil }()
	if p.in.word("GROUP") {
		p.in.expectWord("BY")
		q.grouped = true
		for {
			k, ok := p.groupKey()
			if !ok {
				break
			}
			q.groupBy = append(q.groupBy, k)
		}
		if len(q.groupBy) == 0 {
			p.in.fail("expected what to group by, found %s", p.in.tok)
		}
	}
	if p.in.word("HAVING") {
		for {
			e, ok := p.constraint()
			if !ok {
				break
			}
			q.having = append(q.having, e)
		}
		if len(q.having) == 0 {
			p.in.fail("expected a condition after HAVING, found %s", p.in.tok)
		}
	}
	if p.in.word("ORDER") {
		p.in.expectWord("BY")
		for {
			k, ok := p.orderKey()
			if !ok {
				break
			}
			q.orderBy = append(q.orderBy, k)
		}
		if len(q.orderBy) == 0 {
			p.in.fail("expected what to order by, found %s", p.in.tok)
		}
	}
	for limit, offset := false, false; ; {
		switch {
		case !limit && p.in.word("LIMIT"):
			q.limit, limit = p.count("LIMIT"), true
		case !offset && p.in.word("OFFSET"):
			q.offset, offset = p.count("OFFSET"), true
		default:
			return
		}
	}
}

func (p *parser) count(what string) int64 {
	if p.in.tok.kind != tokInteger || len(p.in.tok.text) > 18 {
		p.in.fail("expected a number after %s, found %s", what, p.in.tok)
	}
	var n int64
	for _, c := range []byte(p.in.tok.text) {
		n = n*10 + int64(c-'0')
	}
	p.in.advance()
	return n
}

func (p *parser) groupKey() (projection, bool) {
	if p.in.tok.kind == tokVar {
		s := p.slot(p.in.tok.text)
		p.in.advance()
		return projection{slot: s}, true
	}
	if p.in.accept("(") {
		k := projection{e: p.expression(), slot: -1}
		if p.in.word("AS") {
			if p.in.tok.kind != tokVar {
				p.in.fail("expected a variable after AS, found %s", p.in.tok)
			}
			k.name, k.slot = p.in.tok.text, p.slot(p.in.tok.text)
			p.in.advance()
		}
		p.in.expect(")")
		return k, true
	}
	if e, ok := p.constraint(); ok {
		return projection{e: e, slot: -1}, true
	}
	return projection{}, false
}

func (p *parser) orderKey() (orderKey, bool) {
	desc := p.in.isWord("DESC")
	if desc || p.in.isWord("ASC") {
		p.in.advance()
		if !p.in.isPunct("(") {
			p.in.fail("expected ( after ASC or DESC, found %s", p.in.tok)
		}
		return orderKey{p.bracketted(), desc}, true
	}
	if p.in.tok.kind == tokVar {
		e := &varExpr{p.slot(p.in.tok.text)}
		p.in.advance()
		return orderKey{e: e}, true
	}
	e, ok := p.constraint()
	return orderKey{e: e}, ok
}

// constraint is a bracketted expression, a built-in call or a function call.
func (p *parser) constraint() (expr, bool) {
	switch {
	case p.in.isPunct("("):
		return p.bracketted(), true
	case p.in.tok.kind == tokWord:
		if e, ok := p.builtin(); ok {
			return e, true
		}
		return nil, false
	case p.in.tok.kind == tokIRI || p.in.tok.kind == tokPName:
		iri := p.iri()
		if p.in.tok.kind != tokNil && !p.in.isPunct("(") {
			p.in.fail("expected the arguments of the function %s, found %s", iri, p.in.tok)
		}
		return p.functionCall(iri), true
	}
	return nil, false
}

func (p *parser) bracketted() expr {
	p.in.expect("(")
	e := p.expression()
	p.in.expect(")")
	return e
}

// trailingValues reads VALUES behind a query (section 18.2.4.3): a part of its pattern, or of the
// groups if it is grouped.
func (p *parser) trailingValues(q *query) {
	switch {
	case !p.in.word("VALUES"):
	case q.grouped || len(q.aggs) > 0:
		q.values = p.dataBlock()
	default:
		q.where = &joinNode{parts: []node{q.where, p.dataBlock()}}
	}
}

// finishSelect checks the selected expressions.
func (p *parser) finishSelect(q *query) {
	if len(q.aggs) > 0 {
		q.grouped = true
	}
	if q.form != formSelect {
		if q.star && q.form == formDescribe {
			vs := visible(q.where)
			for _, name := range q.scope.order {
				if s := q.scope.names[name]; vs[s] {
					q.describe = append(q.describe, pterm{slot: s})
				}
			}
		}
		return
	}
	vs := visible(q.where)
	if q.values != nil {
		for _, s := range q.values.slots {
			vs[s] = true
		}
	}
	if q.star {
		if q.grouped {
			p.in.fail("SELECT * cannot be grouped: name the variables")
		}
		for _, name := range q.scope.order {
			if s := q.scope.names[name]; vs[s] {
				q.vars = append(q.vars, projection{name: name, slot: s})
			}
		}
		return
	}
	keys := map[int]bool{}
	for _, k := range q.groupBy {
		if k.slot >= 0 {
			keys[k.slot] = true
		}
	}
	for _, v := range q.vars {
		if v.e != nil && (vs[v.slot] || keys[v.slot]) {
			p.in.fail("the variable ?%s is already bound: give the expression another name", v.name)
		}
		if !q.grouped {
			continue
		}
		if v.e == nil && !keys[v.slot] {
			p.in.fail("?%s is selected but neither grouped by nor aggregated", v.name)
		}
		if v.e != nil {
			eachVar(v.e, func(s int) {
				if !keys[s] {
					p.in.fail("the expression of ?%s uses a variable that is neither grouped by nor aggregated", v.name)
				}
			})
			keys[v.slot] = true
		}
	}
}

// ---- terms

func (p *parser) resolve(ref string) string {
	if !utf8.ValidString(ref) {
		p.in.fail("the IRI is not UTF-8")
	}
	if iri, ok := rdfres.ResolveIRI(p.base, ref); ok {
		return iri
	}
	return ref
}

func (p *parser) checkIRI(iri string) string {
	for i := 0; i < len(iri); i++ {
		if c := iri[i]; c <= ' ' || strings.IndexByte("<>\"{}|^`\\", c) >= 0 {
			p.in.fail("the IRI <%s> holds %q, which is not allowed", iri, c)
		}
	}
	return iri
}

// iri is an IRI or prefixed name as a term.
func (p *parser) iri() string {
	switch p.in.tok.kind {
	case tokIRI:
		iri := p.checkIRI(p.resolve(p.in.tok.text))
		if !hasScheme(iri) {
			p.in.fail("the IRI <%s> is relative and there is no BASE", iri)
		}
		p.in.advance()
		return iriTerm(iri)
	case tokPName:
		n := strings.IndexByte(p.in.tok.text, ':')
		ns, ok := p.prefixes[p.in.tok.text[:n+1]]
		if !ok {
			p.in.fail("the prefix %s is not declared", p.in.tok.text[:n+1])
		}
		local := p.in.tok.text[n+1:]
		if strings.IndexByte(local, '\\') >= 0 {
			local = strings.ReplaceAll(local, `\`, "")
		}
		t := iriTerm(ns + local)
		p.in.advance()
		return t
	}
	p.in.fail("expected an IRI, found %s", p.in.tok)
	return ""
}

func hasScheme(iri string) bool {
	for i := 0; i < len(iri); i++ {
		c := iri[i]
		if c == ':' {
			return i > 0
		}
		if !isAlpha(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return false
}

func (p *parser) varOrIRI() pterm {
	if p.in.tok.kind == tokVar {
		t := pterm{slot: p.slot(p.in.tok.text)}
		p.in.advance()
		return t
	}
	return pterm{slot: -1, term: p.iri()}
}

// literal is a literal as a term; ok is false when there is none.
func (p *parser) literal() (string, bool) {
	switch p.in.tok.kind {
	case tokString:
		lex := p.in.tok.text
		if !utf8.ValidString(lex) {
			p.in.fail("the string is not UTF-8")
		}
		p.in.advance()
		if p.in.tok.kind == tokLang {
			tag := tagCase(p.in.tok.text)
			p.in.advance()
			return string(rdfres.NewLiteral(lex, tag, "")), true
		}
		if p.in.accept("^^") {
			dt := p.iri()
			return string(rdfres.NewLiteral(lex, "", rdfres.Term(dt).IRI())), true
		}
		return string(rdfres.NewLiteral(lex, "", "")), true
	case tokInteger, tokDecimal, tokDouble:
		return p.number(""), true
	case tokPunct:
		if p.in.tok.text == "+" || p.in.tok.text == "-" {
			sign := p.in.tok.text
			p.in.advance()
			if p.in.tok.kind != tokInteger && p.in.tok.kind != tokDecimal && p.in.tok.kind != tokDouble {
				p.in.fail("expected a number after %s, found %s", sign, p.in.tok)
			}
			return p.number(sign), true
		}
	case tokWord:
		// Booleans are lower case in the grammar; other cases are taken too.
		if p.in.isWord("true") || p.in.isWord("false") {
			t := typed(strings.ToLower(p.in.tok.text), "boolean")
			p.in.advance()
			return t, true
		}
	}
	return "", false
}

func (p *parser) number(sign string) string {
	dt := map[tokenKind]string{tokInteger: "integer", tokDecimal: "decimal", tokDouble: "double"}[p.in.tok.kind]
	t := typed(sign+p.in.tok.text, dt)
	p.in.advance()
	return t
}

func typed(lex, xsd string) string { return string(rdfres.NewLiteral(lex, "", xsdNS+xsd)) }

// blankLabel is a label of a pattern, or of INSERT DATA; patternBlank is its place.
type (
	blankLabel struct {
		label string
		data  bool
	}
	patternBlank struct{ slot, basic int }
)

// newBasic begins another basic graph pattern.
func (p *parser) newBasic() {
	p.basics++
	p.basic = p.basics
}

// blank is a blank node: in a pattern a variable without a name, in a template a fresh node per
// solution.
func (p *parser) blank(label string) pterm {
	if p.inTemplate && !p.noVars {
		if s, ok := p.tmplBlanks[label]; ok {
			return pterm{slot: s}
		}
		s := p.newSlot()
		p.tmplSlots = append(p.tmplSlots, s)
		if label != "" {
			p.tmplBlanks[label] = s
		}
		return pterm{slot: s}
	}
	key := blankLabel{label, p.noVars}
	b, ok := p.blanks[key]
	switch {
	case label == "":
		return pterm{slot: p.newSlot()}
	case !ok:
		b = patternBlank{p.newSlot(), p.basic}
		p.blanks[key] = b
	case b.basic != p.basic && p.noVars:
		p.in.fail("the blank node _:%s stands in two operations: each names its own", label)
	case b.basic != p.basic: // section 5.1.1
		p.in.fail("the blank node _:%s stands in two basic graph patterns: use a variable", label)
	}
	return pterm{slot: b.slot}
}
