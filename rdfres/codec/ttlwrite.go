package codec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// encodeTurtle writes Turtle for people: the prefixes that are needed, the
// entity first, one block for each subject, rdf:type as a before the other
// predicates. Every blank node stands under its label, which is its wire name.
func encodeTurtle(entity string, ts []rdfres.Triple) ([]byte, error) {
	w := turtleWriter{used: map[string]bool{}}
	syntax.EachBlock(entity, ts, w.subject)
	if w.err != nil {
		return nil, fmt.Errorf("rdfres: encode %s as turtle: %w", entity, w.err)
	}
	return append(w.prefixes(), w.body...), nil
}

type turtleWriter struct {
	body []byte
	used map[string]bool // namespaces
	err  error
}

func (w *turtleWriter) prefixes() []byte {
	var lines []string
	for space := range w.used {
		lines = append(lines, "@prefix "+syntax.CommonPrefixes[space]+": <"+space+"> .\n")
	}
	slices.Sort(lines)
	if len(lines) > 0 && len(w.body) > 0 {
		lines = append(lines, "\n")
	}
	return []byte(strings.Join(lines, ""))
}

// subject writes the block of one subject.
func (w *turtleWriter) subject(ts []rdfres.Triple) {
	if len(w.body) > 0 {
		w.body = append(w.body, '\n')
	}
	w.term(ts[0].S)
	first := true
	for _, types := range []bool{true, false} {
		for i := 0; i < len(ts); {
			j := i + 1
			for j < len(ts) && ts[j].P == ts[i].P {
				j++
			}
			if (ts[i].P == syntax.Type) == types {
				if !first {
					w.body = append(w.body, " ;"...)
				}
				first = false
				w.property(ts[i:j])
			}
			i = j
		}
	}
	w.body = append(w.body, " .\n"...)
}

func (w *turtleWriter) property(ts []rdfres.Triple) {
	w.body = append(w.body, "\n    "...)
	if ts[0].P == syntax.Type {
		w.body = append(w.body, 'a')
	} else {
		w.term(ts[0].P)
	}
	for i, t := range ts {
		switch {
		case i > 0:
			w.body = append(w.body, " ,\n        "...)
		default:
			w.body = append(w.body, ' ')
		}
		w.term(t.O)
	}
}

func (w *turtleWriter) term(t rdfres.Term) {
	switch t[0] {
	case '<':
		w.iri(t)
	case '_':
		if chars.ScanLabel(string(t[2:]), false) != len(t)-2 && w.err == nil {
			w.err = fmt.Errorf("%w: Turtle has no blank node label %s", rdfres.ErrCannotCarry, t)
		}
		w.body = append(w.body, t...)
	default:
		w.literal(t)
	}
}

func (w *turtleWriter) iri(t rdfres.Term) {
	space, local := splitNamespace(string(t[1 : len(t)-1]))
	prefix, ok := syntax.CommonPrefixes[space]
	if !ok || !plainLocal(local) {
		w.body = append(w.body, t...)
		return
	}
	w.used[space] = true
	w.body = append(append(append(w.body, prefix...), ':'), local...)
}

// plainLocal tells whether a local name needs no escape and looks like a name.
func plainLocal(local string) bool {
	for i := 0; i < len(local); i++ {
		if chars.Class[local[i]]&chars.LabelByte == 0 || i == 0 && local[i] == '-' {
			return false
		}
	}
	return local != ""
}

// literal writes numbers and booleans bare where that reads back as the very
// same literal.
func (w *turtleWriter) literal(t rdfres.Term) {
	lexical, lang, datatype := t.EscapedLiteral()
	if datatype != "" && rdfres.ShorthandType([]byte(lexical)) == datatype {
		w.body = append(w.body, lexical...)
		return
	}
	w.body = append(append(append(w.body, '"'), lexical...), '"')
	switch {
	case lang != "":
		w.body = append(append(w.body, '@'), lang...)
	case datatype != "":
		w.body = append(w.body, "^^"...)
		w.iri("<" + rdfres.Term(datatype) + ">")
	}
}

// splitNamespace cuts an IRI after its last # or /.
func splitNamespace(iri string) (namespace, local string) {
	i := strings.LastIndexByte(iri, '#')
	if i < 0 {
		i = strings.LastIndexByte(iri, '/')
	}
	return iri[:i+1], iri[i+1:]
}
