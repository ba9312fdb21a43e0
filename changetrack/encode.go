package changetrack

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/rsbridge/rsbridge/rdfres"
)

// deflateLevel is fast: representations are small and packed once.
const deflateLevel = 3

// item is an entity to compare: what was found and what is known.
type item struct {
	entity  string
	triples []rdfres.Triple
	old     []byte // state record, nil if there is none
}

// tally is what came of some items.
type tally struct {
	created, updated, unchanged, fallback int64
	failures                              []Failure
	sums
}

func (s *scan) add(t *tally) {
	s.res.Created += t.created
	s.res.Updated += t.updated
	s.res.Unchanged += t.unchanged
	s.res.Fallback += t.fallback
	for _, f := range t.failures {
		s.res.fail(f)
	}
	s.sum.triples += t.triples
	s.sum.components += t.components
	s.sum.lost += t.lost
	s.sum.componentsGain += t.componentsGain
	s.sum.componentFound += t.componentFound
}

// coder compares and encodes; one for each goroutine.
type coder struct {
	o      *ScanOptions
	dry    bool
	encode func(rdfres.Format, string, []rdfres.Triple) ([]byte, error)
	w      *flate.Writer
	packed bytes.Buffer
	rec    []byte
}

func (s *scan) coder() (*coder, error) {
	w, err := flate.NewWriter(nil, deflateLevel)
	if err != nil {
		return nil, err
	}
	return &coder{o: &s.o, dry: s.dry, encode: s.l.t.o.encode, w: w}, nil
}

// compare appends the framed record of a change, if it is one, to out.
func (c *coder) compare(out []byte, it *item, t *tally) ([]byte, uint64, error) {
	if !strictlySorted(it.triples) {
		it.triples = rdfres.SortUnique(it.triples)
	}
	var cur *Version
	if it.old != nil {
		old, err := readState(it.old)
		if err != nil {
			return out, 0, fmt.Errorf("state of %s: %w", it.entity, err)
		}
		cur = old.current
	}
	graph := rdfres.GraphDigest(it.triples)
	if cur != nil && cur.Graph == graph && (cur.Format == c.o.Format || cur.Wanted == c.o.Format) {
		t.unchanged++
		return out, 0, nil
	}
	next := staged{kind: Created, entity: it.entity, old: it.old}
	next.after = &Version{Graph: graph, Wanted: c.o.Format, Triples: len(it.triples)}
	if !c.dry {
		if err := c.represent(&next, it); err != nil {
			t.failures = append(t.failures, Failure{it.entity, err.Error()})
			return out, 0, nil
		}
		if next.after.Format != c.o.Format {
			t.fallback++
		}
	}
	n := int64(len(it.triples))
	switch {
	case cur != nil:
		next.kind = Updated
		t.updated++
		t.triples += n - int64(cur.Triples)
		t.lost += max(0, int64(cur.Triples)-n)
	default:
		t.created++
		t.triples += n
		if isComponent(it.entity) {
			t.components++
			t.componentsGain++
			t.componentFound += n
		}
	}
	if c.dry {
		return out, 0, nil
	}
	c.rec = putStaged(c.rec[:0], &next)
	return frame(out, c.rec), 1, nil
}

// represent encodes in the wanted format, or as N-Triples where that cannot
// carry the graph, measures and packs.
func (c *coder) represent(next *staged, it *item) error {
	data, format, err := c.encodeAny(it)
	if err != nil {
		return err
	}
	next.after.Format = format
	next.after.Fixity = rdfres.ComputeFixity(data, c.o.MD5, c.o.SHA1)
	c.packed.Reset()
	c.w.Reset(&c.packed)
	if _, err := c.w.Write(data); err != nil {
		return err
	}
	if err := c.w.Close(); err != nil {
		return err
	}
	next.blob = Blob{Deflated: c.packed.Bytes(), CRC32: crc32.ChecksumIEEE(data), Length: int64(len(data))}
	return nil
}

func (c *coder) encodeAny(it *item) (data []byte, f rdfres.Format, err error) {
	defer func() { // a fault in an encoder is the fault of one entity, not the end of the process
		if r := recover(); r != nil {
			err = fmt.Errorf("encode as %s: panic: %v", c.o.Format, r)
		}
	}()
	data, err = c.encode(c.o.Format, it.entity, it.triples)
	if err == nil {
		return data, c.o.Format, nil
	}
	if !errors.Is(err, rdfres.ErrCannotCarry) || c.o.Format == rdfres.NTriples {
		return nil, "", fmt.Errorf("encode as %s: %w", c.o.Format, err)
	}
	if data, err = c.encode(rdfres.NTriples, it.entity, it.triples); err != nil {
		return nil, "", fmt.Errorf("encode as %s: %w", rdfres.NTriples, err)
	}
	return data, rdfres.NTriples, nil
}

func strictlySorted(ts []rdfres.Triple) bool {
	for i := 1; i < len(ts); i++ {
		if ts[i-1].Compare(ts[i]) >= 0 {
			return false
		}
	}
	return true
}

// own takes the triples from who yielded them.
func own(ts []rdfres.Triple) []rdfres.Triple { return slices.Clone(ts) }
