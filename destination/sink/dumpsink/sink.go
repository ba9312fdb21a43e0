// Package dumpsink keeps a mirror in one file of triples.
package dumpsink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/marks"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Dump is one file of sorted canonical N-Triples, or of N-Quads by its name, and
// compressed if the name ends in .gz. Blank nodes are blank nodes in it. A run with
// changes replaces it whole at its end: a reader sees the state before or the state
// after. FILE.rsbridge beside it has the checkpoints.
type Dump struct {
	mu    sync.Mutex // of the files
	file  string
	marks marks.File
	gz    bool
	quad  bool
	wrote counted
}

// state reads and writes blank nodes by the authorities of the file beside the dump.
type state struct{ marks.State }

// know adds authorities. None is ever forgotten: earlier dumps need them to be read.
func (st *state) know(authorities []string) (grown bool) {
	for _, a := range authorities {
		switch a = strings.TrimSuffix(a, "/"); {
		case a == "" || a == st.Authority || slices.Contains(st.Others, a):
			continue
		case st.Authority == "":
			st.Authority = a
		default:
			st.Others = append(st.Others, a)
		}
		grown = true
	}
	return grown
}

// blank makes a blank node of a skolem IRI of a known authority, and leaves other
// terms alone.
func (st *state) blank(t rdfres.Term) rdfres.Term {
	authority, label, ok := rdfres.CutSkolem(t)
	if !ok {
		return t
	}
	if authority == st.Authority {
		return rdfres.NewBlank(label)
	}
	if i := slices.Index(st.Others, authority); i >= 0 {
		return rdfres.NewBlank(fmt.Sprintf("s%d-%s", i+1, label))
	}
	return t
}

// skolem undoes blank; "" for a blank node of an unknown authority, since the state was
// lost.
func (st *state) skolem(t rdfres.Term) rdfres.Term {
	if t.Kind() != rdfres.KindBlank {
		return t
	}
	authority, label := st.Authority, t.Label()
	if of, rest, ok := strings.Cut(label, "-"); ok {
		var i int
		if n, _ := fmt.Sscanf(of, "s%d", &i); n != 1 || i < 1 || i > len(st.Others) {
			return ""
		}
		authority, label = st.Others[i-1], rest
	}
	if authority == "" {
		return ""
	}
	return rdfres.Skolemize(rdfres.NewBlank(label), authority)
}

// otherPacks are ways of packing, none of them for dumps.
var otherPacks = []string{".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".zip", ".gzip", ".tgz", ".tar", ".7z"}

// Open keeps a mirror in a file.
func Open(file string) (*Dump, error) {
	abs, err := filepath.Abs(file)
	if err == nil {
		err = Check(file)
	}
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", file, err)
	}
	base := strings.ToLower(filepath.Base(abs))
	bare := strings.TrimSuffix(base, ".gz")
	return &Dump{file: abs, marks: marks.File(abs + ".rsbridge"), gz: bare != base, quad: strings.HasSuffix(bare, ".nq") || strings.HasSuffix(bare, ".nquads")}, nil
}

// Check refuses names of formats other than those of dumps.
func Check(file string) error {
	bare := strings.TrimSuffix(strings.ToLower(filepath.Base(file)), ".gz")
	f, ok := rdfres.FormatBySuffix(bare)
	if ok && f != rdfres.NTriples && f != rdfres.NQuads || slices.Contains(otherPacks, path.Ext(bare)) {
		return errors.New("dumps are N-Triples (.nt) or N-Quads (.nq), each also with .gz")
	}
	return nil
}

// Name has the path.
func (s *Dump) Name() string { return "dump:" + s.file }

// Address has it too.
func (s *Dump) Address() string {
	return (&url.URL{Scheme: "http", Host: "dump.invalid", Path: filepath.ToSlash(s.file)}).String()
}

// Close does nothing: no file stays open.
func (s *Dump) Close() error { return nil }

// Open gives the mirror of one destination. Several may share a dump.
func (s *Dump) Open(p *sink.Place) (sink.Mirror, error) {
	if p.Layout.PerEntity {
		return nil, errors.New("graph: per-entity is for stores; a mirror in files has no graphs")
	}
	return &mirror{s, p}, nil
}

type mirror struct {
	*Dump
	*sink.Place
}

// Apply keeps the checkpoint: the records run ahead of the dump until it is replaced.
func (m *mirror) Apply(_ context.Context, _ *sink.Batch, cp *sink.Checkpoint) error {
	if cp == nil {
		return nil
	}
	return m.change(func(st *state) { st.Set(m.Mark, cp) })
}

func (s *Dump) change(how func(*state)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.state()
	if err == nil {
		err = s.makeFolder()
	}
	if err != nil {
		return err
	}
	how(&st)
	return s.marks.Write(st.State)
}

func (s *Dump) state() (state, error) {
	st, err := s.marks.Read()
	return state{st}, err
}

