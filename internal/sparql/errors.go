package sparql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// ErrTruncated marks an answer cut off before its end.
var ErrTruncated = errors.New("the answer was cut off before its end")

// ErrReadOnly marks a write to an endpoint without an address for it.
var ErrReadOnly = errors.New("the store has no address for writing")

// ErrNoGraphStore marks a Graph Store request to an endpoint without one.
var ErrNoGraphStore = errors.New("the store has no Graph Store address")

// errStalled ends a request without progress for Endpoint.Timeout.
var errStalled = errors.New("no progress within the timeout")

// errNotW3CTSV marks tab-separated values with IRIs and literals alike.
var errNotW3CTSV = errors.New("tab-separated values are not in the W3C form: IRIs and literals cannot be told apart")

// errNotForTable marks an answer better, or only, available in another form than RDF4J's binary
// results: from then on the client asks for JSON instead.
var errNotForTable = errors.New("not for the binary form")

// Error is a failed request: the operation, its address, the HTTP status (0 without an answer), the
// start of the answer's body, whether a repetition can help, and advice for a person.
type Error struct {
	Op, URL   string
	Status    int
	Body      string
	Temporary bool
	Hint      string
	Err       error

	retryAfter time.Duration // pause requested by the store
	once       bool          // one repetition is enough
	garbled    bool          // the answer, or its end, is something else
}

// Error says operation, address, cause and hint in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sparql: %s %s: ", e.Op, e.URL)
	switch {
	case e.Status != 0 && e.Err != nil:
		fmt.Fprintf(&b, "%d %s: %v", e.Status, http.StatusText(e.Status), e.Err)
	case e.Status != 0:
		fmt.Fprintf(&b, "%d %s", e.Status, http.StatusText(e.Status))
	default:
		fmt.Fprintf(&b, "%v", e.Err)
	}
	if e.Body != "" {
		fmt.Fprintf(&b, ": %q", e.Body)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause, nil for a plain HTTP status.
func (e *Error) Unwrap() error { return e.Err }

// Unreachable tells whether the store, or a proxy in front of it, gave no answer of its own.
func (e *Error) Unreachable() bool {
	return webguard.GatewayStatus(e.Status) || webguard.NoAnswer(e.Err) || errors.Is(e.Err, errStalled)
}

// IsTooLarge tells whether the store refused a request or an answer for its size, or may have: half
// as much may pass. So may a request answered with errNotForTable, since the form changes then. An
// answer with a wrong end, in the text of an error say, may have been too long too.
func IsTooLarge(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.garbled || errors.Is(err, errStalled) || errors.Is(err, ErrTruncated) || errors.Is(err, errNotForTable)
}

// momentary tells whether a failure describes only the store's state at that moment: no answer, a
// busy store, or a broken answer.
func momentary(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Temporary && !e.once || errors.Is(err, ErrTruncated)
}

// IsStalled tells whether a request ended because it made no progress.
func IsStalled(err error) bool { return errors.Is(err, errStalled) }

// statusError reads an answer with another status than 2xx.
func (c *connection) statusError(op, url string, res *http.Response, text string) *Error {
	e := &Error{Op: c.op(op), URL: url, Status: res.StatusCode, Body: text}
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized && foreignSchemes(res.Header) != "":
		e.Hint = fmt.Sprintf("the store asks for %s authentication; rsbridge has Basic and Digest (MD5, SHA-256): allow one of them there, or put a proxy before the store that adds what it asks for", foreignSchemes(res.Header))
	case s == http.StatusUnauthorized && c.endpoint.Username == "":
		e.Hint = "the store asks for credentials: " + c.credentials("give")
	case s == http.StatusUnauthorized:
		e.Hint = "credentials were refused: " + c.credentials("check")
	case s == http.StatusForbidden:
		e.Hint = "not allowed: does the user have this right? Virtuoso needs GRANT for updates, or its /sparql-auth address"
	case s == http.StatusNotFound:
		e.Hint = "nothing at this address: check the address of the store and its dataset or repository name"
	case s == http.StatusMethodNotAllowed:
		e.Hint = "this address does not take this kind of request: are the addresses for queries, updates and the Graph Store mixed up, or is the store read-only?"
	case s == http.StatusNotAcceptable || s == http.StatusUnsupportedMediaType:
		e.Hint = "the store does not speak this format or does not take direct POST bodies"
	case s == http.StatusRequestEntityTooLarge || s == http.StatusRequestURITooLong:
		e.Hint = "the request is too large for the store: smaller batches, or a larger limit there"
	case s == http.StatusBadRequest:
		e.Hint = "the store did not understand the query, or it was too long for it"
	case s == http.StatusTooManyRequests:
		e.Temporary, e.Hint = true, "the store asks to slow down: lower "+c.endpoint.Names.Of("concurrency")
	case s == http.StatusRequestTimeout, s == http.StatusBadGateway, s == http.StatusServiceUnavailable, s == http.StatusGatewayTimeout:
		e.Temporary, e.Hint = true, "the store is overloaded or starting, or the query takes it too long"
	case s == http.StatusInsufficientStorage:
		e.Hint = "the disk of the store is full"
	case s >= 500:
		e.Temporary, e.once, e.Hint = true, true, "the store failed: its log says why"
	case s >= 300 && s < 400:
		e.Hint = fmt.Sprintf("the store points to %q: use that address", res.Header.Get("Location"))
	}
	e.retryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
	return e
}

// credentials is advice about user and password.
func (c *connection) credentials(do string) string {
	return fmt.Sprintf("%s %s and %s", do, c.endpoint.Names.Of("username"), c.endpoint.Names.Of("password_file"))
}

// transportError explains an error without an answer.
func (c *connection) transportError(ctx, parent context.Context, op, url string, err error) *Error {
	e := &Error{Op: c.op(op), URL: url, Err: err}
	var dns *net.DNSError
	switch {
	case parent.Err() != nil:
		e.Err = context.Cause(parent)
	case errors.Is(context.Cause(ctx), errStalled):
		e.Err = fmt.Errorf("%w of %v", errStalled, c.endpoint.Timeout)
		e.Temporary, e.once = true, true
		e.Hint = "the store is too slow for this: raise " + c.endpoint.Names.Of("timeout")
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Temporary, e.Hint = true, "nobody listens there: is the store running?"
	case errors.As(err, &dns):
		e.Temporary, e.Hint = dns.IsTemporary, "the host name is not known: is it spelled right?"
	case webguard.Hint(err) != "":
		e.Hint = webguard.Hint(err)
	case errors.Is(err, errRedirect):
		e.Hint = "use the address that the store points to"
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Err, e.Temporary = fmt.Errorf("%w: %w", ErrTruncated, err), true
		e.Hint = "the store or a proxy ended the answer: a limit of time or size there?"
	default:
		var unknown *net.OpError
		e.Temporary = errors.As(err, &unknown) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	}
	return e
}

// isPartial tells whether the store marks an answer as partial: Virtuoso gives the rows found
// within the time of a query.
func isPartial(res *http.Response) bool {
	return res.StatusCode == http.StatusPartialContent || res.Header.Get("X-Sql-State") == "S1TAT"
}

// retryAfter reads the header: seconds or a date. 0: not given.
func retryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	var seconds int
	if _, err := fmt.Sscanf(value, "%d", &seconds); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 24*3600)) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}

// excerpt is the start of a body, for a message: one line, at most 300 bytes. A store may
// repeat the request in it: our secrets are taken out.
func (c *connection) excerpt(body []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(c.secrets.Replace(string(body)), "?")), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}
