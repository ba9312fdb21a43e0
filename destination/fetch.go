package destination

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

	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// fetchError is a failed request: what was asked, what came, whether it can
// help to ask again, and whether the thing is not there.
type fetchError struct {
	URL       string
	Status    int
	Temporary bool
	Gone      bool // 404 or 410
	Wait      time.Duration
	Err       error
}

func (e *fetchError) Error() string {
	return fmt.Sprintf("GET %s: %v%s", shorten(webguard.MaskedText(e.URL)), e.Err, e.hint())
}

// hint is what a person may do about it.
func (e *fetchError) hint() string {
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
func (e *fetchError) Unwrap() error { return e.Err }

// Unreachable tells whether the source, or a proxy in front of it, gave no answer of its own.
func (e *fetchError) Unreachable() bool {
	return webguard.GatewayStatus(e.Status) || webguard.NoAnswer(e.Err) || errors.Is(e.Err, errStalled)
}

var (
	errNotAllowed = webguard.ErrNotAllowed
	errScheme     = webguard.ErrScheme
	errTooLarge   = errors.New("body is too large")
	errStalled    = errors.New("no progress")
	// errSourceGone ends a run: the source does not answer any more, and taking
	// note of every single resource would say nothing.
	errSourceGone = errors.New("the source does not answer")
)

// fetcher makes every request of a destination to its source: only to allowed
// hosts, bounded in size and time, repeated where that can help.
type fetcher struct {
	client *http.Client
	hosts  webguard.Rules
	source *url.URL // with the user that its host is told
	lim    *limits
	sem    chan struct{}
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	log    *slog.Logger
	jar    webclient.Cookies // of this run

	fresh    atomic.Bool // for the rest of this run caches shall ask the source
	bytes    atomic.Int64
	requests atomic.Int64
	runs     atomic.Int64
	failures atomic.Int64 // in a row, after all attempts
}

func newFetcher(source string, allow []string, concurrency int, agent string, transport http.RoundTripper, lim *limits) (*fetcher, error) {
	u, err := webguard.Parse(source)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("source %q is not an http or https address", webguard.Masked(source))
	}
	f := &fetcher{source: u, lim: lim, sem: make(chan struct{}, concurrency), now: time.Now, sleep: sleepContext, log: slog.New(slog.DiscardHandler)}
	f.hosts = append(f.hosts, webguard.Rule{Host: strings.ToLower(u.Hostname()), Port: webguard.Port(u), Own: true})
	for _, a := range allow {
		r, err := webguard.ParseRule(a)
		if err != nil {
			return nil, fmt.Errorf("allow: %w", err)
		}
		f.hosts = append(f.hosts, r)
	}
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true
		t.MaxIdleConnsPerHost = concurrency + 2
		t.MaxIdleConns = concurrency + 8
		t.MaxResponseHeaderBytes = 64 << 10
		transport = t
	}
	f.client = &http.Client{Transport: webclient.Named(transport, agent), Jar: &f.jar, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > lim.redirects {
			return fmt.Errorf("more than %d redirects in a row", lim.redirects)
		}
		req.Header.Del("Authorization") // net/http lets it through to another port
		f.authorize(req)
		return f.allowed(req.URL)
	}}
	return f, nil
}

// begin is the start of a run. Cookies of a run before may be of a session that has ended.
func (f *fetcher) begin() {
	f.runs.Add(1)
	f.bytes.Store(0)
	f.failures.Store(0)
	f.fresh.Store(false)
	f.jar.Clear()
}

// authorize tells the source's own host, and nobody else, who asks.
func (f *fetcher) authorize(req *http.Request) {
	s, u := f.source, req.URL
	if s.User == nil || u.Scheme != s.Scheme || !strings.EqualFold(u.Hostname(), s.Hostname()) || webguard.Port(u) != webguard.Port(s) {
		return
	}
	password, _ := s.User.Password()
	req.SetBasicAuth(s.User.Username(), password)
}

// allowed refuses every address outside of the source's own host and the
// configured ones, at the first request and at every redirect.
func (f *fetcher) allowed(u *url.URL) error {
	err := f.hosts.Allowed(u)
	if errors.Is(err, errNotAllowed) {
		return fmt.Errorf("%w (add it to allow: if it belongs to the source)", err)
	}
	return err
}

