package rdfres

import (
	"bytes"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// LineScanner takes N-Triples and N-Quads lines apart without making terms: S, P, O and G are the
// canonical bytes of the terms. For canonically written terms (the common case) they are slices of
// the line itself, otherwise of a buffer of the scanner, so scanning allocates nothing. They hold
// until the next Scan, and no longer than the line.
//
//	var sc rdfres.LineScanner
//	for ... {
//		ok, err := sc.Scan(line)
//		if err != nil { ... } else if !ok { continue } // blank or comment
//		use(sc.S, sc.P, sc.O)
//	}
//
// The zero value is strict: the W3C grammar of N-Triples 1.1, absolute IRIs, valid UTF-8. Comparing
// the bytes of two S (P, O, G) is comparing the terms.
type LineScanner struct {
	S, P, O, G []byte // G is empty in the default graph

	// Canonical tells that the scanned line, without its end, is itself the canonical line "S P O
	// ." or "S P O G ."; with a newline after it, it is the result of Triple.AppendLine.
	Canonical bool

	// Lax accepts the same as ReadOptions.Lax.
	Lax bool

	subject []byte // the last subject with an IRI in canonical form
	scratch []byte
	at      int // offset of an error in the line, in bytes
}

// Triple copies the scanned line into terms.
func (sc *LineScanner) Triple() Triple {
	// One string for the three: they mostly live and die together.
	all := string(append(append(append(make([]byte, 0, 128), sc.S...), sc.P...), sc.O...))
	s, p := len(sc.S), len(sc.S)+len(sc.P)
	return Triple{Term(all[:s]), Term(all[s:p]), Term(all[p:])}
}

// AppendLine appends the scanned line in canonical form, with its newline.
func (sc *LineScanner) AppendLine(dst []byte) []byte {
	dst = append(dst, sc.S...)
	dst = append(dst, ' ')
	dst = append(dst, sc.P...)
	dst = append(dst, ' ')
	dst = append(dst, sc.O...)
	dst = append(dst, ' ')
	if len(sc.G) > 0 {
		dst = append(dst, sc.G...)
		dst = append(dst, ' ')
	}
	return append(dst, ".\n"...)
}

// Scan reads one line, without its line end. ok is false for blank lines, comments and the version
// line of RDF. An error is a *SyntaxError with the line 1.
func (sc *LineScanner) Scan(line []byte) (ok bool, err error) {
	ok, why := sc.scan(line)
	if why != "" {
		return false, &SyntaxError{Format: NTriples, Line: 1, Column: chars.Column(line, sc.at), Reason: why}
	}
	return ok, nil
}

func (sc *LineScanner) scan(line []byte) (ok bool, why string) {
	sc.S, sc.P, sc.O, sc.G = nil, nil, nil, nil
	sc.scratch = sc.scratch[:0]
	sc.Canonical = true
	if !utf8.Valid(line) {
		if sc.Lax {
			return sc.scanBroken(line)
		}
		sc.at = chars.InvalidAt(line)
		return false, "the text is not valid UTF-8"
	}
	i := sc.space(line, 0, 0)
	if i == len(line) || line[i] == '#' {
		return false, ""
	}
	var n int
	if k := len(sc.subject); k > 0 && len(line)-i > k && string(line[i:i+k]) == string(sc.subject) {
		sc.S, n = line[i:i+k], i+k // the IRI of the line before: known to be good
	} else {
		if sc.S, n, why = sc.term(line, i, "subject"); why != "" {
			if sc.version(line[i:]) {
				return false, ""
			}
			return false, why
		}
		if sc.subject = sc.subject[:0]; line[i] == '<' && &sc.S[0] == &line[i] {
			sc.subject = append(sc.subject, line[i:n]...)
		}
	}
	i = sc.space(line, n, 1)
	if sc.P, n, why = sc.term(line, i, "predicate"); why != "" {
		return false, why
	}
	i = sc.space(line, n, 1)
	if sc.O, n, why = sc.term(line, i, "object"); why != "" {
		return false, why
	}
	i = sc.space(line, n, 1)
	if i < len(line) && line[i] != '.' {
		if sc.G, n, why = sc.term(line, i, "graph"); why != "" {
			return false, why
		}
		i = sc.space(line, n, 1)
	}
	if i >= len(line) || line[i] != '.' {
		sc.at = i
		return false, "the statement has no '.' at its end"
	}
	if i++; i < len(line) {
		i = sc.space(line, i, 0)
		if i < len(line) && line[i] != '#' {
			sc.at = i
			return false, "something stands after the '.'"
		}
		sc.Canonical = false
	}
	return true, ""
}

// scanBroken is scan for a line outside UTF-8: each term with broken bytes becomes
// an Unreadable one.
func (sc *LineScanner) scanBroken(line []byte) (ok bool, why string) {
	ok, why = sc.scan(bytes.ToValidUTF8(line, []byte("\ufffd")))
	for _, t := range []*[]byte{&sc.S, &sc.P, &sc.O, &sc.G} {
		if bytes.Contains(*t, []byte("\ufffd")) {
			*t = []byte(Unreadable(line, "bytes outside UTF-8"))
		}
	}
	sc.Canonical = false
	return ok, why
}

// version tells of a line with the version of RDF, in N-Triples 1.2. It is passed over: the other
// lines decide whether they can be read.
func (sc *LineScanner) version(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("VERSION"))
	rest = bytes.TrimLeft(rest, " \t")
	if !ok || !bytes.HasPrefix(rest, []byte{'"'}) {
		return false
	}
	var label LineScanner // sc keeps the place of its error
	_, end, why := label.literal(rest, 0)
	if why != "" || rest[end-1] != '"' {
		return false
	}
	rest = bytes.TrimLeft(rest[end:], " \t")
	return len(rest) == 0 || rest[0] == '#'
}

