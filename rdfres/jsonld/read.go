package jsonld

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// jsonldReader reads JSON-LD without a context: our own deterministic form,
// and any other expanded or flattened document. Parts dropped by JSON-LD in
// silence (names without an IRI, relative references) are an
// error here, because a lost description looks like a deletion.
type jsonldReader struct {
	jsonScanner
	opts  rdfres.ReadOptions
	known *syntax.Interner

	triples []rdfres.Triple // of the default graph
	named   []rdfres.Quad
	labels  syntax.Labels
	depth   int

	size     syntax.Expansion
	most     int64  // the bound of size
	beyond   bool   // the bound is exceeded
	lastType string // the datatype of the literal before
	foreign  bool   // a context was met

	renamed map[rdfres.Term]rdfres.Term // provisional names of nodes, and those that came later
}

// Read yields the statements of a document. The document is held in memory.
func Read(r io.Reader, o rdfres.ReadOptions, yield func(rdfres.Quad, error) bool) {
	if o.MaxBytes > 0 {
		r = io.LimitReader(r, o.MaxBytes+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		yield(rdfres.Quad{}, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err))
		return
	}
	triples, named, err := Decode(data, o)
	if err != nil {
		yield(rdfres.Quad{}, err)
		return
	}
	all := func(yield func(rdfres.Quad) bool) {
		for _, t := range triples {
			if !yield(rdfres.Quad{Triple: t}) {
				return
			}
		}
		for _, q := range named {
			if !yield(q) {
				return
			}
		}
	}
	for q := range all {
		if o.CheckIRIs {
			if err := q.CheckIRIs(); err != nil {
				yield(rdfres.Quad{}, &rdfres.SyntaxError{Name: o.Name, Format: rdfres.JSONLD, Reason: err.Error()})
				return
			}
		}
		if !yield(q, nil) {
			return
		}
	}
}

// Decode gives the statements of a document in the order of the document.
func Decode(data []byte, o rdfres.ReadOptions) (triples []rdfres.Triple, named []rdfres.Quad, err error) {
	if o.MaxBytes > 0 && int64(len(data)) > o.MaxBytes {
		return nil, nil, o.TooLarge(rdfres.JSONLD)
	}
	most := o.ExpandsTo(int64(len(data)))
	r := jsonldReader{jsonScanner: jsonScanner{data: data}, opts: o, most: most, triples: make([]rdfres.Triple, 0, 4+len(data)/80), known: &syntax.Interner{}}
	if len(data) > 1<<13 {
		r.known = syntax.NewInterner()
	}
	why := ""
	if o.LinkedContext == "" {
		why = r.document()
	}
	if o.LinkedContext != "" || r.foreign || why != "" && bytes.Contains(data, []byte(`"@context"`)) { // that may come last
		plain, err := expandJSONLD(data, o)
		if err != nil {
			return nil, nil, err
		}
		o.LinkedContext, o.Base = "", "" // it is applied
		r = jsonldReader{jsonScanner: jsonScanner{data: plain}, opts: o, most: most, known: syntax.NewInterner()}
		if why = r.document(); why != "" && !r.beyond {
			return nil, nil, &rdfres.SyntaxError{Name: o.Name, Format: rdfres.JSONLD, Reason: "after its expansion: " + why}
		}
	}
	if r.beyond {
		return nil, nil, syntax.ExpandsTooFar(rdfres.JSONLD, o, int64(len(data)))
	}
	if why != "" {
		line := 1 + bytes.Count(data[:r.errPos], []byte{'\n'})
		from := bytes.LastIndexByte(data[:r.errPos], '\n') + 1
		return nil, nil, &rdfres.SyntaxError{Name: o.Name, Format: rdfres.JSONLD, Line: line, Column: chars.Column(data[from:], r.errPos-from), Reason: why}
	}
	return r.triples, r.named, nil
}

