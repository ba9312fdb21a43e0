package embedstore

// group reads a group graph pattern, SPARQL 1.1 section 18.2.2.
func (p *parser) group() node {
	defer p.in.deeper()()
	aggs := p.aggs
	p.aggs = nil
	defer func() { p.aggs = aggs }()
	p.in.expect("{")
	p.newBasic()
	start := p.begin()
	if p.in.isWord("SELECT") {
		start.parts = append(start.parts, p.subSelect())
		p.in.expect("}")
		return start
	}
	var cur node = start
	var filters []expr
	for !p.in.isPunct("}") {
		basic := p.basic
		triples := false // they and FILTER do not end a basic graph pattern
		switch {
		case p.in.word("FILTER"):
			e, ok := p.constraint()
			triples = true
			if !ok {
				p.in.fail("expected a condition after FILTER, found %s", p.in.tok)
			}
			filters = append(filters, e)
			p.in.accept(".")
		case p.in.word("OPTIONAL"):
			right := p.group()
			opt := &optionalNode{left: cur, right: right}
			if j, ok := right.(*joinNode); ok {
				opt.filters, opt.right = j.filters, &joinNode{parts: j.parts}
			}
			cur = opt
			p.in.accept(".")
		case p.in.word("MINUS"):
			cur = &minusNode{left: cur, right: p.group()}
			p.in.accept(".")
		case p.in.word("BIND"):
			p.in.expect("(")
			e := p.expression()
			p.in.expectWord("AS")
			if p.in.tok.kind != tokVar {
				p.in.fail("expected a variable after AS, found %s", p.in.tok)
			}
			s := p.slot(p.in.tok.text)
			if visible(cur)[s] {
				p.in.fail("BIND to ?%s, which is already bound in its group", p.in.tok.text)
			}
			p.in.advance()
			p.in.expect(")")
			cur = &bindNode{in: cur, slot: s, e: e}
			p.in.accept(".")
		case p.in.isWord("SERVICE"):
			cur = joinWith(cur, p.service())
			p.in.accept(".")
		case p.in.word("GRAPH"):
			g := p.varOrIRI()
			cur = joinWith(cur, &graphNode{g: g, in: p.group()})
			p.in.accept(".")
		case p.in.word("VALUES"):
			cur = joinWith(cur, p.dataBlock())
			p.in.accept(".")
		case p.in.isPunct("{"):
			n := p.group()
			if p.in.isWord("UNION") {
				u := &unionNode{parts: []node{n}}
				for p.in.word("UNION") {
					u.parts = append(u.parts, p.group())
				}
				n = u
			}
			cur = joinWith(cur, n)
			p.in.accept(".")
		default:
			parts := p.triplesBlock()
			for _, n := range parts {
				cur = joinWith(cur, n)
			}
			triples = true
		}
		if p.newBasic(); triples {
			p.basic = basic
		}
	}
	p.in.advance()
	if len(filters) == 0 {
		if _, ok := cur.(*joinNode); ok {
			return cur
		}
		return &joinNode{parts: []node{cur}}
	}
	if j, ok := cur.(*joinNode); ok && len(j.filters) == 0 {
		j.filters = filters
		return j
	}
	return &joinNode{parts: []node{cur}, filters: filters}
}

// joinWith adds n to a conjunction. A group without filters melts into it.
func joinWith(cur, n node) node {
	j, ok := cur.(*joinNode)
	if !ok || len(j.filters) > 0 {
		j = &joinNode{parts: []node{cur}}
	}
	if in, ok := n.(*joinNode); ok && len(in.filters) == 0 {
		j.parts = append(j.parts, in.parts...)
	} else {
		j.parts = append(j.parts, n)
	}
	return j
}

// service reads SERVICE. No other endpoint is called: with SILENT this is one solution without
// bindings (SPARQL 1.1 Federated Query, section 2.3).
func (p *parser) service() node {
	p.in.advance()
	if !p.in.word("SILENT") || p.lasting {
		panic(parseError{unsupported("SERVICE: the embedded store asks no other endpoints")})
	}
	p.varOrIRI()
	none := &valuesNode{slots: sortedSlots(visible(p.group()))}
	return &optionalNode{left: &joinNode{}, right: none}
}

