package codec

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// ttlLexer reads the terminals of Turtle and TriG from a window over the
// document. A token always begins at buf[pos] and is held whole.
type ttlLexer struct {
	format    rdfres.Format
	opts      rdfres.ReadOptions
	r         io.Reader
	buf       []byte
	pos       int
	eof       bool
	read      int64
	line, col int // of buf[pos], from 1

	held     int64 // bytes of prefixes and bases
	base     string
	prefixes map[string]string
	known    *syntax.Interner
	scratch  []byte
	labels   syntax.Labels
}

func newTTLLexer(r io.Reader, f rdfres.Format, o rdfres.ReadOptions) *ttlLexer {
	return &ttlLexer{format: f, opts: o, r: r, line: 1, col: 1, base: o.Base, prefixes: map[string]string{}, known: syntax.NewInterner()}
}

// newTTLLexerOf reads data, without copying it.
func newTTLLexerOf(data []byte, f rdfres.Format, o rdfres.ReadOptions) *ttlLexer {
	l := newTTLLexer(nil, f, o)
	l.buf, l.eof, l.read = data, true, int64(len(data))
	return l
}

// errorf is a syntax error at the byte that is off after the token's begin.
func (l *ttlLexer) errorAt(off int, format string, args ...any) error {
	line, col := l.line, l.col
	for _, c := range l.buf[l.pos:min(l.pos+off, len(l.buf))] {
		line, col = step(line, col, c)
	}
	return &rdfres.SyntaxError{Name: l.opts.Name, Format: l.format, Line: line, Column: col, Reason: fmt.Sprintf(format, args...)}
}

func step(line, col int, c byte) (int, int) {
	switch {
	case c == '\n':
		return line + 1, 1
	case c&0xc0 == 0x80:
		return line, col
	}
	return line, col + 1
}

// at is the i-th byte from the token's begin; ok is false at the end.
func (l *ttlLexer) at(i int) (c byte, ok bool, err error) {
	for l.pos+i >= len(l.buf) {
		if l.eof {
			return 0, false, nil
		}
		if err := l.fill(); err != nil {
			return 0, false, err
		}
	}
	return l.buf[l.pos+i], true, nil
}

func (l *ttlLexer) fill() error {
	if l.pos > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.pos:])]
		l.pos = 0
	}
	if len(l.buf) == cap(l.buf) {
		if len(l.buf) >= chars.MaxLine {
			return fmt.Errorf("rdfres: read %s %s: the term at line %d is longer than %d MiB: %w", l.format, l.opts.Name, l.line, chars.MaxLine>>20, rdfres.ErrTooLarge)
		}
		grown := make([]byte, len(l.buf), max(16<<10, 2*cap(l.buf)))
		copy(grown, l.buf)
		l.buf = grown
	}
	for range 100 {
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if l.read += int64(n); l.opts.MaxBytes > 0 && l.read > l.opts.MaxBytes {
			return l.opts.TooLarge(l.format)
		}
		switch {
		case err == io.EOF:
			l.eof = true
			return nil
		case err != nil:
			return l.opts.ReadError(l.format, l.line, err)
		case n > 0:
			return nil
		}
	}
	return l.opts.ReadError(l.format, l.line, io.ErrNoProgress)
}

func (l *ttlLexer) advance(n int) {
	line, col := l.line, l.col
	for _, c := range l.buf[l.pos : l.pos+n] {
		line, col = step(line, col, c)
	}
	l.line, l.col = line, col
	l.pos += n
}

// skip passes over white space and comments and gives the byte that follows.
func (l *ttlLexer) skip() (c byte, ok bool, err error) {
	for {
		c, ok, err = l.at(0)
		if err != nil || !ok {
			return 0, false, err
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			l.advance(1)
		case '#':
			if err := l.comment(); err != nil {
				return 0, false, err
			}
		default:
			return c, true, nil
		}
	}
}

// comment passes over a comment piece by piece, so that it need not fit.
func (l *ttlLexer) comment() error {
	for {
		if _, ok, err := l.at(0); err != nil || !ok {
			return err
		}
		rest := l.buf[l.pos:]
		if n := bytes.IndexAny(rest, "\r\n"); n >= 0 {
			l.advance(n)
			return nil
		}
		l.advance(len(rest))
	}
}

