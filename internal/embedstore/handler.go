package embedstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/rdfres"
)

// maxText is the longest query, and the longest form, accepted; publicText is the longest from the
// public. Both are held in memory.
const (
	maxText    = 256 << 20
	publicText = 8 << 20
)

// Handler serves the SPARQL 1.1 Protocol at /query and /update and the Graph Store Protocol at
// /data, relative to its mount point (use http.StripPrefix). A graph whose IRI is an address below
// /data is served there too. An answer failing in the middle aborts the connection.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/query", s.wrap(func(w *response, r *http.Request) error { return s.serveQuery(w, r, maxText, endpointOf(r)) }))
	mux.HandleFunc("/update", s.wrap(s.serveUpdate))
	mux.HandleFunc("/data", s.wrap(s.serveData))
	mux.HandleFunc("/data/", s.wrap(s.serveData))
	return mux
}

// QueryHandler serves the query part of the SPARQL Protocol only, at any path, to anybody and to
// pages of any origin: its texts are shorter. endpoint is its address for the service description.
func (s *Store) QueryHandler(endpoint string) http.Handler {
	serve := s.wrap(func(w *response, r *http.Request) error { return s.serveQuery(w, r, publicText, endpoint) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "*")
		if r.Method == http.MethodOptions {
			h.Set("Allow", queryMethods+", OPTIONS")
			h.Set("Access-Control-Allow-Methods", queryMethods+", OPTIONS")
			h.Set("Access-Control-Allow-Headers", "Accept, Content-Encoding, Content-Type")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		serve(w, r)
	})
}

const queryMethods = "GET, HEAD, POST"

// endpointOf is the address of a request without its parameters.
func endpointOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	path, _, _ := strings.Cut(r.RequestURI, "?") // as it was before http.StripPrefix
	if !strings.HasPrefix(path, "/") {
		path = r.URL.EscapedPath()
	}
	return scheme + "://" + r.Host + path
}

// httpError is an answer other than the wished one.
type httpError struct {
	status int
	allow  string
	err    error
}

func (e *httpError) Error() string { return e.err.Error() }
func (e *httpError) Unwrap() error { return e.err }

func refuse(status int, format string, args ...any) error {
	return &httpError{status: status, err: fmt.Errorf(format, args...)}
}

// statusOf is the one table from errors to status codes.
func statusOf(err error) int {
	var (
		he     *httpError
		syntax *SyntaxError
		input  *InputError
		budget *BudgetError
		large  *http.MaxBytesError
	)
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &he):
		return he.status
	case errors.As(err, &syntax), errors.As(err, &input):
		return http.StatusBadRequest
	case errors.As(err, &budget):
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrUnsupported):
		return http.StatusNotImplemented
	case errors.Is(err, ErrClosed), errors.Is(err, ErrGone):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.Canceled):
		return 499
	case guardfs.IsFull(err):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

// wrap turns the error of a handler into an answer, or, when the answer has begun, into an aborted
// connection, so nobody takes half for the whole.
func (s *Store) wrap(h func(w *response, r *http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		w := &response{ResponseWriter: rw}
		w.Header().Set("Server", "rsbridge-embedstore")
		if r.Body != nil {
			r.Body = http.MaxBytesReader(rw, r.Body, s.opts.MaxBodyBytes)
		}
		err := s.decompress(r)
		if err == nil {
			err = h(w, r)
		}
		if err == nil {
			return
		}
		status := statusOf(err)
		if status >= 500 && status != http.StatusNotImplemented && r.Context().Err() == nil {
			s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		if w.begun {
			panic(http.ErrAbortHandler)
		}
		var he *httpError
		if errors.As(err, &he) && he.allow != "" {
			w.Header().Set("Allow", he.allow)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			io.WriteString(w, err.Error()+"\n")
		}
	}
}

// response knows whether the answer has begun.
type response struct {
	http.ResponseWriter
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Store) decompress(r *http.Request) error {
	switch enc := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return refuse(http.StatusBadRequest, "the body is not gzip: %w", err)
		}
		body := r.Body
		r.Body = http.MaxBytesReader(nil, struct {
			io.Reader
			io.Closer
		}{z, body}, s.opts.MaxBodyBytes)
		return nil
	default:
		return refuse(http.StatusUnsupportedMediaType, "Content-Encoding %q: gzip is taken, or none", enc)
	}
}

func notAllowed(r *http.Request, allow string) error {
	return &httpError{status: http.StatusMethodNotAllowed, allow: allow, err: fmt.Errorf("%s is not allowed here: use %s", r.Method, allow)}
}

// bodyType is the media type of the body without parameters.
func bodyType(r *http.Request) (string, error) {
	ct := r.Header.Get("Content-Type")
	if ct == "" {
		return "", nil
	}
	t, params, err := mime.ParseMediaType(ct)
	if err != nil {
		return "", refuse(http.StatusUnsupportedMediaType, "Content-Type %q: %w", ct, err)
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") && !strings.EqualFold(cs, "us-ascii") {
		return "", refuse(http.StatusUnsupportedMediaType, "charset %q: only UTF-8 is taken", cs)
	}
	return t, nil
}

