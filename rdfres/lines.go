package rdfres

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// Lines scans the lines of an N-Triples or N-Quads document one after the other, in a buffer as
// large as the longest line. It is for work on bytes (sorting, counting, loading an index); Read
// makes terms.
//
//	in := rdfres.NewLines(body, rdfres.NTriples, rdfres.ReadOptions{Name: url})
//	for in.Next() {
//		use(in.S, in.P, in.O) // until the next call
//	}
//	if err := in.Err(); err != nil { ... }
type Lines struct {
	LineScanner
	format Format
	opts   ReadOptions
	r      io.Reader
	buf    []byte // buf[pos:] is read and not yet given out
	pos    int
	rest   []byte // of a line that \r divides
	read   int64
	line   int
	eof    bool
	err    error
}

// NewLines reads NTriples or NQuads from r; in NTriples a fourth term is an error.
func NewLines(r io.Reader, f Format, o ReadOptions) *Lines {
	return &Lines{LineScanner: LineScanner{Lax: o.Lax}, format: f, opts: o, r: r}
}

// LinesOf reads data, without copying it.
func LinesOf(data []byte, f Format, o ReadOptions) *Lines {
	in := &Lines{LineScanner: LineScanner{Lax: o.Lax}, format: f, opts: o, buf: data, eof: true, read: int64(len(data))}
	if o.MaxBytes > 0 && in.read > o.MaxBytes {
		in.err = o.TooLarge(f)
	}
	return in
}

// Next scans the next statement. It is false at the end and after an error.
func (in *Lines) Next() bool {
	for in.err == nil {
		line, ok := in.nextLine()
		if !ok {
			return false
		}
		ok, why := in.scan(line)
		if why == "" && ok && in.opts.CheckIRIs && !in.Canonical {
			for _, t := range [...][]byte{in.S, in.P, in.O, in.G} {
				if err := CheckIRI(t); err != nil && why == "" {
					why, in.at = err.Error(), 0
				}
			}
		}
		if why == "" && len(in.G) > 0 && in.format == NTriples {
			why, in.at = "a fourth term: this is N-Quads, not N-Triples", 0
		}
		if why != "" {
			in.err = &SyntaxError{Name: in.opts.Name, Format: in.format, Line: in.line, Column: chars.Column(line, in.at), Reason: why}
			return false
		}
		if ok {
			return true
		}
	}
	return false
}

// Err is the error at the end of the lines, nil at the end of the document. After a broken read it
// is the reader's error.
func (in *Lines) Err() error {
	if in.err == io.EOF {
		return nil
	}
	return in.err
}

// Line is the number of the last scanned line, from 1.
func (in *Lines) Line() int { return in.line }

// nextLine gives the next line without its end: any of \n, \r\n, \r.
func (in *Lines) nextLine() (line []byte, ok bool) {
	line, in.rest = in.rest, nil
	for searched := 0; line == nil; {
		rest := in.buf[in.pos:]
		if n := bytes.IndexByte(rest[searched:], '\n'); n >= 0 {
			line, in.pos = rest[:searched+n], in.pos+searched+n+1
			break
		}
		if in.eof {
			if len(rest) == 0 {
				if in.err == nil {
					in.err = io.EOF
				}
				return nil, false
			}
			line, in.pos = rest, len(in.buf)
			break
		}
		if n := bytes.LastIndexByte(rest, '\r'); n >= 0 && n < len(rest)-1 { // no \n follows
			line, in.pos = rest[:n+1], in.pos+n+1
			break
		}
		searched = len(rest)
		if !in.fill() {
			return nil, false
		}
	}
	in.line++
	if n := bytes.IndexByte(line, '\r'); n >= 0 {
		if n < len(line)-1 { // a lone \r ends a line too: the rest is for later
			in.rest = line[n+1:]
		}
		line = line[:n]
	}
	if in.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, true
}

// fill reads on. It moves the rest to the front and grows the buffer when it must.
func (in *Lines) fill() bool {
	if in.pos > 0 {
		in.buf = in.buf[:copy(in.buf, in.buf[in.pos:])]
		in.pos = 0
	}
	if cap(in.buf) == len(in.buf) {
		if len(in.buf) >= chars.MaxLine {
			in.err = fmt.Errorf("rdfres: read %s %s: line %d is longer than %d MiB: %w", in.format, in.opts.Name, in.line+1, chars.MaxLine>>20, ErrTooLarge)
			return false
		}
		grown := make([]byte, len(in.buf), max(64<<10, 2*cap(in.buf)))
		copy(grown, in.buf)
		in.buf = grown
	}
	for range 100 {
		n, err := in.r.Read(in.buf[len(in.buf):cap(in.buf)])
		in.buf = in.buf[:len(in.buf)+n]
		in.read += int64(n)
		if in.opts.MaxBytes > 0 && in.read > in.opts.MaxBytes {
			in.err = in.opts.TooLarge(in.format)
			return false
		}
		switch {
		case err == io.EOF:
			in.eof = true
			return true
		case err != nil:
			in.err = in.opts.ReadError(in.format, in.line, err)
			return false
		case n > 0:
			return true
		}
	}
	in.err = in.opts.ReadError(in.format, in.line, io.ErrNoProgress)
	return false
}
