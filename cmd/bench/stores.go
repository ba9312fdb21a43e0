package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// prepare writes the data.
func prepare(dir string, entities int64) (_ *env, err error) {
	keep := dir != ""
	if keep {
		dir, err = filepath.Abs(dir)
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
	} else {
		dir, err = os.MkdirTemp("", "rsbridge-bench-")
	}
	if err != nil {
		return nil, err
	}
	e := &env{dir: dir, keep: keep, triples: filepath.Join(dir, "data.nt"), n: entities,
		filled: map[string]bool{}, ways: map[string]func(context.Context) (time.Duration, error){}}
	f, err := os.Create(e.triples)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for lines := range (simulate.World{Seed: 1}).Lines(0, entities, entities) {
		e.lines += int64(bytes.Count(lines, []byte{'\n'}))
		if _, err := w.Write(lines); err != nil {
			return nil, err
		}
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return e, f.Close()
}

const benchGraph = "http://bench.example/g"

// store is a SPARQL store under measurement.
type store struct {
	query, update, data string
	stop                func()
	pid                 int
}

func oxigraph() store {
	base := os.Getenv(teststores.EnvOxigraph)
	return store{query: base + "/query", update: base + "/update", data: base + "/store", stop: func() {}}
}

// embedded starts `rsbridge store serve` in a process of its own.
func embedded(ctx context.Context, e *env) (store, error) {
	addr := freeAddr()
	dir, err := os.MkdirTemp(e.dir, "embedded-")
	if err != nil {
		return store{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), "store", "serve", dir, "--listen", addr)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return store{}, fmt.Errorf("start bin/rsbridge (make build): %w", err)
	}
	s := store{query: "http://" + addr + "/query", update: "http://" + addr + "/update", data: "http://" + addr + "/data", pid: cmd.Process.Pid,
		stop: func() { cmd.Process.Kill(); cmd.Wait(); os.RemoveAll(dir) }}
	for range 200 {
		if res, err := http.Get(s.query + "?query=" + url.QueryEscape("ASK {}")); err == nil {
			res.Body.Close()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return store{}, fmt.Errorf("the embedded store did not start")
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

func (s store) graph(g string) string { return s.data + "?graph=" + url.QueryEscape(g) }

// load posts the data in one request.
func (s store) load(ctx context.Context, e *env, graph string) (time.Duration, error) {
	return s.loadAt(ctx, e, s.graph(graph))
}

func (s store) loadAt(ctx context.Context, e *env, address string) (time.Duration, error) {
	f, err := os.Open(e.triples)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return timed(ctx, http.MethodPost, address, "application/n-triples", "", f)
}

// loadInPieces posts the data some 50,000 triples at a time, each of whole entities
// with their blank nodes.
func (s store) loadInPieces(ctx context.Context, e *env, graph string) error {
	post := func(piece []byte) error {
		_, err := timed(ctx, http.MethodPost, s.graph(graph), "application/n-triples", "", bytes.NewReader(piece))
		return err
	}
	var piece []byte
	for lines := range (simulate.World{Seed: 1}).Lines(0, e.n, e.n) {
		if piece = append(piece, lines...); len(piece) >= 6<<20 {
			if err := post(piece); err != nil {
				return err
			}
			piece = piece[:0]
		}
	}
	return post(piece)
}

func (s store) drop(ctx context.Context, graph string) error {
	return s.run(ctx, "DROP SILENT GRAPH <"+graph+">")
}

func (s store) run(ctx context.Context, update string) error {
	_, err := timed(ctx, http.MethodPost, s.update, "application/sparql-update; charset=utf-8", "", strings.NewReader(update))
	return err
}

// loaded gives the two stores with the data in them.
func (e *env) loaded(ctx context.Context) (ours, theirs store, err error) {
	if e.ours.stop != nil {
		return e.ours, e.theirs, nil
	}
	if ours, err = embedded(ctx, e); err != nil {
		return ours, theirs, err
	}
	theirs = oxigraph()
	err = theirs.drop(ctx, benchGraph)
	for _, s := range []store{ours, theirs} {
		if err == nil {
			_, err = s.load(ctx, e, benchGraph)
		}
	}
	if err != nil {
		ours.stop()
		return ours, theirs, err
	}
	e.ours, e.theirs = ours, theirs
	return ours, theirs, nil
}

// close stops the stores started by loaded, and removes the data.
func (e *env) close() {
	_ = e.dropKept() // its store ends with the run
	if e.ours.stop != nil {
		e.ours.stop()
	}
	for _, o := range []*origin{e.served, e.hints} {
		if o != nil {
			_ = o.close() // its folder goes with the rest
		}
	}
	if e.hintsMirror != nil {
		_ = e.hintsMirror.Close()
	}
	for _, dir := range e.spent {
		_ = os.RemoveAll(dir) // in a folder of the system's, or one kept by -dir
	}
	if e.keep {
		return
	}
	_ = os.RemoveAll(e.dir) // a folder of the system's for temporary files
}

// ask posts a query as a form (Virtuoso never answers one sent as the body), and reads the answer
// to its end.
func (s store) ask(ctx context.Context, query, accept string) (time.Duration, error) {
	return timed(ctx, http.MethodPost, s.query, "application/x-www-form-urlencoded", accept, strings.NewReader("query="+url.QueryEscape(query)))
}

// timed sends a request and discards the answer.
func timed(ctx context.Context, method, addr, contentType, accept string, body io.Reader) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, method, addr, body)
	if err != nil {
		return 0, err
	}
	if f, ok := body.(*os.File); ok { // Virtuoso takes nothing from a body in chunks
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		req.ContentLength = info.Size()
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return 0, fmt.Errorf("%s %s: %s: %s", method, addr, res.Status, why)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && method == http.MethodGet && n == 0 {
		err = fmt.Errorf("%s %s: the answer is empty", method, addr)
	}
	return time.Since(began), err
}
