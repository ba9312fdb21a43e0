package xmlscan

import (
	"bytes"
	"errors"
	"fmt"
)

// This file takes start tags apart and resolves their names.

func (s *Scanner) startTag() error {
	if s.doc.rooted && s.depth() == 0 {
		return s.Failf(ErrSyntax, "a second root element; a document has one")
	}
	n, empty, err := s.parseTag()
	for err == errMore {
		if err := s.more(); err != nil {
			return s.inputError(err, "a tag")
		}
		n, empty, err = s.parseTag()
	}
	if err != nil {
		return s.Failf(ErrSyntax, "%s", err)
	}
	if s.depth() >= maxDepth {
		return s.Failf(ErrLimit, "elements are nested deeper than %d", maxDepth)
	}
	if err := s.finishTag(); err != nil {
		return err
	}
	s.pos += n
	s.doc.rooted = true
	s.els.empty = empty
	return nil
}

var errMore = errors.New("more input is needed")

// parseTag takes the start tag at pos apart, without looking at namespaces. It
// gives the tag's length, or errMore.
func (s *Scanner) parseTag() (n int, empty bool, err error) {
	w := s.buf[s.pos:s.end]
	s.Attrs = s.Attrs[:0]
	i := 1
	if i, err = scanName(w, i, &s.Name); err != nil {
		return 0, false, err
	}
	for {
		blank := i
		for i < len(w) && IsSpace(w[i]) {
			i++
		}
		if i == len(w) {
			return 0, false, errMore
		}
		switch w[i] {
		case '>':
			return i + 1, false, nil
		case '/':
			if i+1 == len(w) {
				return 0, false, errMore
			}
			if w[i+1] != '>' {
				return 0, false, errors.New("/ in a tag is not followed by >")
			}
			return i + 2, true, nil
		}
		if blank == i {
			return 0, false, fmt.Errorf("no blank before an attribute of <%s>", Clip(s.Name.Raw()))
		}
		if len(s.Attrs) == maxAttrs {
			return 0, false, fmt.Errorf("<%s> has more than %d attributes", Clip(s.Name.Raw()), maxAttrs)
		}
		s.Attrs = append(s.Attrs, Attr{})
		if i, err = scanAttr(w, i, &s.Attrs[len(s.Attrs)-1]); err != nil {
			return 0, false, err
		}
	}
}

// scanAttr reads name="value" at w[i:].
func scanAttr(w []byte, i int, a *Attr) (int, error) {
	i, err := scanName(w, i, &a.Name)
	if err != nil {
		return 0, err
	}
	for i < len(w) && IsSpace(w[i]) {
		i++
	}
	if i == len(w) {
		return 0, errMore
	}
	if w[i] != '=' {
		return 0, fmt.Errorf("the attribute %s has no value", Clip(a.Raw()))
	}
	for i++; i < len(w) && IsSpace(w[i]); {
		i++
	}
	if i == len(w) {
		return 0, errMore
	}
	quote := w[i]
	if quote != '"' && quote != '\'' {
		return 0, fmt.Errorf("the value of the attribute %s is not in quotes", Clip(a.Raw()))
	}
	i++
	start := i
	for ; i < len(w); i++ {
		switch c := w[i]; {
		case valueByte[c] == 0:
		case c == quote:
			a.Value = w[start:i:i]
			return i + 1, nil
		case c == '<':
			return 0, fmt.Errorf("< in the value of the attribute %s; it is written &lt;", Clip(a.Raw()))
		case c != '"' && c != '\'':
			a.decode = true
		}
	}
	return 0, errMore
}

// valueByte marks the bytes of interest to scanAttr.
var valueByte = [256]uint8{'"': 1, '\'': 1, '<': 1, '&': 1, '\t': 1, '\n': 1, '\r': 1}

