package sparqlsink

import (
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// dialect is the difference of one product to the others. A new product gets a type with
// common in it and a case in dialectOf; nothing else of this package asks for products.
type dialect interface {
	traits() traits
	// uploads tells of an object for the Graph Store Protocol.
	uploads(o rdfres.Term) bool
	// isForm tells of a literal the store has made of a given one.
	isForm(given, held rdfres.Term) bool
	// removal is an update for deletions beyond the reach of DELETE DATA, with the other
	// operations.
	removal(m *Mirror, ops []updateOp) (string, []updateOp)
}

// refuser is a dialect of a store that cannot hold some statements. They are not sent, and their
// resources fail by name.
type refuser interface {
	// refuses names a part of a statement the store cannot hold, and why; "" for none.
	refuses(graph string, t rdfres.Triple) (what, why string)
}

// traits are the numbers and habits of a product.
type traits struct {
	bulkTriples  int      // of one upload: the request costs nothing, and it is held with its intent
	operations   int      // of one request, 0 for any number
	longestGraph int      // bytes of a graph's name, 0 for any
	deletesApart bool     // each graph needs a DELETE DATA of its own
	packs        bool     // it takes packed triples
	longUploads  bool     // it takes uploads of many seconds
	copiesXML    bool     // a removal needs the shown form of an rdf:XMLLiteral
	ownGraphs    []string // graphs in a new store
}

// dialectOf chooses by the Server header, or by the product of a probe: the name at its begin. RDF4J
// does not name itself there.
func dialectOf(c *sparql.Client, product string) dialect {
	switch {
	case strings.HasPrefix(product, "Virtuoso"):
		return virtuoso{}
	case c.LikeRDF4J():
		return rdf4j{}
	}
	return common{}
}

// speak chooses the dialect.
func (m *Mirror) speak(d dialect) { m.dialect, m.traits = d, d.traits() }

// common is a store as the specifications have it.
type common struct{}

func (common) traits() traits {
	return traits{bulkTriples: 50_000, packs: true, longUploads: true}
}
func (common) uploads(rdfres.Term) bool                               { return true }
func (common) isForm(_, _ rdfres.Term) bool                           { return false }
func (common) removal(_ *Mirror, ops []updateOp) (string, []updateOp) { return "", ops }