// expect passes over one byte, after white space.
func (l *ttlLexer) expect(want byte, where string) error {
	c, ok, err := l.skip()
	if err != nil {
		return err
	}
	if !ok {
		return l.errorAt(0, "the document ends where '%c' is missing %s", want, where)
	}
	if c != want {
		return l.errorAt(0, "%s stands where '%c' is missing %s", chars.QuoteByte(c), want, where)
	}
	l.advance(1)
	return nil
}

// word gives the bytes up to the first one that no name, number, label or keyword can
// hold. They stay in the window. A comma ends it: else each item of a long list without
// spaces would look at all that follow.
func (l *ttlLexer) word() ([]byte, error) {
	for i := 0; ; i++ {
		c, ok, err := l.at(i)
		if err != nil {
			return nil, err
		}
		if ok && c == '\\' { // of an escape
			next, more, err := l.at(i + 1)
			if err != nil {
				return nil, err
			}
			if more && next > ' ' && next < 0x7f {
				i++
			}
			continue
		}
		if !ok || !inWord[c] {
			w := l.buf[l.pos : l.pos+i]
			if !utf8.Valid(w) {
				return nil, l.errorAt(chars.InvalidAt(w), "the text is not valid UTF-8")
			}
			return w, nil
		}
	}
}

// inWord has the bytes of words.
var inWord = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_-.:%+@", byte(c)) >= 0
	}
	return t
}()

// keyword tells whether the word at the token's begin is the given one. fold
// ignores case.
func (l *ttlLexer) keyword(want string, fold bool) (bool, error) {
	w, err := l.word()
	if err != nil || len(w) < len(want) {
		return false, err
	}
	head := string(w[:len(want)])
	if head != want && !(fold && strings.EqualFold(head, want)) {
		return false, nil
	}
	if len(w) > len(want) {
		r, _ := utf8.DecodeRune(w[len(want):])
		if isNameRune(r) {
			return false, nil
		}
		if n := prefixLen(w); n < len(w) && w[n] == ':' {
			return false, nil // a.b:c is one name
		}
	}
	return true, nil
}

// isNameRune is PN_CHARS.
func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return chars.Class[byte(r)]&chars.LabelByte != 0
	}
	return chars.IsPNCharsBase(r) || chars.IsPNCharsExtra(r)
}

// iriRef reads an IRIREF; the token begins with '<'.
func (l *ttlLexer) iriRef() (rdfres.Term, error) {
	n, plain := 1, true
	for ; ; n++ {
		c, ok, err := l.at(n)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", l.errorAt(0, "the IRI has no '>' at its end")
		}
		if chars.Class[c]&chars.BadIRI == 0 {
			continue
		}
		if c == '>' {
			break
		}
		if c != '\\' {
			if c == '<' && n == 1 {
				return "", l.errorAt(0, chars.NoTripleTerms)
			}
			return "", l.errorAt(n, "%s cannot stand in an IRI", chars.QuoteByte(c))
		}
		plain = false
	}
	text := l.buf[l.pos : l.pos+n+1]
	if !utf8.Valid(text) {
		return "", l.errorAt(chars.InvalidAt(text), "the text is not valid UTF-8")
	}
	if plain && chars.HasScheme(text[1:]) {
		t := l.known.Share(text)
		l.advance(n + 1)
		return t, nil
	}
	ref := string(text[1:n])
	if !plain {
		raw, at, why := unescapeIRI(ref)
		if why != "" {
			return "", l.errorAt(1+at, "in an IRI: %s", why)
		}
		ref = raw
	}
	iri, ok := rdfres.ResolveIRI(l.base, ref)
	if !ok {
		return "", l.errorAt(0, "the IRI <%s> is relative and there is no base", chars.Cut(ref))
	}
	if l.opts.CheckIRIs {
		if err := rdfres.CheckRawIRI(iri); err != nil {
			return "", l.errorAt(0, "%s", err)
		}
	}
	l.advance(n + 1)
	return rdfres.NewIRI(iri), nil
}

func unescapeIRI(s string) (raw string, at int, why string) {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		r, n, why := chars.ReadEscape(s[i:], false, false)
		if why != "" {
			return "", i, why
		}
		b.WriteRune(r)
		i += n
	}
	return b.String(), 0, ""
}

