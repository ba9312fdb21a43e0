// Package inproc carries HTTP requests to a handler of the same process, without
// a socket, streaming both bodies.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Transport is an http.RoundTripper that answers every request from Handler. The
// response is handed out at the handler's first write, and its body streams; a
// handler that panics, http.ErrAbortHandler included, gives the reader an error
// and not a clean end. Ending the request's context, or closing the response's
// body, ends the handler's context and its writes.
type Transport struct{ Handler http.Handler }

// RoundTrip serves req.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
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
	go func() { // ends with the handler; the pipe's reader is told how
		defer cancel()
		defer r.Body.Close()
		err := errAborted
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				err = fmt.Errorf("the handler panicked: %v", p)
			}
			w.WriteHeader(http.StatusOK)
			pw.CloseWithError(err)
		}()
		t.Handler.ServeHTTP(w, r)
		err = nil
	}()
	select {
	case <-w.ready:
	case <-ctx.Done():
		select {
		case <-w.ready: // the handler may have ended at the same moment
		default:
			pr.CloseWithError(ctx.Err())
			return nil, ctx.Err()
		}
	}
	stop := context.AfterFunc(req.Context(), func() { pr.CloseWithError(req.Context().Err()) })
	res := &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Request: req, ContentLength: -1,
		Body: &body{PipeReader: pr, close: func() { stop(); cancel() }},
	}
	if n := w.sent.Get("Content-Length"); n != "" {
		var l int64
		if _, err := fmt.Sscan(n, &l); err == nil {
			res.ContentLength = l
		}
	}
	return res, nil
}

var errAborted = errors.New("the answer was aborted by the server")

type body struct {
	*io.PipeReader
	close func()
}

func (b *body) Close() error {
	err := b.PipeReader.Close()
	b.close()
	return err
}

// writer is the handler's side.
type writer struct {
	header http.Header
	sent   http.Header
	status int
	once   sync.Once
	ready  chan struct{}
	pipe   *io.PipeWriter
	head   bool
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
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

// Flush is there for handlers that stream: every write is seen at once.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }
