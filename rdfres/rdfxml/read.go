package rdfxml

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// rdfxmlParser is a streaming parser of RDF/XML 1.1, written after its grammar
// (section 7.2; the names of the productions are theirs).
type rdfxmlParser struct {
	*xmlReader
	yield  func(rdfres.Quad, error) bool
	labels syntax.Labels
	ids    map[string]bool // rdf:ID, with the base: each may stand once
	known  *syntax.Interner
	buf    []byte
}

// Read yields the statements of a document, while it is read.
func Read(r io.Reader, o rdfres.ReadOptions, yield func(rdfres.Quad, error) bool) {
	in, err := newXMLReader(r, o)
	if err != nil {
		yield(rdfres.Quad{}, err)
		return
	}
	p := &rdfxmlParser{xmlReader: in, yield: yield, ids: map[string]bool{}, known: syntax.NewInterner()}
	if err := p.document(); err != nil && err != syntax.ErrStopped {
		yield(rdfres.Quad{}, err)
	}
}

func (p *rdfxmlParser) emit(s, pr, o rdfres.Term) error {
	if !p.yield(rdfres.Quad{Triple: rdfres.Triple{S: s, P: pr, O: o}}, nil) {
		return syntax.ErrStopped
	}
	return nil
}

func (p *rdfxmlParser) document() error {
	for {
		t, err := p.token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		e, err := p.element(start)
		if err != nil {
			return err
		}
		if e.name.Space == chars.RDF && e.name.Local == "RDF" {
			for _, a := range e.attrs {
				if a.Name != (xml.Name{Space: chars.RDF, Local: "version"}) { // of RDF 1.2; the content tells if it can be read
					return p.errorf("rdf:RDF cannot have the attribute %s", a.Name.Local)
				}
			}
			err = p.nodeElementList()
		} else {
			_, err = p.nodeElement(e)
		}
		if err != nil {
			return err
		}
	}
}

// children calls element for each child element, up to the end of the element
// that is open. Text between them must be white space.
func (p *rdfxmlParser) children(element func(element) error) error {
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			e, err := p.element(t)
			if err != nil {
				return err
			}
			if err := element(e); err != nil {
				return err
			}
		case xml.EndElement:
			p.pop()
			return nil
		case xml.CharData:
			if !isXMLSpace(t) {
				return p.errorf("the text %q stands where only elements can", chars.Cut(strings.TrimSpace(string(t))))
			}
		}
	}
}

