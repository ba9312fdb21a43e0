// Package simulate makes linked data that looks like DBpedia, and changes it at
// a given rate.
//
// A [World] is a seed: the description of entity i in version v is always the
// same, so that data of any size is made without keeping any of it. About 9.8
// triples an entity; every fifth has an address of two nested blank nodes; few
// classes, skewed links, labels in several languages, numbers, dates.
//
// [World.Changes] is an endless seeded stream of changes. Storage is not known
// here: [Step.Update] gives the SPARQL update that makes a change true.
package simulate

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The vocabulary of the simulated data.
const (
	Resource = "http://example.org/resource/"
	Ontology = "http://example.org/ontology/"
	rdfType  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
	label    = "http://www.w3.org/2000/01/rdf-schema#label"
	sameAs   = "http://www.w3.org/2002/07/owl#sameAs"
	xsd      = "http://www.w3.org/2001/XMLSchema#"
)

var classes = []string{"Person", "Place", "Work", "Organisation", "Species", "Event"}

var words = strings.Fields(`north river stone old bridge garden silver house light winter market valley
	harbour museum forest tower castle street music summer island green saint royal great little white`)

// World is a data set that follows from its seed.
type World struct{ Seed uint64 }

// IRI is the IRI of entity i.
func IRI(i int64) string { return Resource + "E" + strconv.FormatInt(i, 10) }

// Entity is the description of entity i in version v among about n entities (to
// which it links). A version has the population and one more property of its own, and
// the others of version 0. Its blank nodes are named after it. Not sorted.
func (w World) Entity(i, v, n int64) []rdfres.Triple {
	d := w.draw(i, 0, n)
	if v != 0 {
		own := w.draw(i, v, n)
		d.population = own.population
		switch own.also {
		case 0:
			d.name, d.german = own.name, own.german
		case 1:
			d.abstract = own.abstract
		case 2:
			d.founded = own.founded
		case 3:
			d.related = own.related
		case 4:
			d.street, d.lat, d.long = own.street, own.lat, own.long
		}
	}
	s := rdfres.NewIRI(IRI(i))
	ts := make([]rdfres.Triple, 0, 20)
	add := func(s rdfres.Term, p string, o rdfres.Term) {
		ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI(p), O: o})
	}
	add(s, rdfType, rdfres.NewIRI(Ontology+classes[i%int64(len(classes))]))
	add(s, label, rdfres.NewLiteral(d.name, "en", ""))
	if d.german {
		add(s, label, rdfres.NewLiteral(d.name+" ß", "de", ""))
	}
	add(s, Ontology+"abstract", rdfres.NewLiteral(d.abstract, "en", ""))
	add(s, Ontology+"population", rdfres.NewLiteral(strconv.Itoa(d.population), "", xsd+"integer"))
	add(s, Ontology+"founded", rdfres.NewLiteral(d.founded, "", xsd+"date"))
	add(s, sameAs, rdfres.NewIRI("http://other.example.org/id/"+strconv.FormatInt(i, 16)))
	for _, to := range d.related {
		add(s, Ontology+"related", rdfres.NewIRI(IRI(to)))
	}
	if i%5 == 0 {
		b := rdfres.NewBlank("a" + strconv.FormatInt(i, 10))
		g := rdfres.NewBlank("g" + strconv.FormatInt(i, 10))
		add(s, Ontology+"address", b)
		add(b, Ontology+"street", rdfres.NewLiteral(d.street, "", ""))
		add(b, Ontology+"geo", g)
		add(g, Ontology+"lat", rdfres.NewLiteral(d.lat, "", xsd+"decimal"))
		add(g, Ontology+"long", rdfres.NewLiteral(d.long, "", xsd+"decimal"))
	}
	return ts
}

// drawn is chance's word on an entity in a version.
type drawn struct {
	name, abstract, founded string
	german                  bool
	population, also        int
	related                 []int64
	street, lat, long       string
}

