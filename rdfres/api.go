package rdfres

// ---- names of blank nodes (house, decision 9)

// NameOptions steer the naming. Scope is mixed into every digest: "" when the
// triples are of one whole graph whose names are to be global (our sources),
// the document's address when labels mean nothing outside it (foreign ones).
type NameOptions struct {
	Scope     string
	WorkLimit int // for what is not a tree; 0: default. ErrWorkLimit beyond it
}

// ComponentNames are the canonical positions of the blank nodes of one
// component and the digest that names it.
type ComponentNames struct {
	Digest   Digest
	Position map[Term]int
	Orphan   bool // no IRI leads to it
}

// Name is the blank node's name: label "rsb" + 40 hex digits of the digest + "n" + position, and "d" + ordinal when it is not 0.
func (c ComponentNames) Name(node Term, ordinal int) Term { panic("stub") }

// LabelComponent computes the names of one blank-node component. ts holds every
// triple that has one of its nodes as subject or as object, and nothing else.
// Trees are hashed bottom-up in linear time, without recursion; anything else
// by RDFC-1.0 within o.WorkLimit.
func LabelComponent(ts []Triple, o NameOptions) (ComponentNames, error) { panic("stub") }

// Component is one blank-node component found by NameBlanks.
type Component struct {
	Names   ComponentNames
	Ordinal int
	Triples []Triple // named
}

// NameBlanks gives every blank node of a graph held in memory its wire name.
// The graph must hold each component whole. Components come in the order of
// their digests. The result is sorted and unique.
func NameBlanks(ts []Triple, o NameOptions) (named []Triple, comps []Component, err error) {
	panic("stub")
}

// OrphanEntity is the IRI under which an orphan component is a resource:
// urn:rsbridge:component:HEX-ORDINAL.
func OrphanEntity(d Digest, ordinal int) string { panic("stub") }

// IsWireName tells whether a blank label has the form that ComponentNames.Name gives.
func IsWireName(label string) bool { panic("stub") }

// Skolemize turns a blank node into authority + "/.well-known/genid/" + label;
// other terms are returned as they are. authority is scheme://host.
func Skolemize(t Term, authority string) Term { panic("stub") }

// Unskolemize turns an IRI of our own skolem form (any authority) back into its
// blank node; everything else, foreign genid IRIs too, is returned as it is.
func Unskolemize(t Term) Term { panic("stub") }

// ---- descriptions over triples in memory

// Graph is an in-memory index for closures.
type Graph struct{ bySubject, byObject map[Term][]Triple }

func NewGraph(ts []Triple) *Graph        { panic("stub") }
func (g *Graph) CBD(node Term) []Triple  { panic("stub") } // sorted, unique; iterative, cycles allowed
func (g *Graph) SCBD(node Term) []Triple { panic("stub") }

// ---- RDFC-1.0

// CanonOptions choose the hash ("SHA256" default, "SHA384") and the work limit.
type CanonOptions struct {
	Hash      string
	WorkLimit int
}

// Canonicalize is RDFC-1.0: the canonical N-Quads document of the dataset, and
// the issued identifiers (input label to canonical label, without _:).
func Canonicalize(qs []Quad, o CanonOptions) (nquads []byte, issued map[string]string, err error) {
	panic("stub")
}

// ---- normal forms (house, decision 14)

// NormalForm says how a store rewrites the terms it is given. The zero value
// rewrites nothing. Rules are named and can be stored (JSON).
type NormalForm struct {
	Rules []string `json:"rules"` // sorted names of rules, see NormalRules
}

func NormalRules() []string                                                        { panic("stub") } // all known rule names
func (n NormalForm) Term(t Term) Term                                              { panic("stub") }
func (n NormalForm) Triple(t Triple) Triple                                        { panic("stub") }
func ProbeTriples() []Triple                                                       { panic("stub") } // to be written into a scratch graph
func DetectNormalForm(written, read []Triple) (n NormalForm, unexplained []Triple) { panic("stub") }
func ValueEqual(a, b Term) bool                                                    { panic("stub") } // same value in XSD / BCP47 terms: a rewriting, not a difference
