package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/internal/attempts"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Error is a failed request: its address and response, whether asking again can help, and
// whether the thing is absent.
type Error struct {
	URL       string
	Status    int
	Temporary bool
	Gone      bool // 404 or 410
	Wait      time.Duration
	Err       error
}

func (e *Error) Error() string {
	return fmt.Sprintf("GET %s: %v%s", clip.Middle(webguard.MaskedText(e.URL)), e.Err, e.hint())
}

// hint is advice for a person.
func (e *Error) hint() string {
	switch {
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return " (the answer was cut off: a limit of time or size at the source or a proxy?)"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return " (the source lets in only who it knows)"
	case e.Gone:
		return " (it is not there: is the address right, or does the source announce what it does not have?)"
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusServiceUnavailable:
		return " (the source is overloaded or starting: try again later)"
	case e.Status >= 500:
		return " (the source failed: its log says why)"
	case e.Status != 0:
		return ""
	}
	if h := webguard.Hint(e.Err); h != "" {
		return " (" + h + ")"
	}
	return ""
}
func (e *Error) Unwrap() error { return e.Err }

// Unreachable tells whether the source, or a proxy in front of it, gave no answer of its own.
func (e *Error) Unreachable() bool {
	return webguard.GatewayStatus(e.Status) || webguard.NoAnswer(e.Err) || errors.Is(e.Err, ErrStalled)
}

var (
	// ErrTooLarge marks a body over its limit.
	ErrTooLarge = errors.New("body is too large")
	// ErrStalled marks a body without progress, or too slow.
	ErrStalled = errors.New("no progress")

	errNoAnswer = fmt.Errorf("%w: no answer", ErrStalled)
	// errSourceGone ends a run: the source does not answer any more, and taking
	// note of every single resource would say nothing.
	ErrSourceGone = errors.New("the source does not answer")
)

// Client makes every request of a destination to its source: only to allowed
// hosts, bounded in size and time, repeated if it can help.
type Client struct {
	client  *http.Client
	hosts   webguard.Rules
	names   settings.Names
	source  *url.URL // with the user name and password for its host
	shown   string
	secrets *webguard.Secrets // of the source's address: nothing above the client sees them
	lim     *Limits
	sem     chan struct{}
	now     func() time.Time
	// sleep is the pause before another attempt. A test may replace it before the first request.
	Sleep func(context.Context, time.Duration) error
	log   *slog.Logger
	jar   webclient.Cookies // of this run

	fresh    atomic.Bool // for the rest of this run caches shall ask the source
	bytes    atomic.Int64
	requests atomic.Int64
	runs     atomic.Int64
	failures atomic.Int64 // in a row, after all attempts
}

// Options are the settings of a Client; the zero value is one request at a time to the
// source's own host, under the default limits.
type Options struct {
	Names       settings.Names    // of the settings in hints
	Allow       []string          // further hosts, as webguard.ParseRule reads them
	Concurrency int               // requests at once; 0: 1
	Agent       string            // User-Agent
	Transport   http.RoundTripper // nil: a transport of its own
	Limits      *Limits           // nil: the default limits
	Now         func() time.Time  // nil: time.Now
	Log         *slog.Logger      // nil: none
}

// Shown hides the secrets of the source's address in a document that repeats them.
func (f *Client) Shown(document io.Reader) io.Reader { return f.secrets.Reader(document) }

// NewClient makes the Client for a source. The source's address may hold a name and a
// password; only its own host is told them.
func NewClient(source string, o Options) (*Client, error) {
	o.Concurrency = max(o.Concurrency, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	lim := o.Limits
	if lim == nil {
		d := DefaultLimits()
		lim = &d
	}
	shown, _, secrets := webguard.Hide(source)
	u, err := webguard.Parse(source)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("source %q is not an http or https address", webguard.Masked(source))
	}
	f := &Client{names: o.Names, source: u, shown: shown, secrets: secrets, lim: lim, sem: make(chan struct{}, o.Concurrency), now: o.Now, Sleep: Sleep, log: o.Log}
	f.hosts = append(f.hosts, webguard.Rule{Host: strings.ToLower(u.Hostname()), Port: webguard.Port(u), Own: true})
	for _, a := range o.Allow {
		r, err := webguard.ParseRule(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Names.Of("allow"), err)
		}
		f.hosts = append(f.hosts, r)
	}
	transport := o.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true
		t.MaxIdleConnsPerHost = o.Concurrency + 2
		t.MaxIdleConns = o.Concurrency + 8
		t.MaxResponseHeaderBytes = 64 << 10
		transport = t
	}
	f.client = &http.Client{Transport: secrets.Transport(webclient.Named(transport, o.Agent)), Jar: &f.jar, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > lim.Redirects {
			return fmt.Errorf("more than %d redirects in a row", lim.Redirects)
		}
		req.Header.Del("Authorization") // net/http lets it through to another port
		f.authorize(req)
		return f.Allowed(req.URL)
	}}
	return f, nil
}