func (p *parser) subSelect() node {
	defer p.in.deeper()()
	outer := p.pushScope()
	q := p.query()
	p.scope = outer
	if p.simple && (q.limit >= 0 || q.offset > 0 || len(q.aggs) > 0) {
		p.in.fail("there is a sub-select with a choice of its own")
	}
	n := &selectNode{q: q}
	for _, v := range q.vars {
		n.inner = append(n.inner, v.slot)
		n.outer = append(n.outer, p.slot(v.name))
	}
	return n
}

func (p *parser) dataBlock() *valuesNode {
	v := &valuesNode{}
	single := false
	switch {
	case p.in.tok.kind == tokVar:
		single = true
		v.slots = append(v.slots, p.slot(p.in.tok.text))
		p.in.advance()
	case p.in.tok.kind == tokNil:
		p.in.advance()
	default:
		p.in.expect("(")
		for p.in.tok.kind == tokVar {
			s := p.slot(p.in.tok.text)
			for _, o := range v.slots {
				if o == s {
					p.in.fail("VALUES names ?%s twice", p.in.tok.text)
				}
			}
			v.slots = append(v.slots, s)
			p.in.advance()
		}
		p.in.expect(")")
	}
	p.in.expect("{")
	for !p.in.accept("}") {
		var row []string
		switch {
		case single:
			row = []string{p.dataValue()}
		case p.in.tok.kind == tokNil:
			p.in.advance()
		default:
			p.in.expect("(")
			for !p.in.isPunct(")") {
				row = append(row, p.dataValue())
			}
			p.in.advance()
		}
		if len(row) != len(v.slots) {
			p.in.fail("VALUES names %d variables, and a row has %d values", len(v.slots), len(row))
		}
		v.rows = append(v.rows, row)
	}
	return v
}

func (p *parser) dataValue() string {
	if p.in.word("UNDEF") {
		return ""
	}
	if p.in.tok.kind == tokIRI || p.in.tok.kind == tokPName {
		return p.iri()
	}
	if t, ok := p.literal(); ok {
		return t
	}
	p.in.fail("expected an IRI, a literal or UNDEF in VALUES, found %s", p.in.tok)
	return ""
}

// triplesBlock reads triple patterns to their end.
func (p *parser) triplesBlock() []node {
	var out []node
	for {
		p.triplesSameSubject(&out, true)
		if !p.in.accept(".") {
			if !p.in.isPunct("}") && !p.startsClause() {
				p.in.fail("expected . or } after a triple pattern, found %s", p.in.tok)
			}
			return out
		}
		if !p.startsTerm() {
			return out
		}
	}
}

func (p *parser) startsClause() bool {
	if p.in.isPunct("{") {
		return true
	}
	for _, w := range []string{"FILTER", "OPTIONAL", "MINUS", "BIND", "SERVICE", "GRAPH", "VALUES"} {
		if p.in.isWord(w) {
			return true
		}
	}
	return false
}

func (p *parser) startsTerm() bool {
	switch p.in.tok.kind {
	case tokIRI, tokPName, tokBlank, tokVar, tokString, tokInteger, tokDecimal, tokDouble, tokNil, tokAnon:
		return true
	case tokPunct:
		return p.in.isPunct("(") || p.in.isPunct("[") || p.in.isPunct("+") || p.in.isPunct("-")
	case tokWord:
		return p.in.isWord("true") || p.in.isWord("false")
	}
	return false
}

// triplesSameSubject reads a subject and its properties. paths allows property
// paths.
func (p *parser) triplesSameSubject(out *[]node, paths bool) {
	if p.in.isPunct("(") || p.in.isPunct("[") {
		s := p.triplesNode(out, paths)
		if p.startsVerb() {
			p.propertyList(s, out, paths)
		}
		return
	}
	s := p.varOrTerm()
	if !p.startsVerb() {
		p.in.fail("expected a property, found %s", p.in.tok)
	}
	p.propertyList(s, out, paths)
}

