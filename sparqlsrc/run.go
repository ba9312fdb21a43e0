package sparqlsrc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/rdfres"
)

// runBytes is how much of a subject's predicates and objects is in one record.
const runBytes = 32 << 10

// run collects the predicates and objects of one subject.
type run struct {
	subject []byte
	key     rdfres.Digest
	long    bool // they are more than it holds
	buf     []byte
	ends    []int
}

func (r *run) add(p, o []byte) {
	r.buf = append(append(append(r.buf, p...), ' '), o...)
	r.ends = append(r.ends, len(r.buf))
}

func (r *run) clear() {
	if r.ends = r.ends[:0]; cap(r.buf) > 2*runBytes { // of one very long literal
		r.buf = nil
	}
	r.buf = r.buf[:0]
}

func (r *run) at(i int) []byte { return piece(r.buf, r.ends, i) }

// piece is the part of buf that ends at ends[i].
func piece[B []byte | string](buf B, ends []int, i int) B {
	from := 0
	if i > 0 {
		from = ends[i-1]
	}
	return buf[from:ends[i]]
}

// appendRecord appends the record of the entity sorter: recordRun, the subject,
// then each predicate and object, as "P O", each after its length.
func (r *run) appendRecord(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, recordRun), uint64(len(r.subject)))
	dst = append(dst, r.subject...)
	for i := range r.ends {
		line := r.at(i)
		dst = binary.AppendUvarint(dst, uint64(len(line)))
		dst = append(dst, line...)
	}
	return dst
}

// lineSet puts the lines of one entity in order which came in runs: in memory, or
// on disk where they are many.
type lineSet struct {
	dir    string
	memory int64
	buf    []byte // lines, each with its flag behind it
	ends   []int
	order  []int
	disk   *extsort.Sorter
}

func (l *lineSet) reset() error {
	l.buf, l.ends = l.buf[:0], l.ends[:0]
	return l.close()
}

func (l *lineSet) close() (err error) {
	if l.disk != nil {
		err = l.disk.Close()
		l.disk = nil
	}
	return err
}

// empty tells that there is no run, and so nothing to put in order.
func (l *lineSet) empty() bool { return len(l.ends) == 0 && l.disk == nil }

var errRun = errors.New("a record of the entity sorter cannot be read")

// addRun adds what appendRecord has made, without its first byte. It gives the
// subject.
func (l *lineSet) addRun(record []byte) (subject []byte, err error) {
	subject, record, ok := cutBytes(record)
	for ok && len(record) > 0 {
		var rest []byte
		if rest, record, ok = cutBytes(record); ok {
			l.buf = append(append(append(append(l.buf, subject...), ' '), rest...), flagOwn)
			err = l.added()
		}
		if err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, errRun
	}
	return subject, nil
}

// add adds a line with its flag.
func (l *lineSet) add(line []byte) error {
	l.buf = append(l.buf, line...)
	return l.added()
}

func (l *lineSet) added() error {
	l.ends = append(l.ends, len(l.buf))
	if l.disk == nil {
		if int64(len(l.buf)) < l.memory {
			return nil
		}
		var err error
		if l.disk, err = extsort.New(l.dir, l.memory); err != nil {
			return err
		}
	}
	for i := range l.ends {
		line := piece(l.buf, l.ends, i)
		if err := l.disk.Add(nil, line); err != nil {
			return err
		}
	}
	l.buf, l.ends = l.buf[:0], l.ends[:0]
	return nil
}

// inOrder yields the lines with their flags, in the order of the sorter.
func (l *lineSet) inOrder() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if l.disk != nil {
			for r, err := range l.disk.Sort() {
				if !yield(r.Value, err) {
					return
				}
			}
			return
		}
		l.order = l.order[:0]
		for i := range l.ends {
			l.order = append(l.order, i)
		}
		compare := func(a, b int) int { return bytes.Compare(piece(l.buf, l.ends, a), piece(l.buf, l.ends, b)) }
		if !slices.IsSortedFunc(l.order, compare) {
			slices.SortFunc(l.order, compare)
		}
		for _, i := range l.order {
			if !yield(piece(l.buf, l.ends, i), nil) {
				return
			}
		}
	}
}

// cutBytes takes what stands after its length from the beginning of b.
func cutBytes(b []byte) (part, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}