func (r *jsonldReader) document() (why string) {
	if !utf8.Valid(r.data) {
		return r.fail(chars.InvalidAt(r.data), "the text is not valid UTF-8")
	}
	if bytes.HasPrefix(r.data, []byte("\xef\xbb\xbf")) {
		r.pos = 3
	}
	switch c := r.peek(); c {
	case '[', '{':
		why = r.nodes("")
	default:
		return r.fail(r.pos, r.instead(c)+" stands where a JSON-LD document has '[' or '{'")
	}
	if why != "" {
		return why
	}
	if r.peek(); r.pos < len(r.data) {
		return r.fail(r.pos, "something stands after the document")
	}
	r.rename()
	return ""
}

// nodes reads a node object or an array of them, as the top level, @graph and
// @included have it.
func (r *jsonldReader) nodes(graph rdfres.Term) (why string) {
	switch c := r.peek(); c {
	case '{':
		return r.object(graph, nil)
	case '[':
		return r.deeper(func() string {
			return r.each(func([]byte, bool) string { return r.nodes(graph) })
		})
	case '"', 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9': // nothing leads to it
		if r.depth > 1 {
			_, why = r.native()
			return why
		}
	}
	return r.fail(r.pos, "a node object is missing here")
}

func (r *jsonldReader) deeper(read func() string) string {
	if r.depth++; r.depth > syntax.MaxNesting {
		return r.fail(r.pos, "nested more than "+strconv.Itoa(syntax.MaxNesting)+" deep")
	}
	why := read()
	r.depth--
	return why
}

// receiver takes the terms of a value one by one, so that a long array is no more than its
// statements. A nil one takes none: nothing leads to nodes at the top level, in @graph and in
// @included.
type receiver struct {
	graph, s, p rdfres.Term
	reverse     bool // the terms lead to s
	list        bool // the terms are the items of a list
	head, last  rdfres.Term
}

// tooFar ends a reading beyond its bound; Decode makes another error of it.
const tooFar = "the document expands too far"

func (r *jsonldReader) take(to *receiver, t rdfres.Term) (why string) {
	switch {
	case r.beyond:
		return r.fail(r.pos, tooFar)
	case to == nil || t == "": // null
	case to.list:
		node := r.labels.Fresh()
		if to.last == "" {
			to.head = node
		} else {
			r.emit(to.graph, to.last, syntax.Rest, node)
		}
		r.emit(to.graph, node, syntax.First, t)
		to.last = node
	case !to.reverse:
		r.emit(to.graph, to.s, to.p, t)
	case t.Kind() == rdfres.KindLiteral:
		return r.fail(r.pos, "a literal stands in @reverse")
	default:
		r.emit(to.graph, t, to.p, to.s)
	}
	return ""
}

// list reads the items of a list, and gives its first node.
func (r *jsonldReader) list(graph rdfres.Term) (head rdfres.Term, why string) {
	items := receiver{graph: graph, list: true, head: syntax.Nil}
	if why = r.values(graph, &items); why == "" && items.last != "" {
		r.emit(graph, items.last, syntax.Rest, syntax.Nil)
	}
	return items.head, why
}

// object is the state of an object while its members are read. They may
// come in any order.
type object struct {
	id       rdfres.Term // of the node; provisional when a property comes before @id
	named    bool        // @id was there
	used     bool        // id is in use
	triples  int         // before the object
	quads    int
	types    []jsonString // not yet emitted
	value    jsonValue
	hasValue bool
	lang     string
	list     rdfres.Term // its first node
	hasList  bool
	hasSet   bool
	graph    bool // has @graph
	members  int  // other than the ones above
}

type jsonString struct {
	raw     []byte
	escaped bool
	pos     int
}

type jsonValue struct {
	kind byte // '"', 'n'umber, 't'rue or false, '{' for an object or array, 0 for null
	end  int
	jsonString
}

