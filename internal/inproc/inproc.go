// Package inproc carries HTTP requests to a handler of the same process, without
// a socket, streaming both bodies.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Transport is an http.RoundTripper that answers every request from Handler. The
// response is handed out at the handler's first write, and its body streams. A
// handler that panics, http.ErrAbortHandler included, gives an error and never a
// clean end: from RoundTrip when nothing was written yet, else to the reader of
// the body. Ending the request's context, or closing the response's body, ends
// the handler's context and its writes.
type Transport struct{ Handler http.Handler }

// RoundTrip serves req.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, context.Cause(req.Context())
	}
	ctx, cancel := context.WithCancel(req.Context())
	r := req.Clone(ctx)
	r.RequestURI = req.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0"
	if r.Host == "" {
		r.Host = req.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	pr, pw := io.Pipe()
	w := &writer{header: http.Header{}, pipe: pw, ready: make(chan struct{}), head: req.Method == http.MethodHead}
	// A client that gave up takes no more: the handler's next write fails.
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	go func() { // ends with the handler; the pipe's reader is told how
		defer cancel()
		defer stop()
		defer r.Body.Close()
		err := ErrAborted
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				err = fmt.Errorf("%w: it panicked: %v", ErrAborted, p)
			}
			if req.Context().Err() != nil && err != nil {
				err = context.Cause(req.Context())
			}
			w.begin(0, err) // nothing, when an answer has begun
			pw.CloseWithError(err)
		}()
		t.Handler.ServeHTTP(w, r)
		if req.Context().Err() == nil { // else an answer cut off at that moment may look whole
			w.WriteHeader(http.StatusOK)
			err = nil
		}
	}()
	select {
	case <-w.ready:
	case <-req.Context().Done():
	}
	if req.Context().Err() != nil { // when both came, the answer is one to being given up
		// The handler goes on for nobody; it owns the request's
		// body until it ends, as with any transport.
		cancel()
		pr.CloseWithError(context.Cause(req.Context()))
		return nil, context.Cause(req.Context())
	}
	if w.err != nil {
		pr.Close()
		return nil, w.err
	}
	res := &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Request: req, ContentLength: -1,
		Body: &body{PipeReader: pr, cancel: cancel},
	}
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		res.ContentLength = n
	}
	return res, nil
}

// ErrAborted is an answer left unfinished by its handler.
var ErrAborted = errors.New("the answer was broken off by the server")

// body ends the handler when its reader has had enough.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// writer is the handler's side.
type writer struct {
	header http.Header
	pipe   *io.PipeWriter
	head   bool

	once   sync.Once
	ready  chan struct{} // closed when the fields below are set
	sent   http.Header
	status int
	err    error
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if status < 100 || status >= 200 {
		w.begin(status, nil)
	}
}

func (w *writer) begin(status int, err error) {
	w.once.Do(func() {
		w.status, w.sent, w.err = status, w.header.Clone(), err
		close(w.ready)
	})
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.head || len(p) == 0 {
		return len(p), nil
	}
	return w.pipe.Write(p)
}

// Flush is there for streaming handlers: every write is seen at once.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }
