package publish

import "slices"

const (
	// mostLists is the number of Change Lists beyond which older ones are merged: far below the
	// 50,000 allowed in an index.
	mostLists = 20000
	// finestLists of the newest stay as they are: mirrors read them.
	finestLists = 1000
	// rotateBytes closes a list; its last change may bring it some further.
	rotateBytes = 40 << 20
	// mergedEntries and mergedBytes bound a merged list; 50,000 and 50 MB are allowed.
	mergedEntries = 40000
	mergedBytes   = 48_000_000
)

// lastNumber is the number of the last list merged into this one.
func (l *listRecord) lastNumber() uint64 { return max(l.Number, l.Through) }

// mergeLists merges older Change Lists if there are too many: nothing is refused and nothing is
// lost. A merged list has an address of its own; the addresses of its parts redirect to it. It
// leaves lists alone that wait for their Change Dump package, and those with very many entries. A
// list of nothing but new and changed files waits for no package.
func (w *generationWriter) mergeLists() {
	s := w.set
	if len(w.lists) <= s.sizes.mostLists {
		return
	}
	packaged := ^uint64(0)
	if s.offersChangeDump() {
		packaged = 0
		if have := *s.changeDumps.Load(); len(have) > 0 {
			packaged = have[len(have)-1].Number
		}
	}
	waits := func(l *listRecord) bool { return l.Number > packaged && l.Packable > 0 }
	merge := len(w.lists) - min(finestLists, s.sizes.mostLists/2)
	var out []listRecord
	for _, l := range w.lists[:merge] {
		if n := len(out); n > 0 && l.closed() && !waits(&l) && !waits(&out[n-1]) {
			into := &out[n-1]
			if into.Entries+l.Entries <= mergedEntries && into.Bytes+l.Bytes <= mergedBytes {
				into.Half = listHalf{}
				into.Through, into.Until, into.Last, into.LastAt = l.lastNumber(), l.Until, l.Last, l.LastAt
				into.Entries += l.Entries
				into.Bytes += l.Bytes
				into.Packable += l.Packable
				if into.First.IsZero() {
					into.First = l.First
				}
				w.batch.Delete(keyOf('l', l.Number))
				delete(w.dirty, l.Number)
				w.dirty[into.Number] = true
				continue
			}
		}
		out = append(out, l)
	}
	if merged := merge - len(out); merged > 0 {
		s.p.log.Info("merged older Change Lists", "set", s.cfg.Name, "merged", merged, "lists", len(w.lists)-merged)
	}
	w.lists = slices.Concat(out, w.lists[merge:])
}
