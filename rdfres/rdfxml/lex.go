package rdfxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// xmlLexer reads the tokens of an XML 1.0 document (fifth edition) as a processor without
// validation: it takes the declarations of the internal subset (entities, defaults and types of
// attributes), and nothing from elsewhere. The names of the productions are those of the
// specification. Whatever is not well-formed is an error.
type xmlLexer struct {
	text *xmlText
	opts rdfres.ReadOptions

	length func() int64 // bytes read

	back    []rune // read and put back, the last one first
	stack   []xmlEntity
	depth   int
	begun   bool // the root element
	doctype bool
	closing *xml.EndElement // of an empty element
	start   bool            // nothing was read

	entities   map[string]entityDecl
	parameters map[string]entityDecl
	attributes map[string][]attributeDecl // by element
	expanded   int64                      // bytes of the replacements
	buf        []byte
}

// xmlEntity is an entity in reading.
type xmlEntity struct {
	name  string
	rest  string
	depth int // of elements at its start
}

type entityDecl struct {
	text     string
	external bool
}

type attributeDecl struct {
	name     xml.Name
	isTokens bool // its type is another than CDATA
	value    string
	hasValue bool
}

func newXMLLexer(r io.Reader, o rdfres.ReadOptions) (*xmlLexer, error) {
	in := syntax.NewCountingReader(r)
	text, err := newXMLText(in, o.Charset)
	if err != nil {
		return nil, o.ReadError(rdfres.RDFXML, 0, err)
	}
	return &xmlLexer{text: text, opts: o, length: in.Count, start: true, entities: map[string]entityDecl{}, parameters: map[string]entityDecl{}, attributes: map[string][]attributeDecl{}}, nil
}

func (l *xmlLexer) errorf(format string, args ...any) error {
	return &rdfres.SyntaxError{Name: l.opts.Name, Format: rdfres.RDFXML, Line: l.text.line, Column: max(1, l.text.col), Reason: fmt.Sprintf(format, args...)}
}

// ended is the result of read at the end of an entity or of the document.
const ended rune = -1

func (l *xmlLexer) read() (rune, error) {
	if n := len(l.back); n > 0 {
		r := l.back[n-1]
		l.back = l.back[:n-1]
		return r, nil
	}
	if n := len(l.stack); n > 0 {
		e := &l.stack[n-1]
		if e.rest == "" {
			return ended, nil
		}
		r, k := utf8.DecodeRuneInString(e.rest)
		e.rest = e.rest[k:]
		return r, nil
	}
	r, err := l.text.read()
	switch {
	case err == io.EOF:
		return ended, nil
	case err != nil:
		return 0, l.failed(err)
	}
	return r, nil
}

// failed tells an error of the text with its place, and one of the reader as it is.
func (l *xmlLexer) failed(err error) error {
	var bad chars.Error
	if errors.As(err, &bad) {
		return l.errorf("%s", bad)
	}
	return l.opts.ReadError(rdfres.RDFXML, l.text.line, err)
}

func (l *xmlLexer) unread(r rune) { l.back = append(l.back, r) }

// want passes over required text.
func (l *xmlLexer) want(text, where string) error {
	for _, w := range text {
		r, err := l.read()
		if err != nil {
			return err
		}
		if r != w {
			return l.unexpected(r, "where '"+text+"' is missing "+where)
		}
	}
	return nil
}

func (l *xmlLexer) unexpected(r rune, where string) error {
	switch {
	case r == ended && len(l.stack) > 0:
		return l.errorf("the entity %s ends %s", l.stack[len(l.stack)-1].name, where)
	case r == ended:
		return l.errorf("the document ends %s", where)
	}
	return l.errorf("%q stands %s", r, where)
}

// space passes over white space, and tells whether there was some.
func (l *xmlLexer) space() (some bool, err error) {
	for {
		r, err := l.read()
		if err != nil {
			return some, err
		}
		if r != ' ' && r != '\t' && r != '\n' && r != '\r' {
			l.unread(r)
			return some, nil
		}
		some = true
	}
}

func (l *xmlLexer) needSpace(where string) error {
	some, err := l.space()
	if err != nil || some {
		return err
	}
	r, err := l.read()
	if err != nil {
		return err
	}
	return l.unexpected(r, "where white space is missing "+where)
}