func isXMLSpace(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

func (p *rdfxmlParser) nodeElementList() error {
	return p.children(func(e element) error {
		_, err := p.nodeElement(e)
		return err
	})
}

// forbidden are the names of the rdf namespace that an element or attribute of
// a kind cannot have.
func forbidden(n xml.Name, more ...string) bool {
	if n.Space != chars.RDF {
		return false
	}
	switch n.Local {
	case "RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "aboutEach", "aboutEachPrefix", "bagID":
		return true
	}
	for _, m := range more {
		if n.Local == m {
			return true
		}
	}
	return false
}

func (p *rdfxmlParser) nodeElement(e element) (subject rdfres.Term, err error) {
	if e.name.Space == "" {
		return "", p.errorf("the element <%s> has no namespace", e.name.Local)
	}
	if forbidden(e.name, "li") {
		return "", p.errorf("rdf:%s cannot be a node element", e.name.Local)
	}
	properties := e.attrs[:0]
	for _, a := range e.attrs {
		var named rdfres.Term
		switch {
		case a.Name == xml.Name{Space: chars.RDF, Local: "about"}:
			named, err = p.iri(a.Value)
		case a.Name == xml.Name{Space: chars.RDF, Local: "ID"}:
			named, err = p.id(a.Value)
		case a.Name == xml.Name{Space: chars.RDF, Local: "nodeID"}:
			named, err = p.nodeID(a.Value)
		case forbidden(a.Name, "Description", "li"):
			return "", p.errorf("rdf:%s cannot be an attribute of a node element", a.Name.Local)
		default:
			properties = append(properties, a)
			continue
		}
		if err != nil {
			return "", err
		}
		if subject != "" {
			return "", p.errorf("a node has more than one of rdf:about, rdf:ID and rdf:nodeID")
		}
		subject = named
	}
	if subject == "" {
		subject = p.labels.Fresh()
	}
	if e.name != (xml.Name{Space: chars.RDF, Local: "Description"}) {
		typ, err := p.nameTerm(e.name)
		if err != nil {
			return "", err
		}
		if err := p.emit(subject, syntax.Type, typ); err != nil {
			return "", err
		}
	}
	if err := p.propertyAttrs(subject, properties); err != nil {
		return "", err
	}
	return subject, p.propertyElementList(subject)
}

func (p *rdfxmlParser) propertyAttrs(subject rdfres.Term, attrs []xml.Attr) error {
	for _, a := range attrs {
		pr, err := p.nameTerm(a.Name)
		if err != nil {
			return err
		}
		o := rdfres.NewLiteral(a.Value, p.top().lang, "")
		if pr == syntax.Type {
			if o, err = p.iri(a.Value); err != nil {
				return err
			}
		}
		if err := p.emit(subject, pr, o); err != nil {
			return err
		}
	}
	return nil
}

func (p *rdfxmlParser) propertyElementList(subject rdfres.Term) error {
	li := 0
	return p.children(func(e element) error { return p.propertyElt(subject, e, &li) })
}

// propertyAttributes are the attributes of a property element.
type propertyAttributes struct {
	id, parseType, datatype string
	hasID, hasDatatype      bool
	hasParse                bool
	object                  rdfres.Term // rdf:resource or rdf:nodeID
	properties              []xml.Attr
}

func (p *rdfxmlParser) propertyAttributes(e element) (a propertyAttributes, err error) {
	a.properties = e.attrs[:0]
	for _, attr := range e.attrs {
		if attr.Name.Space != chars.RDF {
			a.properties = append(a.properties, attr)
			continue
		}
		var object rdfres.Term
		switch attr.Name.Local {
		case "ID":
			a.id, a.hasID = attr.Value, true
		case "parseType":
			a.parseType, a.hasParse = attr.Value, true
		case "datatype":
			a.hasDatatype = true
			dt, err := p.iri(attr.Value)
			if err != nil {
				return a, err
			}
			a.datatype = dt.IRI()
		case "resource":
			object, err = p.iri(attr.Value)
		case "nodeID":
			object, err = p.nodeID(attr.Value)
		default:
			if forbidden(attr.Name, "Description", "li") {
				return a, p.errorf("rdf:%s cannot be an attribute of a property element", attr.Name.Local)
			}
			a.properties = append(a.properties, attr)
		}
		if err != nil {
			return a, err
		}
		if object != "" {
			if a.object != "" {
				return a, p.errorf("a property has both rdf:resource and rdf:nodeID")
			}
			a.object = object
		}
	}
	if a.hasParse && (a.object != "" || a.hasDatatype || len(a.properties) > 0) || a.hasDatatype && (a.object != "" || len(a.properties) > 0) {
		return a, p.errorf("the attributes of the property element %s exclude each other", e.name.Local)
	}
	return a, nil
}

func (p *rdfxmlParser) propertyElt(subject rdfres.Term, e element, li *int) error {
	if e.name.Space == "" {
		return p.errorf("the element <%s> has no namespace", e.name.Local)
	}
	if e.name == (xml.Name{Space: chars.RDF, Local: "li"}) {
		*li++
		e.name.Local = "_" + strconv.Itoa(*li)
	}
	if forbidden(e.name, "Description") {
		return p.errorf("rdf:%s cannot be a property element", e.name.Local)
	}
	pr, err := p.nameTerm(e.name)
	if err != nil {
		return err
	}
	a, err := p.propertyAttributes(e)
	if err != nil {
		return err
	}
	var statement rdfres.Term
	if a.hasID {
		if statement, err = p.id(a.id); err != nil {
			return err
		}
	}
	object, err := p.propertyObject(a)
	if err != nil {
		return err
	}
	if err := p.emit(subject, pr, object); err != nil || statement == "" {
		return err
	}
	for _, t := range []rdfres.Triple{{S: statement, P: syntax.Type, O: rdfTerm("Statement")}, {S: statement, P: rdfTerm("subject"), O: subject}, {S: statement, P: rdfTerm("predicate"), O: pr}, {S: statement, P: rdfTerm("object"), O: object}} {
		if err := p.emit(t.S, t.P, t.O); err != nil {
			return err
		}
	}
	return nil
}

func rdfTerm(local string) rdfres.Term { return rdfres.Term("<" + chars.RDF + local + ">") }

// propertyObject reads the content of a property element, up to its end.
func (p *rdfxmlParser) propertyObject(a propertyAttributes) (rdfres.Term, error) {
	switch {
	case a.hasParse && a.parseType == "Resource":
		node := p.labels.Fresh()
		return node, p.propertyElementList(node)
	case a.hasParse && a.parseType == "Collection":
		return p.collection()
	case a.hasParse: // Literal, and everything unknown
		return p.xmlLiteral()
	case a.object != "" || len(a.properties) > 0: // emptyPropertyElt
		if a.object == "" {
			a.object = p.labels.Fresh()
		}
		if err := p.propertyAttrs(a.object, a.properties); err != nil {
			return "", err
		}
		return a.object, p.children(func(element) error {
			return p.errorf("a property with rdf:resource, rdf:nodeID or property attributes must be empty")
		})
	}
	return p.resourceOrLiteral(a)
}

// resourceOrLiteral is resourcePropertyElt or literalPropertyElt: what it is
// shows in the content.
func (p *rdfxmlParser) resourceOrLiteral(a propertyAttributes) (rdfres.Term, error) {
	lang := p.top().lang
	var text []byte
	var object rdfres.Term
	for {
		t, err := p.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			if object != "" && !isXMLSpace(t) {
				return "", p.errorf("text stands beside the node of a property")
			}
			if len(text)+len(t) > chars.MaxLine {
				return "", p.errorf("a literal is longer than %d MiB", chars.MaxLine>>20)
			}
			text = append(text, t...)
		case xml.StartElement:
			switch {
			case a.hasDatatype:
				return "", p.errorf("a property with rdf:datatype has an element in it")
			case object != "":
				return "", p.errorf("a property has more than one node in it")
			case !isXMLSpace(text):
				return "", p.errorf("text stands beside the node of a property")
			}
			e, err := p.element(t)
			if err != nil {
				return "", err
			}
			if object, err = p.nodeElement(e); err != nil {
				return "", err
			}
		case xml.EndElement:
			p.pop()
			switch {
			case object != "":
				return object, nil
			case a.hasDatatype:
				return rdfres.NewLiteral(chars.OwnString(text), "", a.datatype), nil
			}
			return rdfres.NewLiteral(chars.OwnString(text), lang, ""), nil
		}
	}
}

