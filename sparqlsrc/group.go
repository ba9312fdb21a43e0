package sparqlsrc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// grouper takes triples in any order and groups them by entity. Triples without
// blank nodes go straight to the entity sorter; the others wait until their
// components are known (components.go).
type grouper struct {
	cfg  *Config
	scbd bool
	dir  string // of its own, removed by close

	entities *extsort.Sorter // key: EntityKey; value: a line and its flag, or a record
	blanks   *extsort.Sorter // key: label hash; value: see addBlank
	edges    uint64          // triples between two blank nodes

	rows      int64 // triples received
	blankRows int64 // of them with a blank node

	run   run    // triples of the last subject, in a row
	graph []byte // the last one of addQuad
	line  []byte
	value []byte

	distinctBlank int64   // triples with a blank node, doubles dropped
	doubles       doubles // of them
	failed        failures
	orphanFailed  bool
	// touch and wanted limit the described components; nil: all. touch gets the owners of
	// every component (canonical terms) before the first call of wanted.
	touch  func(owners []string, digest func() rdfres.Digest)
	wanted func(owners []string, digest rdfres.Digest) bool
}

// newGrouper makes the grouper of a download.
func newGrouper(cfg *Config, scbd bool) (*grouper, error) {
	if cfg.TempDir != "" {
		if err := os.MkdirAll(cfg.TempDir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder for spill files: %w", err)
		}
	}
	dir, err := os.MkdirTemp(cfg.TempDir, "scan-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for spill files: %w", err)
	}
	g := &grouper{cfg: cfg, scbd: scbd, dir: dir}
	var err1, err2 error
	g.entities, err1 = extsort.New(dir, cfg.MemoryBytes/2)
	g.blanks, err2 = extsort.New(dir, cfg.MemoryBytes/8)
	if err := errors.Join(err1, err2); err != nil {
		_ = os.RemoveAll(dir) // err counts
		return nil, err
	}
	return g, nil
}

// close removes everything.
func (g *grouper) close() error {
	err := errors.Join(g.entities.Close(), g.blanks.Close())
	if e := os.RemoveAll(g.dir); e != nil {
		err = errors.Join(err, fmt.Errorf("remove spill files: %w", e))
	}
	return err
}

// add takes one triple in canonical terms, and does not keep them.
func (g *grouper) add(s, p, o []byte) error {
	g.rows++
	if len(s) == 0 || len(p) == 0 || len(o) == 0 {
		return fmt.Errorf("the store gave the triple %q %q %q with a part that is not there", clip(s), clip(p), clip(o))
	}
	s, o = localTerm(s), localTerm(o)
	if s[0] == '_' || o[0] == '_' {
		return g.addBlank(s, p, o)
	}
	if s[0] != '<' || p[0] != '<' {
		return fmt.Errorf("the store gave %s %s as subject and predicate, which is no RDF", clip(s), clip(p))
	}
	if err := checkTriple(s, p, o); err != nil {
		g.fail(iriOf(s), err)
		if g.scbd && o[0] == '<' {
			g.fail(iriOf(o), err)
		}
	}
	if !g.scbd {
		return g.addOwn(s, p, o)
	}
	g.value = appendLine(g.value[:0], s, p, o)
	flag := byte(flagOwn)
	if o[0] == '<' && !bytes.Equal(s, o) {
		flag = flagOwnShared
	}
	g.value = append(g.value, flag)
	key := g.keyOf(s)
	if err := g.entities.Add(key[:], g.value); err != nil {
		return err
	}
	if flag == flagOwnShared {
		g.value[len(g.value)-1] = flagInbound
		return g.addNamed(iriOf(o), g.value)
	}
	return nil
}

// addOwn adds a triple without blank nodes of a subject. Stores mostly give the triples of a
// subject in a row: they become one record. Otherwise, or if they are very many, each is a
// record of its own.
func (g *grouper) addOwn(s, p, o []byte) error {
	if !bytes.Equal(s, g.run.subject) {
		if err := g.endRun(); err != nil {
			return err
		}
		g.keyOf(s)
		g.run.long = false
	}
	if !g.run.long {
		if g.run.add(p, o); len(g.run.buf) < runBytes {
			return nil
		}
		g.run.long = true
		return g.splitRun()
	}
	g.value = append(appendLine(g.value[:0], s, p, o), flagOwn)
	return g.entities.Add(g.run.key[:], g.value)
}