// name reads a Name.
func (l *xmlLexer) name(what string) (string, error) {
	var b []byte
	for {
		r, err := l.read()
		if err != nil {
			return "", err
		}
		if !(r == ':' || r > 0 && (len(b) == 0 && isNCNameStart(r) || len(b) > 0 && isNCNameRune(r))) {
			if len(b) == 0 {
				return "", l.unexpected(r, "where "+what+" must")
			}
			l.unread(r)
			return string(b), nil
		}
		if b = utf8.AppendRune(b, r); len(b) > maxXMLName {
			return "", l.errorf("a name is longer than %d bytes", maxXMLName)
		}
	}
}

const maxXMLName = 64 << 10

// qualified reads a name with at most one colon.
func (l *xmlLexer) qualified(what string) (n xml.Name, err error) {
	name, err := l.name(what)
	if err != nil {
		return n, err
	}
	prefix, local, ok := strings.Cut(name, ":")
	if !ok {
		return xml.Name{Local: name}, nil
	}
	if !isNCName(prefix) || !isNCName(local) {
		return n, l.errorf("the name %s is no prefix, a colon and a name", chars.Cut(name))
	}
	return xml.Name{Space: prefix, Local: local}, nil
}

// token gives the next token; text comes in pieces. Its bytes are valid until the next one.
// io.EOF is the end of the document.
func (l *xmlLexer) token() (xml.Token, error) {
	if l.closing != nil {
		t := *l.closing
		l.closing = nil
		l.depth--
		return t, nil
	}
	if l.start {
		l.start = false
		if err := l.declaration(); err != nil {
			return nil, err
		}
	}
	for {
		r, err := l.read()
		if err != nil {
			return nil, err
		}
		switch r {
		case ended:
			if len(l.stack) == 0 {
				return nil, io.EOF
			}
			if err := l.leave(); err != nil {
				return nil, err
			}
			continue
		case '<':
			t, err := l.markup()
			if t == nil && err == nil {
				continue // a DOCTYPE
			}
			return t, err
		}
		l.unread(r)
		t, err := l.characters()
		if len(t) == 0 && err == nil {
			continue // an entity begins
		}
		return t, err
	}
}

// leave ends an entity, in which elements must end that begin in it.
func (l *xmlLexer) leave() error {
	e := l.stack[len(l.stack)-1]
	l.stack = l.stack[:len(l.stack)-1]
	if e.depth != l.depth {
		return l.errorf("an element begins in the entity %s and does not end in it", e.name)
	}
	return nil
}

const xmlPiece = 32 << 10

// characters reads text up to markup or the beginning of an entity.
func (l *xmlLexer) characters() (xml.CharData, error) {
	l.buf = l.buf[:0]
	brackets := 0
	for len(l.buf) < xmlPiece || brackets > 0 {
		if len(l.back) == 0 && len(l.stack) == 0 {
			n := len(l.buf)
			if l.buf = l.text.appendPlain(l.buf); len(l.buf) > n {
				brackets = 0
			}
		}
		r, err := l.read()
		if err != nil {
			return nil, err
		}
		switch {
		case r == ended || r == '<':
			l.unreadUnlessEnded(r)
			return l.buf, nil
		case r == '&':
			entered, err := l.reference()
			if err != nil || entered {
				return l.buf, err
			}
			brackets = 0
			continue
		case r == '>' && brackets >= 2:
			return nil, l.errorf("']]>' cannot stand in text")
		case r == ']':
			brackets++
		default:
			brackets = 0
		}
		l.buf = utf8.AppendRune(l.buf, r)
	}
	return l.buf, nil
}

func (l *xmlLexer) unreadUnlessEnded(r rune) {
	if r != ended {
		l.unread(r)
	}
}

// reference reads the text after an &: a character goes to buf, an entity is entered.
func (l *xmlLexer) reference() (entered bool, err error) {
	if l.depth == 0 {
		return false, l.errorf("text stands outside the root element")
	}
	name, r, err := l.refersTo()
	if err != nil {
		return false, err
	}
	if name == "" {
		l.buf = utf8.AppendRune(l.buf, r)
		return false, nil
	}
	text, err := l.expand(name)
	if err != nil {
		return false, err
	}
	l.stack = append(l.stack, xmlEntity{name, text, l.depth})
	return true, nil
}