func (p *rdfxmlParser) collection() (head rdfres.Term, err error) {
	var last rdfres.Term
	err = p.children(func(e element) error {
		node := p.labels.Fresh()
		if last == "" {
			head = node
		} else if err := p.emit(last, syntax.Rest, node); err != nil {
			return err
		}
		last = node
		item, err := p.nodeElement(e)
		if err != nil {
			return err
		}
		return p.emit(node, syntax.First, item)
	})
	if err != nil {
		return "", err
	}
	if last == "" {
		return syntax.Nil, nil
	}
	return head, p.emit(last, syntax.Rest, syntax.Nil)
}

// iri resolves the value of an attribute against the base in scope.
func (p *rdfxmlParser) iri(ref string) (rdfres.Term, error) {
	if p.top().base == "" && !chars.HasScheme(ref) {
		return "", p.errorf("the IRI %q is relative and there is no base", chars.Cut(ref))
	}
	iri, ok := rdfres.ResolveIRI(p.top().base, ref)
	if !ok {
		return "", p.errorf("the IRI %q is relative and there is no base", chars.Cut(ref))
	}
	if p.opts.CheckIRIs {
		if err := rdfres.CheckRawIRI(iri); err != nil {
			return "", p.errorf("%s", err)
		}
	}
	return rdfres.NewIRI(iri), nil
}

func (p *rdfxmlParser) id(name string) (rdfres.Term, error) {
	if !isNCName(name) {
		return "", p.errorf("rdf:ID %q is no XML name", chars.Cut(name))
	}
	t, err := p.iri("#" + name)
	if err != nil {
		return "", err
	}
	if p.ids[string(t)] {
		return "", p.errorf("rdf:ID %q stands twice", chars.Cut(name))
	}
	p.ids[string(t)] = true
	return t, p.hold(len(t))
}

func (p *rdfxmlParser) nodeID(name string) (rdfres.Term, error) {
	if !isNCName(name) {
		return "", p.errorf("rdf:nodeID %q is no XML name", chars.Cut(name))
	}
	return p.labels.Of(name), nil
}

// nameTerm is the IRI of an element or attribute: namespace and local name.
func (p *rdfxmlParser) nameTerm(n xml.Name) (rdfres.Term, error) {
	if !chars.HasScheme(n.Space) {
		return "", p.errorf("the namespace %q of %s is relative", chars.Cut(n.Space), n.Local)
	}
	if p.opts.CheckIRIs {
		if err := rdfres.CheckRawIRI(n.Space); err != nil {
			return "", p.errorf("%s", err)
		}
	}
	p.buf = chars.AppendIRI(append(p.buf[:0], '<'), n.Space)
	p.buf = append(chars.AppendIRI(p.buf, n.Local), '>')
	return p.known.Share(p.buf), nil
}
