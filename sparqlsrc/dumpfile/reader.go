package dumpfile

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Reader reads the statements of one file. It belongs to one goroutine.
type Reader struct {
	file    *os.File
	name    string
	format  rdfres.Format
	packing string        // "", "gzip", "zstd", "bzip2"
	in      *bufio.Reader // of the file as it is
	proof   *proof
	last    lastLine // unpacked
	plain   io.Reader
	end     func()
	padding *int64 // zeros behind the end, nil for packings without any

	statements int64
	nothing    bool   // was read yet
	newlines   int64  // read so far, unpacked
	tail       []byte // its last two bytes
	atEnd      bool
	broken     error // of unpacking
}

// The first bytes of packed files. zstd has skipped frames as well, before and between the
// others (pzstd begins with one): see isSkipped.
var packings = []struct{ name, magic, suffixes string }{
	{"gzip", "\x1f\x8b", ".gz"},
	{"zstd", "\x28\xb5\x2f\xfd", ".zst .zstd"},
	{"bzip2", "BZh", ".bz2"},
}

// isSkipped recognizes a skipped frame of zstd.
func isSkipped(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

// Open opens a file: how it is packed is told by its first bytes, how it is
// written by its name without the suffix of the packing. proof names the proof of its
// end, see [CheckProof]; "": a checksum and a count beside it, if there are any.
func Open(path, proof string) (_ *Reader, err error) {
	whole, err := proofOf(path, proof)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d := &Reader{file: f, name: path, proof: whole, end: func() {}, nothing: true}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	in := bufio.NewReaderSize(whole.reader(f), 256<<10)
	d.in = in
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(head) == 0 {
		return nil, &CutError{"it is empty"}
	}
	name, called := strings.ToLower(path), ""
	for _, p := range packings {
		for _, suffix := range strings.Fields(p.suffixes) {
			if rest, ok := strings.CutSuffix(name, suffix); ok {
				name, called = rest, p.name
			}
		}
		if bytes.HasPrefix(head, []byte(p.magic)) || p.name == "zstd" && isSkipped(head) {
			d.packing = p.name
		} else if called == p.name && strings.HasPrefix(p.magic, string(head)) { // there is no more of it yet
			d.packing = p.name
			return nil, d.unpacking(io.ErrUnexpectedEOF)
		}
	}
	if called != "" && d.packing == "" {
		return nil, fmt.Errorf("%s is called %s by its name, but does not begin like one", path, called)
	}
	d.plain = in
	switch d.packing {
	case "gzip":
		z := &members{in: in, z: new(gzip.Reader)}
		if err := z.begin(); err != nil {
			return nil, d.unpacking(err)
		}
		d.plain, d.padding = z, &z.zeros
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, d.unpacking(err)
		}
		d.plain, d.end = z, z.Close
	case "bzip2":
		d.plain = bzip2.NewReader(in)
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "ttl", "turtle":
		d.format = rdfres.Turtle
	case "nt", "ntriples":
		d.format = rdfres.NTriples
	default: // N-Triples are N-Quads
		switch f, _ := rdfres.FormatBySuffix(name); f {
		case rdfres.JSONLD, rdfres.RDFXML, rdfres.TriG:
			return nil, fmt.Errorf("%s is called %s by its name; dumps are N-Triples, N-Quads or Turtle", path, f)
		}
		d.format = rdfres.NQuads
	}
	return d, nil
}

// unpacking is an error of unpacking: the file ends too early, or it is damaged.
func (d *Reader) unpacking(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return &CutError{"its " + d.packing + " ends too early"}
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("%s: unpack zstd: %w: windows of up to 512 MB are read (zstd --long=29)", d.name, err)
	}
	return fmt.Errorf("%s: unpack %s: %w", d.name, d.packing, err)
}

// members reads the members of a gzip file, one after the other. It passes over zeros
// behind the last one, the filling of a tape's last block, as gzip does.
type members struct {
	in    *bufio.Reader
	z     *gzip.Reader
	zeros int64
}

// Gunzip unpacks a gzip file, as a dump is unpacked; zeros tells how many were passed over
// behind its end.
func Gunzip(r io.Reader) (unpacked io.Reader, zeros func() int64, err error) {
	m := &members{in: bufio.NewReader(r), z: new(gzip.Reader)}
	return m, func() int64 { return m.zeros }, m.begin()
}

func (m *members) begin() error {
	err := m.z.Reset(m.in)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	m.z.Multistream(false)
	return err
}