// space passes over white space and notes a difference from the canonical line: want spaces.
func (sc *LineScanner) space(line []byte, i, want int) int {
	from := i
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	if i-from != want || want == 1 && line[from] != ' ' {
		sc.Canonical = false
	}
	return i
}

// term reads the term at i in the given role and returns it with the place
// after it.
func (sc *LineScanner) term(line []byte, i int, role string) (term []byte, end int, why string) {
	sc.at = i
	if i >= len(line) {
		return nil, i, "the " + role + " is missing"
	}
	switch c := line[i]; {
	case c == '<' && i+1 < len(line) && line[i+1] == '<':
		if !sc.Lax {
			return nil, i, chars.NoTripleTerms
		}
		n := scanTripleTerm(line[i:])
		if n == 0 {
			return nil, i, "the triple term has no end"
		}
		sc.Canonical = false
		return []byte(TripleTerm(string(line[i : i+n]))), i + n, ""
	case c == '<':
		return sc.iri(line, i)
	case c == '_' && role != "predicate":
		return sc.blank(line, i)
	case c == '"' && role == "object":
		return sc.literal(line, i)
	case c == '"':
		return nil, i, "a literal cannot be the " + role
	case c == '_':
		return nil, i, "a blank node cannot be the predicate"
	default:
		return nil, i, "the " + role + " cannot begin with " + chars.QuoteByte(c)
	}
}

func (sc *LineScanner) iri(line []byte, i int) (term []byte, end int, why string) {
	rest := line[i+1:]
	for j, c := range rest {
		if chars.Class[c]&chars.BadIRI == 0 {
			continue
		}
		if c != '>' {
			return sc.oddIRI(line, i, j)
		}
		if !chars.HasScheme(rest[:j]) && !sc.Lax {
			return nil, i, "the IRI <" + chars.Cut(string(rest[:j])) + "> is relative; here only absolute ones can be read"
		}
		return line[i : i+j+2], i + j + 2, ""
	}
	return nil, i, "the IRI has no '>' at its end"
}

