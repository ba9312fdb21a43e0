package embedstore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The journal tells what each of the last commits touched: it goes into the store with the commit
// itself. Each commit has a number and a random mark, so a place in the journal of a restored store
// is not taken for one in this.
const (
	keptCommits = 4096
	// maxPlaces bounds the places of one commit. The record of one with more, or of a bulk write, has none.
	maxPlaces = 2000
	// maxAncestors bounds the blank nodes above one.
	maxAncestors = 10_000
)

// commitMark is a place in the journal.
type commitMark struct {
	number, mark uint64
}

// commits are the place of the last commit, owned by the writer, and a channel that the next one
// closes.
type commits struct {
	last commitMark
	news chan struct{}
}

func (m commitMark) String() string { return fmt.Sprintf("%d-%x", m.number, m.mark) }

func parseMark(s string) (m commitMark, ok bool) {
	n, err := fmt.Sscanf(s, "%d-%x", &m.number, &m.mark)
	return m, n == 2 && err == nil && m.String() == s
}

func (m commitMark) next() commitMark { return commitMark{m.number + 1, rand.Uint64()} }

func (m commitMark) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, m.number), m.mark)
}

// readMark reads the place of the last commit: zero in a store without any so far.
func readMark(v view) (m commitMark, err error) {
	val, ok, err := v.get(keyCommits)
	if err == nil && ok && len(val) == 16 {
		m = commitMark{binary.BigEndian.Uint64(val), binary.BigEndian.Uint64(val[8:])}
	}
	return m, err
}

func journalKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceJournal}, number)
}

const markBytes = 8

// withoutPlaces is the record of a commit with unknown places: its mark and one byte. What comes after
// it is known again.
func (m commitMark) withoutPlaces() []byte {
	return append(binary.BigEndian.AppendUint64(nil, m.mark), 0)
}

// note keeps the places of a changed quad: its subject, and a blank object, each with the graph.
func (t *txn) note(q *quad) {
	places := [][2]id{{q[posS], q[posG]}}
	if q[posO].kind() == idBlank {
		places = append(places, [2]id{q[posO], q[posG]})
	}
	for _, p := range places {
		if len(t.places) <= maxPlaces {
			t.places[p] = struct{}{}
		}
	}
}

// journal adds the record of the commit.
func (t *txn) journal(m commitMark) error {
	if err := t.set(keyCommits, m.bytes()); err != nil {
		return err
	}
	rec := m.withoutPlaces()
	if len(t.places) <= maxPlaces && !t.wiped {
		rec = rec[:markBytes]
		for p := range t.places {
			rec = appendID(appendID(rec, p[0]), p[1])
		}
	}
	if err := t.set(journalKey(m.number), rec); err != nil {
		return err
	}
	if m.number > keptCommits {
		return t.del(journalKey(m.number - keptCommits))
	}
	return nil
}

// committed tells waiting readers of the journal of a commit; the caller holds the right to write.
func (s *Store) committed(m commitMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits.last = m
	close(s.commits.news)
	s.commits.news = make(chan struct{})
}

// Committed is closed by the next commit.
func (s *Store) Committed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits.news
}

// TouchedSince gives what commits have touched after a place in the journal, and the place of the
// last one. A place outside of the journal is unknown, "" too. Graphs of skip are left out.
func (s *Store) TouchedSince(place string, skip func(graph string) bool) (t Touched, last string, err error) {
	snap, err := s.Snapshot()
	if err != nil {
		return t, "", err
	}
	defer func() {
		if cerr := snap.Close(); err == nil {
			err = cerr
		}
	}()
	now, err := readMark(snap.v)
	if err != nil {
		return t, "", err
	}
	after, ok := parseMark(place)
	if !ok || after.number > now.number || now.number-after.number >= keptCommits {
		return Touched{Unknown: true}, now.String(), nil
	}
	if after == now {
		return t, now.String(), nil
	}
	places, err := snap.places(after, now)
	if err != nil || places == nil {
		return Touched{Unknown: true}, now.String(), err
	}
	t, err = snap.touched(places, skip)
	return t, now.String(), err
}