func readText(r *http.Request, most int64) (string, error) {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	return string(data), bodyError(err)
}

// bodyError blames the sender's body, not the store.
func bodyError(err error) error {
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) || errors.Is(err, context.Canceled) {
		return err
	}
	return refuse(http.StatusBadRequest, "read the body: %w", err)
}

// parameters are those of the SPARQL Protocol: of the address, and of a form.
func parameters(r *http.Request, direct, what string, most int64) (url.Values, string, error) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, "", refuse(http.StatusBadRequest, "the address: %w", err)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return params, params.Get(what), checkOnce(params, what)
	}
	t, err := bodyType(r)
	if err != nil {
		return nil, "", err
	}
	switch t {
	case direct:
		return params, "", nil
	case "application/x-www-form-urlencoded":
		text, err := readText(r, most)
		if err != nil {
			return nil, "", err
		}
		form, err := url.ParseQuery(text)
		if err != nil {
			return nil, "", refuse(http.StatusBadRequest, "the form: %w", err)
		}
		for k, v := range form {
			params[k] = append(params[k], v...)
		}
		return params, params.Get(what), checkOnce(params, what)
	}
	return nil, "", refuse(http.StatusUnsupportedMediaType, "Content-Type %q: send %s, or a form with the field %s", t, direct, what)
}

func checkOnce(params url.Values, what string) error {
	if n := len(params[what]); n != 1 {
		return refuse(http.StatusBadRequest, "the request has %d parameters named %s: it needs one", n, what)
	}
	return nil
}

func (s *Store) serveQuery(w *response, r *http.Request, most int64, endpoint string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead {
		return notAllowed(r, queryMethods)
	}
	if r.Method != http.MethodPost && r.URL.RawQuery == "" {
		return s.describeService(w, r, endpoint)
	}
	params, text, err := parameters(r, "application/sparql-query", "query", most)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost && !params.Has("query") {
		if text, err = readText(r, most); err != nil {
			return err
		}
	}
	res, err := s.Query(r.Context(), text, QueryOptions{Base: endpoint, DefaultGraphs: params["default-graph-uri"], NamedGraphs: params["named-graph-uri"]})
	if err != nil {
		return err
	}
	defer res.Close()
	w.Header().Set("Vary", "Accept")
	if res.Kind == Graph {
		f, ok := negotiate(r.Header.Values("Accept"), graphOffers)
		if !ok {
			return notAcceptable(graphOffers)
		}
		w.Header().Set("Content-Type", rdfres.Format(f).ContentType())
		if r.Method == http.MethodHead {
			return nil
		}
		return res.WriteGraph(w, rdfres.Format(f))
	}
	f, ok := negotiate(r.Header.Values("Accept"), rowOffers)
	if !ok {
		return notAcceptable(rowOffers)
	}
	w.Header().Set("Content-Type", rowFormat(f).contentType())
	if r.Method == http.MethodHead {
		return nil
	}
	return res.writeRows(w, rowFormat(f))
}

func (s *Store) serveUpdate(w *response, r *http.Request) error {
	if r.Method != http.MethodPost {
		return notAllowed(r, "POST")
	}
	params, text, err := parameters(r, "application/sparql-update", "update", maxText)
	if err != nil {
		return err
	}
	o := UpdateOptions{Base: endpointOf(r), DefaultGraphs: params["using-graph-uri"], NamedGraphs: params["using-named-graph-uri"]}
	var body io.Reader = strings.NewReader(text)
	if !params.Has("update") {
		sp, err := s.spoolBody(r.Body)
		if err != nil {
			return bodyError(err)
		}
		defer sp.discard()
		body = sp.r
	}
	if err := s.UpdateFrom(r.Context(), body, o); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// spooled is a body received whole, so a slow sender keeps no other writer waiting.
type spooled struct {
	r io.Reader
	f *os.File
}

var bodyNumber atomic.Int64

func (s *Store) spoolBody(body io.Reader) (*spooled, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.done()
	var head bytes.Buffer
	n, err := io.CopyN(&head, body, 1<<20)
	if err == io.EOF {
		return &spooled{r: &head}, nil
	}
	if err != nil {
		return nil, err
	}
	_ = n
	f, err := ownfile.Create(s.tmp("body" + strconv.FormatInt(bodyNumber.Add(1), 10)))
	if err != nil {
		return nil, err
	}
	sp := &spooled{f: f, r: f}
	if _, err := io.Copy(f, io.MultiReader(&head, body)); err != nil {
		sp.discard()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		sp.discard()
		return nil, err
	}
	return sp, nil
}

func (p *spooled) discard() {
	if p.f != nil {
		p.f.Close()
		os.Remove(p.f.Name())
	}
}