// object reads an object, and gives its term to the receiver: a node, a value or a list; a set has
// any number of them, null none.
func (r *jsonldReader) object(graph rdfres.Term, to *receiver) (why string) {
	var few [2]jsonString
	o := object{triples: len(r.triples), quads: len(r.named), types: few[:0]}
	start := r.pos
	if r.beyond {
		return r.fail(start, tooFar)
	}
	if r.depth++; r.depth > syntax.MaxNesting {
		return r.fail(start, "nested more than "+strconv.Itoa(syntax.MaxNesting)+" deep")
	}
	for end, more := r.enter(); more; {
		name, escaped, why := r.name()
		if why != "" {
			return why
		}
		r.peek()
		if why = r.member(&o, to, graph, name, escaped); why != "" {
			return why
		}
		if more, why = r.jsonScanner.more(end); why != "" {
			return why
		}
	}
	r.depth--
	switch {
	case o.hasValue:
		if o.used || o.named || o.hasList || o.hasSet || o.members > 0 {
			return r.fail(start, "a value object has a member that it cannot have")
		}
		term, why := r.literal(&o.value, o.types, o.lang)
		if why != "" {
			return why
		}
		return r.take(to, term)
	case o.hasList || o.hasSet:
		if o.used || o.named || o.hasList && o.hasSet || o.members > 0 || len(o.types) > 0 {
			return r.fail(start, "a list or set object has a member that it cannot have")
		}
		if o.hasSet {
			return ""
		}
		if to == nil {
			r.triples, r.named = r.triples[:o.triples], r.named[:o.quads]
		}
		return r.take(to, o.list)
	case o.lang != "":
		return r.fail(start, "@language stands without @value")
	}
	id := r.node(&o)
	if why := r.emitTypes(&o, graph); why != "" {
		return why
	}
	return r.take(to, id)
}

// emitTypes writes the types of the object, which is a node.
func (r *jsonldReader) emitTypes(o *object, graph rdfres.Term) (why string) {
	id := r.node(o)
	for _, t := range o.types {
		typ, why := r.idTerm(t)
		if why != "" {
			return why
		}
		r.emit(graph, id, syntax.Type, typ)
	}
	o.types = o.types[:0]
	return ""
}

// node is the term of the object as a node.
func (r *jsonldReader) node(o *object) rdfres.Term {
	if o.id == "" {
		o.id = r.labels.Fresh()
	}
	o.used = true
	return o.id
}

func (r *jsonldReader) emit(graph, s, p, o rdfres.Term) {
	q := rdfres.Quad{Triple: rdfres.Triple{S: s, P: p, O: o}, G: graph}
	if r.beyond = r.beyond || !r.size.Add(&q, rdfres.JSONLD, r.most); r.beyond {
		return // take ends the reading
	}
	if graph == "" {
		r.triples = syntax.AppendTriple(r.triples, q.Triple)
		return
	}
	r.named = append(r.named, q)
}

func (r *jsonldReader) member(o *object, to *receiver, graph rdfres.Term, name []byte, escaped bool) (why string) {
	if len(name) == 0 || name[0] != '@' && !escaped {
		return r.property(o, graph, name, escaped)
	}
	if escaped {
		text, why := r.text(name, true)
		if why != "" {
			return why
		}
		if !strings.HasPrefix(text, "@") {
			return r.property(o, graph, name, true)
		}
		name = []byte(text)
	}
	at := r.pos
	switch string(name) {
	case "@id":
		if o.named {
			return r.fail(at, "the object has two @id")
		}
		if r.peek() != '"' {
			return r.fail(at, "@id is no string")
		}
		s, why := r.string()
		if why != "" {
			return why
		}
		id, why := r.idTerm(s)
		if why != "" {
			return why
		}
		if o.used {
			if r.renamed == nil {
				r.renamed = map[rdfres.Term]rdfres.Term{}
			}
			r.renamed[o.id] = id
		}
		o.id, o.named = id, true
		return ""
	case "@type":
		return r.types(o, graph)
	case "@value":
		if o.hasValue {
			return r.fail(at, "the object has two @value")
		}
		o.hasValue = true
		return r.scalar(&o.value)
	case "@language":
		if o.lang != "" || r.peek() != '"' {
			return r.fail(at, "@language is no string, or there twice")
		}
		s, why := r.string()
		if why != "" {
			return why
		}
		o.lang, why = r.text(s.raw, s.escaped)
		if why == "" && (o.lang == "" || chars.ScanLang(o.lang) != len(o.lang)) {
			return r.fail(at, strconv.Quote(chars.Cut(o.lang))+" is no language tag")
		}
		return why
	case "@list":
		if o.hasList {
			return r.fail(at, "the object has two @list")
		}
		o.hasList = true
		if to == nil {
			return r.values(graph, nil)
		}
		o.list, why = r.list(graph)
		return why
	case "@set":
		o.hasSet = true
		return r.values(graph, to)
	case "@graph":
		return r.graph(o, graph)
	case "@included":
		o.members++
		return r.nodes(graph)
	case "@reverse":
		o.members++
		return r.reverse(o, graph)
	case "@index", "@direction":
		if r.peek() != '"' {
			return r.fail(at, string(name)+" is no string")
		}
		_, why = r.string()
		return why
	case "@context":
		r.foreign = true
		return r.fail(at, "a context")
	}
	return r.fail(at, string(name)+" cannot stand in expanded JSON-LD")
}