// prefixLen is the length of PN_PREFIX at the begin of w, 0 when it is empty.
func prefixLen(w []byte) int {
	if len(w) > 0 && (w[0] == '_' || chars.Class[w[0]]&chars.DigitByte != 0) {
		return 0
	}
	return chars.ScanLabel(w, false)
}

// prefixName reads PNAME_NS, as directives have it.
func (l *ttlLexer) prefixName() (string, error) {
	if _, _, err := l.skip(); err != nil {
		return "", err
	}
	w, err := l.word()
	if err != nil {
		return "", err
	}
	n := prefixLen(w)
	if n >= len(w) || w[n] != ':' {
		return "", l.errorAt(0, "a prefix with its ':' is missing")
	}
	name := string(w[:n])
	l.advance(n + 1)
	return name, nil
}

// prefixed reads a prefixed name.
func (l *ttlLexer) prefixed() (rdfres.Term, error) {
	w, err := l.word()
	if err != nil {
		return "", err
	}
	n := prefixLen(w)
	if n >= len(w) || w[n] != ':' {
		if len(w) == 0 {
			return "", l.unexpected()
		}
		if n == 0 {
			return "", l.unexpected()
		}
		return "", l.errorAt(0, "%q is neither an IRI nor a prefixed name", chars.Cut(string(w)))
	}
	space, ok := l.prefixes[string(w[:n])]
	if !ok {
		return "", l.errorAt(0, "the prefix %q is not declared", string(w[:n+1]))
	}
	l.scratch = chars.AppendIRI(append(l.scratch[:0], '<'), space)
	end, at, why := l.local(w, n+1)
	if why != "" {
		return "", l.errorAt(at, "%s", why)
	}
	t := l.known.Share(append(l.scratch, '>'))
	l.advance(end)
	return t, nil
}

// local appends the local name that begins at w[i] to scratch. A dot at its
// end is not part of it.
func (l *ttlLexer) local(w []byte, i int) (end, at int, why string) {
	end = i
	keep := len(l.scratch)
	first := i
	for i < len(w) {
		c := w[i]
		switch {
		case chars.Class[c]&chars.LabelByte != 0 && (i > first || c != '-'), c == ':':
			l.scratch = append(l.scratch, c)
			i++
		case c == '.' && i > first:
			l.scratch = append(l.scratch, c)
			i++
			continue // only counts when something follows
		case c == '%':
			if i+2 >= len(w) || !isHex(w[i+1]) || !isHex(w[i+2]) {
				return 0, i, "a '%' in a prefixed name needs two hexadecimal digits"
			}
			l.scratch = append(l.scratch, w[i:i+3]...)
			i += 3
		case c == '\\':
			if i+1 >= len(w) || !strings.ContainsRune("_~.-!$&'()*+,;=/?#@%", rune(w[i+1])) {
				return 0, i, "unknown escape in a prefixed name"
			}
			l.scratch = append(l.scratch, w[i+1])
			i += 2
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(w[i:])
			if !chars.IsPNCharsBase(r) && (i == first || !chars.IsPNCharsExtra(r)) {
				l.scratch = l.scratch[:keep]
				return end, 0, ""
			}
			l.scratch = append(l.scratch, w[i:i+n]...)
			i += n
		default:
			l.scratch = l.scratch[:keep]
			return end, 0, ""
		}
		end, keep = i, len(l.scratch)
	}
	l.scratch = l.scratch[:keep]
	return end, 0, ""
}

func isHex(c byte) bool { return chars.Class[c]&(chars.DigitByte|chars.HexByte) != 0 }

// blankLabel reads a BLANK_NODE_LABEL; the token begins with '_'.
func (l *ttlLexer) blankLabel() (rdfres.Term, error) {
	w, err := l.word()
	if err != nil {
		return "", err
	}
	if len(w) < 2 || w[1] != ':' {
		return "", l.errorAt(0, "a blank node begins with _:")
	}
	n := chars.ScanLabel(w[2:], false)
	if n == 0 {
		return "", l.errorAt(2, "the blank node has no label")
	}
	t := l.labels.Of(string(w[2 : 2+n]))
	l.advance(2 + n)
	return t, nil
}

