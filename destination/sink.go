package destination

import (
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"

	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Sink is a mirror without a store: a dump, or a folder of representations.
//
// A dump is one file of sorted canonical N-Triples, or of N-Quads by its name, and
// compressed if the name ends in .gz. Blank nodes are blank nodes in it. A run with
// changes replaces it whole at its end: a reader sees the state before or the state
// after. FILE.rsbridge beside it has the
// checkpoint.
//
// A folder has the representations as they were fetched and verified, of RDF or
// not, each at the path of its address (see folder.go), and .rsbridge.json.
type Sink struct {
	client *sparql.Client
	folder string   // "": a dump
	root   *os.Root // of the folder

	mu    sync.Mutex // of the files of a dump
	file  string
	gz    bool
	quad  bool
	wrote counted
}

// sinkState is the file beside the data.
type sinkState struct {
	Version   int               `json:"version"`
	Authority string            `json:"authority,omitempty"` // of the skolem IRIs behind blank nodes of the dump
	Others    []string          `json:"others,omitempty"`    // those of further sources: their blank nodes are s1-…, s2-… and so on
	Graphs    map[string]string `json:"graphs"`              // checkpoints, N-Triples
}

// know adds authorities. None is ever forgotten: earlier dumps need them to be read.
func (st *sinkState) know(authorities []string) (grown bool) {
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
func (st *sinkState) blank(t rdfres.Term) rdfres.Term {
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
func (st *sinkState) skolem(t rdfres.Term) rdfres.Term {
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

// DumpSink keeps a mirror in one file.
func DumpSink(file string) (*Sink, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", file, err)
	}
	if err := CheckDump(file); err != nil {
		return nil, fmt.Errorf("dump %s: %w", file, err)
	}
	base := strings.ToLower(filepath.Base(abs))
	bare := strings.TrimSuffix(base, ".gz")
	s := &Sink{file: abs, gz: bare != base, quad: strings.HasSuffix(bare, ".nq") || strings.HasSuffix(bare, ".nquads")}
	return s, s.open("dump", abs)
}

// CheckDump refuses names of formats other than those of dumps.
func CheckDump(file string) error {
	bare := strings.TrimSuffix(strings.ToLower(filepath.Base(file)), ".gz")
	f, ok := rdfres.FormatBySuffix(bare)
	if ok && f != rdfres.NTriples && f != rdfres.NQuads || slices.Contains(otherPacks, path.Ext(bare)) {
		return errors.New("dumps are N-Triples (.nt) or N-Quads (.nq), each also with .gz")
	}
	return nil
}

// FolderSink keeps a mirror as files in a folder, and makes it if need be.
func FolderSink(dir string) (*Sink, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o777); err != nil {
		return nil, fmt.Errorf("folder of a mirror: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("folder of a mirror: %w", err)
	}
	s := &Sink{folder: abs, root: root}
	return s, s.open("files", abs)
}

func (s *Sink) open(kind, path string) (err error) {
	at := (&url.URL{Scheme: "http", Host: kind + ".invalid", Path: filepath.ToSlash(path)}).String()
	s.client, err = sparql.New(sparql.Endpoint{Name: kind + ":" + path, Query: at + "?query", GraphStore: at, Transport: inproc.Transport{Handler: s}, Retries: -1})
	return err
}

// Close ends the sink, after its destinations.
func (s *Sink) Close() error {
	err := s.client.Close()
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

// useSink makes a destination keep its mirror in a sink.
func (d *Destination) useSink(s *Sink) error {
	switch {
	case d.mirror.Layout.PerEntity, d.cfg.Graph == "per-entity":
		return errors.New("graph: per-entity is for stores; a mirror in files has no graphs")
	case s.folder != "" && d.cfg.Map != "":
		return errors.New("map is for stores and dumps; a folder has the representations as they are")
	case s.folder != "" && d.cfg.Keep == "versions":
		return errors.New("keep: versions is for stores and dumps; a folder has one file for each resource")
	}
	d.folder = s.root
	if s.folder == "" {
		d.sink = s
	}
	if p, err := d.probeRecord(); p != nil || err != nil {
		return err
	}
	// Files keep every triple as it is; there is nothing to probe.
	return d.saveProbe(&probed{At: d.opt.Now().UTC(), Capabilities: sparql.Capabilities{Product: "files"}, IRIs: &sparqlsink.Rewrites{}}, false)
}

// Client is what Open takes for the sink.
func (s *Sink) Client() *sparql.Client { return s.client }

// ServeHTTP answers what a destination asks of a store that has the Graph Store
// Protocol only.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	graph := r.URL.Query().Get("graph")
	var err error
	switch {
	case r.URL.Query().Has("query"):
		err = s.query(w, r)
	case strings.HasPrefix(graph, sink.StateGraph):
		err = s.checkpoint(w, r, graph)
	case s.folder != "":
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		err = s.read(w, r, graph)
	default:
		http.Error(w, "a dump is replaced whole", http.StatusMethodNotAllowed)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Sink) query(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query().Get("query")
	if body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20)); err == nil {
		q += string(body)
	}
	some := false
	if s.folder != "" {
		list, err := os.ReadDir(s.folder)
		if err != nil {
			return err
		}
		for _, e := range list {
			some = some || e.Name() != folderState && !unfinishedFile(e.Name())
		}
	} else if st, err := os.Stat(s.file); err == nil {
		some = st.Size() > 0
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.Contains(q, "COUNT(*)") { // of the graph that a dump is
		graph := ""
		if _, rest, ok := strings.Cut(q, "GRAPH <"); ok {
			graph, _, _ = strings.Cut(rest, ">")
		}
		n, err := s.count(graph)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/sparql-results+json")
		fmt.Fprintf(w, `{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":"%d","datatype":"http://www.w3.org/2001/XMLSchema#integer"}}]}}`, n)
		return nil
	}
	if !strings.Contains(q, "ASK") {
		http.Error(w, "files cannot be queried", http.StatusBadRequest)
		return nil
	}
	w.Header().Set("Content-Type", "application/sparql-results+json")
	fmt.Fprintf(w, `{"head":{},"boolean":%v}`, some)
	return nil
}

const folderState = ".rsbridge.json"

func (s *Sink) stateFile() string {
	if s.folder != "" {
		return filepath.Join(s.folder, folderState)
	}
	return s.file + ".rsbridge"
}

func (s *Sink) state() (st sinkState, err error) {
	raw, err := os.ReadFile(s.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return sinkState{Version: 1, Graphs: map[string]string{}}, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &st)
	}
	if err == nil && st.Version != 1 {
		err = fmt.Errorf("version %d was written by a newer rsbridge", st.Version)
	}
	if err != nil {
		return st, fmt.Errorf("%s: %w", s.stateFile(), err)
	}
	if st.Graphs == nil {
		st.Graphs = map[string]string{}
	}
	return st, nil
}

func (s *Sink) putState(st sinkState) error {
	raw, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	return replaceFile(s.stateFile(), func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
}

func (s *Sink) checkpoint(w http.ResponseWriter, r *http.Request, graph string) error {
	st, err := s.state()
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet {
		if graph == sink.StateGraph { // all of them
			w.Header().Set("Content-Type", rdfres.NTriples.MediaType())
			for _, text := range st.Graphs {
				io.WriteString(w, text)
			}
			return nil
		}
		text, ok := st.Graphs[graph]
		if !ok {
			http.NotFound(w, r)
			return nil
		}
		w.Header().Set("Content-Type", rdfres.NTriples.MediaType())
		io.WriteString(w, text)
		return nil
	}
	if r.Method == http.MethodDelete {
		return s.removeGraph(w, st, graph)
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.makeFolder()
	}
	if err != nil {
		return err
	}
	st.Graphs[graph] = string(body)
	return s.putState(st)
}

// read streams the triples of the dump.
func (s *Sink) read(w http.ResponseWriter, r *http.Request, graph string) error {
	out := bufio.NewWriterSize(w, 64<<10)
	w.Header().Set("Content-Type", rdfres.NTriples.MediaType())
	err := s.each(graph, func(line []byte) error {
		_, err := out.Write(line)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		http.NotFound(w, r)
		return nil
	}
	if err != nil {
		panic(http.ErrAbortHandler) // never a clean end
	}
	return out.Flush()
}

// each hands out the lines of the dump, blank nodes as skolem IRIs. Anything but a
// triple becomes a triple without an owner, for an audit to find.
func (s *Sink) each(graph string, f func(line []byte) error) error {
	st, err := s.state()
	if err != nil {
		return err
	}
	file, err := os.Open(s.file)
	if err != nil {
		return err
	}
	defer file.Close()
	n := 0
	damaged := func(what string) error {
		t := rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("urn:rsbridge:damaged:%d", n)), P: rdfres.NewIRI(sink.PropPrefix + "damaged"), O: rdfres.NewLiteral(clip.Middle(strings.ToValidUTF8(what, "?")), "", "")}
		return f(t.AppendLine(nil))
	}
	var in io.Reader = bufio.NewReaderSize(file, 256<<10)
	if s.gz {
		if in, err = gzip.NewReader(in); err != nil {
			return damaged(err.Error())
		}
	}
	lines := bufio.NewReaderSize(in, 256<<10)
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

// absent tells of no file at all; a dump of nothing has one.
func (s *Sink) absent() bool {
	_, err := os.Stat(s.file)
	return errors.Is(err, fs.ErrNotExist)
}

// makeFolder makes that of a dump.
func (s *Sink) makeFolder() error {
	if s.folder != "" {
		return nil
	}
	return os.MkdirAll(filepath.Dir(s.file), 0o777)
}

// replace replaces the dump by the graph whose triples each hands out, in parts, of
// sources of some authorities.
func (s *Sink) replace(graph string, authorities []string, each func(put putPart) error) error {
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
		if err := s.putState(st); err != nil {
			return err
		}
	}
	var own []byte
	err = each(func(of string, lines []byte) error {
		of = strings.TrimSuffix(of, "/")
		if !s.quad && !bytes.Contains(lines, genid) && (of == st.Authority || !hasBlank(lines)) {
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
	written := counted{graph: graph}
	err = replaceFile(s.file, func(w io.Writer) error {
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
	})
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
func (s *Sink) count(graph string) (n int64, err error) {
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

// unfinishedFile tells of a file under way, or left by a crash.
func unfinishedFile(name string) bool { return strings.HasPrefix(path.Base(name), ".rsbridge-") }

// replaceFile writes a file beside and puts it in place, durably.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".rsbridge-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if st, err := os.Stat(name); err == nil {
		mode = st.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return ownfile.Sync(filepath.Dir(name))
}