// Source is the address of the source as it may be told: without its secrets.
func (f *Client) Source() string { return f.shown }

// Run is the number of the run since the Client was made.
func (f *Client) Run() int64 { return f.runs.Load() }

// Received are the bytes of bodies of this run, as they came.
func (f *Client) Received() int64 { return f.bytes.Load() }

// Sent is how many requests were made in all runs.
func (f *Client) Sent() int64 { return f.requests.Load() }

// PastCaches makes caches ask the source for the rest of this run, and tells whether they did already.
func (f *Client) PastCaches() bool { return f.fresh.Swap(true) }

// CloseIdle closes idle connections.
func (f *Client) CloseIdle() { f.client.CloseIdleConnections() }

// Begin is the start of a run. Cookies of a run before may belong to an ended session.
func (f *Client) Begin() {
	f.runs.Add(1)
	f.bytes.Store(0)
	f.failures.Store(0)
	f.fresh.Store(false)
	f.jar.Clear()
}

// authorize gives the credentials to the source's own host, and to no other.
func (f *Client) authorize(req *http.Request) {
	s, u := f.source, req.URL
	if s.User == nil || u.Scheme != s.Scheme || !strings.EqualFold(u.Hostname(), s.Hostname()) || webguard.Port(u) != webguard.Port(s) {
		return
	}
	password, _ := s.User.Password()
	req.SetBasicAuth(s.User.Username(), password)
}

// Allowed refuses every address outside of the source's own host and the
// configured ones, at the first request and at every redirect.
func (f *Client) Allowed(u *url.URL) error {
	err := f.hosts.Allowed(u)
	if errors.Is(err, webguard.ErrNotAllowed) {
		return fmt.Errorf("%w (add it to %s if it belongs to the source)", err, f.names.Of("allow"))
	}
	return err
}

// MayFetch tells whether an address is permitted.
func (f *Client) MayFetch(address string) bool {
	u, err := url.Parse(address)
	return err == nil && f.Allowed(u) == nil
}

// Request is an address and the way to ask for it.
type Request struct {
	URL       string
	Accept    string
	Gzip      bool
	ETag      string // If-None-Match
	Modified  string // If-Modified-Since
	rangeFrom int64  // > 0: Range with ifRange
	ifRange   string
	MaxBytes  int64     // bytes of the body as it comes, and unpacked
	Attempts  int       // 0: as configured
	AsOf      time.Time // Accept-Datetime (RFC 7089)
	Fresh     bool      // caches shall ask the source

	// of a download: told the beginning of a long body and its whole length, -1
	// unknown, it answers whether the rest need not be read
	Unchanged func(first []byte, length int64) bool
}

// open makes one attempt. The caller closes the body.
func (f *Client) open(ctx context.Context, r Request) (*http.Response, error) {
	u, err := webguard.Parse(r.URL)
	if err != nil {
		return nil, &Error{URL: r.URL, Err: fmt.Errorf("not an address: %w", err)}
	}
	if err := f.Allowed(u); err != nil {
		return nil, &Error{URL: r.URL, Err: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := f.waits(u, f.lim.Header, func() { cancel(fmt.Errorf("%w within %s", errNoAnswer, f.lim.Header)) })
	stop := func() { timer.Stop(); cancel(context.Canceled) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		stop()
		return nil, &Error{URL: r.URL, Err: err}
	}
	f.authorize(req)
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	if r.Gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	} else {
		req.Header.Set("Accept-Encoding", "identity")
	}
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
	} else if r.Modified != "" {
		req.Header.Set("If-Modified-Since", r.Modified)
	}
	if !r.AsOf.IsZero() {
		req.Header.Set("Accept-Datetime", r.AsOf.UTC().Format(http.TimeFormat))
	}
	if r.Fresh || f.fresh.Load() {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if r.rangeFrom > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(r.rangeFrom, 10)+"-")
		req.Header.Set("If-Range", r.ifRange)
	}
	f.requests.Add(1)
	resp, err := f.jar.Get(f.client, req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(cause, ErrStalled) {
			err = cause
		}
		ended := ctx.Err() != nil
		stop()
		var ue *url.Error // it tells the address again
		if errors.As(err, &ue) {
			if err = ue.Err; ue.URL != u.String() && ue.URL != r.URL {
				err = fmt.Errorf("redirected to %s: %w", clip.Middle(webguard.Masked(ue.URL)), err)
			}
		}
		refused := errors.Is(err, webguard.ErrNotAllowed) || errors.Is(err, webguard.ErrScheme) || strings.Contains(err.Error(), "redirects in a row")
		return nil, &Error{URL: r.URL, Temporary: !refused && !ended || errors.Is(err, ErrStalled), Err: err}
	}
	resp.Body = &guardedBody{ctx: ctx, body: resp.Body, timer: timer, stop: stop, cancel: cancel, lim: f.lim, max: r.MaxBytes, count: &f.bytes}
	if resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return resp, nil
	}
	head, _ := io.ReadAll(io.LimitReader(f.secrets.Reader(resp.Body), 300))
	resp.Body.Close()
	e := &Error{URL: r.URL, Status: resp.StatusCode, Err: fmt.Errorf("%s%s", resp.Status, quoteBody(head))}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.Gone = true
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		e.Temporary = true
	default:
		e.Temporary = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented
	}
	e.Wait = retryAfter(resp.Header.Get("Retry-After"), f.now())
	return nil, e
}

