package embedstore

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// termReader turns ids into terms. It belongs to one goroutine. Terms that come
// again and again (predicates, classes, the subject of the last rows) are kept
// in a table that grows with use up to a fixed size.
type termReader struct {
	v     view
	local *localTerms
	cur   cursor
	at    id // number of the term that cur stands on

	slots []termSlot
	miss  int

	missing []missingTerm
	arena   []byte
}

type termSlot struct {
	id   id
	term string
}

type missingTerm struct {
	id   id
	cell int
}

const (
	minSlots = 1 << 8
	maxSlots = 1 << 15
	// keptTerm is the longest term that is kept.
	keptTerm = 256
)

func newTermReader(v view, local *localTerms) *termReader {
	return &termReader{v: v, local: local, slots: make([]termSlot, minSlots)}
}

func (r *termReader) close() {
	if r.cur != nil {
		r.cur.Close()
		r.cur = nil
	}
}

func (r *termReader) slot(i id) *termSlot {
	h := uint64(i>>2) * 0x9E3779B97F4A7C15
	return &r.slots[h>>32&uint64(len(r.slots)-1)]
}

func (r *termReader) keep(i id, term string) {
	r.miss++
	if r.miss > 2*len(r.slots) && len(r.slots) < maxSlots {
		old := r.slots
		r.slots = make([]termSlot, 4*len(old))
		for _, s := range old {
			if s.id != 0 {
				*r.slot(s.id) = s
			}
		}
		r.miss = 0
	}
	if len(term) <= keptTerm {
		*r.slot(i) = termSlot{i, term}
	}
}

// term is the term of one id; "" for 0.
func (r *termReader) term(i id) (string, error) {
	if i == 0 {
		return "", nil
	}
	if i.isLocal() {
		return r.local.term(i), nil
	}
	if i.kind() == idBlank {
		return string(appendBlank(nil, i)), nil
	}
	if s := r.slot(i); s.id == i {
		return s.term, nil
	}
	var key [6]byte
	key[0] = spaceTerm
	putID(key[1:], i)
	val, ok, err := r.v.get(key[:])
	if err != nil {
		return "", err
	}
	if !ok {
		return "", errNoTerm(i)
	}
	t := unsafe.String(unsafe.SliceData(val), len(val)) // val is a copy of ours
	r.keep(i, t)
	return t, nil
}

func errNoTerm(i id) error {
	return fmt.Errorf("the store is damaged: no term for id %d", uint64(i))
}

// resolve writes the terms of many ids to out. The strings are valid until the
// next resolve. Ids that are not at hand are read in one walk in their order,
// which is the order in which the terms came into the store.
func (r *termReader) resolve(ids []id, out []string) error {
	r.missing = r.missing[:0]
	r.arena = r.arena[:0]
	for n, i := range ids {
		switch {
		case i == 0:
			out[n] = ""
		case i.isLocal():
			out[n] = r.local.term(i)
		case i.kind() == idBlank:
			out[n] = ""
		default:
			if s := r.slot(i); s.id == i {
				out[n] = s.term
			} else {
				r.missing = append(r.missing, missingTerm{i, n})
			}
		}
	}
	if err := r.fetch(out); err != nil {
		return err
	}
	for n, i := range ids {
		if i.kind() == idBlank && !i.isLocal() && i != 0 {
			out[n] = r.stash(func(b []byte) []byte { return appendBlank(b, i) })
		}
	}
	return nil
}

// stash puts bytes into the arena. A full arena is left to its strings.
func (r *termReader) stash(fill func([]byte) []byte) string {
	if cap(r.arena)-len(r.arena) < 64 {
		r.arena = make([]byte, 0, max(64<<10, 2*64))
	}
	from := len(r.arena)
	r.arena = fill(r.arena)
	return unsafe.String(unsafe.SliceData(r.arena[from:]), len(r.arena)-from)
}

func (r *termReader) stashBytes(v []byte) string {
	if len(v) == 0 {
		return ""
	}
	if cap(r.arena)-len(r.arena) < len(v) {
		r.arena = make([]byte, 0, max(64<<10, len(v)))
	}
	from := len(r.arena)
	r.arena = append(r.arena, v...)
	return unsafe.String(&r.arena[from], len(v))
}

func (r *termReader) fetch(out []string) error {
	if len(r.missing) == 0 {
		return nil
	}
	slices.SortFunc(r.missing, func(a, b missingTerm) int {
		if a.id != b.id {
			if a.id < b.id {
				return -1
			}
			return 1
		}
		return a.cell - b.cell
	})
	if r.cur == nil {
		c, err := r.v.iter(spaceTerm)
		if err != nil {
			return err
		}
		r.cur = c
	}
	for n := 0; n < len(r.missing); n++ {
		m := r.missing[n]
		if n > 0 && r.missing[n-1].id == m.id {
			out[m.cell] = out[r.missing[n-1].cell]
			continue
		}
		if err := r.moveTo(m.id); err != nil {
			return err
		}
		val := r.cur.Value()
		if m.id.kind() == idIRI && len(val) <= keptTerm {
			t := string(val)
			r.keep(m.id, t)
			out[m.cell] = t
		} else {
			out[m.cell] = r.stashBytes(val)
		}
	}
	return nil
}

// moveTo places the cursor on the term of i.
func (r *termReader) moveTo(i id) error {
	if r.at != 0 && r.at <= i && i-r.at <= 8<<2 && r.cur.Valid() {
		for r.at < i {
			if !r.cur.Next() {
				break
			}
			r.at = getID(r.cur.Key()[1:])
		}
		if r.at == i && r.cur.Valid() {
			return nil
		}
	}
	var key [6]byte
	key[0] = spaceTerm
	putID(key[1:], i)
	r.at = 0
	if !r.cur.SeekGE(key[:]) {
		if err := r.cur.Error(); err != nil {
			return fmt.Errorf("read the store: %w", err)
		}
		return errNoTerm(i)
	}
	r.at = getID(r.cur.Key()[1:])
	if r.at != i {
		return errNoTerm(i)
	}
	return nil
}

// localTerms are the terms that one query has made or named and the store does
// not hold. Their ids have idLocal set.
type localTerms struct {
	ids   map[string]id
	terms []string
	bytes int64
}

func (l *localTerms) term(i id) string {
	if i&idFresh != 0 {
		return "_:q" + strconv.FormatUint(uint64(i&^(idLocal|idFresh))>>2, 10)
	}
	return l.terms[(i&^idLocal)>>2]
}

// intern gives term an id of this query.
func (l *localTerms) intern(term string) id {
	if i, ok := l.ids[term]; ok {
		return i
	}
	if l.ids == nil {
		l.ids = map[string]id{}
	}
	i := idLocal | id(len(l.terms))<<2 | kindOf(term)
	l.ids[term] = i
	l.terms = append(l.terms, term)
	l.bytes += int64(len(term)) + 64
	return i
}