// expand gives the text of an entity, which may not be in itself.
func (l *xmlLexer) expand(name string) (string, error) {
	e, ok := l.entities[name]
	switch {
	case !ok:
		return "", l.errorf("the entity &%s; is not declared", chars.Cut(name))
	case e.external:
		return "", l.errorf("the entity &%s; stands for another document, which is not read", chars.Cut(name))
	}
	return e.text, l.enters(name, e.text)
}

func (l *xmlLexer) enters(name, text string) error {
	for _, e := range l.stack {
		if e.name == name {
			return l.errorf("the entity %s is in itself", chars.Cut(name))
		}
	}
	if len(l.stack) >= maxEntityDepth {
		return l.errorf("entities are nested more than %d deep", maxEntityDepth)
	}
	return l.expands(len(text) + 1)
}

// expands counts the text of entities and defaults.
func (l *xmlLexer) expands(n int) error {
	most := l.opts.ExpandsTo(l.length())
	if l.expanded += int64(n); l.expanded > most {
		return fmt.Errorf("rdfres: read %s %s: its entities and defaults expand to more than %d bytes at line %d: %w", rdfres.RDFXML, l.opts.Name, most, l.text.line, rdfres.ErrTooLarge)
	}
	return nil
}

const maxEntityDepth = 100

// refersTo reads a reference after its &: a character, or the name of an entity.
func (l *xmlLexer) refersTo() (name string, r rune, err error) {
	if r, err = l.read(); err != nil {
		return "", 0, err
	}
	if r == '#' {
		r, err = l.characterReference()
		return "", r, err
	}
	l.unreadUnlessEnded(r)
	if name, err = l.name("the name of an entity"); err != nil {
		return "", 0, err
	}
	if err := l.want(";", "at the end of a reference"); err != nil {
		return "", 0, err
	}
	switch name {
	case "amp":
		return "", '&', nil
	case "lt":
		return "", '<', nil
	case "gt":
		return "", '>', nil
	case "quot":
		return "", '"', nil
	case "apos":
		return "", '\'', nil
	}
	return name, 0, nil
}

func (l *xmlLexer) characterReference() (rune, error) {
	var digits []byte
	for {
		r, err := l.read()
		if err != nil {
			return 0, err
		}
		if r == ';' {
			break
		}
		if r < '0' || r > 'z' || len(digits) > 32 {
			return 0, l.unexpected(r, "in a reference to a character")
		}
		digits = append(digits, byte(r))
	}
	text, base := string(digits), 10
	if strings.HasPrefix(text, "x") {
		text, base = text[1:], 16
	}
	n, err := strconv.ParseUint(text, base, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, l.errorf("&#%s; is no reference to a character", digits)
	}
	if err != nil || n > utf8.MaxRune || !isXMLChar(rune(n)) {
		why := "which XML has not"
		if n >= 0xd800 && n < 0xe000 {
			why = "a surrogate, which is no character: it is written as one reference to the character itself"
		}
		return 0, l.errorf("&#%s; refers to U+%04X, %s", digits, n, why)
	}
	return rune(n), nil
}

// markup reads the text after a <. A DOCTYPE gives no token.
func (l *xmlLexer) markup() (xml.Token, error) {
	r, err := l.read()
	if err != nil {
		return nil, err
	}
	switch r {
	case '?':
		return l.instruction()
	case '/':
		return l.endTag()
	case '!':
	default:
		l.unreadUnlessEnded(r)
		return l.startTag()
	}
	if r, err = l.read(); err != nil {
		return nil, err
	}
	switch r {
	case '-':
		if err := l.want("-", "at the begin of a comment"); err != nil {
			return nil, err
		}
		return l.comment()
	case '[':
		if err := l.want("CDATA[", "at the begin of a CDATA section"); err != nil {
			return nil, err
		}
		if l.depth == 0 {
			return nil, l.errorf("text stands outside the root element")
		}
		text, err := l.until("]]>", "a CDATA section")
		return xml.CharData(text), err
	}
	l.unreadUnlessEnded(r)
	if err := l.want("DOCTYPE", "after '<!'"); err != nil {
		return nil, err
	}
	if l.begun || l.doctype || len(l.stack) > 0 {
		return nil, l.errorf("a DOCTYPE stands behind the begin of the document")
	}
	l.doctype = true
	return nil, l.documentType()
}