// oddIRI is iri for IRIs with escapes, made raw if they may be, and, in lax reading, for IRIs with
// forbidden raw characters.
func (sc *LineScanner) oddIRI(line []byte, i, good int) (term []byte, end int, why string) {
	sc.Canonical = false
	start := len(sc.scratch)
	sc.scratch = append(sc.scratch, line[i:i+1+good]...)
	for j := i + 1 + good; j < len(line); {
		c := line[j]
		switch {
		case c == '>':
			sc.scratch = append(sc.scratch, '>')
			term = sc.scratch[start:len(sc.scratch):len(sc.scratch)]
			if !chars.HasScheme(term[1:]) && !sc.Lax {
				return nil, i, "the IRI " + chars.Cut(string(term)) + " is relative; here only absolute ones can be read"
			}
			return term, j + 1, ""
		case c == '\\':
			r, n, bad := chars.ReadEscape(line[j:], false, sc.Lax)
			if bad != "" && (!sc.Lax || j+1 < len(line) && (line[j+1] == 'u' || line[j+1] == 'U')) {
				sc.at = j
				if n := bytes.IndexByte(line[j:], '>'); sc.Lax && n >= 0 {
					return []byte(Unreadable(line[i:j+n+1], bad)), j + n + 1, ""
				}
				return nil, i, "in an IRI: " + bad
			}
			if bad != "" { // a raw backslash
				r, n = '\\', 1
			}
			var buf [utf8.UTFMax]byte
			sc.scratch = chars.AppendIRI(sc.scratch, buf[:utf8.EncodeRune(buf[:], r)])
			j += n
		case chars.Class[c]&chars.BadIRI != 0:
			if !sc.Lax || c == '<' {
				sc.at = j
				return nil, i, chars.QuoteByte(c) + " cannot stand in an IRI; it would be written \\u00" + string(chars.UpperHex[c>>4]) + string(chars.UpperHex[c&15])
			}
			sc.scratch = chars.AppendIRI(sc.scratch, line[j:j+1])
			j++
		default:
			sc.scratch = append(sc.scratch, c)
			j++
		}
	}
	return nil, i, "the IRI has no '>' at its end"
}

func (sc *LineScanner) blank(line []byte, i int) (term []byte, end int, why string) {
	if i+1 >= len(line) || line[i+1] != ':' {
		return nil, i, "a blank node begins with _:"
	}
	n := chars.ScanLabel(line[i+2:], true)
	if n == 0 {
		return nil, i, "the blank node has no label"
	}
	end = i + 2 + n
	if sc.Lax && end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != '.' && line[end] != '<' {
		return sc.oddBlank(line, i)
	}
	return line[i:end], end, ""
}

// oddBlank is a label outside the grammar, up to the next space, under the name given by NewBlank.
func (sc *LineScanner) oddBlank(line []byte, i int) (term []byte, end int, why string) {
	end = i + 2
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	sc.Canonical = false
	start := len(sc.scratch)
	sc.scratch = append(sc.scratch, NewBlank(string(line[i+2:end]))...)
	return sc.scratch[start:len(sc.scratch):len(sc.scratch)], end, ""
}

func (sc *LineScanner) literal(line []byte, i int) (term []byte, end int, why string) {
	j := i + 1
	canonical := true
	// The closing quote, and on the way to it whether anything would be
	// written otherwise.
scan:
	for {
		if j >= len(line) {
			return nil, i, "the literal has no '\"' at its end"
		}
		c := line[j]
		if chars.Class[c]&chars.EscLiteral == 0 {
			j++
			continue
		}
		switch {
		case c == '"':
			break scan
		case c == '\\':
			if j+1 >= len(line) {
				return nil, i, "the literal has no '\"' at its end"
			}
			switch line[j+1] {
			case '"', '\\', 'n', 'r', 't', 'b', 'f':
			default:
				canonical = false
			}
			j += 2
		case c == 0xef:
			if line[j+1] == 0xbf && line[j+2] >= 0xbe { // valid UTF-8: both are there
				canonical = false
			}
			j += 3
		case c == '\n' || c == '\r':
			sc.at = j
			return nil, i, "a line end cannot stand raw in a literal"
		default:
			canonical = false
			j++
		}
	}
	quote := j
	if end, why = sc.literalTail(line, j+1, &canonical); why != "" {
		return nil, i, why
	}
	if canonical {
		return line[i:end], end, ""
	}
	return sc.oddLiteral(line, i, quote, end)
}

