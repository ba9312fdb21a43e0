package destination

import (
	"errors"
	"testing"
)

// After the state was put back its writes have numbers that the mirror has had before: a
// backup of the mirror from then is not taken for what it is now.
func TestNumbersOfWritesComeAgain(t *testing.T) {
	for _, layout := range []string{"single", "per-entity", "put whole"} {
		t.Run(layout, func(t *testing.T) {
			b := newQuietBench(t)
			switch layout {
			case "per-entity":
				b.perEntity()
			case "put whole":
				b.mir.noUpdate = true
			}
			fill(b.src, 4)
			b.sync()
			state, mirror := b.backup(), b.mir.backup()
			b.src.put("e1.nt", nt("e1", "of then"))
			b.src.put("new.nt", nt("new", "of then"))
			b.sync()
			then := b.mir.backup()
			b.restore(state)
			b.mir.restore(mirror)
			b.src.remove("new.nt")
			b.src.put("e1.nt", nt("e1", "now"))
			b.sync()
			b.equalAll()
			b.mir.restore(then)
			b.sync()
			b.equalAll()
		})
	}
}

// What a dump brings is a write that counts, so that records of before it are found out.
func TestRestoredStateOfDumps(t *testing.T) {
	b := newQuietBench(t)
	b.few = 1 // it goes by Graph Store POST
	s := b.src
	s.list, s.changes, s.dump = false, false, true
	fill(s, 4)
	b.sync()
	state := b.backup()
	s.put("new.nt", nt("new", "1"))
	b.sync()
	b.restore(state)
	s.remove("new.nt")
	b.sync()
	b.equal()
}

// An audit of a restored state finds another store than recorded. That is no damage of the store:
// the next sync compares everything, wherever a repair before it was cut off.
func TestAuditOfARestoredState(t *testing.T) {
	for n := range 10 {
		b := newBench(t)
		fill(b.src, 4)
		b.sync()
		pairs := b.backup()
		b.src.put("e1.nt", nt("e1", "later"))
		b.src.put("new.nt", nt("new", "x"))
		b.sync()
		b.restore(pairs)
		b.audited("store")
		d := b.open()
		d.mem.Crash = cutAfter(n)
		if _, err := d.Audit(t.Context(), AuditOptions{Repair: true}); err != nil && !errors.Is(err, errInjected) {
			t.Errorf("cut at %d: %v", n, err)
		}
		if rep := b.sync(); !rep.InSync {
			t.Errorf("cut at %d: %+v", n, rep)
		}
		b.equal()
	}
}