// until reads up to a mark.
func (l *xmlLexer) until(mark, what string) ([]byte, error) {
	l.buf = l.buf[:0]
	last := rune(mark[len(mark)-1])
	for {
		r, err := l.read()
		if err != nil {
			return nil, err
		}
		if r == ended {
			return nil, l.unexpected(r, "in "+what)
		}
		l.buf = utf8.AppendRune(l.buf, r)
		if n := len(l.buf) - len(mark); r == last && n >= 0 && string(l.buf[n:]) == mark {
			return l.buf[:n], nil
		}
	}
}

func (l *xmlLexer) comment() (xml.Token, error) {
	text, err := l.until("--", "a comment")
	if err != nil {
		return nil, err
	}
	r, err := l.read()
	if err == nil && r != '>' {
		err = l.errorf("'--' cannot stand in a comment")
	}
	return xml.Comment(text), err
}

func (l *xmlLexer) instruction() (xml.Token, error) {
	target, err := l.name("the target of a processing instruction")
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(target, "xml") {
		return nil, l.errorf("an XML declaration stands behind the begin of the document")
	}
	some, err := l.space()
	if err != nil {
		return nil, err
	}
	text, err := l.until("?>", "a processing instruction")
	if err == nil && !some && len(text) > 0 {
		err = l.errorf("white space is missing after the target of a processing instruction")
	}
	return xml.ProcInst{Target: target, Inst: text}, err
}

var xmlDecl = regexp.MustCompile(`^[ \t\n]+version[ \t\n]*=[ \t\n]*(?:'1\.[0-9]+'|"1\.[0-9]+")(?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*(?:'([A-Za-z][A-Za-z0-9._-]*)'|"([A-Za-z][A-Za-z0-9._-]*)"))?(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*(?:'(?:yes|no)'|"(?:yes|no)"))?[ \t\n]*$`)

// declaration passes over the XML declaration of a document.
func (l *xmlLexer) declaration() error {
	const begin = "<?xml"
	var had []rune
	for _, w := range begin {
		r, err := l.read()
		if err != nil {
			return err
		}
		if r != ended {
			had = append(had, r)
		}
		if r != w {
			break
		}
	}
	next := ended
	if string(had) == begin {
		var err error
		if next, err = l.read(); err != nil {
			return err
		}
		l.unreadUnlessEnded(next)
	}
	if next != ' ' && next != '\t' && next != '\n' {
		for i := len(had) - 1; i >= 0; i-- {
			l.unread(had[i])
		}
		return nil
	}
	text, err := l.until("?>", "the XML declaration")
	if err != nil {
		return err
	}
	m := xmlDecl.FindSubmatch(text)
	if m == nil {
		return l.errorf("<?xml%s?> is no XML declaration", chars.Cut(string(text)))
	}
	if said := string(m[1]) + string(m[2]); said != "" {
		name := chars.CharsetName(said)
		if is := l.text.is; is == "UTF-8" && name != "" || is == "UTF-16" && !strings.HasPrefix(name, "utf-16") {
			return l.errorf("the declaration says %s, and the text is in %s", said, is)
		}
	}
	return nil
}

func (l *xmlLexer) endTag() (xml.Token, error) {
	name, err := l.qualified("the name of an element")
	if err == nil {
		_, err = l.space()
	}
	if err == nil {
		err = l.want(">", "at the end of a tag")
	}
	if err != nil {
		return nil, err
	}
	if n := len(l.stack); n > 0 && l.stack[n-1].depth >= l.depth {
		return nil, l.errorf("the entity %s closes an element that begins outside of it", l.stack[n-1].name)
	}
	l.depth--
	return xml.EndElement{Name: name}, nil
}