func (f *fetcher) mayFetch(address string) bool {
	u, err := url.Parse(address)
	return err == nil && f.allowed(u) == nil
}

// request is what get and download ask for.
type request struct {
	url       string
	accept    string
	gzip      bool
	etag      string // If-None-Match
	modified  string // If-Modified-Since
	rangeFrom int64  // > 0: Range with ifRange
	ifRange   string
	max       int64           // bytes of the body as it comes, and unpacked
	attempts  int             // 0: as configured
	asOf      time.Time       // Accept-Datetime (RFC 7089)
	fresh     bool            // caches shall ask the source
	parts     map[string]bool // of the index that names it: none of them is its next page

	// of a download: told the beginning of a long body and its whole length, -1
	// unknown, says that the rest need not be read
	unchanged func(first []byte, length int64) bool
}

// open makes one attempt. The caller closes the body.
func (f *fetcher) open(ctx context.Context, r request) (*http.Response, error) {
	u, err := webguard.Parse(r.url)
	if err != nil {
		return nil, &fetchError{URL: r.url, Err: fmt.Errorf("not an address: %w", err)}
	}
	if err := f.allowed(u); err != nil {
		return nil, &fetchError{URL: r.url, Err: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(f.lim.header, func() { cancel(fmt.Errorf("%w: no answer within %s", errStalled, f.lim.header)) })
	stop := func() { timer.Stop(); cancel(context.Canceled) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		stop()
		return nil, &fetchError{URL: r.url, Err: err}
	}
	f.authorize(req)
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	} else {
		req.Header.Set("Accept-Encoding", "identity")
	}
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	} else if r.modified != "" {
		req.Header.Set("If-Modified-Since", r.modified)
	}
	if !r.asOf.IsZero() {
		req.Header.Set("Accept-Datetime", r.asOf.UTC().Format(http.TimeFormat))
	}
	if r.fresh || f.fresh.Load() {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if r.rangeFrom > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(r.rangeFrom, 10)+"-")
		req.Header.Set("If-Range", r.ifRange)
	}
	f.requests.Add(1)
	resp, err := f.jar.Get(f.client, req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(cause, errStalled) {
			err = cause
		}
		ended := ctx.Err() != nil
		stop()
		var ue *url.Error // it tells the address again
		if errors.As(err, &ue) {
			if err = ue.Err; ue.URL != u.String() && ue.URL != r.url {
				err = fmt.Errorf("redirected to %s: %w", shorten(ue.URL), err)
			}
		}
		refused := errors.Is(err, errNotAllowed) || errors.Is(err, errScheme) || strings.Contains(err.Error(), "redirects in a row")
		return nil, &fetchError{URL: r.url, Temporary: !refused && !ended || errors.Is(err, errStalled), Err: err}
	}
	resp.Body = &guardedBody{ctx: ctx, body: resp.Body, timer: timer, stop: stop, cancel: cancel, lim: f.lim, max: r.max, count: &f.bytes}
	if resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return resp, nil
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	resp.Body.Close()
	e := &fetchError{URL: r.url, Status: resp.StatusCode, Err: fmt.Errorf("%s%s", resp.Status, quoteBody(head))}
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