// IsGone tells of 404 or 410 at an address, and what it answers. Nothing is asked twice. Many servers
// answer HEAD otherwise than GET, so the body is asked for, and not read.
func (f *Client) IsGone(ctx context.Context, address string) (gone bool, answer string) {
	select {
	case f.sem <- struct{}{}:
		defer func() { <-f.sem }()
	case <-ctx.Done():
		return false, "was not asked"
	}
	resp, err := f.open(ctx, Request{URL: address, Accept: "*/*", Fresh: true})
	if err == nil {
		resp.Body.Close()
		return false, fmt.Sprintf("answers %d", resp.StatusCode)
	}
	var fe *Error
	if !errors.As(err, &fe) || fe.Status == 0 {
		return false, "does not answer"
	}
	return fe.Gone, fmt.Sprintf("answers %d", fe.Status)
}

func quoteBody(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	if s == "" {
		return ""
	}
	if len(s) > 120 {
		s = s[:120] + "..."
	}
	return ": " + strconv.Quote(s)
}

func retryAfter(h string, now time.Time) time.Duration {
	h = strings.TrimSpace(h)
	if h == "" {
		return 0
	}
	if n, err := strconv.ParseInt(h, 10, 32); err == nil && n >= 0 {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(h); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}

// waits ends an attempt without progress after limit; it says before that it waits.
func (f *Client) waits(u *url.URL, limit time.Duration, end func()) *webclient.Patience {
	return webclient.NewPatience(limit, end, func(rest time.Duration) {
		f.log.Warn("the source makes no progress; waiting", "url", clip.Middle(webguard.Masked(u.String())), "for", webclient.TellsAfter, "until", f.now().Add(rest).UTC().Format(time.RFC3339))
	})
}

// mostSilent bounds the attempts of a request that wait their whole time in vain: each takes
// minutes.
const mostSilent = 2

// repeat calls attempt until it succeeds, fails for good, or the attempts are
// used up. Pauses grow; Retry-After is honoured up to the longest pause, and
// ends the attempts beyond it.
func (f *Client) repeat(ctx context.Context, r Request, attempt func() (progress bool, err error)) (err error) {
	place := r.URL
	if u, wrong := webguard.Parse(r.URL); wrong == nil {
		place = u.Host
	}
	request := attempts.Begin(ctx, "web "+place)
	defer func() { request.End(err == nil) }()
	most := r.Attempts
	if most == 0 {
		most = f.lim.Attempts
	}
	pause := f.lim.Pause
	silent := 0 // attempts that nobody answered
	for try := 1; ; try++ {
		var progress bool
		if progress, err = attempt(); err == nil {
			f.failures.Store(0)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var fe *Error
		if !errors.As(err, &fe) || !fe.Temporary {
			f.failures.Store(0)
			return err
		}
		if progress {
			try, pause = 0, f.lim.Pause
		}
		if errors.Is(err, errNoAnswer) {
			silent++
		}
		wait := max(pause, fe.Wait)
		if try >= most || silent >= mostSilent || wait > f.lim.PauseMax {
			if fe.Wait > f.lim.PauseMax {
				fe.Err = fmt.Errorf("%w; it asks to come back after %s", fe.Err, fe.Wait)
			}
			if n := f.failures.Add(1); n >= int64(f.lim.Dead) {
				return fmt.Errorf("%w: %d requests in a row failed, the last: %w", ErrSourceGone, n, err)
			}
			return err
		}
		f.log.Debug("fetch: again after a pause", "url", r.URL, "try", try, "pause", wait, "error", err)
		wait += rand.N(wait/4 + 1)
		request.Fail(attempts.Failed{Attempt: try + 1, At: f.now().Add(wait), Why: err.Error()})
		if err := f.Sleep(ctx, wait); err != nil {
			return err
		}
		pause = min(pause*2, f.lim.PauseMax)
	}
}

// Sleep is a pause, or the reason why the context ended in it.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Answer is a body read whole.
type Answer struct {
	URL         string // after redirects
	Header      http.Header
	NotModified bool   // the body is that of the ETag of the request
	Raw         []byte // as it came
	Body        []byte // content coding undone
}

// ContentType is the Content-Type header, "" for none.
func (a *Answer) ContentType() string { return a.Header.Get("Content-Type") }

// Get reads a body whole, at most r.MaxBytes. A failure is an *Error, or ErrSourceGone after
// Limits.Dead of them in a row.
func (f *Client) Get(ctx context.Context, r Request) (*Answer, error) {
	select {
	case f.sem <- struct{}{}:
		defer func() { <-f.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var a *Answer
	err := f.repeat(ctx, r, func() (bool, error) {
		resp, err := f.open(ctx, r)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusNotModified && r.ETag != "" {
			a = &Answer{URL: resp.Request.URL.String(), Header: resp.Header, NotModified: true}
			return false, nil
		}
		if c := resp.StatusCode; c != http.StatusOK && c != http.StatusNonAuthoritativeInfo && !(c == http.StatusPartialContent && webclient.Whole(resp)) { // a part, nothing, or something in its place
			return false, &Error{URL: r.URL, Status: c, Temporary: true, Err: fmt.Errorf("%s, and 200 was expected", resp.Status)}
		}
		raw, err := readSized(resp.Body, resp.ContentLength, r.MaxBytes)
		if err == nil && resp.ContentLength >= 0 && int64(len(raw)) != resp.ContentLength {
			err = fmt.Errorf("body was cut: %d of %d bytes: %w", len(raw), resp.ContentLength, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return false, &Error{URL: r.URL, Status: resp.StatusCode, Temporary: !errors.Is(err, ErrTooLarge), Err: err}
		}
		a = &Answer{URL: resp.Request.URL.String(), Header: resp.Header, Raw: raw, Body: raw}
		a.Body, err = undoCoding(raw, resp.Header, r.MaxBytes)
		if err != nil {
			return false, &Error{URL: r.URL, Status: resp.StatusCode, Err: err}
		}
		return false, nil
	})
	return a, err
}

func readSized(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes announced, at most %d are taken", ErrTooLarge, size, limit)
	}
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, 1<<20)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

// undoCoding unpacks a body as often as its headers tell. A body without the bytes of gzip
// is taken as it is.
func undoCoding(raw []byte, h http.Header, limit int64) ([]byte, error) {
	times, err := webclient.Packed(h)
	body := raw
	for ; err == nil && times > 0 && IsGzip(body); times-- {
		if body, err = Gunzip(body, limit); err != nil {
			err = fmt.Errorf("body said to be gzip: %w", err)
		}
	}
	return body, err
}

// IsGzip tells a gzip file by its first bytes.
func IsGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b}) }

// Gunzip unpacks a gzip file of at most limit bytes.
func Gunzip(raw []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("%w: it unpacks to more than %d bytes", ErrTooLarge, limit)
	}
	return body, err
}