func (p *parser) startsVerb() bool {
	switch p.in.tok.kind {
	case tokVar, tokIRI, tokPName:
		return true
	case tokWord:
		return p.in.tok.text == "a"
	case tokPunct:
		return p.in.isPunct("^") || p.in.isPunct("!") || p.in.isPunct("(")
	}
	return false
}

func (p *parser) propertyList(s pterm, out *[]node, paths bool) {
	for {
		var pred pterm
		var pa path
		switch {
		case p.in.tok.kind == tokVar:
			pred = p.varOrIRI()
		case paths:
			pa = p.path()
			if l, ok := pa.(*linkPath); ok {
				pred, pa = pterm{slot: -1, term: l.iri}, nil
			}
		case p.in.tok.kind == tokWord && p.in.tok.text == "a":
			p.in.advance()
			pred = pterm{slot: -1, term: rdfType}
		default:
			pred = pterm{slot: -1, term: p.iri()}
		}
		for {
			o := p.graphNode(out, paths)
			if pa != nil {
				p.addPath(out, s, pa, o)
			} else {
				*out = append(*out, &tripleNode{s, pred, o})
			}
			if !p.in.accept(",") {
				break
			}
		}
		if !p.in.accept(";") {
			return
		}
		for p.in.accept(";") {
		}
		if !p.startsVerb() {
			return
		}
	}
}

// addPath translates a path into patterns if these are equivalent (section 18.2.2.4).
func (p *parser) addPath(out *[]node, s pterm, pa path, o pterm) {
	switch x := pa.(type) {
	case *linkPath:
		*out = append(*out, &tripleNode{s, pterm{slot: -1, term: x.iri}, o})
	case *inversePath:
		p.addPath(out, o, x.in, s)
	case *seqPath:
		mid := pterm{slot: p.newSlot()}
		p.addPath(out, s, x.a, mid)
		p.addPath(out, mid, x.b, o)
	case *altPath:
		var a, b []node
		p.addPath(&a, s, x.a, o)
		p.addPath(&b, s, x.b, o)
		*out = append(*out, &unionNode{parts: []node{&joinNode{parts: a}, &joinNode{parts: b}}})
	default:
		*out = append(*out, &pathNode{s, o, pa})
	}
}

func (p *parser) varOrTerm() pterm {
	switch p.in.tok.kind {
	case tokVar, tokIRI, tokPName:
		return p.varOrIRI()
	case tokBlank:
		t := p.blank(p.in.tok.text)
		p.in.advance()
		return t
	case tokAnon:
		p.in.advance()
		return p.blank("")
	case tokNil:
		p.in.advance()
		return pterm{slot: -1, term: rdfNil}
	}
	if t, ok := p.literal(); ok {
		return pterm{slot: -1, term: t}
	}
	p.in.fail("expected a variable or a term, found %s", p.in.tok)
	return pterm{}
}

func (p *parser) graphNode(out *[]node, paths bool) pterm {
	if p.in.isPunct("(") || p.in.isPunct("[") {
		return p.triplesNode(out, paths)
	}
	return p.varOrTerm()
}

// triplesNode is a collection or a blank node with properties.
func (p *parser) triplesNode(out *[]node, paths bool) pterm {
	defer p.in.deeper()()
	if p.in.accept("[") {
		b := p.blank("")
		p.propertyList(b, out, paths)
		p.in.expect("]")
		return b
	}
	p.in.expect("(")
	head := p.blank("")
	for cur := head; ; {
		o := p.graphNode(out, paths)
		*out = append(*out, &tripleNode{cur, pterm{slot: -1, term: rdfFirst}, o})
		if p.in.accept(")") {
			*out = append(*out, &tripleNode{cur, pterm{slot: -1, term: rdfRest}, pterm{slot: -1, term: rdfNil}})
			return head
		}
		next := p.blank("")
		*out = append(*out, &tripleNode{cur, pterm{slot: -1, term: rdfRest}, next})
		cur = next
	}
}

