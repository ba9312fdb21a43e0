package sparql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/internal/attempts"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// request is one request, sendable several times.
type request struct {
	op          string
	method      string
	url         string
	contentType string
	accept      string
	body        func() (io.ReadCloser, error) // nil: none
	length      int64                         // of the body
	query       string                        // instead of a body: sent by sendQuery
}

func textBody(s string) (func() (io.ReadCloser, error), int64) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }, int64(len(s))
}

// response is a 2xx answer with a body read under the watchdog. Close it: it holds a slot of the
// client.
type response struct {
	header    http.Header
	status    int
	mediaType string
	body      *bodyReader
}

func (r *response) Close() { r.body.Close() }

// mayRepeat marks a query sent by POST as harmless: when the store has closed a kept connection, the
// query is sent again on a new one. net/http sends no header for it.
func mayRepeat(req *http.Request) { req.Header["Idempotency-Key"] = nil }

// onceKey marks a context whose requests are not repeated: a probe wants to see failures.
type onceKey struct{}

// toldRetries is the number of repetitions in any case after the store itself asked to come later
// (Retry-After): a busy store is no finding of a probe.
const toldRetries = 3

// comesBefore tells whether there is time to wait so long.
func comesBefore(ctx context.Context, wait time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Now().Add(wait).Before(end)
}

