package faces

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/internal/accept"
)

const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheAsk     = "public, no-cache" // may be kept, must be asked for
)

// statusError is a status and a reason, sent instead of a document.
type statusError struct {
	code   int
	reason string
	detail []string // advice, line by line
}

func (e *statusError) Error() string { return e.reason }

func notFound(format string, a ...any) *statusError {
	return &statusError{code: http.StatusNotFound, reason: fmt.Sprintf(format, a...)}
}

func gone(format string, a ...any) *statusError {
	return &statusError{code: http.StatusGone, reason: fmt.Sprintf(format, a...)}
}

func (e *statusError) hint(format string, a ...any) *statusError {
	e.detail = append(e.detail, fmt.Sprintf(format, a...))
	return e
}

// fail answers with an error, each line behind a #: a reader of Turtle, TriG or N-Quads finds an
// empty document.
func (f *Faces) fail(w http.ResponseWriter, r *http.Request, err error) {
	var se *statusError
	switch {
	case errors.As(err, &se):
	case r.Context().Err() != nil:
		se = &statusError{code: http.StatusServiceUnavailable, reason: "The request ended before the answer was ready."}
	default:
		f.log.Error("answering", "path", r.URL.EscapedPath(), "error", err)
		se = &statusError{code: http.StatusInternalServerError, reason: "The answer could not be made."}
		se.hint("What went wrong is in the log of the server; try again later.")
	}
	h := w.Header()
	h.Del("Etag")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	body := "# " + strings.Join(append([]string{se.reason}, se.detail...), "\n# ") + "\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(se.code)
	if r.Method != http.MethodHead {
		io.WriteString(w, body)
	}
}

// reply is an answer with a body written on the fly.
type reply struct {
	contentType string
	cache       string // Cache-Control
	etag        string // without quotes; "": none
	write       func(w *bufio.Writer) error
}

// send answers. If writing the body fails, it breaks the connection, so nobody takes the part for
// the whole.
func (q *request) send(a reply) {
	h := q.w.Header()
	packed := accept.Gzip(q.r.Header["Accept-Encoding"])
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", a.cache)
	if a.etag != "" {
		tag := a.etag
		if packed {
			tag += accept.GzipTag
		}
		h.Set("Etag", `"`+tag+`"`)
		if accept.Matches(q.r.Header["If-None-Match"], a.etag) {
			q.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", a.contentType)
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	if q.r.Method == http.MethodHead {
		return
	}
	var out io.Writer = q.w
	var z *gzip.Writer
	if packed {
		z, _ = gzip.NewWriterLevel(q.w, gzip.BestSpeed) // the level is one of the package
		out = z
	}
	b := bufio.NewWriterSize(out, 64<<10)
	err := a.write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil && z != nil {
		err = z.Close()
	}
	if err != nil {
		if q.r.Context().Err() == nil {
			q.f.log.Error("sending a page", "path", q.r.URL.EscapedPath(), "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

// sendBytes answers with a finished body, under an ETag of its bytes.
func (q *request) sendBytes(contentType string, body []byte) {
	q.send(reply{contentType: contentType, cache: cacheAsk, etag: etagOf(string(body)), write: func(w *bufio.Writer) error {
		_, err := w.Write(body)
		return err
	}})
}

// etagOf is a tag for bytes made of the given parts.
func etagOf(what ...any) string {
	h := sha256.New()
	for _, x := range what {
		fmt.Fprintf(h, "%v\x00", x)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