func (w World) draw(i, v, n int64) (d drawn) {
	r := rand.New(rand.NewPCG(w.Seed^uint64(v)*0x9e3779b97f4a7c15, uint64(i)))
	d.name = phrase(r, 2)
	d.german = r.IntN(2) == 0
	d.abstract = phrase(r, 12+r.IntN(20))
	d.population = r.IntN(5_000_000)
	d.founded = fmt.Sprintf("%04d-%02d-%02d", 1200+r.IntN(800), 1+r.IntN(12), 1+r.IntN(28))
	for range 1 + r.IntN(4) {
		// skewed: small numbers are linked to most
		d.related = append(d.related, int64(float64(n)*r.Float64()*r.Float64()*r.Float64()))
	}
	d.street = phrase(r, 2)
	d.lat = fmt.Sprintf("%.4f", r.Float64()*180-90)
	d.long = fmt.Sprintf("%.4f", r.Float64()*360-180)
	d.also = r.IntN(5)
	return d
}

func phrase(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

// Lines yields N-Triples lines of entities from <= i < to in version 0.
func (w World) Lines(from, to, n int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buf []byte
		for i := from; i < to; i++ {
			buf = buf[:0]
			for _, t := range w.Entity(i, 0, n) {
				buf = t.AppendLine(buf)
			}
			if !yield(buf) {
				return
			}
		}
	}
}

// Mix is the weights of creations, updates and deletions.
type Mix struct{ Create, Update, Delete int }

// ParseMix reads "1,8,1".
func ParseMix(s string) (m Mix, err error) {
	if n, err := fmt.Sscanf(s, "%d,%d,%d", &m.Create, &m.Update, &m.Delete); n != 3 || err != nil || m.Create < 0 || m.Update < 0 || m.Delete < 0 || m.Create+m.Update+m.Delete == 0 {
		return m, fmt.Errorf("mix %q: three weights like 1,8,1 (create, update, delete)", s)
	}
	return m, nil
}

// Step is one change of the world.
type Step struct {
	Kind    string // create, update, delete
	Entity  int64
	Version int64 // of the new description
	N       int64 // entities made so far
}

// Changes yields changes to a world in which n entities were made, endlessly;
// version numbers begin after the given one. The same arguments give the same
// stream. An update or deletion may meet an entity that is deleted: an update
// brings it back, a deletion does nothing.
func (w World) Changes(n, version int64, m Mix) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		r := rand.New(rand.NewPCG(w.Seed, uint64(version)+1))
		for {
			version++
			s := Step{Kind: "update", Version: version}
			switch k := r.IntN(m.Create + m.Update + m.Delete); {
			case k < m.Create || n == 0:
				s.Kind, s.Entity = "create", n
				n++
			case k >= m.Create+m.Update:
				s.Kind, s.Entity = "delete", r.Int64N(n)
			default:
				s.Entity = r.Int64N(n)
			}
			s.N = n
			if !yield(s) {
				return
			}
		}
	}
}

// Update is the SPARQL update that makes the step true in the default graph,
// whatever version the store holds.
func (w World) Update(s Step) string {
	e := "<" + IRI(s.Entity) + ">"
	address, geo := "<"+Ontology+"address>", "<"+Ontology+"geo>"
	var b strings.Builder
	if s.Kind != "create" {
		fmt.Fprintf(&b, "DELETE { ?g ?p ?o } WHERE { %s %s ?b . ?b %s ?g . ?g ?p ?o } ;\n", e, address, geo)
		fmt.Fprintf(&b, "DELETE { ?b ?p ?o } WHERE { %s %s ?b . ?b ?p ?o } ;\n", e, address)
		fmt.Fprintf(&b, "DELETE WHERE { %s ?p ?o }", e)
	}
	if s.Kind != "delete" {
		if b.Len() > 0 {
			b.WriteString(" ;\n")
		}
		b.WriteString("INSERT DATA {\n")
		// Each operation of a request has labels of its own (SPARQL 1.1 Update, section 3.1.1).
		own := func(t rdfres.Term) rdfres.Term {
			if t.Kind() == rdfres.KindBlank {
				return rdfres.NewBlank(t.Label() + "v" + strconv.FormatInt(int64(s.Version), 10))
			}
			return t
		}
		for _, t := range w.Entity(s.Entity, s.Version, s.N) {
			t.S, t.O = own(t.S), own(t.O)
			b.Write(t.AppendLine(nil))
		}
		b.WriteString("}")
	}
	return b.String()
}
