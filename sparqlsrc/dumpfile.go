package sparqlsrc

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

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// dumpReader reads the statements of one file.
type dumpReader struct {
	file    *os.File
	name    string
	format  rdfres.Format
	packing string        // "", "gzip", "zstd", "bzip2"
	in      *bufio.Reader // of the file as it is
	proof   *dumpProof
	last    lastLine // unpacked
	plain   io.Reader
	end     func()
	padding *int64 // zeros behind the end, nil where there can be none

	nothing  bool   // was read yet
	newlines int64  // of what was read, unpacked
	tail     []byte // its last two bytes
	atEnd    bool
	broken   error // of unpacking
}

// The first bytes of packed files; without what is called skipped, which zstd leaves to
// others before and between its frames (pzstd begins with it).
var packings = []struct{ name, magic, suffixes string }{
	{"gzip", "\x1f\x8b", ".gz"},
	{"zstd", "\x28\xb5\x2f\xfd", ".zst .zstd"},
	{"bzip2", "BZh", ".bz2"},
}

// isSkipped tells whether the first bytes are of a frame of zstd that is skipped.
func isSkipped(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

// openDump opens a file: how it is packed is told by its first bytes, how it is
// written by its name without the suffix of the packing.
func openDump(path string, proof *dumpProof) (_ *dumpReader, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d := &dumpReader{file: f, name: path, proof: proof, end: func() {}, nothing: true}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	in := bufio.NewReaderSize(proof.reader(f), 256<<10)
	d.in = in
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(head) == 0 {
		return nil, &cutError{"it is empty"}
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

// unpacking is an error of unpacking: of a file that ends too early, or of one
// that is damaged.
func (d *dumpReader) unpacking(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return &cutError{"its " + d.packing + " ends too early"}
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("%s: unpack zstd: %w: windows of up to 512 MB are read (zstd --long=29)", d.name, err)
	}
	return fmt.Errorf("%s: unpack %s: %w", d.name, d.packing, err)
}

// members reads the members of a gzip file, one after the other, and what tapes and
// disks fill their last block with: zeros behind the last one, which gzip ignores too.
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
func (d *dumpReader) Read(b []byte) (int, error) {
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

func (d *dumpReader) Close() {
	d.end()
	_ = d.file.Close() // only read
}

// packed is how many bytes the file has.
func (d *dumpReader) packed() int64 {
	info, err := d.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// each gives the statements as canonical terms, which f may not keep.
func (d *dumpReader) each(f func(s, p, o, g []byte) error) error {
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
			if err := f(buf[:s:s], buf[s:p:p], buf[p:], nil); err != nil {
				return err
			}
		}
		return d.atName()
	}
	in := rdfres.NewLines(d, d.format, o)
	for in.Next() {
		if err := f(in.S, in.P, in.O, in.G); err != nil {
			return fmt.Errorf("%s: line %d: %w", d.name, in.Line(), err)
		}
	}
	if err := d.explain(in.Err()); err != nil {
		return err
	}
	return d.atName()
}

// atName is the error of a file whose last byte is a dot behind a number or a name, in
// which a dot may be: "2." is what is left of "2.5 .".
func (d *dumpReader) atName() error {
	if len(d.tail) < 2 || d.tail[1] != '.' {
		return nil
	}
	switch c := d.tail[0]; {
	case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c >= 0x80, strings.IndexByte("_-:", c) >= 0:
		return &cutError{"its last statement ends without a space or a new line, within a number or a name perhaps"}
	}
	return nil
}

// explain tells a file that was cut in its last line from one that is wrong.
func (d *dumpReader) explain(err error) error {
	if d.broken != nil {
		return d.broken
	}
	var syntax *rdfres.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	var one [1]byte
	if !d.atEnd {
		if n, _ := d.Read(one[:]); n > 0 { // what more there is does not matter
			return err
		}
	}
	// Of lines, one with its end is whole, so what is wrong in it is no cut; a statement of
	// Turtle may go on in the next.
	lines := d.newlines
	if d.format != rdfres.Turtle || !bytes.HasSuffix(d.tail, []byte{'\n'}) {
		lines++
	}
	if d.atEnd && int64(syntax.Line) >= lines {
		return &cutError{fmt.Sprintf("its last line, %d, is not whole: %s", syntax.Line, syntax.Reason)}
	}
	return err
}

// isOwnGraph is sparql.IsOwnGraph of a canonical term.
func isOwnGraph(graph []byte) bool {
	return len(graph) > 0 && graph[0] == '<' && sparql.IsOwnGraph(iriOf(graph))
}