// rename puts the names of nodes in the place of their provisional ones.
func (r *jsonldReader) rename() {
	if len(r.renamed) == 0 || r.beyond {
		return
	}
	longer := int64(0)
	name := func(t *rdfres.Term) {
		if id, ok := r.renamed[*t]; ok {
			longer += int64(len(id) - len(*t))
			*t = id
		}
	}
	for i := range r.triples {
		name(&r.triples[i].S)
		name(&r.triples[i].O)
	}
	for i := range r.named {
		name(&r.named[i].S)
		name(&r.named[i].O)
		name(&r.named[i].G)
	}
	r.beyond = !r.size.Grow(longer, r.most)
}

// graph reads @graph: a named graph, or the default one when the object is the
// document and has no other member.
func (r *jsonldReader) graph(o *object, graph rdfres.Term) (why string) {
	if o.graph {
		return r.fail(r.pos, "the object has two @graph")
	}
	o.graph = true
	if r.depth == 1 && !o.named && !o.used && len(o.types) == 0 && r.lastMember() {
		return r.nodes("")
	}
	return r.nodes(r.node(o))
}

// lastMember looks ahead: whether nothing but the end follows the value.
func (r *jsonldReader) lastMember() bool {
	ahead := r.jsonScanner
	return ahead.skipValue(r.depth) == "" && ahead.peek() == '}'
}

func (r *jsonldReader) property(o *object, graph rdfres.Term, name []byte, escaped bool) (why string) {
	p, why := r.predicate(name, escaped)
	if why != "" {
		return why
	}
	o.members++
	s := r.node(o)
	if r.peek() != '[' {
		return r.valueOf(graph, s, p)
	}
	for end, more := r.enter(); more && why == ""; {
		if why = r.valueOf(graph, s, p); why == "" {
			more, why = r.more(end)
		}
	}
	return why
}

// valueOf reads one value of a property.
func (r *jsonldReader) valueOf(graph, s, p rdfres.Term) (why string) {
	if r.peek() != '{' {
		t, why := r.native()
		if why == "" && t != "" {
			r.emit(graph, s, p, t)
		}
		return why
	}
	return r.object(graph, &receiver{graph: graph, s: s, p: p})
}

// predicate is the term of a member's name.
func (r *jsonldReader) predicate(name []byte, escaped bool) (rdfres.Term, string) {
	plain := !escaped
	for i := 0; plain && i < len(name); i++ {
		plain = chars.Class[name[i]]&chars.BadIRI == 0
	}
	if plain && chars.HasScheme(name) {
		var buf [160]byte
		b := append(append(append(buf[:0], '<'), name...), '>')
		return r.known.Share(b), ""
	}
	text, why := r.text(name, escaped)
	switch {
	case why != "":
		return "", why
	case chars.HasScheme(text):
		return rdfres.NewIRI(text), ""
	case strings.HasPrefix(text, "_:"):
		return "", r.fail(r.pos, "the blank node "+strconv.Quote(chars.Cut(text))+" cannot be a predicate")
	}
	return "", r.fail(r.pos, "the name "+strconv.Quote(chars.Cut(text))+" is no IRI and the document has no context")
}

