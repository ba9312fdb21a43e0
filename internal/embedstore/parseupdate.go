package embedstore

// updateParser reads the operations of an update request.
type updateParser struct{ p *parser }

// operation reads the next operation of an update request; nil at its end. The quads of INSERT DATA
// and DELETE DATA are not in the operation: dataQuads reads them.
func (u *updateParser) operation() *operation {
	p := u.p
	p.prologue()
	if p.in.tok.kind == tokEOF {
		return nil
	}
	p.slots = 0
	p.pushScope()
	p.tmplBlanks, p.tmplSlots = map[string]int{}, nil
	op := &operation{}
	switch {
	case p.in.word("INSERT"):
		if p.in.word("DATA") {
			op.kind = opInsertData
			return op
		}
		op.kind = opModify
		op.ins = u.quadPattern(true)
		u.modifyRest(op)
	case p.in.word("DELETE"):
		switch {
		case p.in.word("DATA"):
			op.kind = opDeleteData
			return op
		case p.in.word("WHERE"):
			op.kind = opModify
			op.from = p.in.tok.off
			op.del = u.quadPattern(false)
			op.to = p.in.tok.off
			op.where = patternOfQuads(op.del)
		default:
			op.kind = opModify
			op.del = u.quadPattern(false)
			if p.in.word("INSERT") {
				op.ins = u.quadPattern(true)
			}
			u.modifyRest(op)
		}
	case p.in.word("WITH"):
		op.kind = opModify
		op.with = p.iri()
		some := false
		if p.in.word("DELETE") {
			op.del, some = u.quadPattern(false), true
		}
		if p.in.word("INSERT") {
			op.ins, some = u.quadPattern(true), true
		}
		if !some {
			p.in.fail("expected DELETE or INSERT after WITH, found %s", p.in.tok)
		}
		u.modifyRest(op)
	case p.in.word("CLEAR"):
		op.kind = opClear
		op.silent = p.in.word("SILENT")
		op.a = u.graphRefAll()
	case p.in.word("DROP"):
		op.kind = opDrop
		op.silent = p.in.word("SILENT")
		op.a = u.graphRefAll()
	case p.in.word("CREATE"):
		op.kind = opCreate
		op.silent = p.in.word("SILENT")
		p.in.expectWord("GRAPH")
		op.a = graphRef{'g', p.iri()}
	case p.in.word("LOAD"):
		op.kind = opLoad
		op.silent = p.in.word("SILENT")
		op.loadIRI = p.iri()
		if p.in.word("INTO") {
			p.in.expectWord("GRAPH")
			p.iri()
		}
	case p.in.isWord("ADD") || p.in.isWord("MOVE") || p.in.isWord("COPY"):
		op.kind = opAdd
		if p.in.isWord("MOVE") {
			op.kind = opMove
		} else if p.in.isWord("COPY") {
			op.kind = opCopy
		}
		p.in.advance()
		op.silent = p.in.word("SILENT")
		op.a = u.graphOrDefault()
		p.in.expectWord("TO")
		op.b = u.graphOrDefault()
	default:
		p.in.fail("expected an operation such as INSERT, DELETE or CLEAR, found %s", p.in.tok)
	}
	op.blanks = p.tmplSlots
	op.slots, op.base = p.slots, p.base
	return op
}

// separator reads the text between two operations.
func (u *updateParser) separator() {
	p := u.p
	if !p.in.accept(";") && p.in.tok.kind != tokEOF {
		p.in.fail("expected ; between two operations, found %s", p.in.tok)
	}
}

func (u *updateParser) modifyRest(op *operation) {
	p := u.p
	op.using = p.fromClauses("USING")
	p.in.expectWord("WHERE")
	op.from = p.in.tok.off
	op.where = p.group()
	op.to = p.in.tok.off
}

func (u *updateParser) graphRefAll() graphRef {
	p := u.p
	switch {
	case p.in.word("DEFAULT"):
		return graphRef{kind: 'd'}
	case p.in.word("NAMED"):
		return graphRef{kind: 'n'}
	case p.in.word("ALL"):
		return graphRef{kind: 'a'}
	}
	p.in.expectWord("GRAPH")
	return graphRef{'g', p.iri()}
}

func (u *updateParser) graphOrDefault() graphRef {
	p := u.p
	if p.in.word("DEFAULT") {
		return graphRef{kind: 'd'}
	}
	p.in.word("GRAPH")
	return graphRef{'g', p.iri()}
}

// quadPattern is a template of DELETE or INSERT; blank nodes are allowed in the
// latter only.
func (u *updateParser) quadPattern(blanks bool) []quadPattern {
	p := u.p
	var out []quadPattern
	p.inTemplate = true
	defer func() { p.inTemplate = false }()
	before := len(p.tmplSlots)
	u.quads(func(q quadPattern) { out = append(out, q) })
	if !blanks && len(p.tmplSlots) > before {
		p.in.fail("blank nodes are not allowed in DELETE: they name nothing; use variables")
	}
	return out
}

// quads reads { triples GRAPH g { triples } ... } and gives one quad after the
// other.
func (u *updateParser) quads(fn func(quadPattern)) {
	p := u.p
	none := pterm{slot: -1}
	p.in.expect("{")
	block := func(g pterm) {
		var out []node
		for p.startsTerm() {
			out = out[:0]
			p.triplesSameSubject(&out, false)
			for _, n := range out {
				fn(quadPattern{*n.(*tripleNode), g})
			}
			if !p.in.accept(".") {
				break
			}
		}
	}
	for {
		block(none)
		if !p.in.word("GRAPH") {
			break
		}
		g := p.varOrIRI()
		p.in.expect("{")
		block(g)
		p.in.expect("}")
		p.in.accept(".")
	}
	p.in.expect("}")
}

// dataQuads reads the quads of INSERT DATA or DELETE DATA. Blank nodes come as
// slots.
func (u *updateParser) dataQuads(blanks bool, fn func(quadPattern)) {
	p := u.p
	p.inTemplate, p.noVars = true, true
	p.newBasic()
	defer func() { p.inTemplate, p.noVars = false, false }()
	u.quads(func(q quadPattern) {
		if !blanks && (q.s.isVar() || q.p.isVar() || q.o.isVar()) {
			p.in.fail("blank nodes are not allowed in DELETE DATA: they name nothing; use DELETE WHERE with variables")
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
