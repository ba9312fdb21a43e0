package sparqlsrc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// A line is a triple as "S P O" in canonical terms: the order of such lines is
// the order of rdfres.Triple.Compare. In the entity sorter a flag byte follows.

// Flags of a line in the entity sorter.
const (
	flagOwn       = 1 // subject is the entity, no blank node; nobody else has it
	flagBlank     = 2 // with a blank node; nobody else has it
	flagShared    = 3 // with a blank node; others may have it too
	flagOwnShared = 5 // as flagOwn, but the object may have it as an inbound one
	flagInbound   = 6 // leads to the entity (symmetric descriptions)
)

// Records of the entity sorter that are no lines; they sort before all lines.
const (
	recordEntity   = 0 // the IRI follows
	recordSelected = 1 // the user's SELECT named the entity
	recordRun      = 2 // several lines of flagOwn (run.appendRecord)
)

func appendLine(dst []byte, s, p, o []byte) []byte {
	dst = append(dst, s...)
	dst = append(dst, ' ')
	dst = append(dst, p...)
	dst = append(dst, ' ')
	return append(dst, o...)
}

func appendTriple(dst []byte, t rdfres.Triple) []byte {
	dst = append(dst, t.S...)
	dst = append(dst, ' ')
	dst = append(dst, t.P...)
	dst = append(dst, ' ')
	return append(dst, t.O...)
}

// cutLine gives the lengths of the first two terms of a line. Canonical IRIs
// hold no raw '>' and labels no space.
func cutLine[B []byte | string](line B) (s, p int) {
	s = termEnd(line, 0)
	return s, termEnd(line, s+1)
}

func termEnd[B []byte | string](line B, from int) int {
	end, with := byte(' '), 0
	if line[from] == '<' {
		end, with = '>', 1
	}
	n := -1
	switch rest := any(line[from:]).(type) { // far faster than a loop, which is most of the terms of a scan
	case []byte:
		n = bytes.IndexByte(rest, end)
	case string:
		n = strings.IndexByte(rest, end)
	}
	if n < 0 {
		return len(line)
	}
	return from + n + with
}

// tripleOf takes a line apart; the terms share its bytes.
func tripleOf(line string) rdfres.Triple {
	s, p := cutLine(line)
	return rdfres.Triple{S: rdfres.Term(line[:s]), P: rdfres.Term(line[s+1 : p]), O: rdfres.Term(line[p+1:])}
}

// iriOf is the IRI of a term in canonical bytes.
func iriOf(t []byte) string {
	if bytes.IndexByte(t, '\\') >= 0 {
		return rdfres.Term(t).IRI()
	}
	return string(t[1 : len(t)-1])
}

// labelKey is what blank nodes are sorted by.
func labelKey(label []byte) [16]byte {
	h := sha256.Sum256(label)
	return [16]byte(h[:16])
}

var genidMark = []byte("/.well-known/genid/rsb")

// localTerm gives a term as a scan sees it: our own skolem IRIs are blank nodes
// again, and a label of the store that could be mistaken for one of them begins
// with one u more. A node of a skolem IRI is its name on the wire and its
// authority: two mirrors that share a store may use one name for two nodes.
// It must not be applied twice.
func localTerm(t []byte) []byte {
	switch {
	case len(t) == 0: // unbound
	case t[0] == '<' && len(t) > 60 && bytes.Contains(t, genidMark):
		authority, label, ok := rdfres.CutSkolem(rdfres.Term(t))
		if !ok {
			return t
		}
		local := make([]byte, 0, len(skolemPrefix)+len(label)+1+2*len(authority))
		local = append(local, "_:"...)
		local = append(local, label...) // begins with rsb
		local = append(local, 'a')
		return hex.AppendEncode(local, []byte(authority))
	case t[0] == '_' && bytes.HasPrefix(bytes.TrimLeft(t[2:], "u"), []byte(skolemPrefix[2:])):
		return append([]byte("_:u"), t[2:]...)
	}
	return t
}

// skolemPrefix begins what localTerm makes of our own skolem IRIs, and nothing
// else that it gives.
const skolemPrefix = "_:rsb"

func localOf(t rdfres.Term) rdfres.Term {
	if t.Kind() == rdfres.KindLiteral {
		return t
	}
	return rdfres.Term(localTerm([]byte(t)))
}