// values reads a value or an array of values.
func (r *jsonldReader) values(graph rdfres.Term, to *receiver) (why string) {
	switch r.peek() {
	case '{':
		return r.object(graph, to)
	case '[':
		return r.deeper(func() string {
			return r.each(func([]byte, bool) string { return r.values(graph, to) })
		})
	}
	t, why := r.native()
	if why != "" {
		return why
	}
	return r.take(to, t)
}

func (r *jsonldReader) reverse(o *object, graph rdfres.Term) (why string) {
	if r.peek() != '{' {
		return r.fail(r.pos, "@reverse is no object")
	}
	s := r.node(o)
	return r.each(func(name []byte, escaped bool) string {
		p, why := r.predicate(name, escaped)
		if why != "" {
			return why
		}
		return r.values(graph, &receiver{graph: graph, s: s, p: p, reverse: true})
	})
}

func (r *jsonldReader) string() (jsonString, string) {
	at := r.pos
	raw, escaped, why := r.str()
	return jsonString{raw, escaped, at}, why
}

// types reads @type: a string or an array of strings. Only a node has many, so they need not wait
// for the end of the object.
func (r *jsonldReader) types(o *object, graph rdfres.Term) (why string) {
	if r.peek() == '"' {
		s, why := r.string()
		o.types = append(o.types, s)
		return why
	}
	if r.peek() != '[' {
		return r.fail(r.pos, "@type is neither a string nor an array of strings")
	}
	for end, more := r.enter(); more && why == ""; {
		var s jsonString
		if s, why = r.string(); why != "" {
			return why
		}
		if o.types = append(o.types, s); len(o.types) == mostTypes {
			if why = r.emitTypes(o, graph); why != "" {
				return why
			}
		}
		more, why = r.more(end)
	}
	return why
}

// mostTypes are kept until the end of an object.
const mostTypes = 16

// idTerm is the term of a node's name.
func (r *jsonldReader) idTerm(s jsonString) (rdfres.Term, string) {
	plain := !s.escaped
	for i := 0; plain && i < len(s.raw); i++ {
		plain = chars.Class[s.raw[i]]&chars.BadIRI == 0
	}
	if plain && chars.HasScheme(s.raw) {
		var buf [160]byte
		b := append(append(append(buf[:0], '<'), s.raw...), '>')
		if r.known.Shares(len(b)) {
			return r.known.Share(b), ""
		}
		return rdfres.Term(b), ""
	}
	text, why := r.text(s.raw, s.escaped)
	if why != "" {
		return "", why
	}
	if strings.HasPrefix(text, "_:") {
		return r.labels.Of(text[2:]), ""
	}
	iri, ok := rdfres.ResolveIRI(r.opts.Base, text)
	if !ok {
		return "", r.fail(s.pos, "the IRI "+strconv.Quote(chars.Cut(text))+" is relative and there is no base")
	}
	return rdfres.NewIRI(iri), ""
}

// scalar reads the value of @value.
func (r *jsonldReader) scalar(v *jsonValue) (why string) {
	c := r.peek()
	at := r.pos
	switch c {
	case '"':
		v.kind = '"'
		v.jsonString, why = r.string()
	case 't', 'f', 'n':
		var w string
		if w, why = r.word(); w != "null" {
			v.kind = 't'
			v.raw = []byte(w)
		}
	case '{', '[':
		v.kind = '{'
		if why = r.skipValue(r.depth); why == "" {
			v.raw = r.data[at:r.pos]
		}
	default:
		v.kind = 'n'
		v.raw, why = r.number()
	}
	v.pos, v.end = at, r.pos
	return why
}

// native is a value without an object around it.
func (r *jsonldReader) native() (rdfres.Term, string) {
	if r.peek() == '[' {
		return "", r.fail(r.pos, "an array stands in an array of values")
	}
	var v jsonValue
	if why := r.scalar(&v); why != "" {
		return "", why
	}
	return r.literal(&v, nil, "")
}

