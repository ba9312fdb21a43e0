package audit

import (
	"context"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// partHashes is how many triples of a subject, in a row, are one record.
const partHashes = 256

// byHash compares all subjects by the hashes of their triples. A subject with triples
// without an owner, or with more than are held in memory, is left for later; other
// differences are worked on here.
func (c *Comparison) byHash(ctx context.Context, snap kv.Reader, later *subjectList) error {
	sorter, err := extsort.New(c.Config.TempDir, c.Config.MemoryBytes)
	if err != nil {
		return err
	}
	defer sorter.Close()
	if err := c.readHashes(ctx, sorter, later); err != nil {
		return err
	}
	nextOwned, stopOwned := iter.Pull2(c.Groups(ctx, snap))
	defer stopOwned()
	g, gerr, gok := nextOwned()
	n := int64(0)
	compare := func(subj ledger.Hash, hashes []ledger.Hash) error { // first of the owned alone
		for gok && gerr == nil && string(g.Subj[:]) < string(subj[:]) {
			if err := c.hashesDiffer(ctx, g, nil, later); err != nil {
				return err
			}
			g, gerr, gok = nextOwned()
		}
		if gok && gerr != nil {
			return gerr
		}
		if n++; n%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.Options.Progress("subjects", n, 0)
		}
		if !gok || g.Subj != subj {
			return c.hashesDiffer(ctx, &keep.Group{Subj: subj}, hashes, later)
		}
		if err := c.hashesDiffer(ctx, g, hashes, later); err != nil {
			return err
		}
		g, gerr, gok = nextOwned()
		return nil
	}
	var subj ledger.Hash
	var hashes []ledger.Hash
	for rec, err := range sorter.Sort() {
		if err != nil {
			return err
		}
		if s := ledger.Hash(rec.Key); s != subj && len(hashes) > 0 {
			if err := compare(subj, hashes); err != nil {
				return err
			}
			hashes = hashes[:0]
		}
		subj = ledger.Hash(rec.Key)
		if len(hashes) > c.Most {
			continue // it is left for later
		}
		for h := range slices.Chunk(rec.Value, 16) {
			hashes = append(hashes, ledger.Hash(h))
		}
	}
	if len(hashes) > 0 {
		if err := compare(subj, hashes); err != nil {
			return err
		}
	}
	for gok {
		if gerr != nil {
			return gerr
		}
		if err := c.hashesDiffer(ctx, g, nil, later); err != nil {
			return err
		}
		g, gerr, gok = nextOwned()
	}
	return nil
}

// readHashes streams the mirror into a sorter: key subject hash, value the hashes of
// triples in normal form. Most stores give the triples of a subject in a row: they
// are one record. Blank nodes are left for later: nobody owns what they are the subject
// of, and in another answer they may have other labels.
func (c *Comparison) readHashes(ctx context.Context, sorter *extsort.Sorter, later *subjectList) error {
	var graph string
	var subject rdfres.Term
	var subj ledger.Hash
	var part []byte
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		err := sorter.Add(subj[:], part)
		part = part[:0]
		return err
	}
	err := c.read(ctx, func(in string, t, normal rdfres.Triple) error {
		if normal.S.Kind() == rdfres.KindBlank {
			later.blanks = true
			return nil
		}
		if subject != normal.S || graph != in || len(part) == 16*partHashes {
			if err := flush(); err != nil {
				return err
			}
		}
		if subject != normal.S || graph != in {
			graph, subject, subj = in, normal.S, sink.SubjectHash(in, normal.S)
		}
		h := sink.TripleHash(in, normal)
		part = append(part, h[:]...)
		if c.saw != nil {
			c.saw(h, t)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// hashesDiffer compares one subject; hashes are those of its triples in the mirror, in
// any order.
func (c *Comparison) hashesDiffer(ctx context.Context, g *keep.Group, hashes []ledger.Hash, later *subjectList) error {
	if len(hashes) == 0 && !slices.ContainsFunc(g.Owners, func(o ledger.Owner) bool { return o.Dest == c.Dest }) {
		return nil // in a graph of another destination
	}
	if len(hashes) > c.Most {
		return later.Add(g.Subj[:])
	}
	slices.SortFunc(hashes, ledger.Hash.Compare)
	hashes = slices.Compact(hashes)
	var missing []ledger.Hash
	var extra []keep.Held
	owned := g.Owned
	for _, h := range hashes {
		for len(owned) > 0 && string(owned[:16]) < string(h[:]) {
			missing = append(missing, ledger.Hash(owned))
			owned = owned[16:]
		}
		if len(owned) > 0 && string(owned[:16]) == string(h[:]) {
			owned = owned[16:]
		} else {
			extra = append(extra, keep.Held{Hash: h})
		}
	}
	for h := range slices.Chunk(owned, 16) {
		missing = append(missing, ledger.Hash(h))
	}
	if len(missing)+len(extra) == 0 {
		return nil
	}
	if len(extra) > 0 { // the store's own forms of others need not be read again
		tolerated, err := c.Tolerated(ctx, g.Subj)
		if err != nil {
			return err
		}
		made := g.Explained(tolerated, missing, extra)
		if slices.ContainsFunc(extra, func(e keep.Held) bool { return !made[e.Hash] }) {
			return later.Add(g.Subj[:])
		}
	}
	return c.differ(ctx, g, missing, extra, false)
}

// subjectList is the subjects to look at again, in order.
type subjectList struct {
	*extsort.Keys
	blanks bool // and all blank nodes
}

func (l *subjectList) empty() bool { return l.Len() == 0 && !l.blanks }