func (m *mirror) Checkpoint(context.Context) (*sink.Checkpoint, error) {
	st, err := m.locked()
	if err != nil {
		return nil, err
	}
	return st.Of(m.Mark)
}

func (s *Dump) locked() (state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state()
}

// Others are of any graph: a dump has one.
func (m *mirror) Others(context.Context, string) (map[string]*sink.Checkpoint, error) {
	st, err := m.locked()
	if err != nil {
		return nil, err
	}
	all, err := st.All()
	delete(all, m.Mark)
	return all, err
}

// IsEmpty looks for a line, also of a comment: a packed file of nothing has some bytes.
func (m *mirror) IsEmpty(context.Context, iter.Seq[string]) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	file, err := m.open()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	defer file.Close()
	in, err := m.unpacked(file)
	for err == nil {
		var c byte
		if c, err = in.ReadByte(); err == nil && !unicode.IsSpace(rune(c)) {
			return false, nil
		}
	}
	return err == io.EOF, nil // else it is no dump
}

// unpacked reads a dump.
func (s *Dump) unpacked(file io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(file, 256<<10)
	if !s.gz {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err // io.EOF of an empty file
	}
	return bufio.NewReaderSize(z, 256<<10), nil
}

var errHolds = errors.New("the dump holds something")

func (m *mirror) Lines(ctx context.Context) (int64, error) {
	cp, err := m.Checkpoint(ctx)
	if cp == nil {
		return 0, err
	}
	return int64(len(cp.Triples(m.Mark))), err
}

// Forget keeps the state file beside a dump: it is read with it. The last one to go with
// its data removes both.
func (m *mirror) Forget(_ context.Context, data bool) error {
	last := false
	if err := m.change(func(st *state) { st.Drop(m.Mark); last = len(st.Graphs) == 0 }); err != nil || !data || !last {
		return err
	}
	if err := marks.File(m.file).Remove(); err != nil {
		return err
	}
	return m.marks.Remove()
}

func (m *mirror) Asks() bool { return true }

