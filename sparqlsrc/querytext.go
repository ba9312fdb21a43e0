package sparqlsrc

import (
	"errors"
	"fmt"
	"strings"
)

// token is a piece of a query.
type token struct {
	kind tokenKind
	text string
	at   int // byte offset in the query
}

type tokenKind byte

const (
	tokWord   tokenKind = 'w' // keyword, a, true, false, function name
	tokVar    tokenKind = '?' // without its mark
	tokIRI    tokenKind = '<' // without its brackets
	tokName   tokenKind = ':' // prefixed name
	tokBlank  tokenKind = '_' // label of _:label
	tokString tokenKind = '"' // unescaped content
	tokNumber tokenKind = '0'
	tokLang   tokenKind = '@' // without its mark
	tokPunct  tokenKind = '.' // one character, or ^^
)

// lex takes a query apart; comments and white space are dropped.
func lex(q string) ([]token, error) {
	var out []token
	for i := 0; i < len(q); {
		c := q[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
		case c == '#':
			for i < len(q) && q[i] != '\n' && q[i] != '\r' {
				i++
			}
		case c == '<':
			n := strings.IndexAny(q[i+1:], "<>\"{}|^`\\ \t\r\n")
			if n >= 0 && q[i+1+n] == '>' {
				out = append(out, token{tokIRI, q[i+1 : i+1+n], i})
				i += n + 2
				continue
			}
			out = append(out, token{tokPunct, "<", i})
			i++
		case c == '"' || c == '\'':
			text, n, err := lexString(q[i:])
			if err != nil {
				return nil, fmt.Errorf("at byte %d: %w", i, err)
			}
			out = append(out, token{tokString, text, i})
			i += n
		case (c == '?' || c == '$') && i+1 < len(q) && isNameByte(q[i+1]):
			j := i + 1
			for j < len(q) && isNameByte(q[j]) {
				j++
			}
			out = append(out, token{tokVar, q[i+1 : j], i})
			i = j
		case c == '@' && i+1 < len(q) && isLetter(q[i+1]):
			j := i + 1
			for j < len(q) && (isLetter(q[j]) || isDigit(q[j]) || q[j] == '-') {
				j++
			}
			out = append(out, token{tokLang, q[i+1 : j], i})
			i = j
		case isDigit(c) || (c == '.' && i+1 < len(q) && isDigit(q[i+1])):
			j := i
			for j < len(q) && (isDigit(q[j]) || q[j] == '.' && j+1 < len(q) && (isDigit(q[j+1]) || q[j+1]|0x20 == 'e') || q[j]|0x20 == 'e' && j > i ||
				(q[j] == '+' || q[j] == '-') && q[j-1]|0x20 == 'e') {
				j++
			}
			out = append(out, token{tokNumber, q[i:j], i})
			i = j
		case isNameByte(c) || c == ':':
			j, colon := i, false
			for j < len(q) {
				d := q[j]
				switch {
				case isNameByte(d) || d == '-':
				case d == ':':
					colon = true
				case d == '.' && j+1 < len(q) && (isNameByte(q[j+1]) || q[j+1] == '-' || q[j+1] == ':' || q[j+1] == '%'):
				case colon && d == '%' && j+2 < len(q):
				case colon && d == '\\' && j+1 < len(q):
					j++
				default:
					goto end
				}
				j++
			}
		end:
			text := q[i:j]
			switch {
			case strings.HasPrefix(text, "_:"):
				out = append(out, token{tokBlank, text[2:], i})
			case colon:
				out = append(out, token{tokName, text, i})
			default:
				out = append(out, token{tokWord, text, i})
			}
			i = j
		case c == '^' && strings.HasPrefix(q[i:], "^^"):
			out = append(out, token{tokPunct, "^^", i})
			i += 2
		default:
			out = append(out, token{tokPunct, string(c), i})
			i++
		}
	}
	return out, nil
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80
}

// lexString reads a string literal and undoes its escapes; n is its length as written.
func lexString(q string) (text string, n int, err error) {
	quote := q[:1]
	if len(q) >= 3 && q[1] == q[0] && q[2] == q[0] {
		quote = q[:3]
	}
	var b strings.Builder
	for i := len(quote); i < len(q); i++ {
		if strings.HasPrefix(q[i:], quote) {
			return b.String(), i + len(quote), nil
		}
		c := q[i]
		if (c == '\n' || c == '\r') && len(quote) == 1 {
			break
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i++; i >= len(q) {
			break
		}
		size := map[byte]int{'u': 4, 'U': 8}[q[i]]
		switch {
		case size > 0 && i+size < len(q):
			var r rune
			if _, err := fmt.Sscanf(q[i+1:i+1+size], "%x", &r); err != nil {
				return "", 0, fmt.Errorf("bad escape \\%s", q[i:i+1+size])
			}
			b.WriteRune(r)
			i += size
		default:
			at := strings.IndexByte("tbnrf\"'\\", q[i])
			if at < 0 {
				return "", 0, fmt.Errorf("unknown escape \\%c", q[i])
			}
			b.WriteByte("\t\b\n\r\f\"'\\"[at])
		}
	}
	return "", 0, fmt.Errorf("string without its end")
}

// query is a user's query, as far as it must be understood.
type query struct {
	text     string
	prologue string // BASE and PREFIX, as written
	base     string
	prefixes map[string]string // "name:" to IRI
	tokens   []token           // after the form's keyword
	form     int               // where the keyword stands in text
}

// parseQuery reads the prologue and checks the form: SELECT or CONSTRUCT.
func parseQuery(text, form string) (*query, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	q := &query{text: text, prefixes: map[string]string{}}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if t.kind != tokWord {
			return nil, fmt.Errorf("at byte %d: %q, expected PREFIX, BASE or %s", t.at, t.text, form)
		}
		switch word := strings.ToUpper(t.text); {
		case word == "BASE" && i+1 < len(tokens) && tokens[i+1].kind == tokIRI:
			q.base = tokens[i+1].text
			i++
		case word == "PREFIX" && i+2 < len(tokens) && tokens[i+1].kind == tokName && strings.HasSuffix(tokens[i+1].text, ":") && tokens[i+2].kind == tokIRI:
			q.prefixes[tokens[i+1].text] = tokens[i+2].text
			i += 2
		case word == form:
			q.form, q.prologue, q.tokens = t.at, text[:t.at], tokens[i+1:]
			return q, q.balanced()
		default:
			return nil, fmt.Errorf("at byte %d: %s, expected PREFIX, BASE or %s", t.at, t.text, form)
		}
	}
	return nil, fmt.Errorf("no %s in it", form)
}

// balanced tells of braces without their other half: of a query that is cut short.
func (q *query) balanced() error {
	open := 0
	for _, t := range q.tokens {
		switch {
		case t.kind == tokPunct && t.text == "{":
			open++
		case t.kind == tokPunct && t.text == "}":
			open--
		}
		if open < 0 {
			return fmt.Errorf("at byte %d: a brace closes that was not opened", t.at)
		}
	}
	if open > 0 {
		return errors.New("a brace is not closed: it is cut short")
	}
	return nil
}
