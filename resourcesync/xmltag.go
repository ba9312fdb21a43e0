package resourcesync

import (
	"bytes"
	"errors"
	"fmt"
)

// This file takes start tags apart and resolves their names.

func (s *scanner) startTag() error {
	if s.rooted && s.depth() == 0 {
		return s.failf(ErrSyntax, "a second root element; a document has one")
	}
	n, empty, err := s.parseTag()
	for err == errMore {
		if err := s.more(); err != nil {
			return s.inputError(err, "a tag")
		}
		n, empty, err = s.parseTag()
	}
	if err != nil {
		return s.failf(ErrSyntax, "%s", err)
	}
	if s.depth() >= maxDepth {
		return s.failf(ErrLimit, "elements are nested deeper than %d", maxDepth)
	}
	if err := s.finishTag(); err != nil {
		return err
	}
	s.pos += n
	s.rooted = true
	s.selfEnd = empty
	return nil
}

var errMore = errors.New("more input is needed")

// parseTag takes the start tag at pos apart, without looking at namespaces. It
// gives the tag's length, or errMore.
func (s *scanner) parseTag() (n int, empty bool, err error) {
	w := s.buf[s.pos:s.end]
	s.attrs = s.attrs[:0]
	i := 1
	if i, err = scanName(w, i, &s.name); err != nil {
		return 0, false, err
	}
	for {
		blank := i
		for i < len(w) && isSpace(w[i]) {
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
			return 0, false, fmt.Errorf("no blank before an attribute of <%s>", clip(s.name.raw()))
		}
		if len(s.attrs) == maxAttrs {
			return 0, false, fmt.Errorf("<%s> has more than %d attributes", clip(s.name.raw()), maxAttrs)
		}
		s.attrs = append(s.attrs, attr{})
		if i, err = scanAttr(w, i, &s.attrs[len(s.attrs)-1]); err != nil {
			return 0, false, err
		}
	}
}

// scanAttr reads name="value" at w[i:].
func scanAttr(w []byte, i int, a *attr) (int, error) {
	i, err := scanName(w, i, &a.qname)
	if err != nil {
		return 0, err
	}
	for i < len(w) && isSpace(w[i]) {
		i++
	}
	if i == len(w) {
		return 0, errMore
	}
	if w[i] != '=' {
		return 0, fmt.Errorf("the attribute %s has no value", clip(a.raw()))
	}
	for i++; i < len(w) && isSpace(w[i]); {
		i++
	}
	if i == len(w) {
		return 0, errMore
	}
	quote := w[i]
	if quote != '"' && quote != '\'' {
		return 0, fmt.Errorf("the value of the attribute %s is not in quotes", clip(a.raw()))
	}
	i++
	start := i
	for ; i < len(w); i++ {
		switch c := w[i]; {
		case valueByte[c] == 0:
		case c == quote:
			a.value = w[start:i:i]
			return i + 1, nil
		case c == '<':
			return 0, fmt.Errorf("< in the value of the attribute %s; it is written &lt;", clip(a.raw()))
		case c != '"' && c != '\'':
			a.decode = true
		}
	}
	return 0, errMore
}

// valueByte marks the bytes that scanAttr must look at.
var valueByte = [256]uint8{'"': 1, '\'': 1, '<': 1, '&': 1, '\t': 1, '\n': 1, '\r': 1}

// finishTag decodes values, binds prefixes, resolves names and opens the element.
func (s *scanner) finishTag() error {
	depth := s.depth() + 1
	for i := range s.attrs {
		a := &s.attrs[i]
		if len(a.value) > s.maxValue {
			return s.failf(ErrLimit, "the attribute %s is longer than %d bytes", clip(a.raw()), s.maxValue)
		}
		if a.decode {
			v, err := decodeValue(a.value)
			if err != nil {
				return s.failf(ErrSyntax, "attribute %s: %s", clip(a.raw()), err)
			}
			a.value = v
		}
		if string(a.prefix) == "xmlns" || len(a.prefix) == 0 && string(a.local) == "xmlns" {
			if err := s.bind(a, depth); err != nil {
				return err
			}
		}
	}
	if err := s.resolve(&s.name, true); err != nil {
		return err
	}
	for i := range s.attrs {
		if err := s.resolve(&s.attrs[i].qname, false); err != nil {
			return err
		}
		if s.doubled(i) {
			return s.failf(ErrSyntax, "<%s> has the attribute %s twice", clip(s.name.raw()), clip(s.attrs[i].raw()))
		}
	}
	if len(s.name.prefix) > 0 {
		s.open = append(append(s.open, s.name.prefix...), ':')
	}
	s.open = append(s.open, s.name.local...)
	s.openEnds = append(s.openEnds, len(s.open))
	return nil
}

// doubled says whether attribute i stands before i too, by its resolved name.
func (s *scanner) doubled(i int) bool {
	a := &s.attrs[i]
	for j := range i {
		b := &s.attrs[j]
		if a.ns == b.ns && a.uri == b.uri && bytes.Equal(a.local, b.local) {
			return true
		}
	}
	return false
}

// bind takes a namespace declaration.
func (s *scanner) bind(a *attr, depth int) error {
	b := binding{uri: string(a.value), depth: depth}
	if len(a.prefix) > 0 {
		b.prefix = string(a.local)
	}
	b.ns = namespaceID(b.uri)
	switch {
	case b.prefix == "xmlns", b.prefix == "xml" && b.ns != nsXML, b.prefix != "xml" && b.ns == nsXML, b.ns == nsXMLNS:
		return s.failf(ErrSyntax, "%s=%q: the names xml and xmlns are reserved", clip(a.raw()), clip(b.uri))
	case b.prefix != "" && b.uri == "":
		return s.failf(ErrSyntax, "%s is declared without a namespace", clip(a.raw()))
	}
	s.bindings = append(s.bindings, b)
	return nil
}

// resolve finds the namespace of a name. Attributes without prefix have none.
func (s *scanner) resolve(n *qname, element bool) error {
	if len(n.prefix) == 0 {
		n.ns, n.uri = nsNone, ""
		if !element {
			if string(n.local) == "xmlns" {
				n.ns, n.uri = nsXMLNS, namespaceXMLNS
			}
			return nil
		}
	} else if string(n.prefix) == "xmlns" {
		if element {
			return s.failf(ErrSyntax, "<%s>: the prefix xmlns is reserved", clip(n.raw()))
		}
		n.ns, n.uri = nsXMLNS, namespaceXMLNS
		return nil
	}
	for i := len(s.bindings) - 1; i >= 0; i-- {
		if b := &s.bindings[i]; b.prefix == string(n.prefix) {
			n.ns, n.uri = b.ns, b.uri
			return nil
		}
	}
	if s.forgive && string(n.prefix) == "rs" {
		s.undeclared = true
		n.ns, n.uri = nsRS, NamespaceRS
		return nil
	}
	return s.failf(ErrSyntax, "the prefix of %s is not declared (xmlns:%s=...)", clip(n.raw()), clip(string(n.prefix)))
}
