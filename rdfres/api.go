package rdfres

import (
	"io"
	"iter"

	"github.com/knakk/rdf"
)

// Term is an RDF term in canonical N-Triples syntax: <iri>, _:label,
// "lexical", "lexical"@lang, "lexical"^^<datatype> (xsd:string left out).
// Two terms are the same RDF term exactly when the strings are equal.
// Lexical forms and language tags keep their case and spelling.
type Term string

// TermKind tells the three kinds of term apart.
type TermKind byte

const (
	KindNone TermKind = iota
	KindIRI
	KindBlank
	KindLiteral
)

func NewIRI(iri string) Term                             { panic("stub") }
func NewBlank(label string) Term                         { panic("stub") }
func NewLiteral(lexical, lang, datatype string) Term     { panic("stub") }
func (t Term) Kind() TermKind                            { panic("stub") }
func (t Term) IRI() string                               { panic("stub") } // unescaped; "" when t is no IRI
func (t Term) Label() string                             { panic("stub") } // without _: ; "" when t is no blank node
func (t Term) Literal() (lexical, lang, datatype string) { panic("stub") } // datatype always told: xsd:string, rdf:langString included
func (t Term) RDF() (rdf.Term, error)                    { panic("stub") } // as a term of knakk/rdf
func FromRDF(t rdf.Term) Term                            { panic("stub") }

// Triple is one statement. The zero value is no triple.
type Triple struct{ S, P, O Term }

// Quad is a triple and the graph it stands in; G is "" for the default graph.
type Quad struct {
	Triple
	G Term
}

func (t Triple) AppendLine(dst []byte) []byte { panic("stub") } // "S P O .\n", canonical
func (t Triple) Compare(u Triple) int         { panic("stub") } // order of the lines, bytewise
func SortUnique(ts []Triple) []Triple         { panic("stub") } // in place: sorted by Compare, doubles dropped

// Format names a serialization: its media type and suffix follow from it.
type Format string

const (
	JSONLD   Format = "jsonld"
	NTriples Format = "ntriples"
	Turtle   Format = "turtle"
	RDFXML   Format = "rdfxml"
	NQuads   Format = "nquads"
	TriG     Format = "trig"
)

func (f Format) MediaType() string                      { panic("stub") } // application/ld+json, application/n-triples, ...
func (f Format) Suffix() string                         { panic("stub") } // ".jsonld" ".nt" ".ttl" ".rdf" ".nq" ".trig"
func FormatByMediaType(mediaType string) (Format, bool) { panic("stub") } // parameters are ignored
func FormatBySuffix(name string) (Format, bool)         { panic("stub") }
func SniffFormat(head []byte) (Format, bool)            { panic("stub") } // by content, for bodies without a usable type

// ReadOptions bound and place a reading. Zero values mean sensible defaults.
type ReadOptions struct {
	Base     string // base IRI for relative references; "" refuses them
	Name     string // document name for error messages
	MaxBytes int64  // 0: no bound. Exceeding it is an error that says so
	Lax      bool   // accept what the fast N-Triples path refuses but common stores emit (documented in read.go)
}

// Read streams the statements of a document. The sequence ends after the first
// error. N-Triples and N-Quads run on a fast path over bytes.
func Read(r io.Reader, f Format, o ReadOptions) iter.Seq2[Quad, error] { panic("stub") }

// ParseLine reads one N-Triples or N-Quads line (without the newline) into
// canonical terms. ok is false for blank and comment lines.
func ParseLine(line []byte) (q Quad, ok bool, err error) { panic("stub") }

// Encode writes the deterministic representation of a description: the same
// graph gives the same bytes. ts is in wire form; Encode sorts a copy. f is
// JSONLD, NTriples, Turtle or RDFXML. ErrCannotCarry when f cannot hold ts.
func Encode(f Format, entity string, ts []Triple) ([]byte, error) { panic("stub") }

// Decode reads a whole representation. For JSON-LD our own deterministic form
// is read by our own reader; foreign JSON-LD by json-gold with a document
// loader that never fetches.
func Decode(f Format, data []byte, o ReadOptions) ([]Triple, error) { panic("stub") }

// Description is the unit of synchronization: an entity and the triples about
// it, in wire form, sorted and without doubles (SortUnique).
type Description struct {
	Entity  string // IRI
	Triples []Triple
}

// EntityKey is sha-256 of the entity IRI: the order in which scans yield, the
// tracker keeps and Resource Lists split (house, decisions 18 and 26).
func EntityKey(entity string) Digest { panic("stub") }

// Digest is a SHA-256 value.
type Digest [32]byte

func (d Digest) String() string              { panic("stub") } // lower-case hex
func ParseDigest(hex string) (Digest, error) { panic("stub") }
func (d Digest) IsZero() bool                { return d == Digest{} }

// GraphDigest is SHA-256 over the sorted canonical lines of ts (wire form). ts
// must be sorted and unique (SortUnique).
func GraphDigest(ts []Triple) Digest { panic("stub") }

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

// ---- fixity

// Fixity is what a list promises about a representation.
type Fixity struct {
	Length int64
	SHA256 Digest
	MD5    []byte // nil unless asked for
	SHA1   []byte // nil unless asked for
}

func ComputeFixity(data []byte, md5, sha1 bool) Fixity { panic("stub") }

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
