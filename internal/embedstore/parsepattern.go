package embedstore

// group reads a group graph pattern, SPARQL 1.1 section 18.2.2.
func (p *parser) group() node {
	defer p.deeper()()
	aggs := p.aggs
	p.aggs = nil
	defer func() { p.aggs = aggs }()
	p.expect("{")
	p.newBasic()
	start := p.begin()
	if p.isWord("SELECT") {
		start.parts = append(start.parts, p.subSelect())
		p.expect("}")
		return start
	}
	var cur node = start
	var filters []expr
	for !p.isPunct("}") {
		basic := p.basic
		triples := false // they and FILTER do not end a basic graph pattern
		switch {
		case p.word("FILTER"):
			e, ok := p.constraint()
			triples = true
			if !ok {
				p.fail("expected a condition after FILTER, found %s", p.tok)
			}
			filters = append(filters, e)
			p.accept(".")
		case p.word("OPTIONAL"):
			right := p.group()
			opt := &optionalNode{left: cur, right: right}
			if j, ok := right.(*joinNode); ok {
				opt.filters, opt.right = j.filters, &joinNode{parts: j.parts}
			}
			cur = opt
			p.accept(".")
		case p.word("MINUS"):
			cur = &minusNode{left: cur, right: p.group()}
			p.accept(".")
		case p.word("BIND"):
			p.expect("(")
			e := p.expression()
			p.expectWord("AS")
			if p.tok.kind != tokVar {
				p.fail("expected a variable after AS, found %s", p.tok)
			}
			s := p.slot(p.tok.text)
			if visible(cur)[s] {
				p.fail("BIND to ?%s, which is already bound in its group", p.tok.text)
			}
			p.advance()
			p.expect(")")
			cur = &bindNode{in: cur, slot: s, e: e}
			p.accept(".")
		case p.isWord("SERVICE"):
			cur = joinWith(cur, p.service())
			p.accept(".")
		case p.word("GRAPH"):
			g := p.varOrIRI()
			cur = joinWith(cur, &graphNode{g: g, in: p.group()})
			p.accept(".")
		case p.word("VALUES"):
			cur = joinWith(cur, p.dataBlock())
			p.accept(".")
		case p.isPunct("{"):
			n := p.group()
			if p.isWord("UNION") {
				u := &unionNode{parts: []node{n}}
				for p.word("UNION") {
					u.parts = append(u.parts, p.group())
				}
				n = u
			}
			cur = joinWith(cur, n)
			p.accept(".")
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
	p.advance()
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
	p.advance()
	if !p.word("SILENT") || p.lasting {
		panic(parseError{unsupported("SERVICE: the embedded store asks no other endpoints")})
	}
	p.varOrIRI()
	none := &valuesNode{slots: sortedSlots(visible(p.group()))}
	return &optionalNode{left: &joinNode{}, right: none}
}

func (p *parser) subSelect() node {
	defer p.deeper()()
	outer := p.pushScope()
	q := p.query()
	p.scope = outer
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
	case p.tok.kind == tokVar:
		single = true
		v.slots = append(v.slots, p.slot(p.tok.text))
		p.advance()
	case p.tok.kind == tokNil:
		p.advance()
	default:
		p.expect("(")
		for p.tok.kind == tokVar {
			s := p.slot(p.tok.text)
			for _, o := range v.slots {
				if o == s {
					p.fail("VALUES names ?%s twice", p.tok.text)
				}
			}
			v.slots = append(v.slots, s)
			p.advance()
		}
		p.expect(")")
	}
	p.expect("{")
	for !p.accept("}") {
		var row []string
		switch {
		case single:
			row = []string{p.dataValue()}
		case p.tok.kind == tokNil:
			p.advance()
		default:
			p.expect("(")
			for !p.isPunct(")") {
				row = append(row, p.dataValue())
			}
			p.advance()
		}
		if len(row) != len(v.slots) {
			p.fail("VALUES names %d variables, and a row has %d values", len(v.slots), len(row))
		}
		v.rows = append(v.rows, row)
	}
	return v
}

func (p *parser) dataValue() string {
	if p.word("UNDEF") {
		return ""
	}
	if p.tok.kind == tokIRI || p.tok.kind == tokPName {
		return p.iri()
	}
	if t, ok := p.literal(); ok {
		return t
	}
	p.fail("expected an IRI, a literal or UNDEF in VALUES, found %s", p.tok)
	return ""
}

// triplesBlock reads triple patterns to their end.
func (p *parser) triplesBlock() []node {
	var out []node
	for {
		p.triplesSameSubject(&out, true)
		if !p.accept(".") {
			if !p.isPunct("}") && !p.startsClause() {
				p.fail("expected . or } after a triple pattern, found %s", p.tok)
			}
			return out
		}
		if !p.startsTerm() {
			return out
		}
	}
}

func (p *parser) startsClause() bool {
	if p.isPunct("{") {
		return true
	}
	for _, w := range []string{"FILTER", "OPTIONAL", "MINUS", "BIND", "SERVICE", "GRAPH", "VALUES"} {
		if p.isWord(w) {
			return true
		}
	}
	return false
}

func (p *parser) startsTerm() bool {
	switch p.tok.kind {
	case tokIRI, tokPName, tokBlank, tokVar, tokString, tokInteger, tokDecimal, tokDouble, tokNil, tokAnon:
		return true
	case tokPunct:
		return p.isPunct("(") || p.isPunct("[") || p.isPunct("+") || p.isPunct("-")
	case tokWord:
		return p.isWord("true") || p.isWord("false")
	}
	return false
}

// triplesSameSubject reads a subject and its properties. paths allows property
// paths.
func (p *parser) triplesSameSubject(out *[]node, paths bool) {
	if p.isPunct("(") || p.isPunct("[") {
		s := p.triplesNode(out, paths)
		if p.startsVerb() {
			p.propertyList(s, out, paths)
		}
		return
	}
	s := p.varOrTerm()
	if !p.startsVerb() {
		p.fail("expected a property, found %s", p.tok)
	}
	p.propertyList(s, out, paths)
}

func (p *parser) startsVerb() bool {
	switch p.tok.kind {
	case tokVar, tokIRI, tokPName:
		return true
	case tokWord:
		return p.tok.text == "a"
	case tokPunct:
		return p.isPunct("^") || p.isPunct("!") || p.isPunct("(")
	}
	return false
}

func (p *parser) propertyList(s pterm, out *[]node, paths bool) {
	for {
		var pred pterm
		var pa path
		switch {
		case p.tok.kind == tokVar:
			pred = p.varOrIRI()
		case paths:
			pa = p.path()
			if l, ok := pa.(*linkPath); ok {
				pred, pa = pterm{slot: -1, term: l.iri}, nil
			}
		case p.tok.kind == tokWord && p.tok.text == "a":
			p.advance()
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
			if !p.accept(",") {
				break
			}
		}
		if !p.accept(";") {
			return
		}
		for p.accept(";") {
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
	switch p.tok.kind {
	case tokVar, tokIRI, tokPName:
		return p.varOrIRI()
	case tokBlank:
		t := p.blank(p.tok.text)
		p.advance()
		return t
	case tokAnon:
		p.advance()
		return p.blank("")
	case tokNil:
		p.advance()
		return pterm{slot: -1, term: rdfNil}
	}
	if t, ok := p.literal(); ok {
		return pterm{slot: -1, term: t}
	}
	p.fail("expected a variable or a term, found %s", p.tok)
	return pterm{}
}

func (p *parser) graphNode(out *[]node, paths bool) pterm {
	if p.isPunct("(") || p.isPunct("[") {
		return p.triplesNode(out, paths)
	}
	return p.varOrTerm()
}

// triplesNode is a collection or a blank node with properties.
func (p *parser) triplesNode(out *[]node, paths bool) pterm {
	defer p.deeper()()
	if p.accept("[") {
		b := p.blank("")
		p.propertyList(b, out, paths)
		p.expect("]")
		return b
	}
	p.expect("(")
	head := p.blank("")
	for cur := head; ; {
		o := p.graphNode(out, paths)
		*out = append(*out, &tripleNode{cur, pterm{slot: -1, term: rdfFirst}, o})
		if p.accept(")") {
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
	defer p.deeper()()
	a := p.pathSequence()
	for p.accept("|") {
		a = &altPath{a, p.pathSequence()}
	}
	return a
}

func (p *parser) pathSequence() path {
	a := p.pathElement()
	for p.accept("/") {
		a = &seqPath{a, p.pathElement()}
	}
	return a
}

func (p *parser) pathElement() path {
	if p.accept("^") {
		return &inversePath{p.pathRepeated()}
	}
	return p.pathRepeated()
}

func (p *parser) pathRepeated() path {
	a := p.pathPrimary()
	switch {
	case p.accept("*"):
		return &repeatPath{in: a}
	case p.accept("+"):
		return &repeatPath{in: a, min: 1}
	case p.accept("?"):
		return &repeatPath{in: a, once: true}
	}
	return a
}

func (p *parser) pathPrimary() path {
	switch {
	case p.tok.kind == tokWord && p.tok.text == "a":
		p.advance()
		return &linkPath{rdfType}
	case p.accept("("):
		a := p.path()
		p.expect(")")
		return a
	case p.accept("!"):
		n := &notPath{}
		if p.tok.kind == tokNil {
			p.advance()
			return n
		}
		if p.accept("(") {
			for {
				p.notElement(n)
				if !p.accept("|") {
					break
				}
			}
			p.expect(")")
			return n
		}
		p.notElement(n)
		return n
	}
	return &linkPath{p.iri()}
}

func (p *parser) notElement(n *notPath) {
	to := &n.forward
	if p.accept("^") {
		to = &n.backward
	}
	if p.tok.kind == tokWord && p.tok.text == "a" {
		p.advance()
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
	p.expect("{")
	ts := p.templateTriples("}")
	p.expect("}")
	return ts
}

// templateTriples reads triples without paths up to a sign.
func (p *parser) templateTriples(end string) []tripleNode {
	var out []node
	for !p.isPunct(end) {
		p.triplesSameSubject(&out, false)
		if !p.accept(".") {
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
	p.expect("{")
	ts := p.templateTriples("}")
	p.expect("}")
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
		q.template = append(q.template, tripleNode{twin(ts[i].s), twin(ts[i].p), twin(ts[i].o)})
	}
	q.blanks = p.tmplSlots
	q.where = j
}
