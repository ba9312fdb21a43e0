package sparql

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// lineReader reads lines of any length.
type lineReader struct {
	in    *bufio.Reader
	long  []byte
	lines int64
}

// line reads a line without its newline; whole tells whether it had one. io.EOF
// only at the very end.
func (r *lineReader) line() (b []byte, whole bool, err error) {
	b, err = r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], b...)
		for err == bufio.ErrBufferFull {
			b, err = r.in.ReadSlice('\n')
			r.long = append(r.long, b...)
		}
		b = r.long
	}
	if err != nil && (err != io.EOF || len(b) == 0) {
		return nil, false, err
	}
	r.lines++
	if err == io.EOF {
		return b, false, nil
	}
	b = b[:len(b)-1]
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b, true, nil
}

// tsvReader reads SPARQL 1.1 results as tab-separated values (W3C
// Recommendation, section 4): a line of ?variables, then a line for each row.
type tsvReader struct {
	lineReader
	row  Row
	cols []terms
}

// line reads a line; one without its newline was cut.
func (r *tsvReader) line() ([]byte, error) {
	b, whole, err := r.lineReader.line()
	if err == nil && !whole {
		return nil, fmt.Errorf("%w: in the middle of line %d", ErrTruncated, r.lines)
	}
	return b, err
}

// newTSV reads the head. errNotW3CTSV when it is another dialect.
func newTSV(in io.Reader) (*tsvReader, []string, error) {
	r := &tsvReader{lineReader: lineReader{in: bufio.NewReaderSize(in, 64<<10)}}
	head, err := r.line()
	if err == io.EOF {
		return nil, nil, fmt.Errorf("%w: no line of variables", ErrTruncated)
	}
	if err != nil {
		return nil, nil, err
	}
	var vars []string
	if len(head) > 0 {
		for f := range bytes.SplitSeq(head, []byte{'\t'}) {
			if len(f) < 2 || (f[0] != '?' && f[0] != '$') {
				return nil, nil, fmt.Errorf("%w: its head is %q", errNotW3CTSV, clip(head))
			}
			vars = append(vars, string(f[1:]))
		}
	}
	r.row = make(Row, len(vars))
	r.cols = make([]terms, len(vars))
	return r, vars, nil
}

// next reads a row; io.EOF after the last.
func (r *tsvReader) next() (Row, error) {
	b, err := r.line()
	if err != nil {
		return nil, err
	}
	for i := range r.row {
		f := b
		if i < len(r.row)-1 {
			at := bytes.IndexByte(b, '\t')
			if at < 0 {
				return nil, fmt.Errorf("line %d has %d fields, want %d: %q", r.lines, i+1, len(r.row), clip(b))
			}
			f, b = b[:at], b[at+1:]
		}
		if len(f) == 0 {
			r.row[i] = ""
			continue
		}
		t, err := r.cols[i].get(f, parseTerm)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.lines, err)
		}
		r.row[i] = t
	}
	return r.row, nil
}
