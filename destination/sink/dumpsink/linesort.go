package dumpsink

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/rsbridge/rsbridge/internal/extsort"
)

// lineSorter sorts the lines of N-Triples in canonical form, and leaves doubles
// out. Lines of one subject in order, as descriptions come, are sorted as one block. The lines of one subject stand together in any
// order of lines, because no subject with the space behind it begins another.
type lineSorter struct {
	dir    string
	blocks *extsort.Sorter
}

const (
	blockBytes = 64 << 10 // of a block
	sameBytes  = 8 << 20  // of the lines of one subject, sorted in memory
)

// newLineSorter uses about memory bytes and spills below dir.
func newLineSorter(dir string, memory int64) (*lineSorter, error) {
	blocks, err := extsort.New(dir, memory)
	return &lineSorter{dir: dir, blocks: blocks}, err
}

// close removes the spilled files.
func (s *lineSorter) close() error { return s.blocks.Close() }

// subjectOf is the subject of a line, with the space behind it.
func subjectOf(line []byte) []byte { return line[:bytes.IndexByte(line, ' ')+1] }

// firstLine is that of a text, with its newline.
func firstLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// add takes lines, each with its newline.
func (s *lineSorter) add(lines []byte) error {
	for len(lines) > 0 {
		last := firstLine(lines)
		n, subject := len(last), subjectOf(last)
		for n < blockBytes {
			line := firstLine(lines[n:])
			if !bytes.HasPrefix(line, subject) || bytes.Compare(last, line) >= 0 {
				break
			}
			n, last = n+len(line), line
		}
		if err := addText(s.blocks, lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// addText adds lines to come back in the order of their bytes.
func addText(to *extsort.Sorter, text []byte) error {
	var key [24]byte
	copy(key[:], text)
	return to.Add(key[:], text)
}

// write writes all lines and tells how many there are. It may be called once.
func (s *lineSorter) write(w io.Writer) (lines int64, err error) {
	var (
		same   []byte          // blocks of one subject
		blocks int             // how many
		large  *extsort.Sorter // earlier lines of the subject, if they are many
	)
	toLarge := func() (err error) {
		if large == nil {
			large, err = extsort.New(s.dir, sameBytes)
		}
		for line := range bytes.Lines(same) {
			if err == nil {
				err = addText(large, line)
			}
		}
		same = same[:0]
		return err
	}
	put := func(text []byte) error {
		lines += int64(bytes.Count(text, newline))
		_, err := w.Write(text)
		return err
	}
	subject := func() error { // writes one
		switch {
		case large != nil:
			if err := toLarge(); err != nil {
				return err
			}
			var last []byte
			for rec, err := range large.Sort() {
				if err == nil && !bytes.Equal(rec.Value, last) {
					last = append(last[:0], rec.Value...)
					err = put(rec.Value)
				}
				if err != nil {
					return err
				}
			}
			err := large.Close()
			large = nil
			return err
		case blocks > 1:
			sorted := slices.SortedFunc(bytes.Lines(same), bytes.Compare)
			for _, line := range slices.CompactFunc(sorted, bytes.Equal) {
				if err := put(line); err != nil {
					return err
				}
			}
			return nil
		}
		return put(same)
	}
	defer func() {
		if large != nil {
			err = errors.Join(err, large.Close())
		}
	}()
	var of []byte
	for rec, err := range s.blocks.Sort() {
		if err != nil {
			return lines, err
		}
		if blocks > 0 && !bytes.HasPrefix(rec.Value, of) {
			if err := subject(); err != nil {
				return lines, err
			}
			same, blocks = same[:0], 0
		}
		if blocks == 0 {
			of = append(of[:0], subjectOf(rec.Value)...)
		}
		if same, blocks = append(same, rec.Value...), blocks+1; len(same) > sameBytes {
			if err := toLarge(); err != nil {
				return lines, err
			}
		}
	}
	return lines, subject()
}
