package sparql

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

// tableType is the binary form of query results of RDF4J. It costs the store less than JSON, is a
// seventh of its size, and marks its end. Its description is the comment of
// BinaryQueryResultConstants in the sources of RDF4J.
const tableType = "application/x-binary-rdf-results-table"

// The records of a table, each after its byte. STRING is a length in four bytes,
// the highest first, and as many bytes of UTF-8; NUMBER four bytes.
const (
	tableUnbound   = 0
	tableRepeat    = 1   // the value of this column in the row before
	tableNamespace = 2   // NUMBER STRING: the meaning of the number from here on; no value
	tableName      = 3   // NUMBER STRING: the IRI beginning with that namespace
	tableIRI       = 4   // STRING
	tableBlank     = 5   // STRING
	tablePlain     = 6   // STRING
	tableLang      = 7   // STRING, STRING the language tag
	tableTyped     = 8   // STRING, then a name or an IRI
	tableEmptyRow  = 9   // all columns unbound
	tableTriple    = 10  // a triple as a term
	tableError     = 126 // a byte, STRING: the store gave up
	tableEnd       = 127
)

// maxTableString bounds one string in memory, maxNamespaces the namespaces of a table, since the
// store keeps them too: with a namespace for each IRI, JSON is the better form.
const (
	maxTableString = 256 << 20 // bytes, as a line of N-Triples
	maxNamespaces  = 16 << 20  // bytes
	rowsANamespace = 16        // at least, once there are a thousand
)

// tableReader reads a table: "BRTR", the version as a NUMBER, the number of columns, their names,
// records. It knows the versions 3 and 4, with one form.
type tableReader struct {
	in         *bufio.Reader
	row        Row
	cols       []terms
	raw        []byte // the record of a value
	full       []byte // an IRI with its namespace
	made       []byte // a term
	namespaces [][]byte
	size       int // of them
	rows       int64
	ended      bool
	unbound    Row // an empty row; the record after it repeats the row before it
}

func newTable(in io.Reader) (*tableReader, []string, error) {
	r := &tableReader{in: bufio.NewReaderSize(in, 64<<10)}
	head := make([]byte, 12)
	if _, err := io.ReadFull(r.in, head); err != nil {
		return nil, nil, cutTable(err)
	}
	version, columns := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "BRTR" || version != 3 && version != 4 || columns < 1 || columns > 1000 {
		return nil, nil, fmt.Errorf("no table of binary results of version 3 or 4: it begins with %q", head)
	}
	vars := make([]string, 0, columns)
	for range columns {
		r.raw = r.raw[:0]
		if err := r.string(); err != nil {
			return nil, nil, err
		}
		vars = append(vars, string(r.raw[4:]))
	}
	r.row, r.cols, r.unbound = make(Row, columns), make([]terms, columns), make(Row, columns)
	return r, vars, nil
}

// next reads a row; io.EOF after the last.
func (r *tableReader) next() (Row, error) {
	if r.ended {
		return nil, io.EOF
	}
	for i := 0; i < len(r.row); {
		mark, err := r.in.ReadByte()
		if err != nil {
			return nil, cutTable(err)
		}
		if i > 0 && (mark == tableEmptyRow || mark == tableEnd) {
			return nil, fmt.Errorf("row %d ends after %d of %d values", r.rows+1, i, len(r.row))
		}
		r.raw = append(r.raw[:0], mark)
		switch mark {
		case tableEnd:
			if _, err := r.in.Peek(1); err != nil && err != io.EOF { // of a packed answer the sum
				return nil, cutTable(err)
			}
			r.ended = true
			return nil, io.EOF
		case tableError:
			return nil, r.failed()
		case tableNamespace:
			if err := r.namespace(); err != nil {
				return nil, err
			}
			continue
		case tableEmptyRow:
			r.rows++
			return r.unbound, nil
		case tableUnbound:
			r.row[i] = ""
		case tableRepeat:
			if r.rows == 0 {
				return nil, errors.New("a value of the first row repeats the row before")
			}
		default:
			if err := r.value(mark); err != nil {
				return nil, fmt.Errorf("row %d: %w", r.rows+1, err)
			}
			if r.row[i], err = r.cols[i].get(r.raw, r.term); err != nil {
				return nil, fmt.Errorf("row %d: %w", r.rows+1, err)
			}
		}
		i++
	}
	r.rows++
	return r.row, nil
}

