package jsonld

import (
	"bytes"
	"encoding/binary"
	"sort"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// Matches tells whether a document in the form of Encode says exactly ts,
// sorted and unique: Decode would give ts back. It reads the
// bytes by a grammar of its own, for this form alone, takes each statement
// off ts and makes no terms. It takes a fraction of the time of Decode. If
// it says no, Decode has the last word: rare text (escapes in an IRI, odd labels)
// is left to it.
func Matches(data []byte, ts []rdfres.Triple) bool {
	if !utf8.Valid(data) {
		return false
	}
	var few [64]bool
	m := jsonldMatcher{jsonScanner: jsonScanner{data: data}, ts: ts, met: few[:], left: len(ts), buf: make([]byte, 0, 512)}
	if len(ts) > len(few) {
		m.met = make([]bool, len(ts))
	}
	return m.document() && m.pos == len(data) && m.left == 0
}

type jsonldMatcher struct {
	jsonScanner
	ts    []rdfres.Triple
	met   []bool // of ts
	left  int    // of ts, not met yet
	depth int
	buf   []byte // a term
}

// objects is the part of ts with the next object.
type objects struct{ next, end int }

func (m *jsonldMatcher) document() bool {
	if !m.is("[") {
		return false
	}
	if m.is("]") {
		return true
	}
	for more := true; more; more = m.is(",") {
		if !m.is(`{"@id":"`) {
			return false
		}
		id := m.name()
		if id == nil {
			return false
		}
		if m.is("}") {
			continue // it says nothing
		}
		from := sort.Search(len(m.ts), func(i int) bool { return string(m.ts[i].S) >= string(id) })
		if from == len(m.ts) || string(m.ts[from].S) != string(id) || !m.members(from) {
			return false
		}
	}
	return m.is("]")
}

// members reads the members after @id. The triples of the subject begin at from.
func (m *jsonldMatcher) members(from int) bool {
	if m.depth++; m.depth > 2*maxJSONNesting {
		return false
	}
	s := m.ts[from].S
	to := from + sort.Search(len(m.ts)-from, func(i int) bool { return m.ts[from+i].S > s })
	if m.is(`,"@type":["`) {
		os := m.of(from, to, []byte(syntax.Type))
		for more := true; more; more = m.is(`,"`) {
			if typ := m.name(); typ == nil || m.take(&os, typ) < 0 {
				return false
			}
		}
		if !m.is("]") {
			return false
		}
	}
	for m.is(`,"`) {
		p := m.name()
		if p == nil || p[0] != '<' || !m.is(":[") {
			return false
		}
		os := m.of(from, to, p)
		for more := true; more; more = m.is(",") {
			if !m.value(&os) {
				return false
			}
		}
		if !m.is("]") {
			return false
		}
	}
	m.depth--
	return m.is("}")
}

// of are the objects of a predicate of the subject from..to.
func (m *jsonldMatcher) of(from, to int, p []byte) objects {
	next := from + sort.Search(to-from, func(i int) bool { return string(m.ts[from+i].P) >= string(p) })
	end := next
	for end < to && string(m.ts[end].P) == string(p) {
		end++
	}
	return objects{next, end}
}

// take takes the triple of an object off ts; -1: it is not there, or was met before.
func (m *jsonldMatcher) take(os *objects, o []byte) int {
	for i := os.next; i < os.end; i++ {
		if string(m.ts[i].O) == string(o) {
			if os.next = i + 1; m.met[i] {
				return -1
			}
			m.met[i] = true
			m.left--
			return i
		}
	}
	return -1
}

// value reads an object of a property: a literal, or a node with its members.
func (m *jsonldMatcher) value(os *objects) bool {
	switch {
	case m.is(`{"@value":"`):
		return m.lexical() && m.is("}") && m.take(os, m.buf) >= 0
	case m.is(`{"@language":"`):
		n := chars.ScanLang(m.data[m.pos:])
		lang := m.data[m.pos : m.pos+n]
		m.pos += n
		if n == 0 || !m.is(`","@value":"`) || !m.lexical() {
			return false
		}
		m.buf = append(append(m.buf, '@'), lang...)
		return m.is("}") && m.take(os, m.buf) >= 0
	case m.is(`{"@type":"`):
		n := iriLen(m.data[m.pos:])
		datatype := m.data[m.pos : m.pos+n]
		m.pos += n
		if !chars.HasScheme(datatype) || string(datatype) == chars.XSDString || !m.is(`","@value":"`) || !m.lexical() {
			return false
		}
		m.buf = append(append(append(m.buf, "^^<"...), datatype...), '>')
		return m.is("}") && m.take(os, m.buf) >= 0
	case m.is(`{"@id":"`):
		id := m.name()
		if id == nil || m.take(os, id) < 0 {
			return false
		}
		if m.is("}") {
			return true
		}
		from := sort.Search(len(m.ts), func(i int) bool { return string(m.ts[i].S) >= string(id) })
		return from < len(m.ts) && string(m.ts[from].S) == string(id) && m.members(from)
	}
	return false
}

// is passes over s, if it comes next.
func (m *jsonldMatcher) is(s string) bool {
	if rest := m.data[m.pos:]; len(rest) >= len(s) && string(rest[:len(s)]) == s {
		m.pos += len(s)
		return true
	}
	return false
}

// name reads the rest of a node's name, with its quote, and gives the
// term, valid until the next one; nil: it is for Decode.
func (m *jsonldMatcher) name() []byte {
	raw := m.data[m.pos:]
	n := iriLen(raw)
	if n == len(raw) || raw[n] != '"' {
		return nil
	}
	raw = raw[:n]
	m.pos += n + 1
	switch {
	case chars.HasScheme(raw):
		m.buf = append(append(append(m.buf[:0], '<'), raw...), '>')
		return m.buf
	case n > 2 && string(raw[:2]) == "_:" && raw[2] != '-' && chars.ScanLaxLang(raw[2:]) == n-2 && !bytes.HasPrefix(raw[2:], []byte(syntax.AnonPrefix)):
		return raw // as syntax.Labels has it
	}
	return nil
}

// iriLen is how many of the next bytes may stand raw in an IRI.
func iriLen(b []byte) int {
	for i, c := range b {
		if chars.Class[c]&chars.BadIRI != 0 {
			return i
		}
	}
	return len(b)
}

// lexical reads the rest of a string, with its quote, into buf: as a literal, with both
// quotes.
func (m *jsonldMatcher) lexical() bool {
	rest := m.data[m.pos:]
	n := plainLen(rest)
	if n < len(rest) && rest[n] == '"' {
		m.buf = append(append(append(m.buf[:0], '"'), rest[:n]...), '"')
		m.pos += n + 1
		return true
	}
	m.pos-- // at its first quote
	raw, escaped, why := m.str()
	if why == "" {
		m.buf, why = m.appendLexical(append(m.buf[:0], '"'), raw, escaped)
		m.buf = append(m.buf, '"')
	}
	return why == ""
}

// plainLen is how many bytes come that a canonical literal writes as they are; it may
// stop earlier. Eight bytes are looked at together: of those that are none of a
// control, '"', '\', DEL and 0xef, no bit of bad is set.
func plainLen(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	zero := func(x uint64) uint64 { return (x - ones) &^ x & highs } // some bit where a byte of x is 0
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		bad := (x-ones*0x20)&^x&highs | zero(x^ones*'"') | zero(x^ones*'\\') | zero(x^ones*0x7f) | zero(x^ones*0xef)
		if bad != 0 {
			break
		}
	}
	for i < len(b) && chars.Class[b[i]]&chars.EscLiteral == 0 {
		i++
	}
	return i
}
