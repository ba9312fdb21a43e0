package fairconn

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	bodyGap  = 30 * time.Second // for each stepBytes of a body
	bodyRest = 5 * time.Second  // for the part a handler leaves unread
)

// ErrSlowBody comes from a request body that arrives too slowly.
var ErrSlowBody = fmt.Errorf("the body came slower than %d bytes in %v", stepBytes, bodyGap)

// steadyBody fails when its sender makes no progress. A body of any length may take any
// time.
type steadyBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	conn  *conn
	left  time.Duration // of waiting for the rest of the step
	got   int           // in the step
	ended bool          // nothing more comes
	slow  func()        // logs it
}

// Body makes a request's body fail when it comes too slowly, with ErrSlowBody. finish is
// for after the handler.
func (l *Listener) Body(w http.ResponseWriter, r *http.Request) (finish func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	c, _ := r.Context().Value(connKey{}).(*conn)
	b := &steadyBody{ReadCloser: r.Body, conn: c, rc: http.NewResponseController(w), slow: func() {
		l.tell("a request body came too slowly and was given up", "client", r.RemoteAddr, "path", r.URL.Path)
	}}
	r.Body = b
	b.conn.awaits(true)
	_ = b.rc.SetReadDeadline(time.Now().Add(bodyRest)) // http.Server reads the body itself when a handler answers without it
	return func() {
		if !b.ended { // http.Server reads on for a while
			_ = b.rc.SetReadDeadline(time.Now().Add(bodyRest)) // a closed connection needs none
		}
	}
}

func (b *steadyBody) Read(p []byte) (int, error) {
	began := time.Now()
	if b.left == 0 || b.got >= stepBytes {
		b.left, b.got = bodyGap, 0
	}
	if err := b.rc.SetReadDeadline(began.Add(b.left)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.got += n
	b.left = max(b.left-time.Since(began), 1) // the handler's own time does not count
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.slow()
		b.ended, err = true, ErrSlowBody // the deadline stays: nothing more is read
	case err != nil:
		b.ended = true
		_ = b.rc.SetReadDeadline(time.Time{}) // as before
	}
	b.conn.awaits(!b.ended)
	return n, err
}