// literal is the term of a value object (JSON-LD 1.1 API, section 8.2.2), ""
// for null.
func (r *jsonldReader) literal(v *jsonValue, types []jsonString, lang string) (_ rdfres.Term, why string) {
	if len(types) == 1 && string(types[0].raw) == "@json" && lang == "" {
		text, why := canonicalJSON(r.data[v.pos:v.end])
		if why != "" {
			return "", r.fail(v.pos, why)
		}
		return rdfres.NewLiteral(chars.OwnString(text), "", rdfJSON), ""
	}
	switch v.kind {
	case 0:
		return "", ""
	case '{':
		return "", r.fail(v.pos, "@value is no string, number or boolean, and its type is not @json")
	}
	datatype := ""
	if len(types) > 0 {
		if len(types) > 1 || lang != "" {
			return "", r.fail(v.pos, "a value has more than one type, or a type and a language")
		}
		if datatype, why = r.datatype(types[0]); why != "" {
			return "", why
		}
	}
	switch v.kind {
	case '"':
		var few [256]byte
		b := few[:0]
		if len(v.raw) >= chars.LongText {
			b = make([]byte, 0, len(v.raw)+chars.Escapes(v.raw)+len(lang)+len(datatype)+8)
		}
		b, why := r.appendLexical(append(b, '"'), v.raw, v.escaped)
		if why != "" {
			return "", why
		}
		return rdfres.Term(chars.OwnString(chars.AppendSuffix(append(b, '"'), lang, datatype))), ""
	case 't':
		if datatype == "" {
			datatype = chars.XSDBoolean
		}
		return r.plain(v, string(v.raw), lang, datatype)
	}
	lexical, natural, why := numberLexical(v.raw, datatype)
	if why != "" {
		return "", r.fail(v.pos, why)
	}
	if datatype == "" {
		datatype = natural
	}
	return r.plain(v, lexical, lang, datatype)
}

func (r *jsonldReader) plain(v *jsonValue, lexical, lang, datatype string) (rdfres.Term, string) {
	if lang != "" {
		return "", r.fail(v.pos, "a value with a language is no string")
	}
	return rdfres.NewLiteral(lexical, "", datatype), ""
}

func (r *jsonldReader) datatype(s jsonString) (iri, why string) {
	if !s.escaped && string(s.raw) == r.lastType {
		return r.lastType, ""
	}
	text, why := r.text(s.raw, s.escaped)
	if why != "" {
		return "", why
	}
	iri, ok := rdfres.ResolveIRI(r.opts.Base, text)
	if !ok || strings.HasPrefix(text, "_:") {
		return "", r.fail(s.pos, "the datatype "+strconv.Quote(chars.Cut(text))+" is no absolute IRI")
	}
	if iri == text {
		r.lastType = iri
	}
	return iri, ""
}

// numberLexical is the lexical form of a JSON number, and its datatype unless
// one is given. Whole numbers are xsd:integer, however long they are written
// (JSON-LD bounds them by 1e21); others xsd:double in canonical form.
func numberLexical(raw []byte, datatype string) (lexical, natural, why string) {
	text := string(raw)
	whole := !strings.ContainsAny(text, ".eE")
	digits := len(text)
	if whole && text[0] == '-' {
		digits--
	}
	if whole && digits <= 21 && datatype != chars.XSDDouble {
		if text == "-0" {
			text = "0"
		}
		return text, chars.XSDInteger, ""
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", "", fmt.Sprintf("the number %s is out of range", chars.Cut(text))
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e21 && datatype != chars.XSDDouble {
		text = strconv.FormatFloat(f, 'f', 0, 64)
		if text == "-0" {
			text = "0"
		}
		return text, chars.XSDInteger, ""
	}
	return canonicalDouble(f), chars.XSDDouble, ""
}

// canonicalDouble is the canonical lexical form of xsd:double: 1.5E0.
func canonicalDouble(f float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
