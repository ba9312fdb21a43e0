package embedstore

// operation reads the next operation of an update request; nil at its end. The quads of INSERT DATA
// and DELETE DATA are not in the operation: dataQuads reads them.
func (p *parser) operation() *operation {
	p.prologue()
	if p.tok.kind == tokEOF {
		return nil
	}
	p.slots = 0
	p.pushScope()
	p.tmplBlanks, p.tmplSlots = map[string]int{}, nil
	op := &operation{}
	switch {
	case p.word("INSERT"):
		if p.word("DATA") {
			op.kind = opInsertData
			return op
		}
		op.kind = opModify
		op.ins = p.quadPattern(true)
		p.modifyRest(op)
	case p.word("DELETE"):
		switch {
		case p.word("DATA"):
			op.kind = opDeleteData
			return op
		case p.word("WHERE"):
			op.kind = opModify
			op.del = p.quadPattern(false)
			op.where = patternOfQuads(op.del)
		default:
			op.kind = opModify
			op.del = p.quadPattern(false)
			if p.word("INSERT") {
				op.ins = p.quadPattern(true)
			}
			p.modifyRest(op)
		}
	case p.word("WITH"):
		op.kind = opModify
		op.with = p.iri()
		some := false
		if p.word("DELETE") {
			op.del, some = p.quadPattern(false), true
		}
		if p.word("INSERT") {
			op.ins, some = p.quadPattern(true), true
		}
		if !some {
			p.fail("expected DELETE or INSERT after WITH, found %s", p.tok)
		}
		p.modifyRest(op)
	case p.word("CLEAR"):
		op.kind = opClear
		op.silent = p.word("SILENT")
		op.a = p.graphRefAll()
	case p.word("DROP"):
		op.kind = opDrop
		op.silent = p.word("SILENT")
		op.a = p.graphRefAll()
	case p.word("CREATE"):
		op.kind = opCreate
		op.silent = p.word("SILENT")
		p.expectWord("GRAPH")
		op.a = graphRef{'g', p.iri()}
	case p.word("LOAD"):
		op.kind = opLoad
		op.silent = p.word("SILENT")
		op.loadIRI = p.iri()
		if p.word("INTO") {
			p.expectWord("GRAPH")
			p.iri()
		}
	case p.isWord("ADD") || p.isWord("MOVE") || p.isWord("COPY"):
		op.kind = opAdd
		if p.isWord("MOVE") {
			op.kind = opMove
		} else if p.isWord("COPY") {
			op.kind = opCopy
		}
		p.advance()
		op.silent = p.word("SILENT")
		op.a = p.graphOrDefault()
		p.expectWord("TO")
		op.b = p.graphOrDefault()
	default:
		p.fail("expected an operation such as INSERT, DELETE or CLEAR, found %s", p.tok)
	}
	op.blanks = p.tmplSlots
	op.slots, op.base = p.slots, p.base
	return op
}

// separator reads the text between two operations.
func (p *parser) separator() {
	if !p.accept(";") && p.tok.kind != tokEOF {
		p.fail("expected ; between two operations, found %s", p.tok)
	}
}

func (p *parser) modifyRest(op *operation) {
	for p.word("USING") {
		op.using = true
		if p.word("NAMED") {
			op.named = append(op.named, p.iri())
		} else {
			op.from = append(op.from, p.iri())
		}
	}
	p.expectWord("WHERE")
	op.where = p.group()
}

func (p *parser) graphRefAll() graphRef {
	switch {
	case p.word("DEFAULT"):
		return graphRef{kind: 'd'}
	case p.word("NAMED"):
		return graphRef{kind: 'n'}
	case p.word("ALL"):
		return graphRef{kind: 'a'}
	}
	p.expectWord("GRAPH")
	return graphRef{'g', p.iri()}
}

func (p *parser) graphOrDefault() graphRef {
	if p.word("DEFAULT") {
		return graphRef{kind: 'd'}
	}
	p.word("GRAPH")
	return graphRef{'g', p.iri()}
}

// quadPattern is a template of DELETE or INSERT; blank nodes are allowed in the
// latter only.
func (p *parser) quadPattern(blanks bool) []quadPattern {
	var out []quadPattern
	p.inTemplate = true
	defer func() { p.inTemplate = false }()
	before := len(p.tmplSlots)
	p.quads(func(q quadPattern) { out = append(out, q) })
	if !blanks && len(p.tmplSlots) > before {
		p.fail("blank nodes are not allowed in DELETE: they name nothing; use variables")
	}
	return out
}

// quads reads { triples GRAPH g { triples } ... } and gives one quad after the
// other.
func (p *parser) quads(fn func(quadPattern)) {
	none := pterm{slot: -1}
	p.expect("{")
	block := func(g pterm) {
		var out []node
		for p.startsTerm() {
			out = out[:0]
			p.triplesSameSubject(&out, false)
			for _, n := range out {
				fn(quadPattern{*n.(*tripleNode), g})
			}
			if !p.accept(".") {
				break
			}
		}
	}
	for {
		block(none)
		if !p.word("GRAPH") {
			break
		}
		g := p.varOrIRI()
		p.expect("{")
		block(g)
		p.expect("}")
		p.accept(".")
	}
	p.expect("}")
}

// dataQuads reads the quads of INSERT DATA or DELETE DATA. Blank nodes come as
// slots.
func (p *parser) dataQuads(blanks bool, fn func(quadPattern)) {
	p.inTemplate, p.noVars = true, true
	p.newBasic()
	defer func() { p.inTemplate, p.noVars = false, false }()
	p.quads(func(q quadPattern) {
		if !blanks && (q.s.isVar() || q.p.isVar() || q.o.isVar()) {
			p.fail("blank nodes are not allowed in DELETE DATA: they name nothing; use DELETE WHERE with variables")
		}
		fn(q)
	})
}

// patternOfQuads is the WHERE of DELETE WHERE.
func patternOfQuads(qs []quadPattern) node {
	j := &joinNode{}
	var last *graphNode
	for i := range qs {
		t := &tripleNode{qs[i].s, qs[i].p, qs[i].o}
		if qs[i].g == (pterm{slot: -1}) {
			j.parts = append(j.parts, t)
			continue
		}
		if last == nil || last.g != qs[i].g {
			last = &graphNode{g: qs[i].g, in: &joinNode{}}
			j.parts = append(j.parts, last)
		}
		in := last.in.(*joinNode)
		in.parts = append(in.parts, t)
	}
	return j
}
