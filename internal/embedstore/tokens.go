package embedstore

import "strings"

// maxDepth bounds how deep groups, expressions and collections may nest.
const maxDepth = 500

// tokenReader reads the tokens of a request, one of them ahead.
type tokenReader struct {
	lex   *lexer
	tok   token
	depth int
}

// parseError unwinds the descent.
type parseError struct{ err error }

// guarded runs fn and gives the error it ended with.
func (t *tokenReader) guarded(fn func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case parseError:
			err = r.err
		default:
			panic(r)
		}
	}()
	fn()
	return nil
}

func (t *tokenReader) fail(format string, args ...any) {
	panic(parseError{t.lex.errorAt(t.tok.off, format, args...)})
}

func (t *tokenReader) advance() {
	next, err := t.lex.next()
	if err != nil {
		panic(parseError{err})
	}
	t.tok = next
}

func (t *tokenReader) deeper() func() {
	t.depth++
	if t.depth > maxDepth {
		t.fail("nested deeper than %d levels", maxDepth)
	}
	return func() { t.depth-- }
}

func (t *tokenReader) isPunct(s string) bool { return t.tok.kind == tokPunct && t.tok.text == s }

func (t *tokenReader) accept(s string) bool {
	if t.isPunct(s) {
		t.advance()
		return true
	}
	return false
}

func (t *tokenReader) expect(s string) {
	if !t.accept(s) {
		t.fail("expected %q, found %s", s, t.tok)
	}
}

func (t *tokenReader) isWord(w string) bool {
	return t.tok.kind == tokWord && strings.EqualFold(t.tok.text, w)
}

func (t *tokenReader) word(w string) bool {
	if t.isWord(w) {
		t.advance()
		return true
	}
	return false
}

func (t *tokenReader) expectWord(w string) {
	if !t.word(w) {
		t.fail("expected %s, found %s", w, t.tok)
	}
}