// finishTag decodes values, binds prefixes, resolves names and opens the element.
func (s *Scanner) finishTag() error {
	depth := s.depth() + 1
	for i := range s.Attrs {
		a := &s.Attrs[i]
		if len(a.Value) > s.o.MaxValue {
			return s.Failf(ErrLimit, "the attribute %s is longer than %d bytes", Clip(a.Raw()), s.o.MaxValue)
		}
		if a.decode {
			v, err := s.decodeValue(a.Value)
			if err != nil {
				return s.Failf(ErrSyntax, "attribute %s: %s", Clip(a.Raw()), err)
			}
			a.Value = v
		}
		if string(a.Prefix) == "xmlns" || len(a.Prefix) == 0 && string(a.Local) == "xmlns" {
			if err := s.bind(a, depth); err != nil {
				return err
			}
		}
	}
	if err := s.resolve(&s.Name, true); err != nil {
		return err
	}
	for i := range s.Attrs {
		if err := s.resolve(&s.Attrs[i].Name, false); err != nil {
			return err
		}
		if s.doubled(i) {
			return s.Failf(ErrSyntax, "<%s> has the attribute %s twice", Clip(s.Name.Raw()), Clip(s.Attrs[i].Raw()))
		}
	}
	if len(s.Name.Prefix) > 0 {
		s.els.names = append(append(s.els.names, s.Name.Prefix...), ':')
	}
	s.els.names = append(s.els.names, s.Name.Local...)
	s.els.ends = append(s.els.ends, len(s.els.names))
	return nil
}

// doubled says whether attribute i stands before i too, by its resolved name.
func (s *Scanner) doubled(i int) bool {
	a := &s.Attrs[i]
	for j := range i {
		b := &s.Attrs[j]
		if a.Space == b.Space && a.URI == b.URI && bytes.Equal(a.Local, b.Local) {
			return true
		}
	}
	return false
}

// bind takes a namespace declaration.
func (s *Scanner) bind(a *Attr, depth int) error {
	b := binding{uri: string(a.Value), depth: depth}
	if len(a.Prefix) > 0 {
		b.prefix = string(a.Local)
	}
	b.space = s.number(b.uri)
	switch {
	case b.prefix == "xmlns", b.prefix == "xml" && b.space != XML, b.prefix != "xml" && b.space == XML, b.space == XMLNS:
		return s.Failf(ErrSyntax, "%s=%q: the names xml and xmlns are reserved", Clip(a.Raw()), Clip(b.uri))
	case b.prefix != "" && b.uri == "":
		return s.Failf(ErrSyntax, "%s is declared without a namespace", Clip(a.Raw()))
	}
	s.els.bindings = append(s.els.bindings, b)
	return nil
}

// number numbers a namespace.
func (s *Scanner) number(uri string) Space {
	switch uri {
	case "":
		return None
	case NamespaceXML:
		return XML
	case NamespaceXMLNS:
		return XMLNS
	}
	return s.o.Spaces(uri)
}

// resolve finds the namespace of a name. Attributes without prefix have none.
func (s *Scanner) resolve(n *Name, element bool) error {
	if len(n.Prefix) == 0 {
		n.Space, n.URI = None, ""
		if !element {
			if string(n.Local) == "xmlns" {
				n.Space, n.URI = XMLNS, NamespaceXMLNS
			}
			return nil
		}
	} else if string(n.Prefix) == "xmlns" {
		if element {
			return s.Failf(ErrSyntax, "<%s>: the prefix xmlns is reserved", Clip(n.Raw()))
		}
		n.Space, n.URI = XMLNS, NamespaceXMLNS
		return nil
	}
	for i := len(s.els.bindings) - 1; i >= 0; i-- {
		if b := &s.els.bindings[i]; b.prefix == string(n.Prefix) {
			n.Space, n.URI = b.space, b.uri
			return nil
		}
	}
	uri := ""
	if s.o.Slip != nil {
		uri = s.o.Undeclared(n)
	}
	if uri == "" {
		return s.Failf(ErrSyntax, "the prefix of %s is not declared (xmlns:%s=...)", Clip(n.Raw()), Clip(string(n.Prefix)))
	}
	s.o.Slip(ErrSyntax, fmt.Sprintf("the prefix %s is not declared (xmlns:%[1]s=...)", Clip(string(n.Prefix))))
	n.Space, n.URI = s.number(uri), uri
	return nil
}