func (l *xmlLexer) startTag() (xml.Token, error) {
	name, err := l.qualified("the name of an element")
	if err != nil {
		return nil, err
	}
	t := xml.StartElement{Name: name}
	l.begun = true
	l.depth++
	for {
		some, err := l.space()
		if err != nil {
			return nil, err
		}
		r, err := l.read()
		if err != nil {
			return nil, err
		}
		switch r {
		case '/':
			if err := l.want(">", "at the end of a tag"); err != nil {
				return nil, err
			}
			l.closing = &xml.EndElement{Name: name}
			return l.declared(t)
		case '>':
			return l.declared(t)
		}
		if !some {
			return nil, l.unexpected(r, "in a tag where white space or '>' is missing")
		}
		l.unreadUnlessEnded(r)
		a, err := l.attribute()
		if err != nil {
			return nil, err
		}
		t.Attr = append(t.Attr, a)
		if err := l.fits(len(t.Attr)); err != nil {
			return nil, err
		}
	}
}

// fits bounds what is held of an element, or of those that are open, by the rule for statements:
// most attributes become one.
func (l *xmlLexer) fits(held int) error {
	length := l.length()
	if int64(held-1<<14)*64 > l.opts.ExpandsTo(length) {
		return syntax.ExpandsTooFar(rdfres.RDFXML, l.opts, length)
	}
	return nil
}

func (l *xmlLexer) attribute() (a xml.Attr, err error) {
	if a.Name, err = l.qualified("the name of an attribute"); err != nil {
		return a, err
	}
	if _, err = l.space(); err == nil {
		err = l.want("=", "after the name of an attribute")
	}
	if err == nil {
		_, err = l.space()
	}
	if err != nil {
		return a, err
	}
	quote, err := l.quote("a value")
	if err != nil {
		return a, err
	}
	l.buf = l.buf[:0]
	err = l.value(quote)
	a.Value = string(l.buf)
	return a, err
}

func (l *xmlLexer) quote(what string) (rune, error) {
	r, err := l.read()
	if err == nil && r != '"' && r != '\'' {
		err = l.unexpected(r, "where "+what+" in quotes must")
	}
	return r, err
}

// value reads an attribute's value to its quote, or with ended to the end of an entity,
// and normalizes it (section 3.3.3).
func (l *xmlLexer) value(quote rune) error {
	for {
		r, err := l.read()
		if err != nil {
			return err
		}
		switch r {
		case quote:
			return nil
		case ended:
			return l.unexpected(r, "in the value of an attribute")
		case '<':
			return l.errorf("'<' cannot stand in the value of an attribute")
		case '\t', '\n', '\r':
			r = ' '
		case '&':
			name, c, err := l.refersTo()
			if err != nil {
				return err
			}
			if name != "" {
				if err := l.valueOf(name); err != nil {
					return err
				}
				continue
			}
			r = c
		}
		l.buf = utf8.AppendRune(l.buf, r)
	}
}

// valueOf reads an entity in a value.
func (l *xmlLexer) valueOf(name string) error {
	text, err := l.expand(name)
	if err != nil {
		return err
	}
	l.stack = append(l.stack, xmlEntity{name, text, l.depth})
	if err := l.value(ended); err != nil {
		return err
	}
	l.stack = l.stack[:len(l.stack)-1]
	return nil
}

// declared gives a start tag the defaults of the internal subset.
func (l *xmlLexer) declared(t xml.StartElement) (xml.Token, error) {
	declared := l.attributes[rawName(t.Name)]
	if len(declared) == 0 {
		return t, nil
	}
	at := make(map[xml.Name]int, len(t.Attr))
	for i, a := range t.Attr {
		at[a.Name] = i
	}
	for _, d := range declared {
		i, found := at[d.name]
		switch {
		case found && d.isTokens:
			t.Attr[i].Value = strings.Join(strings.FieldsFunc(t.Attr[i].Value, func(r rune) bool { return r == ' ' }), " ")
		case !found && d.hasValue:
			if err := l.expands(len(d.name.Local) + len(d.value)); err != nil {
				return nil, err
			}
			t.Attr = append(t.Attr, xml.Attr{Name: d.name, Value: d.value})
		}
	}
	return t, nil
}