// literalTail reads the rest after the closing quote: a language tag, a datatype or nothing. It
// clears canonical if the datatype is not in canonical form.
func (sc *LineScanner) literalTail(line []byte, i int, canonical *bool) (end int, why string) {
	if i >= len(line) {
		return i, ""
	}
	switch line[i] {
	case '@':
		n := chars.ScanLang(line[i+1:])
		if sc.Lax {
			n = chars.ScanLaxLang(line[i+1:])
		}
		if n == 0 {
			sc.at = i
			return i, "the language tag is empty or begins with something else than a letter"
		}
		return i + 1 + n, ""
	case '^':
		if i+2 >= len(line) || line[i+1] != '^' || line[i+2] != '<' {
			sc.at = i
			return i, "a datatype is written ^^<IRI>"
		}
		sc.at = i + 2
		before := len(sc.scratch)
		was := sc.Canonical
		dt, end, why := sc.iri(line, i+2)
		if why != "" {
			return i, why
		}
		if len(sc.scratch) != before || len(dt) == len(chars.XSDString)+2 && string(dt[1:len(dt)-1]) == chars.XSDString {
			*canonical = false // oddLiteral writes it again
			sc.Canonical = was
			sc.scratch = sc.scratch[:before]
		}
		return end, ""
	}
	return i, ""
}

// oddLiteral rewrites a literal canonically. The literal is well-formed up to its escapes. quote is
// the place of the closing quote.
func (sc *LineScanner) oddLiteral(line []byte, i, quote, end int) (term []byte, _ int, why string) {
	sc.Canonical = false
	start := len(sc.scratch)
	sc.scratch = append(sc.scratch, '"')
	for j := i + 1; j < quote; {
		n := bytes.IndexByte(line[j:quote], '\\')
		if n < 0 {
			n = quote - j
		}
		sc.scratch = chars.AppendLiteral(sc.scratch, line[j:j+n])
		if j += n; j == quote {
			break
		}
		r, n, bad := chars.ReadEscape(line[j:quote], true, sc.Lax)
		if bad != "" {
			sc.at = j
			if sc.Lax {
				return []byte(Unreadable(line[i:end], bad)), end, ""
			}
			return nil, i, "in a literal: " + bad
		}
		var buf [utf8.UTFMax]byte
		sc.scratch = chars.AppendLiteral(sc.scratch, buf[:utf8.EncodeRune(buf[:], r)])
		j += n
	}
	sc.scratch = append(sc.scratch, '"')
	if quote+1 < end && line[quote+1] == '^' {
		mark := len(sc.scratch)
		sc.scratch = append(sc.scratch, '^', '^')
		at := len(sc.scratch)
		dt, _, why := sc.iri(line, quote+3)
		if why != "" {
			return nil, i, why
		}
		if len(sc.scratch) == at { // it was canonical as it stands
			sc.scratch = append(sc.scratch, dt...)
		}
		if string(sc.scratch[at:]) == "<"+chars.XSDString+">" {
			sc.scratch = sc.scratch[:mark]
		}
	} else {
		sc.scratch = append(sc.scratch, line[quote+1:end]...)
	}
	return sc.scratch[start:len(sc.scratch):len(sc.scratch)], end, ""
}

// single reads text as one term and nothing else.
func (sc *LineScanner) single(text []byte) (t Term, why string) {
	if !utf8.Valid(text) {
		sc.at = chars.InvalidAt(text)
		return "", "the text is not valid UTF-8"
	}
	term, end, why := sc.term(text, 0, "object")
	if why != "" {
		return "", why
	}
	if end != len(text) {
		sc.at = end
		return "", "something stands after the term"
	}
	return Term(term), ""
}