// value reads the rest of a value into r.raw.
func (r *tableReader) value(mark byte) error {
	switch mark {
	case tableIRI, tableBlank, tablePlain:
		return r.string()
	case tableName:
		return r.name()
	case tableLang:
		if err := r.string(); err != nil {
			return err
		}
		return r.string()
	case tableTyped:
		if err := r.string(); err != nil {
			return err
		}
		mark, err := r.in.ReadByte()
		if err != nil {
			return cutTable(err)
		}
		r.raw = append(r.raw, mark)
		switch mark {
		case tableName:
			return r.name()
		case tableIRI:
			return r.string()
		}
		return fmt.Errorf("a datatype is no IRI, but a record %d", mark)
	case tableTriple:
		return fmt.Errorf("%w: a triple as a term", errNotForTable)
	}
	return fmt.Errorf("unknown record %d", mark)
}

func (r *tableReader) name() error {
	if err := r.number(); err != nil {
		return err
	}
	return r.string()
}

// number reads a NUMBER into r.raw.
func (r *tableReader) number() error {
	b, err := r.in.Peek(4)
	if err != nil {
		return cutTable(err)
	}
	r.raw = append(r.raw, b...)
	_, _ = r.in.Discard(4) // they are buffered
	return nil
}

// string reads a STRING into r.raw, grown during the reading.
func (r *tableReader) string() error {
	if err := r.number(); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(r.raw[len(r.raw)-4:])
	if n > maxTableString {
		return fmt.Errorf("a string of %d bytes, more than %d MiB", n, maxTableString>>20)
	}
	for left := int(n); left > 0; {
		b, err := r.in.Peek(min(left, r.in.Size()))
		if err != nil {
			return cutTable(err)
		}
		r.raw = append(r.raw, b...)
		left -= len(b)
		_, _ = r.in.Discard(len(b)) // they are buffered
	}
	return nil
}

// namespace takes the next namespace; the store numbers them from 0.
func (r *tableReader) namespace() error {
	if err := r.name(); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint32(r.raw[1:]); int64(n) != int64(len(r.namespaces)) {
		return fmt.Errorf("namespace %d where %d would be next", n, len(r.namespaces))
	}
	r.namespaces = append(r.namespaces, bytes.Clone(r.raw[9:]))
	r.size += len(r.raw) + 32
	if n := int64(len(r.namespaces)); r.size > maxNamespaces || n > 1000 && n*rowsANamespace > r.rows {
		return fmt.Errorf("%w: %d namespaces of IRIs in %d rows, too many for it", errNotForTable, n, r.rows)
	}
	return nil
}

// failed reads the store's error message.
func (r *tableReader) failed() error {
	if _, err := r.in.ReadByte(); err != nil {
		return cutTable(err)
	}
	r.raw = r.raw[:0]
	if err := r.string(); err != nil {
		return err
	}
	return fmt.Errorf("the store gave up: %q", clip(r.raw[4:]))
}

func (r *tableReader) term(raw []byte) (rdfres.Term, error) {
	mark, text, rest := raw[0], raw[1:], []byte(nil)
	if mark == tableName || mark == tableIRI {
		iri, err := r.iri(raw)
		if !utf8.Valid(iri) {
			return rdfres.Unreadable(iri, "bytes outside UTF-8"), nil
		}
		r.made = rdfres.AppendIRI(r.made[:0], iri)
		return rdfres.Term(r.made), err
	}
	n := binary.BigEndian.Uint32(text)
	text, rest = text[4:4+n], text[4+n:]
	if !utf8.Valid(text) {
		return rdfres.Unreadable(text, "bytes outside UTF-8"), nil
	}
	var lang, datatype []byte
	switch mark {
	case tableBlank:
		return rdfres.NewBlank(string(text)), nil
	case tableLang:
		if lang = rest[4:]; len(lang) == 0 {
			return "", errors.New("a language tag is empty")
		} else if !utf8.Valid(lang) {
			return rdfres.Unreadable(raw, "a language tag outside UTF-8"), nil
		}
	case tableTyped:
		var err error
		if datatype, err = r.iri(rest); err != nil {
			return "", err
		}
		if !utf8.Valid(datatype) {
			return rdfres.Unreadable(raw, "a datatype outside UTF-8"), nil
		}
	}
	r.made = rdfres.AppendLiteral(r.made[:0], text, lang, datatype)
	return rdfres.Term(r.made), nil
}

// iri is the IRI of a record of one, until the next.
func (r *tableReader) iri(raw []byte) ([]byte, error) {
	var namespace []byte
	local := raw[1:]
	if raw[0] == tableName {
		id := binary.BigEndian.Uint32(local)
		if int64(id) >= int64(len(r.namespaces)) {
			return nil, fmt.Errorf("the namespace %d is not known", id)
		}
		namespace, local = r.namespaces[id], local[4:]
	}
	r.full = append(append(r.full[:0], namespace...), local[4:]...)
	return r.full, nil
}

// cutTable explains an end before the end.
func cutTable(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: the table has no end", ErrTruncated)
	}
	return err
}