func (m *members) Read(b []byte) (int, error) {
	n, err := m.z.Read(b)
	if err == io.EOF {
		err = m.next()
	}
	return n, err
}

// next goes to the next member, io.EOF if there is none.
func (m *members) next() error {
	for {
		head, err := m.in.Peek(1)
		switch {
		case err != nil:
			return err
		case head[0] == 0:
			m.zeros++
			_, _ = m.in.Discard(1) // it is there
		case m.zeros > 0:
			return errors.New("zeros follow its end, and then something else: it may be put together of parts of which one is damaged")
		case head[0] != '\x1f':
			return errors.New("what follows its end is no gzip: it may be put together of parts of which one is damaged")
		default:
			return m.begin()
		}
	}
}

// Read is of the unpacked file.
func (d *Reader) Read(b []byte) (int, error) {
	n, err := d.plain.Read(b)
	d.nothing = d.nothing && n == 0
	d.newlines += int64(bytes.Count(b[:n], []byte{'\n'}))
	if d.proof.end != "" {
		_, _ = d.last.Write(b[:n]) // it does not fail
	}
	d.tail = append(d.tail, b[max(0, n-2):n]...)
	d.tail = d.tail[max(0, len(d.tail)-2):]
	if err == io.EOF {
		d.atEnd = true
	} else if err != nil && d.packing != "" {
		err = d.unpacking(err)
		d.broken = err
	}
	return n, err
}

// Close ends the reading.
func (d *Reader) Close() {
	d.end()
	_ = d.file.Close() // only read
}

// Whole compares the file with its proof, once Each has read all, and names the proof, "" if
// there is none. A difference is a [CutError].
func (d *Reader) Whole() (by string, err error) {
	if d.nothing {
		return "", &CutError{"it is empty"}
	}
	return d.proof.from(), d.proof.holds(d.in, d.statements, d.last.String())
}

// Padding is how many zeros followed the end of a gzip file.
func (d *Reader) Padding() int64 {
	if d.padding == nil {
		return 0
	}
	return *d.padding
}

// Bytes is how many bytes the file has, as it lies there.
func (d *Reader) Bytes() int64 {
	info, err := d.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// Each gives the statements as canonical terms, valid until f returns; without a graph g is
// empty. A file with an early end is a [CutError].
func (d *Reader) Each(f func(s, p, o, g []byte) error) error {
	o := rdfres.ReadOptions{Name: d.name, Lax: true}
	if d.format == rdfres.Turtle {
		o.Lax = false
		var buf []byte
		for q, err := range codec.Read(d, d.format, o) {
			if err != nil {
				return d.explain(err)
			}
			buf = append(append(append(buf[:0], q.S...), q.P...), q.O...)
			s, p := len(q.S), len(q.S)+len(q.P)
			d.statements++
			if err := f(buf[:s:s], buf[s:p:p], buf[p:], nil); err != nil {
				return err
			}
		}
		return d.atName()
	}
	in := rdfres.NewLines(d, d.format, o)
	for in.Next() {
		d.statements++
		if err := f(in.S, in.P, in.O, in.G); err != nil {
			return fmt.Errorf("%s: line %d: %w", d.name, in.Line(), err)
		}
	}
	if err := d.explain(in.Err()); err != nil {
		return err
	}
	return d.atName()
}

// atName is the error of a file whose last byte is a dot behind a number or a name, and
// both can hold a dot: "2." is the rest of "2.5 .".
func (d *Reader) atName() error {
	if len(d.tail) < 2 || d.tail[1] != '.' {
		return nil
	}
	switch c := d.tail[0]; {
	case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c >= 0x80, strings.IndexByte("_-:", c) >= 0:
		return &CutError{"its last statement ends without a space or a new line, within a number or a name perhaps"}
	}
	return nil
}

// explain separates a file cut in its last line from a wrong one.
func (d *Reader) explain(err error) error {
	if d.broken != nil {
		return d.broken
	}
	var syntax *rdfres.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	var one [1]byte
	if !d.atEnd {
		if n, _ := d.Read(one[:]); n > 0 {
			return err
		}
	}
	// Of lines, one with its end is whole, so a fault in it is no cut; a statement of
	// Turtle may go on in the next.
	lines := d.newlines
	if d.format != rdfres.Turtle || !bytes.HasSuffix(d.tail, []byte{'\n'}) {
		lines++
	}
	if d.atEnd && int64(syntax.Line) >= lines {
		return &CutError{fmt.Sprintf("its last line, %d, is not whole: %s", syntax.Line, syntax.Reason)}
	}
	return err
}