// Has reads the dump up to the statement.
func (m *mirror) Has(ctx context.Context, st *sink.Statement) (bool, error) {
	line := st.Triple.AppendLine(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.each(m.Layout.Graph, func(l []byte) error {
		if bytes.Equal(l, line) {
			return errHolds
		}
		return ctx.Err()
	})
	if errors.Is(err, errHolds) {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}

func (m *mirror) Countable() bool { return true }

func (m *mirror) Count(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count(m.Layout.Graph)
}

func (m *mirror) ReadSingle(ctx context.Context, _ *int64, add func(rdfres.Triple) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.each(m.Layout.Graph, func(line []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		q, _, err := rdfres.ParseLine(bytes.TrimSuffix(line, newline))
		if err != nil {
			return err
		}
		return add(q.Triple)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *mirror) ReadGraphs(context.Context, func(string) (bool, error), func(string, rdfres.Triple) error) error {
	return errors.ErrUnsupported
}

func (m *mirror) ReadGraph(context.Context, string) iter.Seq2[rdfres.Triple, error] {
	return func(yield func(rdfres.Triple, error) bool) { yield(rdfres.Triple{}, errors.ErrUnsupported) }
}

// Absent tells of no file at all; a dump of nothing has one.
func (m *mirror) Absent() bool {
	_, err := os.Stat(m.file)
	return errors.Is(err, fs.ErrNotExist)
}

// look finds the file of the dump. Opening anything else may wait for ever, as for a pipe.
func (s *Dump) look() (fs.FileInfo, error) {
	at, err := os.Stat(s.file)
	if err == nil && !at.Mode().IsRegular() {
		err = &sink.NotFileError{Path: s.file, Folder: at.IsDir()}
	}
	return at, err
}

// open opens it.
func (s *Dump) open() (*os.File, error) {
	if _, err := s.look(); err != nil {
		return nil, err
	}
	return os.Open(s.file)
}

// Foreign tells of a dump that is not as it was written last.
func (m *mirror) Foreign() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.look()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	st, err := m.state()
	if err != nil || len(st.Wrote) == 0 { // of an earlier version
		return false, err
	}
	sized := false
	for _, w := range st.Wrote {
		if w.Size == at.Size() && w.Time.Equal(at.ModTime()) {
			return false, nil
		}
		sized = sized || w.Size == at.Size()
	}
	if !sized {
		return true, nil
	}
	file, err := m.open()
	if err != nil {
		return false, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(st.Wrote, func(w marks.Written) bool { return w.SHA256 == hex.EncodeToString(sum.Sum(nil)) }), nil
}

// Replace replaces the dump.
func (m *mirror) Replace(_ context.Context, authorities []string, each func(sink.PutPart) error) error {
	return m.replace(m.Layout.Graph, authorities, each)
}

// each hands out the lines of the dump, blank nodes as skolem IRIs. Anything but a
// triple becomes a triple without an owner, for an audit to find.
func (s *Dump) each(graph string, f func(line []byte) error) error {
	st, err := s.state()
	if err != nil {
		return err
	}
	file, err := s.open()
	if err != nil {
		return err
	}
	defer file.Close()
	n := 0
	damaged := func(what string) error {
		t := rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("urn:rsbridge:damaged:%d", n)), P: rdfres.NewIRI(sink.PropPrefix + "damaged"), O: rdfres.NewLiteral(clip.Middle(strings.ToValidUTF8(what, "?")), "", "")}
		return f(t.AppendLine(nil))
	}
	lines, err := s.unpacked(file)
	if err == io.EOF {
		return nil
	} else if err != nil {
		return damaged(err.Error())
	}
	var line []byte
	for {
		buf, err := lines.ReadBytes('\n')
		n++
		if text := bytes.TrimRight(buf, "\r\n"); len(text) > 0 {
			q, ok, perr := rdfres.ParseLine(text)
			var ferr error
			switch {
			case perr != nil || ok && s.quad && q.G.IRI() != graph || ok && !s.quad && q.G != "":
				ferr = damaged(string(text))
			case ok:
				t := rdfres.Triple{S: st.skolem(q.S), P: q.P, O: st.skolem(q.O)}
				if t.S == "" || t.O == "" {
					ferr = damaged(string(text))
					break
				}
				line = t.AppendLine(line[:0])
				ferr = f(line)
			}
			if ferr != nil {
				return ferr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damaged(err.Error())
		}
	}
}

func (s *Dump) makeFolder() error { return os.MkdirAll(filepath.Dir(s.file), 0o777) }

var newline = []byte("\n")

// replace replaces the dump by the graph whose triples each hands out, in parts, of
// sources of some authorities.
func (s *Dump) replace(graph string, authorities []string, each func(put sink.PutPart) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeFolder(); err != nil {
		return err
	}
	sorter, err := newLineSorter(filepath.Dir(s.file), 32<<20)
	if err != nil {
		return err
	}
	defer sorter.close()
	st, err := s.state()
	if err != nil {
		return err
	}
	if st.know(authorities) { // the dump before is read with them as without
		if err := s.marks.Write(st.State); err != nil {
			return err
		}
	}
	var own []byte
	err = each(func(of string, lines []byte) error {
		of = strings.TrimSuffix(of, "/")
		if !s.quad && !bytes.Contains(lines, genid) && (of == st.Authority || !sink.HasBlank(lines)) {
			return sorter.add(lines)
		}
		own = own[:0]
		for line := range bytes.Lines(lines) {
			q, _, err := rdfres.ParseLine(bytes.TrimSuffix(line, newline))
			if err != nil {
				return err
			}
			q.S, q.O = st.blank(rdfres.Skolemize(q.S, of)), st.blank(rdfres.Skolemize(q.O, of))
			if s.quad && graph != "" {
				q.G = rdfres.NewIRI(graph)
			}
			own = q.AppendLine(own)
		}
		return sorter.add(own)
	})
	if err != nil {
		return err
	}
	written, sum := counted{graph: graph}, sha256.New()
	err = marks.Replace(s.file, func(w io.Writer) error {
		w = io.MultiWriter(w, sum)
		var z *gzip.Writer
		if s.gz {
			z = gzip.NewWriter(w)
			w = z
		}
		out := bufio.NewWriterSize(w, 256<<10)
		written.lines, err = sorter.write(out)
		if err == nil {
			err = out.Flush()
		}
		if z != nil && err == nil {
			err = z.Close()
		}
		return err
	}, func(done fs.FileInfo) error { // a crash leaves one of the two
		st.Wrote = append(st.Wrote[:min(1, len(st.Wrote))], marks.Written{Size: done.Size(), SHA256: hex.EncodeToString(sum.Sum(nil)), Time: done.ModTime().UTC()})
		return s.marks.Write(st.State)
	})
	if err == nil && len(st.Wrote) > 1 {
		st.Wrote = st.Wrote[1:]
		err = s.marks.Write(st.State)
	}
	if err != nil {
		return err
	}
	if written.file, err = os.Stat(s.file); err == nil {
		s.wrote = written
	}
	return err
}

var genid = []byte("/.well-known/genid/")

// counted are the lines of a dump as it was written.
type counted struct {
	graph string
	lines int64
	file  os.FileInfo
}

// count tells how many triples the dump has, without reading it again when nobody
// has touched it since it was written and counted.
func (s *Dump) count(graph string) (n int64, err error) {
	if at, err := os.Stat(s.file); err == nil && s.wrote.file != nil && s.wrote.graph == graph &&
		os.SameFile(at, s.wrote.file) && at.Size() == s.wrote.file.Size() && at.ModTime().Equal(s.wrote.file.ModTime()) {
		return s.wrote.lines, nil
	}
	err = s.each(graph, func([]byte) error { n++; return nil })
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}