// places are those of the commits after a mark, until another; nil for a gap.
func (n *Snapshot) places(after, now commitMark) (map[[2]id]struct{}, error) {
	all := map[[2]id]struct{}{}
	for at := after.number; at <= now.number; at++ {
		if at == 0 {
			continue // the store was new
		}
		rec, ok, err := n.v.get(journalKey(at))
		if err != nil || !ok || len(rec) < markBytes {
			return nil, err
		}
		if at == after.number {
			if binary.BigEndian.Uint64(rec) != after.mark {
				return nil, nil
			}
			continue
		}
		if rec = rec[markBytes:]; len(rec)%(2*idBytes) != 0 {
			return nil, nil
		}
		for ; len(rec) > 0; rec = rec[2*idBytes:] {
			all[[2]id{getID(rec), getID(rec[idBytes:])}] = struct{}{}
		}
	}
	return all, nil
}

// touched names the entities at these places: the subjects, and the owners of the blank nodes.
func (n *Snapshot) touched(places map[[2]id]struct{}, skip func(graph string) bool) (t Touched, err error) {
	r := newTermReader(n.v, nil)
	defer r.close()
	subjects, graphs, blanks := map[string]bool{}, map[string]bool{}, map[rdfres.Term]bool{}
	for p := range places {
		term, err := r.term(p[0])
		if err != nil {
			return t, err
		}
		graph, err := r.term(p[1])
		if err != nil {
			return t, err
		}
		term, graph = strings.Clone(term), strings.Clone(iriOf(graph))
		switch {
		case skip != nil && skip(graph):
			continue
		case p[0].kind() == idBlank:
			blanks[rdfres.Term(term)] = true
		default:
			subjects[iriOf(term)] = true
		}
		graphs[graph] = true
	}
	t.Blank = len(blanks) > 0
	for b := range blanks {
		owned, err := n.owners(b, subjects)
		if err != nil {
			return t, err
		}
		t.Unknown = t.Unknown || !owned
	}
	t.Subjects, t.Graphs = slices.Sorted(maps.Keys(subjects)), slices.Sorted(maps.Keys(graphs))
	return t, nil
}

// owners adds the IRIs from which triples lead to a blank node, over blank nodes alone. It tells
// whether one of them does so in each graph with triples of the node.
func (n *Snapshot) owners(of rdfres.Term, into map[string]bool) (owned bool, err error) {
	graphs := map[rdfres.Term]bool{} // with the node as a subject, or under a blank node
	for q, err := range n.Match(Pattern{S: of, AnyGraph: true}) {
		if err != nil {
			return false, err
		}
		graphs[q.G] = true
	}
	up := func(p Pattern) (found bool, err error) {
		seen, todo := map[rdfres.Term]bool{of: true}, []rdfres.Term{of}
		for len(todo) > 0 {
			p.O, todo = todo[0], todo[1:]
			for q, err := range n.Match(p) {
				if err != nil {
					return false, err
				}
				if p.AnyGraph && p.O == of && q.S.Kind() == rdfres.KindBlank {
					graphs[q.G] = true
				}
				switch {
				case q.S.Kind() == rdfres.KindIRI:
					into[q.S.IRI()], found = true, true
				case !seen[q.S] && len(seen) == maxAncestors:
					return false, nil
				case !seen[q.S]:
					seen[q.S] = true
					todo = append(todo, q.S)
				}
			}
		}
		return found, nil
	}
	if owned, err = up(Pattern{AnyGraph: true}); err != nil {
		return false, err
	}
	for g := range graphs {
		if owned, err = up(Pattern{G: g}); err != nil || !owned {
			return false, err
		}
	}
	return owned || len(graphs) == 0, nil
}
