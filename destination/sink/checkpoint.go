package sink

import (
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Names in the state graph of a mirror. The subject is the mark of a
// destination, made once; its properties are the checkpoint.
const (
	MarkPrefix = "urn:rsbridge:mirror:"
	PropPrefix = "urn:rsbridge:terms#"
)

// FreshnessOf is the subject of the freshness of a mirror in the state graph, by its mark.
func FreshnessOf(mark string) string {
	return "urn:rsbridge:freshness:" + strings.TrimPrefix(mark, MarkPrefix)
}

// Checkpoint says how far a mirror is. The state has the same: after one of them was restored
// from a backup, they differ.
type Checkpoint struct {
	Generation string // number of the write, decimal
	Writer     string // the process of the write
	Phase      string // of the destination
	Sequence   string // of the source's log, decimal; "" for a source without
	Graph      string // IRI, template, or "default"
	Name       string // of the destination
	Source     string
	Time       string // RFC 3339
}

func (c *Checkpoint) pairs() [][2]string {
	return [][2]string{{"generation", c.Generation}, {"writer", c.Writer}, {"phase", c.Phase}, {"sequence", c.Sequence}, {"graph", c.Graph}, {"name", c.Name}, {"source", c.Source}, {"time", c.Time}}
}

// Set sets a property by its name below PropPrefix; unknown ones are passed over.
func (c *Checkpoint) Set(name, value string) {
	switch name {
	case "generation":
		c.Generation = value
	case "writer":
		c.Writer = value
	case "phase":
		c.Phase = value
	case "sequence":
		c.Sequence = value
	case "graph":
		c.Graph = value
	case "name":
		c.Name = value
	case "source":
		c.Source = value
	case "time":
		c.Time = value
	}
}

// IsOf tells whether it is of this write.
func (c *Checkpoint) IsOf(generation uint64, writer string) bool {
	return c.Generation == fmt.Sprint(generation) && c.Writer == writer
}

// Triples are the checkpoint as it stands in the mirror. All values are plain
// strings: no store rewrites those.
func (c *Checkpoint) Triples(mark string) []rdfres.Triple {
	var ts []rdfres.Triple
	for _, p := range c.pairs() {
		if p[1] != "" {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(mark), P: rdfres.NewIRI(PropPrefix + p[0]), O: rdfres.NewLiteral(p[1], "", "")})
		}
	}
	return ts
}