// endRun gives the run to the sorter.
func (g *grouper) endRun() error {
	if len(g.run.ends) < 2 {
		return g.splitRun()
	}
	g.value = g.run.appendRecord(g.value[:0])
	g.run.clear()
	return g.entities.Add(g.run.key[:], g.value)
}

// splitRun gives its triples to the sorter one by one.
func (g *grouper) splitRun() error {
	for i := range g.run.ends {
		g.value = append(append(append(g.value[:0], g.run.subject...), ' '), g.run.at(i)...)
		if err := g.entities.Add(g.run.key[:], append(g.value, flagOwn)); err != nil {
			return err
		}
	}
	g.run.clear()
	return nil
}

// checkTriple finds terms impossible in a query or in another store: IRIs with a space, a
// brace and the like, invalid language tags, triple terms of RDF 1.2 (some stores take them).
func checkTriple(s, p, o []byte) error {
	if last := o[len(o)-1]; o[0] == '"' && last != '"' && last != '>' {
		if err := rdfres.CheckTerm(o); err != nil { // its language tag
			return err
		}
	}
	if bytes.IndexByte(s, '\\') < 0 && bytes.IndexByte(p, '\\') < 0 && bytes.IndexByte(o, '\\') < 0 {
		return nil // nothing in it is escaped
	}
	for _, t := range [...][]byte{s, p, o} {
		if err := rdfres.CheckTerm(t); err != nil {
			return err
		}
	}
	return nil
}

// checkAll is checkTriple for a description.
func checkAll(ts []rdfres.Triple) error {
	for _, t := range ts {
		for _, t := range [...]rdfres.Term{t.S, t.P, t.O} {
			if err := rdfres.CheckTerm(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyOf is the key of a subject in canonical bytes; subjects often come in a row.
func (g *grouper) keyOf(s []byte) rdfres.Digest {
	if !bytes.Equal(s, g.run.subject) {
		g.run.subject = append(g.run.subject[:0], s...)
		g.run.key = rdfres.EntityKey(iriOf(s))
	}
	return g.run.key
}

// addNamed adds a line to an entity other than its subject.
func (g *grouper) addNamed(entity string, value []byte) error {
	key := rdfres.EntityKey(entity)
	if err := g.entities.Add(key[:], append([]byte{recordEntity}, entity...)); err != nil {
		return err
	}
	return g.entities.Add(key[:], value)
}

// selected marks an entity in the result of the user's SELECT.
func (g *grouper) selected(entity string) error {
	key := rdfres.EntityKey(entity)
	return errors.Join(g.entities.Add(key[:], append([]byte{recordEntity}, entity...)),
		g.entities.Add(key[:], []byte{recordSelected}))
}

// Records of the blanks sorter under a label's hash.
const (
	blankLine   = 0 // a line with this blank node only
	edgeSubject = 1 // eight bytes of edge number, a line from this blank node to another
	edgeObject  = 2 // eight bytes of edge number: this is its other end
)

func (g *grouper) addBlank(s, p, o []byte) error {
	if p[0] != '<' || s[0] == '"' {
		return fmt.Errorf("the store gave %s %s as subject and predicate, which is no RDF", clip(s), clip(p))
	}
	g.blankRows++
	node := s
	if s[0] != '_' {
		node = o
	}
	key := labelKey(node)
	if s[0] != '_' || o[0] != '_' || bytes.Equal(s, o) {
		g.value = appendLine(append(g.value[:0], blankLine), s, p, o)
		return g.blanks.Add(key[:], g.value)
	}
	g.edges++
	g.value = binary.BigEndian.AppendUint64(append(g.value[:0], edgeSubject), g.edges)
	g.value = appendLine(g.value, s, p, o)
	if err := g.blanks.Add(key[:], g.value); err != nil {
		return err
	}
	key = labelKey(o)
	g.value = binary.BigEndian.AppendUint64(append(g.value[:0], edgeObject), g.edges)
	return g.blanks.Add(key[:], g.value)
}

// finish finds the components and gives their triples to the entities.
func (g *grouper) finish(ctx context.Context) error {
	if g.blanks.Len() == 0 {
		return nil
	}
	// The entities are sorted while the components are found.
	if err := errors.Join(g.endRun(), g.entities.Spill()); err != nil {
		return err
	}
	if err := g.components(ctx); err != nil {
		return fmt.Errorf("group blank nodes: %w", err)
	}
	return g.blanks.Close()
}

func clip(b []byte) []byte { return b[:min(len(b), 120)] }
