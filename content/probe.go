package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/pace"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// prober looks at files.
type prober struct {
	f    *Follower
	now  time.Time
	pace pace.Pacer

	mu   sync.Mutex
	down map[string]int // host: failures in a row
}

// answer is a server's response about a file.
type answer struct {
	status  int
	version changetrack.FileVersion
	etag    string
	lastMod string
	noHash  bool // it is too long
}

func (p *prober) look(ctx context.Context, c candidate) outcome {
	o := outcome{candidate: c}
	host, down := p.host(c.url)
	if down {
		o.skipped = true
		return o
	}
	a, err := p.ask(ctx, &c)
	if ctx.Err() != nil {
		o.skipped = true
		return o
	}
	l := &o.look
	l.At = p.now
	p.heard(host, a.status, err)
	if err == nil {
		l.Status = a.status
	}
	switch {
	case err != nil:
		p.fail(l, reason(err))
	case a.status == http.StatusNotModified:
		l.Fails, l.Misses, l.Error, l.Since = 0, 0, "", time.Time{}
	case a.status == http.StatusNotFound || a.status == http.StatusGone:
		if l.Misses == 0 {
			l.Since = p.now
		}
		l.Fails, l.Error = 0, ""
		l.Misses++
		l.ETag, l.Modified = "", ""
		o.gone = l.gone()
	case a.status/100 != 2:
		p.fail(l, fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)))
	default:
		o.changed = c.current != nil && a.version.SHA256.IsZero() && l.ETag != "" && a.etag != "" && !weak(l.ETag, a.etag)
		o.found = &a.version
		*l = look{At: p.now, ETag: a.etag, Modified: a.lastMod, Status: a.status, NoHash: a.noHash}
	}
	return o
}

// host is the host of a file; down means to leave it alone.
func (p *prober) host(address string) (host string, down bool) {
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return host, p.down[host] >= hostDown
}

// heard notes how a host has answered.
func (p *prober) heard(host string, status int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && status < 500 && status != http.StatusTooManyRequests:
		p.down[host] = 0
	case err == nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable):
		p.down[host] = hostDown // it asks to be left alone
	default:
		p.down[host]++
	}
}

func (p *prober) fail(l *look, why string) {
	if l.Fails == 0 {
		l.Since = p.now
	}
	l.Fails++
	l.Error = why
}

// ask finds the state of a file by a HEAD request, then by GET if needed. An unchanged file is a
// 304.
func (p *prober) ask(ctx context.Context, c *candidate) (answer, error) {
	wantsHash := p.f.cfg.Hash && (c.current == nil || c.current.SHA256.IsZero()) && !c.look.NoHash
	conditional := c.current != nil && c.look.Misses == 0 && !wantsHash
	a, err := p.request(ctx, http.MethodHead, c, conditional, nil, 0)
	if err != nil {
		return a, err
	}
	again := false
	switch a.status {
	case http.StatusNotFound, http.StatusGone, // some servers say so of every head
		http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden, http.StatusBadRequest:
		again = true
	}
	if !again && a.status/100 == 2 && p.f.cfg.Hash {
		if conditional && !c.current.SHA256.IsZero() && p.same(c, &a) {
			a.status = http.StatusNotModified
			return a, nil
		}
		again = true
	}
	if !again {
		return a, nil
	}
	var body io.Writer
	if p.f.cfg.Hash {
		body = io.Discard
	}
	return p.request(ctx, http.MethodGet, c, conditional, body, p.f.cfg.MaxBytes)
}

// same compares the validators with those of the last look, for servers without conditional
// requests.
func (p *prober) same(c *candidate, a *answer) bool {
	if c.look.ETag != "" || a.etag != "" {
		return weak(c.look.ETag, a.etag)
	}
	return a.lastMod != "" && a.lastMod == c.look.Modified && a.version.Length == c.current.Length
}

// request asks for a file. A body to write to makes it read the file, up to most bytes, and hash
// it.
func (p *prober) request(ctx context.Context, method string, c *candidate, conditional bool, body io.Writer, most int64) (a answer, err error) {
	u, err := webguard.Parse(c.url)
	if err == nil {
		err = p.f.rules.Allowed(u)
	}
	if err == nil {
		err = p.pace.Wait(ctx)
	}
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := p.f.cfg.Timeout
	timer := time.AfterFunc(timeout, func() { cancel(errStalled) })
	defer timer.Stop()
	req, err := http.NewRequestWithContext(ctx, method, c.url, nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if conditional && c.look.ETag != "" {
		req.Header.Set("If-None-Match", c.look.ETag)
	} else if conditional && c.look.Modified != "" {
		req.Header.Set("If-Modified-Since", c.look.Modified)
	}
	res, err := p.f.client.Do(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			err = fmt.Errorf("%w (%s)", errStalled, timeout)
		}
		return a, webguard.MaskedError(err)
	}
	defer res.Body.Close()
	a.status = res.StatusCode
	if a.status/100 != 2 {
		_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // a small answer keeps the connection
		return a, nil
	}
	a.read(res, p.now)
	if body == nil {
		return a, nil
	}
	if a.version.Length > most {
		a.noHash = true
		return a, nil
	}
	most = min(most, math.MaxInt64-1) // one more is asked for
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, body), io.LimitReader(&steady{r: res.Body, timer: timer, timeout: timeout}, most+1))
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errStalled):
		return a, fmt.Errorf("%w (%s), after %d bytes", errStalled, timeout, n)
	case err != nil:
		return a, fmt.Errorf("after %d bytes: %w", n, err)
	case n > most:
		a.noHash = true
		return a, nil
	}
	a.version.Length = n
	copy(a.version.SHA256[:], sum.Sum(nil))
	return a, nil
}

// steady ends a stalled body.
type steady struct {
	r       io.Reader
	timer   *time.Timer
	timeout time.Duration
}

func (s *steady) Read(b []byte) (int, error) {
	s.timer.Reset(s.timeout)
	return s.r.Read(b)
}

// unknownType is the type of a file without a Content-Type (RFC 9110).
const unknownType = "application/octet-stream"

// read takes the headers, and leaves out unbelievable values.
func (a *answer) read(res *http.Response, now time.Time) {
	h := res.Header
	v := &a.version
	v.Type, v.Length = unknownType, res.ContentLength
	if t, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && mediaType(t) {
		v.Type = t
	}
	packed, err := webclient.Packed(h)
	if coding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))); (packed > 0 || err != nil) && len(coding) < 40 && token(coding) {
		v.Encoding = coding
	}
	if t, err := http.ParseTime(h.Get("Last-Modified")); err == nil && t.Year() > 1970 && t.Before(now.Add(time.Minute)) {
		v.Modified = t.UTC()
		if v.Modified.After(now) {
			v.Modified = now
		}
		a.lastMod = h.Get("Last-Modified")
	}
	if e := h.Get("Etag"); len(e) < 1000 {
		a.etag = e
	}
}

// mediaType tells whether a text is TYPE/SUBTYPE (RFC 6838), in small letters.
func mediaType(s string) bool {
	major, minor, ok := strings.Cut(s, "/")
	return ok && len(s) < 128 && token(major) && token(minor)
}

func token(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&-^_.+", c) >= 0) {
			return false
		}
	}
	return s != ""
}