// retry runs try until it succeeds, fails for good, or the tries are used up. try must have no
// effect if it returns a repeatable error.
func (c *connection) retry(ctx context.Context, try func() error) (err error) {
	request := attempts.Begin(ctx, "store "+c.endpoint.Name+" "+c.endpoint.Query)
	defer func() { request.End(err == nil) }()
	pause := c.endpoint.RetryPause
	for n := 0; ; n++ {
		err = try()
		var e *Error
		if err == nil || !errors.As(err, &e) || !e.Temporary || ctx.Err() != nil {
			return err
		}
		told := e.retryAfter > 0 && n < toldRetries && comesBefore(ctx, e.retryAfter)
		if !told && (ctx.Value(onceKey{}) != nil || n >= c.endpoint.Retries || (e.once && n >= 1)) {
			return err
		}
		wait := pause + time.Duration(rand.Int64N(int64(pause)/4+1))
		if e.retryAfter > 5*time.Minute {
			e.Hint = fmt.Sprintf("the store asks to come back after %v", e.retryAfter)
			return err
		}
		wait = max(wait, e.retryAfter)
		c.log.Warn("request failed, will be tried again", "err", err, "pause", wait)
		request.Fail(attempts.Failed{Attempt: n + 2, At: time.Now().Add(wait), Why: err.Error()})
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

// send sends the request once (twice when the store asks for Digest
// authentication) and gives an answer of 2xx.
func (c *connection) send(ctx context.Context, r request) (*response, error) {
	at := redact(r.url)
	fail := func(err error) error { return &Error{Op: c.op(r.op), URL: at, Err: err} }
	if c.closed.Load() {
		return nil, fail(errors.New("the client is closed"))
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fail(context.Cause(ctx))
	}
	release := func() { <-c.slots }
	if err := c.pace.Wait(ctx); err != nil {
		release()
		return nil, fail(err)
	}
	own, cancel := context.WithCancelCause(ctx)
	dog := &watchdog{timeout: c.endpoint.Timeout, cancel: func() { cancel(errStalled) }, tell: func(rest time.Duration) {
		c.log.Warn("the store makes no progress; waiting", "op", r.op, "url", at, "for", webclient.TellsAfter, "until", time.Now().Add(rest).UTC().Format(time.RFC3339))
	}}
	give := func(err error) (*response, error) {
		dog.stop()
		cancel(nil)
		release()
		return nil, err
	}
	for try := 0; ; try++ {
		var body io.ReadCloser
		if r.body != nil {
			b, err := r.body()
			if err != nil {
				return give(fail(fmt.Errorf("open the body to be sent: %w", err)))
			}
			if body = (&upload{ReadCloser: b, dog: dog}); r.length == 0 {
				_ = b.Close()
				body = http.NoBody // or it would be sent in chunks
			}
		}
		req, err := http.NewRequestWithContext(own, r.method, r.url, body)
		if err != nil {
			if body != nil {
				_ = body.Close()
			}
			return give(fail(err))
		}
		if r.body != nil {
			req.ContentLength = r.length
			req.GetBody = func() (io.ReadCloser, error) {
				b, err := r.body()
				if err != nil {
					return nil, err
				}
				return &upload{ReadCloser: b, dog: dog}, nil
			}
			req.Header.Set("Content-Type", r.contentType)
		}
		if r.query != "" {
			mayRepeat(req)
		}
		if r.accept != "" {
			req.Header.Set("Accept", r.accept)
		}
		if isLoopback(req.URL.Hostname()) {
			req.Header.Set("Accept-Encoding", "identity") // packing costs more than it saves here
		} else {
			req.Header.Set("Accept-Encoding", "gzip")
		}
		c.auth.sign(req)
		c.requests.Add(1)
		dog.start()
		dog.sending.Store(true)
		began := time.Now()
		res, err := c.http.Do(req)
		dog.sending.Store(false)
		dog.stop()
		if r.query != "" || r.method == http.MethodGet { // the time of a write depends on its size
			if pause := c.pace.Took(time.Since(began)); pause > 0 {
				c.log.Info("the store answers slowly; requests pause", "op", r.op, "took", time.Since(began), "pause", pause)
			}
		}
		if err != nil {
			var u *url.Error
			if errors.As(err, &u) {
				err = webguard.MaskedError(u.Err)
			}
			if try == 0 && r.length > expectFrom && c.askChallenge(own, r.url, dog) {
				continue
			}
			return give(c.transportError(own, ctx, r.op, at, err))
		}
		c.noteHeaders(res.Header)
		if res.StatusCode/100 != 2 {
			dog.start()
			text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // the start is enough, and may be cut
			_, _ = io.CopyN(io.Discard, res.Body, 64<<10)          // to reuse the connection
			_ = res.Body.Close()
			dog.stop()
			c.bytes.Add(int64(len(text)))
			if res.StatusCode == http.StatusUnauthorized && try < 2 && c.auth.learn(res) {
				continue
			}
			return give(c.statusError(r.op, at, res, c.excerpt(text)))
		}
		if isPartial(res) {
			_ = res.Body.Close()
			return give(&Error{Op: c.op(r.op), URL: at, Status: res.StatusCode, Err: ErrTruncated,
				Hint: "the store sent what it had found when its time was over: raise that (Virtuoso: ExecutionTimeout, MaxQueryExecutionTime)"})
		}
		out := &response{header: res.Header, status: res.StatusCode}
		out.mediaType, _, _ = mime.ParseMediaType(res.Header.Get("Content-Type"))
		out.body = &bodyReader{
			raw: res.Body, src: res.Body, left: res.ContentLength, dog: dog, conn: c,
			wrap: func(err error) error {
				return c.transportError(own, ctx, r.op, at, err)
			},
			release: func() { cancel(nil); release() },
		}
		packed, err := webclient.Packed(res.Header)
		if err == nil && packed > 1 {
			err = errors.New("the answer is packed more than once")
		}
		if err != nil {
			out.Close()
			return nil, fail(err)
		}
		out.body.packed = packed > 0
		return out, nil
	}
}

// askChallenge asks a store for its challenge, without a body, if it has not given one so far. A
// slow store may have refused the credentials and ended the connection during a body, so its answer
// was lost. It tells whether signing anew can help.
func (c *connection) askChallenge(ctx context.Context, url string, dog *watchdog) bool {
	if !c.auth.guesses() {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return false
	}
	c.requests.Add(1)
	dog.start()
	defer dog.stop()
	res, err := c.http.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusUnauthorized && c.auth.learn(res)
}

// exec sends a request without use for its answer, with retries.
func (c *connection) exec(ctx context.Context, r request) error {
	return c.retry(ctx, func() error {
		res, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer res.Close()
		if _, err := io.CopyN(io.Discard, res.body, 1<<20); err != nil && err != io.EOF {
			return err
		}
		return nil
	})
}

func (c *connection) op(op string) string {
	if c.endpoint.Name == "" {
		return op
	}
	return op + " store " + c.endpoint.Name + " at"
}

// wrongType is the error of an answer in an unrequested format. want is a noun.
func (c *connection) wrongType(op, address string, res *response, want string) error {
	head, _ := io.ReadAll(io.LimitReader(res.body, 512)) // for the message only
	came := res.header.Get("Content-Type")
	if came == "" {
		came = "no Content-Type"
	}
	return &Error{
		Op: c.op(op), URL: redact(address), Body: c.excerpt(head), garbled: true,
		Err:  fmt.Errorf("the answer is %s, wanted %s", came, want),
		Hint: "is this the address of a SPARQL service, and not of its web page?",
	}
}

func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return shown(u)
}

// Redact is an address for printing: without the password, and without values of fields with a
// secret's name, like QLever's access-token.
func Redact(address string) string { return redact(address) }

// WithoutToken is an address without the value of an access token or password in its query: it is a
// key, and no part of the name. Unlike Redact it keeps fields that may be part of the name, like
// keyspace=a.
func WithoutToken(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return without(u, webguard.IsToken).String()
}

func shown(u *url.URL) string { return without(u, webguard.IsSecret).Redacted() }

// without is an address with xxxxx for the values of some fields.
func without(u *url.URL, hide func(name string) bool) *url.URL {
	out := *u
	out.RawQuery = webguard.WithoutFields(u.RawQuery, hide)
	return &out
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// watchdog cancels a request without progress, and says before that it waits. It runs only while
// the request waits for the network, never while the reader of the rows is busy.
type watchdog struct {
	timeout time.Duration
	cancel  func()
	tell    func(rest time.Duration)
	timer   *webclient.Patience
	sending atomic.Bool // the transport may still read the body when Do has returned
}

func (w *watchdog) start() {
	if w.timer == nil {
		w.timer = webclient.NewPatience(w.timeout, w.cancel, w.tell)
		return
	}
	w.timer.Reset(w.timeout)
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// upload feeds the watchdog while a body is sent.
type upload struct {
	io.ReadCloser
	dog  *watchdog
	sent int
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.sent += n
	if u.dog.sending.Load() && (n > 0 || err == io.EOF) {
		// The last bytes, and the work for the whole upload, take the store time.
		u.dog.timer.Reset(u.dog.timeout + time.Duration(u.sent/1e6)*time.Second)
	}
	return n, err
}

// bodyReader reads an answer: under the watchdog, unpacked, and with an error for every way of
// ending early.
type bodyReader struct {
	raw     io.ReadCloser
	src     io.Reader
	packed  bool
	left    int64 // of Content-Length; -1 unknown
	dog     *watchdog
	conn    *connection
	wrap    func(error) error
	release func()
	closed  bool
	err     error
}

// Read gives unpacked bytes.
func (b *bodyReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.packed {
		b.packed = false
		zr, err := gzip.NewReader(rawReader{b})
		if err != nil {
			return 0, b.fail(err)
		}
		b.src = zr
	} else if b.src == io.Reader(b.raw) {
		b.src = rawReader{b}
	}
	n, err := b.src.Read(p)
	if err != nil && err != io.EOF {
		return n, b.fail(err)
	}
	if err == io.EOF {
		b.err = err
	}
	return n, err
}

func (b *bodyReader) fail(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.err = b.wrap(err)
	return b.err
}

// Close gives the slot and the connection back.
func (b *bodyReader) Close() {
	if b.closed {
		return
	}
	b.closed = true
	_ = b.raw.Close() // nothing is lost: the body was read to its end, or is given up
	b.dog.stop()
	b.release()
}

// rawReader reads the bytes as sent and checks their number.
type rawReader struct{ b *bodyReader }

func (r rawReader) Read(p []byte) (int, error) {
	b := r.b
	b.dog.start()
	n, err := b.raw.Read(p)
	b.dog.stop()
	b.conn.bytes.Add(int64(n))
	if b.left >= 0 {
		b.left -= int64(n)
		if b.left < 0 || (err == io.EOF && b.left > 0) {
			return n, io.ErrUnexpectedEOF
		}
	}
	if err != nil && err != io.EOF { // a connection reset, or the end of a stream of HTTP/2, ends the answer too
		err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return n, err
}
