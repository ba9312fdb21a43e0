package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/sparqlsrc"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// EntryLinks are the configured links of list entries.
func (c *Set) EntryLinks() publish.Links {
	l := publish.Links{Collections: c.Collections, Collection: c.Collection, Locations: c.Locations, Relations: c.Relations}
	for _, text := range c.Links {
		if t, err := publish.ParseLink(text); err == nil { // check has told otherwise
			l.Templates = append(l.Templates, t)
		}
	}
	return l
}

// Reads tells whether two sets have the same data, selection and description.
func (s *Set) Reads(other *Set) bool {
	of := func(s *Set) []byte {
		raw, err := json.Marshal([]any{s.Store, s.Dumps, s.Graphs, s.Select, s.Describe})
		if err != nil {
			panic(err) // strings only
		}
		return bytes.ReplaceAll(raw, []byte("null"), []byte("[]"))
	}
	return bytes.Equal(of(s), of(other))
}

// IsProtected tells of a set for readers with a token.
func (s Set) IsProtected() bool { return s.Access == "tokens" }

// Hinted are the sets with hints, sorted.
func (c *Config) Hinted() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Sets)) {
		if c.Sets[name].Hints.Set() {
			out = append(out, name)
		}
	}
	return out
}

// checkHints finds faults in the hints of a set.
func (s Set) checkHints(p string, fault func(path, value, format string, args ...any)) {
	if !s.Hints.Set() {
		return
	}
	if len(s.Dumps) > 0 {
		fault(p+".hints", "", "are for stores; of dumps the newest file is read whole")
	}
	if slices.Contains(s.Hints.Counts, sparqlsrc.ByGraph) && len(s.Graphs) == 0 && s.Describe != "graph" {
		fault(p+".hints.counts", sparqlsrc.ByGraph, "is for the named graphs of a set (graphs, or describe: graph): the default graph is one, of which counts could only tell that all of it is to be read; class divides it")
	}
	if e := s.Hints.Every; e != 0 && (time.Duration(e) < time.Second || len(s.Hints.Modified) == 0) {
		fault(p+".hints.every", e.String(), "is 1s or longer, with hints.modified")
	}
	for _, iri := range s.Hints.Modified {
		if err := sparqlsrc.CheckIRI(iri); err != nil {
			fault(p+".hints.modified", iri, "is no IRI of a property: %v", err)
		}
	}
	if s.Hints.Query != "" {
		if err := sparqlsrc.CheckSelect(s.Hints.Query); err != nil {
			fault(p+".hints.query", "", "is no SELECT that names entities: %v", err)
		}
	}
}

func (s Set) DumpOptions() sparqlsrc.DumpOptions {
	settle := max(time.Duration(s.DumpsSettle), 1) // 0 is said, and not left out
	return sparqlsrc.DumpOptions{Series: dumpfile.Series{Patterns: s.Dumps, ByTime: s.DumpsOrder == "time"}, Settle: settle, Proof: s.DumpsProof}
}

// checkDumps finds faults in the settings of a set made from files.
func (s Set) checkDumps(p string, fault func(path, value, format string, args ...any)) {
	if s.Store != "" {
		fault(p, "", "has a store and dumps: a set is made from one of them")
	}
	for _, pattern := range s.Dumps {
		if strings.Contains(pattern, "://") {
			fault(p+".dumps", pattern, "is an address; dumps are files: download them first")
		} else if err := dumpfile.CheckPattern(pattern); err != nil {
			fault(p+".dumps", pattern, "is no pattern of file names: %v", err)
		}
	}
	if err := dumpfile.CheckProof(s.DumpsProof); err != nil {
		fault(p+".dumps_proof", s.DumpsProof, "is no proof: %v", err)
	}
	if s.Strategy != "" {
		fault(p+".strategy", s.Strategy, "is for stores; a dump is read from its beginning to its end")
	}
	if s.Select.Query != "" {
		fault(p+".select.query", "", "needs a store that answers it; select by classes and prefixes, or load the dumps into a store")
	}
	if !slices.Contains([]string{"", "cbd", "scbd", "graph"}, s.Describe) {
		fault(p+".describe", s.Describe, "needs a store; of dumps it is cbd, scbd or graph")
	}
}

// SourceConfig is the configuration of the reader of a set's store or dumps.
func (c *Config) SourceConfig(name string) sparqlsrc.Config {
	s := c.Sets[name]
	return sparqlsrc.Config{
		Name: name, Graphs: s.Graphs, Select: sparqlsrc.Select(s.Select), Describe: s.Describe, Strategy: s.Strategy, BatchSize: s.Batch,
		Names: c.names, MaxDescriptionTriples: s.MaxTriples, MaxDepth: s.MaxDepth, WorkLimit: s.MaxNaming,
	}
}

// Part is the graphs of a set.
func (s Set) Part() sparql.Part { return sparqlsrc.PartOf(s.Graphs, s.Describe) }

// Others are the graphs of other sets of the same data.
func (c *Config) Others(name string) (p sparql.Part) {
	for other, s := range c.Sets {
		if other != name && c.DataOf(s) == c.DataOf(c.Sets[name]) {
			p = p.And(s.Part())
		}
	}
	return p
}

// Published is the graphs of all sets of a store, false for no set.
func (c *Config) Published(store string) (p sparql.Part, ok bool) {
	for _, s := range c.Sets {
		if s.Store != "" && c.DataOf(s) == c.DataOf(Set{Store: store}) {
			p, ok = p.And(s.Part()), true
		}
	}
	return p, ok
}

// DataOf names the data of a set, by the same text for each set of it.
func (c *Config) DataOf(s Set) string {
	if s.Store == "" {
		return "dumps " + strings.Join(slices.Sorted(slices.Values(s.Dumps)), "\n")
	}
	at := c.Stores[s.Store]
	return "store " + at.Query + "\n" + at.Embedded
}