// ---- property paths

func (p *parser) path() path {
	defer p.in.deeper()()
	a := p.pathSequence()
	for p.in.accept("|") {
		a = &altPath{a, p.pathSequence()}
	}
	return a
}

func (p *parser) pathSequence() path {
	a := p.pathElement()
	for p.in.accept("/") {
		a = &seqPath{a, p.pathElement()}
	}
	return a
}

func (p *parser) pathElement() path {
	if p.in.accept("^") {
		return &inversePath{p.pathRepeated()}
	}
	return p.pathRepeated()
}

func (p *parser) pathRepeated() path {
	a := p.pathPrimary()
	switch {
	case p.in.accept("*"):
		return &repeatPath{in: a}
	case p.in.accept("+"):
		return &repeatPath{in: a, min: 1}
	case p.in.accept("?"):
		return &repeatPath{in: a, once: true}
	}
	return a
}

func (p *parser) pathPrimary() path {
	switch {
	case p.in.tok.kind == tokWord && p.in.tok.text == "a":
		p.in.advance()
		return &linkPath{rdfType}
	case p.in.accept("("):
		a := p.path()
		p.in.expect(")")
		return a
	case p.in.accept("!"):
		n := &notPath{}
		if p.in.tok.kind == tokNil {
			p.in.advance()
			return n
		}
		if p.in.accept("(") {
			for {
				p.notElement(n)
				if !p.in.accept("|") {
					break
				}
			}
			p.in.expect(")")
			return n
		}
		p.notElement(n)
		return n
	}
	return &linkPath{p.iri()}
}

func (p *parser) notElement(n *notPath) {
	to := &n.forward
	if p.in.accept("^") {
		to = &n.backward
	}
	if p.in.tok.kind == tokWord && p.in.tok.text == "a" {
		p.in.advance()
		*to = append(*to, rdfType)
		return
	}
	*to = append(*to, p.iri())
}

// ---- CONSTRUCT

func (p *parser) constructTemplate() []tripleNode {
	p.inTemplate = true
	p.tmplBlanks, p.tmplSlots = map[string]int{}, nil
	defer func() { p.inTemplate = false }()
	p.in.expect("{")
	ts := p.templateTriples("}")
	p.in.expect("}")
	return ts
}

// templateTriples reads triples without paths up to a sign.
func (p *parser) templateTriples(end string) []tripleNode {
	var out []node
	for !p.in.isPunct(end) {
		p.triplesSameSubject(&out, false)
		if !p.in.accept(".") {
			break
		}
	}
	ts := make([]tripleNode, len(out))
	for i, n := range out {
		ts[i] = *n.(*tripleNode)
	}
	return ts
}

// constructShort is CONSTRUCT WHERE { triples }.
func (p *parser) constructShort(q *query) {
	p.in.expect("{")
	ts := p.templateTriples("}")
	p.in.expect("}")
	j := p.begin()
	named := map[int]bool{}
	for _, s := range p.scope.names {
		named[s] = true
	}
	fresh := map[int]int{}
	p.tmplSlots = nil
	twin := func(t pterm) pterm {
		if !t.isVar() || named[t.slot] {
			return t
		}
		if _, ok := fresh[t.slot]; !ok {
			fresh[t.slot] = p.newSlot()
			p.tmplSlots = append(p.tmplSlots, fresh[t.slot])
		}
		return pterm{slot: fresh[t.slot]}
	}
	for i := range ts {
		j.parts = append(j.parts, &tripleNode{ts[i].s, ts[i].p, ts[i].o})
		q.construct.triples = append(q.construct.triples, tripleNode{twin(ts[i].s), twin(ts[i].p), twin(ts[i].o)})
	}
	q.construct.blanks = p.tmplSlots
	q.where = j
}
