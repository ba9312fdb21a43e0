package rdfxml

import (
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

const maxEntities = 10_000

// documentType reads the rest of a <!DOCTYPE.
func (l *xmlLexer) documentType() error {
	if err := l.needSpace("after DOCTYPE"); err != nil {
		return err
	}
	if _, err := l.name("the name of the root element"); err != nil {
		return err
	}
	if _, err := l.space(); err != nil {
		return err
	}
	if _, err := l.externalID(); err != nil {
		return err
	}
	if _, err := l.space(); err != nil {
		return err
	}
	r, err := l.read()
	if err != nil {
		return err
	}
	if r == '[' {
		if err := l.internalSubset(); err != nil {
			return err
		}
		if _, err := l.space(); err != nil {
			return err
		}
	} else {
		l.unreadUnlessEnded(r)
	}
	return l.want(">", "at the end of the DOCTYPE")
}

// externalID passes over the address of an external entity or subset.
func (l *xmlLexer) externalID() (there bool, err error) {
	r, err := l.read()
	if err != nil {
		return false, err
	}
	literals := 0
	switch r {
	case 'S':
		literals, err = 1, l.want("YSTEM", "")
	case 'P':
		literals, err = 2, l.want("UBLIC", "")
	default:
		l.unreadUnlessEnded(r)
		return false, nil
	}
	for ; literals > 0 && err == nil; literals-- {
		if err = l.needSpace("before an address"); err == nil {
			_, err = l.literal()
		}
	}
	return true, err
}

// literal reads a string in quotes as it stands.
func (l *xmlLexer) literal() (string, error) {
	quote, err := l.quote("a string")
	if err != nil {
		return "", err
	}
	text, err := l.until(string(quote), "a string")
	return string(text), err
}

func (l *xmlLexer) internalSubset() error {
	ground := len(l.stack)
	for {
		if _, err := l.space(); err != nil {
			return err
		}
		r, err := l.read()
		switch {
		case err != nil:
			return err
		case r == ended && len(l.stack) > ground:
			l.stack = l.stack[:len(l.stack)-1]
		case r == ']' && len(l.stack) == ground:
			return nil
		case r == '%':
			err = l.parameter()
		case r == '<':
			err = l.declarations()
		default:
			err = l.unexpected(r, "where a declaration must")
		}
		if err != nil {
			return err
		}
	}
}

// parameter enters a parameter entity. After an external one, a declaration may
// not be the intended one: declarations go on, since most readers go on.
func (l *xmlLexer) parameter() error {
	name, err := l.name("the name of a parameter entity")
	if err == nil {
		err = l.want(";", "at the end of a reference")
	}
	if err != nil {
		return err
	}
	e, ok := l.parameters[name]
	if !ok || e.external {
		return nil
	}
	if err := l.enters("%"+name, e.text); err != nil {
		return err
	}
	l.stack = append(l.stack, xmlEntity{"%" + name, e.text, l.depth})
	return nil
}

// declarations reads one declaration, comment or processing instruction.
func (l *xmlLexer) declarations() error {
	r, err := l.read()
	if err != nil {
		return err
	}
	if r == '?' {
		_, err := l.instruction()
		return err
	}
	if r != '!' {
		return l.unexpected(r, "after '<' in the DOCTYPE")
	}
	if r, err = l.read(); err != nil {
		return err
	}
	if r == '-' {
		if err = l.want("-", "at the begin of a comment"); err == nil {
			_, err = l.comment()
		}
		return err
	}
	l.unreadUnlessEnded(r)
	what, err := l.name("ENTITY, ATTLIST, ELEMENT or NOTATION")
	if err == nil {
		err = l.needSpace("in a declaration")
	}
	if err != nil {
		return err
	}
	switch what {
	case "ENTITY":
		return l.entityDeclaration()
	case "ATTLIST":
		return l.attributeList()
	case "ELEMENT", "NOTATION":
		return l.passDeclaration()
	}
	return l.errorf("<!%s is no declaration", chars.Cut(what))
}

// passDeclaration goes to the end of a declaration without effect on the content.
func (l *xmlLexer) passDeclaration() error {
	for {
		r, err := l.read()
		switch {
		case err != nil:
			return err
		case r == '>':
			return nil
		case r == ended || r == '<':
			return l.unexpected(r, "in a declaration")
		case r == '"' || r == '\'':
			if _, err := l.until(string(r), "a string"); err != nil {
				return err
			}
		}
	}
}

func (l *xmlLexer) entityDeclaration() error {
	into := l.entities
	r, err := l.read()
	if err != nil {
		return err
	}
	if r == '%' {
		into = l.parameters
		if err := l.needSpace("after '%'"); err != nil {
			return err
		}
	} else {
		l.unreadUnlessEnded(r)
	}
	name, err := l.name("the name of an entity")
	if err == nil {
		err = l.needSpace("after the name of an entity")
	}
	if err != nil {
		return err
	}
	var e entityDecl
	if e.external, err = l.externalID(); err == nil && !e.external {
		e.text, err = l.entityValue()
	} else if err == nil { // perhaps NDATA and a name
		return l.declare(into, name, e, l.passDeclaration())
	}
	if err == nil {
		_, err = l.space()
	}
	if err == nil {
		err = l.want(">", "at the end of a declaration")
	}
	return l.declare(into, name, e, err)
}

// declare keeps the first declaration of an entity.
func (l *xmlLexer) declare(into map[string]entityDecl, name string, e entityDecl, err error) error {
	if err != nil {
		return err
	}
	if len(into) >= maxEntities {
		return l.errorf("more than %d entities", maxEntities)
	}
	if _, ok := into[name]; !ok {
		into[name] = e
	}
	return nil
}

// entityValue reads an EntityValue: references to characters are replaced, those to
// entities are kept for where the entity is used.
func (l *xmlLexer) entityValue() (string, error) {
	quote, err := l.quote("the value of an entity")
	if err != nil {
		return "", err
	}
	l.buf = l.buf[:0]
	for {
		r, err := l.read()
		if err != nil {
			return "", err
		}
		switch r {
		case quote:
			return string(l.buf), nil
		case ended:
			return "", l.unexpected(r, "in the value of an entity")
		case '%':
			return "", l.errorf("a parameter entity cannot stand in a declaration of the internal subset")
		case '&':
			next, err := l.read()
			if err != nil {
				return "", err
			}
			if next == '#' {
				if r, err = l.characterReference(); err != nil {
					return "", err
				}
				break
			}
			l.unreadUnlessEnded(next)
			name, err := l.name("the name of an entity")
			if err == nil {
				err = l.want(";", "at the end of a reference")
			}
			if err != nil {
				return "", err
			}
			l.buf = append(append(append(l.buf, '&'), name...), ';')
			continue
		}
		l.buf = utf8.AppendRune(l.buf, r)
	}
}

// attributeList reads the types and defaults of attributes.
func (l *xmlLexer) attributeList() error {
	element, err := l.name("the name of an element")
	if err != nil {
		return err
	}
	for {
		some, err := l.space()
		if err != nil {
			return err
		}
		r, err := l.read()
		if err != nil || r == '>' {
			return err
		}
		if !some {
			return l.unexpected(r, "in a declaration where white space is missing")
		}
		l.unreadUnlessEnded(r)
		var d attributeDecl
		if d.name, err = l.qualified("the name of an attribute"); err == nil {
			err = l.needSpace("after the name of an attribute")
		}
		if err == nil {
			d.isTokens, err = l.attributeType()
		}
		if err == nil {
			err = l.needSpace("after the type of an attribute")
		}
		if err == nil {
			err = l.attributeDefault(&d)
		}
		if err != nil {
			return err
		}
		if len(l.attributes) > maxEntities || len(l.attributes[element]) > 1000 {
			return l.errorf("too many attributes are declared")
		}
		l.attributes[element] = append(l.attributes[element], d)
	}
}

func (l *xmlLexer) attributeType() (isTokens bool, err error) {
	r, err := l.read()
	if err != nil {
		return false, err
	}
	if r == '(' {
		_, err := l.until(")", "the values of an attribute")
		return true, err
	}
	l.unreadUnlessEnded(r)
	name, err := l.name("the type of an attribute")
	if err != nil {
		return false, err
	}
	switch name {
	case "CDATA":
		return false, nil
	case "ID", "IDREF", "IDREFS", "ENTITY", "ENTITIES", "NMTOKEN", "NMTOKENS":
		return true, nil
	case "NOTATION":
		if err = l.needSpace("after NOTATION"); err == nil {
			err = l.want("(", "after NOTATION")
		}
		if err == nil {
			_, err = l.until(")", "the values of an attribute")
		}
		return true, err
	}
	return false, l.errorf("%s is no type of an attribute", chars.Cut(name))
}

func (l *xmlLexer) attributeDefault(d *attributeDecl) error {
	r, err := l.read()
	if err != nil {
		return err
	}
	if r == '#' {
		word, err := l.name("REQUIRED, IMPLIED or FIXED")
		switch {
		case err != nil:
			return err
		case word == "REQUIRED", word == "IMPLIED":
			return nil
		case word != "FIXED":
			return l.errorf("#%s is no default", chars.Cut(word))
		}
		if err := l.needSpace("after #FIXED"); err != nil {
			return err
		}
	} else {
		l.unreadUnlessEnded(r)
	}
	quote, err := l.quote("the default of an attribute")
	if err != nil {
		return err
	}
	l.buf = l.buf[:0]
	if err := l.value(quote); err != nil {
		return err
	}
	if d.value, d.hasValue = string(l.buf), true; d.isTokens {
		d.value = strings.Join(strings.Fields(d.value), " ")
	}
	return nil
}

// isNCNameRune is NameChar of XML 1.0 without the colon.
func isNCNameRune(r rune) bool {
	return isNCNameStart(r) || r == '-' || r == '.' || r >= '0' && r <= '9' || r == 0xb7 || r >= 0x300 && r <= 0x36f || r == 0x203f || r == 0x2040
}