// number reads a bare number; the token begins with a sign, digit or dot.
func (l *ttlLexer) number() (rdfres.Term, error) {
	w, err := l.word()
	if err != nil {
		return "", err
	}
	// The longest beginning that is a number: 1.5e3 before 1.5 before 1.
	i := 0
	if i < len(w) && (w[i] == '+' || w[i] == '-') {
		i++
	}
	i += chars.CountDigits(w[i:])
	best := 0
	if rdfres.ShorthandType(w[:i]) != "" {
		best = i
	}
	if i < len(w) && w[i] == '.' {
		i += 1 + chars.CountDigits(w[i+1:])
		if rdfres.ShorthandType(w[:i]) != "" {
			best = i
		}
	}
	if i < len(w) && (w[i] == 'e' || w[i] == 'E') {
		if i++; i < len(w) && (w[i] == '+' || w[i] == '-') {
			i++
		}
		i += chars.CountDigits(w[i:])
		if rdfres.ShorthandType(w[:i]) != "" {
			best = i
		}
	}
	if best == 0 && w[0] == '.' {
		return "", l.unexpected()
	}
	if best == 0 {
		return "", l.errorAt(0, "%q is no number", chars.Cut(string(w)))
	}
	t := rdfres.NewLiteral(string(w[:best]), "", rdfres.ShorthandType(w[:best]))
	l.advance(best)
	return t, nil
}

// quoted reads a string in any of the four quotes and gives its lexical form.
func (l *ttlLexer) quoted() (string, error) {
	quote, _, err := l.at(0)
	if err != nil {
		return "", err
	}
	open := 1
	if c, ok, err := l.at(1); err != nil {
		return "", err
	} else if ok && c == quote {
		if c, ok, err := l.at(2); err != nil {
			return "", err
		} else if !ok || c != quote {
			l.advance(2)
			return "", nil
		}
		open = 3
	}
	run, escaped := 0, false
	for i := open; ; i++ {
		c, ok, err := l.at(i)
		if err != nil {
			return "", err
		}
		switch {
		case !ok:
			return "", l.errorAt(0, "the string has no closing quote")
		case c == quote:
			if run++; run == open {
				return l.unquote(open, i+1, escaped)
			}
			continue
		case c == '\\':
			escaped = true
			i++
		case open == 1 && (c == '\n' || c == '\r'):
			return "", l.errorAt(i, "a line end cannot stand in a string with one quote")
		}
		run = 0
	}
}

// unquote takes the quotes off the token of n bytes and decodes it.
func (l *ttlLexer) unquote(open, n int, escaped bool) (string, error) {
	text := l.buf[l.pos+open : l.pos+n-open]
	if !utf8.Valid(text) {
		return "", l.errorAt(open+chars.InvalidAt(text), "the text is not valid UTF-8")
	}
	if !escaped {
		s := string(text)
		l.advance(n)
		return s, nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		r, k, why := chars.ReadEscape(text[i:], true, false)
		if why != "" {
			return "", l.errorAt(open+i, "in a string: %s", why)
		}
		out = utf8.AppendRune(out, r)
		i += k
	}
	l.advance(n)
	return chars.OwnString(out), nil
}

// langTag reads what follows the '@' of a language tag.
func (l *ttlLexer) langTag() (string, error) {
	w, err := l.word()
	if err != nil {
		return "", err
	}
	n := chars.ScanLang(w[1:])
	if n == 0 {
		return "", l.errorAt(0, "the language tag is empty or begins with something else than a letter")
	}
	lang := string(w[1 : 1+n])
	l.advance(1 + n)
	return lang, nil
}

// hold counts what directives keep: relative to a long base a short one keeps much.
func (l *ttlLexer) hold(n int) error {
	if l.held += int64(n); l.held > l.opts.ExpandsTo(l.read) {
		return fmt.Errorf("rdfres: read %s %s: its prefixes and bases expand to more than %d bytes at line %d: %w", l.format, l.opts.Name, l.held, l.line, rdfres.ErrTooLarge)
	}
	return nil
}

func (l *ttlLexer) unexpected() error {
	c, ok, err := l.at(0)
	if err != nil {
		return err
	}
	if !ok {
		return l.errorAt(0, "the document ends in the middle of a statement")
	}
	return l.errorAt(0, "%s cannot stand here", chars.QuoteByte(c))
}
