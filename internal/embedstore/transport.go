package embedstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Transport is a way to Handler without a port: requests to any host with a
// path that ends in /query, /update or /data are answered in this process.
// Bodies stream both ways. An answer that fails in the middle gives its reader
// an error, never a clean end.
func (s *Store) Transport() http.RoundTripper { return &transport{h: s.Handler()} }

// errAborted is what the reader of an answer gets that was broken off.
var errAborted = errors.New("the embedded store broke off its answer")

type transport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	closeBody := func() {
		if req.Body != nil {
			req.Body.Close()
		}
	}
	if err := req.Context().Err(); err != nil {
		closeBody()
		return nil, context.Cause(req.Context())
	}
	n := strings.LastIndexByte(req.URL.Path, '/')
	if n < 0 {
		closeBody()
		return nil, fmt.Errorf("the embedded store has no address %s", req.URL)
	}
	ctx, cancel := context.WithCancel(req.Context())
	in := req.Clone(ctx)
	in.URL.Path, in.URL.RawPath = req.URL.Path[n:], ""
	in.RequestURI = in.URL.RequestURI()
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pw: pw, begun: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer cancel()
		defer stop()
		defer closeBody()
		defer func() {
			err := io.EOF
			if r := recover(); r != nil {
				err = errAborted
				if r != http.ErrAbortHandler {
					err = fmt.Errorf("%w: %v", errAborted, r)
				}
			} else if req.Context().Err() != nil {
				err = context.Cause(req.Context())
			}
			w.fail(err)
			pw.CloseWithError(err)
		}()
		t.h.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
	}()
	select {
	case <-w.begun:
	case <-req.Context().Done():
		cancel()
		<-w.begun
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		pr.Close()
		return nil, w.err
	}
	if err := req.Context().Err(); err != nil {
		pr.Close()
		cancel()
		return nil, context.Cause(req.Context())
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: -1, Request: req,
		Body: &pipeBody{PipeReader: pr, cancel: cancel},
	}, nil
}

// pipeBody ends the handler when its reader has had enough.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// pipeWriter is the answer of a handler as the other end of a pipe.
type pipeWriter struct {
	header http.Header
	pw     *io.PipeWriter
	begun  chan struct{} // closed when status or err is set

	mu     sync.Mutex
	status int
	sent   http.Header
	err    error
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 && w.err == nil {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	}
}

func (w *pipeWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 && w.err == nil {
		w.err = err
		close(w.begun)
	}
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(p)
}
