package changetrack

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/rdfxml"
)

const (
	// plainMost is the longest representation stored plain: the store packs some of them together,
	// in less room and far less time than packing each on its own. A longer one is packed here, and
	// unpacked in pieces.
	plainMost = 64 << 10
	// deflateLevel is fast: a representation is packed once.
	deflateLevel = 3
)

// item is an entity to compare: its found description and its known state.
type item struct {
	entity  string
	triples []rdfres.Triple
	old     []byte // state record, nil if there is none
}

// tally counts the results of some items.
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

// encoder makes a checked representation.
type encoder func(f rdfres.Format, entity string, ts []rdfres.Triple) ([]byte, error)

// coder compares and encodes; one for each goroutine.
type coder struct {
	o      *ScanOptions
	dry    bool
	encode encoder
	log    *slog.Logger
	free   <-chan []byte // to be used again
	w      *flate.Writer
	packed bytes.Buffer
	blob   []byte
	rec    []byte
}

func (s *scan) coder() (*coder, error) {
	w, err := flate.NewWriter(nil, deflateLevel)
	if err != nil {
		return nil, err
	}
	return &coder{o: &s.o, dry: s.dry, encode: s.l.t.o.encode, log: s.l.t.o.Logger, free: s.free, w: w}, nil
}

// compare appends the framed record of a change, if it is one, to out.
func (c *coder) compare(out []byte, it *item, t *tally) ([]byte, uint64, error) {
	if !strictlySorted(it.triples) {
		it.triples = rdfres.SortUnique(slices.Clone(it.triples))
	}
	graph := rdfres.GraphDigest(it.triples)
	var cur *Version
	if it.old != nil {
		was, err := peekState(it.old)
		if err == nil && was.current && was.graph == graph && (was.format == c.o.Format || was.wanted == c.o.Format) {
			t.unchanged++
			return out, 0, nil
		}
		old := &stateRecord{}
		if err == nil {
			old, err = readState(it.old)
		}
		if err != nil {
			return out, 0, fmt.Errorf("state of %s: %w", it.entity, err)
		}
		cur = old.current
	}
	next := staged{kind: Created, entity: it.entity, old: it.old}
	next.after = &Version{Graph: graph, Wanted: c.o.Format, Triples: len(it.triples), RDFXML: rdfxml.Carries(it.triples)}
	if !c.dry {
		data, format, err := c.encodeAny(it)
		if err != nil {
			t.failures = append(t.failures, Failure{it.entity, err.Error()})
			return out, 0, nil
		}
		next.after.Format, next.after.Fixity = format, rdfres.ComputeFixity(data, c.o.MD5, c.o.SHA1)
		if err := c.keep(&next, data); err != nil {
			return out, 0, fmt.Errorf("pack %s: %w", it.entity, err)
		}
		if format != c.o.Format {
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

// keep stages a representation, packed if it is long.
func (c *coder) keep(next *staged, data []byte) error {
	blob := Blob{CRC32: crc32.ChecksumIEEE(data), Length: int64(len(data))}
	if len(data) <= plainMost {
		blob.plain = data
	} else {
		c.packed.Reset()
		c.w.Reset(&c.packed)
		if _, err := c.w.Write(data); err != nil {
			return err
		}
		if err := c.w.Close(); err != nil {
			return err
		}
		blob.Deflated = c.packed.Bytes()
	}
	c.blob = putBlob(c.blob[:0], blob)
	next.blob = c.blob
	return nil
}

// encodeAny encodes in the wanted format, or as N-Triples if that format cannot carry the graph. It
// falls back to N-Triples after any error of the wanted format: a representation in another format
// is better than none. An error beyond a limit of the format is a fault of the encoder, and logged.
func (c *coder) encodeAny(it *item) ([]byte, rdfres.Format, error) {
	data, err := tryEncode(c.encode, c.o.Format, it.entity, it.triples)
	if err == nil {
		return data, c.o.Format, nil
	}
	if c.o.Format == rdfres.NTriples {
		return nil, "", err
	}
	if !errors.Is(err, rdfres.ErrCannotCarry) {
		c.log.Warn("description is kept as N-Triples", "entity", it.entity, "error", err)
	}
	data, again := tryEncode(c.encode, rdfres.NTriples, it.entity, it.triples)
	if again != nil {
		return nil, "", errors.Join(err, again)
	}
	return data, rdfres.NTriples, nil
}

// tryEncode encodes; a panic in an encoder is the fault of one entity, not the end of
// the process.
func tryEncode(encode encoder, f rdfres.Format, entity string, ts []rdfres.Triple) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("encode as %s: panic: %v", f, r)
		}
	}()
	if data, err = encode(f, entity, ts); err != nil {
		return nil, fmt.Errorf("encode as %s: %w", f, err)
	}
	return data, nil
}

func strictlySorted(ts []rdfres.Triple) bool {
	for i := 1; i < len(ts); i++ {
		if ts[i-1].Compare(ts[i]) >= 0 {
			return false
		}
	}
	return true
}