// repeat calls attempt until it succeeds, fails for good, or the attempts are
// used up. Pauses grow; Retry-After is honoured up to the longest pause, and
// ends the attempts beyond it.
func (f *fetcher) repeat(ctx context.Context, r request, attempt func() (progress bool, err error)) error {
	attempts := r.attempts
	if attempts == 0 {
		attempts = f.lim.attempts
	}
	pause := f.lim.pause
	for try := 1; ; try++ {
		progress, err := attempt()
		if err == nil {
			f.failures.Store(0)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var fe *fetchError
		if !errors.As(err, &fe) || !fe.Temporary {
			f.failures.Store(0)
			return err
		}
		if progress {
			try, pause = 0, f.lim.pause
		}
		wait := max(pause, fe.Wait)
		if try >= attempts || wait > f.lim.pauseMax {
			if fe.Wait > f.lim.pauseMax {
				fe.Err = fmt.Errorf("%w; it asks to come back after %s", fe.Err, fe.Wait)
			}
			if n := f.failures.Add(1); n >= int64(f.lim.dead) {
				return fmt.Errorf("%w: %d requests in a row failed, the last: %w", errSourceGone, n, err)
			}
			return err
		}
		f.log.Debug("fetch: again after a pause", "url", r.url, "try", try, "pause", wait, "error", err)
		if err := f.sleep(ctx, wait+rand.N(wait/4+1)); err != nil {
			return err
		}
		pause = min(pause*2, f.lim.pauseMax)
	}
}

func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// answer is a body read whole.
type answer struct {
	url    string // after redirects
	header http.Header
	raw    []byte // as it came
	body   []byte // content coding undone
}

func (a *answer) contentType() string { return a.header.Get("Content-Type") }

// get reads a body whole, at most r.max bytes.
func (f *fetcher) get(ctx context.Context, r request) (*answer, error) {
	select {
	case f.sem <- struct{}{}:
		defer func() { <-f.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var a *answer
	err := f.repeat(ctx, r, func() (bool, error) {
		resp, err := f.open(ctx, r)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if c := resp.StatusCode; c != http.StatusOK && c != http.StatusNonAuthoritativeInfo && !(c == http.StatusPartialContent && webclient.Whole(resp)) { // a part, nothing, or something in its place
			return false, &fetchError{URL: r.url, Status: c, Temporary: true, Err: fmt.Errorf("%s, and 200 was expected", resp.Status)}
		}
		raw, err := readSized(resp.Body, resp.ContentLength, r.max)
		if err == nil && resp.ContentLength >= 0 && int64(len(raw)) != resp.ContentLength {
			err = fmt.Errorf("body was cut: %d of %d bytes: %w", len(raw), resp.ContentLength, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return false, &fetchError{URL: r.url, Status: resp.StatusCode, Temporary: !errors.Is(err, errTooLarge), Err: err}
		}
		a = &answer{url: resp.Request.URL.String(), header: resp.Header, raw: raw, body: raw}
		a.body, err = undoCoding(raw, resp.Header, r.max)
		if err != nil {
			return false, &fetchError{URL: r.url, Status: resp.StatusCode, Err: err}
		}
		return false, nil
	})
	return a, err
}

func readSized(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes announced, at most %d are taken", errTooLarge, size, limit)
	}
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, 1<<20)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

// undoCoding unpacks a body as often as the answer says that it is packed. A body that is
// not packed, whatever is said, is taken as it is.
func undoCoding(raw []byte, h http.Header, limit int64) ([]byte, error) {
	times, err := webclient.Packed(h)
	body := raw
	for ; err == nil && times > 0 && bytes.HasPrefix(body, gzipBytes); times-- {
		if body, err = gunzip(body, limit); err != nil {
			err = fmt.Errorf("body said to be gzip: %w", err)
		}
	}
	return body, err
}

// gunzip unpacks a gzip file of at most limit bytes.
func gunzip(raw []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("%w: it unpacks to more than %d bytes", errTooLarge, limit)
	}
	return body, err
}

// guardedBody ends a body that is too large, that stalls, or that trickles.
type guardedBody struct {
	ctx    context.Context
	body   io.ReadCloser
	timer  *time.Timer
	stop   func()
	cancel context.CancelCauseFunc
	lim    *limits
	max    int64
	got    int64
	start  time.Time
	count  *atomic.Int64
}

func (g *guardedBody) Read(p []byte) (int, error) {
	if g.start.IsZero() {
		g.start = time.Now()
	}
	g.timer.Reset(g.lim.idle)
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
		return n, fmt.Errorf("%w: more than %d bytes", errTooLarge, g.max)
	}
	if took := time.Since(g.start); took > g.lim.slowAfter && g.got < int64(took.Seconds())*g.lim.slowRate {
		return n, fmt.Errorf("%w: %d bytes in %s", errStalled, g.got, took.Round(time.Second))
	}
	return n, err
}

func (g *guardedBody) Close() error {
	g.timer.Stop()
	if g.got < 64<<10 { // a small rest keeps the connection; anything else ends it
		io.CopyN(io.Discard, g.body, 4<<10)
	}
	err := g.body.Close()
	g.stop()
	return err
}

// shorten keeps hostile addresses readable in messages.
func shorten(s string) string {
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:200]+"..."+s[len(s)-60:], "") // no part of a letter
	}
	return s
}
