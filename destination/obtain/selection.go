package obtain

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A part of a source is mirrored with Config.Select: the entities with one of the prefixes or of
// the classes. Outside resources are recorded without triples: they are compared with lists, and
// not fetched again without a change. With prefixes alone, and the entity named by the source,
// they are not fetched at all.

// Selection is a part of a source; an empty one is the whole.
type Selection struct{ Classes, Prefixes []string }

// Whole tells whether no part of the source is configured.
func (s Selection) Whole() bool {
	return len(s.Prefixes)+len(s.Classes) == 0
}

func (s Selection) HasPrefix(iri string) bool {
	return slices.ContainsFunc(s.Prefixes, func(p string) bool { return strings.HasPrefix(iri, p) })
}

// Selected tells whether a description is in the part.
func (s Selection) Selected(entity string, ts []rdfres.Triple) bool {
	if s.Whole() || s.HasPrefix(entity) {
		return true
	}
	return slices.ContainsFunc(ts, func(t rdfres.Triple) bool {
		return t.P == RDFType && t.S.IRI() == entity && slices.Contains(s.Classes, t.O.IRI())
	})
}

const RDFType rdfres.Term = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

// SelectedOther tells whether a non-RDF resource is in the part: by prefix of the entity or of the
// address, since it has no class.
func (s Selection) SelectedOther(rec *ledger.Record) bool {
	return s.Whole() || s.HasPrefix(rec.Entity) || s.HasPrefix(rec.Loc)
}

// Outside tells whether a resource is known to be outside of the part without fetching it.
func (s Selection) Outside(it *item.Item) bool {
	return len(s.Classes) == 0 && !s.Whole() && it.Bad == "" && it.Entity != "" && !s.HasPrefix(it.Entity) && !s.HasPrefix(it.Loc)
}