// drainTime bounds the wait for the rest of a body at its close.
const drainTime = 250 * time.Millisecond

// guardedBody ends a body too large, stalled or trickling.
type guardedBody struct {
	ctx    context.Context
	body   io.ReadCloser
	timer  *webclient.Patience
	stop   func()
	cancel context.CancelCauseFunc
	lim    *Limits
	max    int64
	got    int64
	start  time.Time
	count  *atomic.Int64
}

func (g *guardedBody) Read(p []byte) (int, error) {
	if g.start.IsZero() {
		g.start = time.Now()
	}
	g.timer.Reset(g.lim.Idle)
	n, err := g.body.Read(p)
	g.got += int64(n)
	g.count.Add(int64(n))
	if err != nil && err != io.EOF {
		if cause := context.Cause(g.ctx); cause != nil {
			err = cause
		}
		return n, err
	}
	if g.max > 0 && g.got > g.max {
		return n, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, g.max)
	}
	if took := time.Since(g.start); took > g.lim.SlowAfter && g.got < int64(took.Seconds())*g.lim.SlowRate {
		return n, fmt.Errorf("%w: %d bytes in %s", ErrStalled, g.got, took.Round(time.Second))
	}
	return n, err
}

func (g *guardedBody) Close() error {
	if g.got < 64<<10 { // a small rest keeps the connection; anything else ends it
		g.timer.Reset(min(g.lim.Idle, drainTime))
		io.CopyN(io.Discard, g.body, 4<<10)
	}
	g.timer.Stop()
	err := g.body.Close()
	g.stop()
	return err
}
