package hub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"
)

// methods of signatures (WebSub, 7.1.1).
var methods = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// errGone is the answer 410: the subscriber wants no more.
var errGone = errors.New("the callback is gone")

// serve delivers to a subscriber until its lease ends.
func (h *Hub) serve(ctx context.Context, s *subscription, topic Topic, at Position) {
	l := line{h: h, topic: topic, at: at, record: recordKey('p', s.key), wake: s.wake, label: s.host,
		until: func() time.Time {
			h.mu.Lock()
			defer h.mu.Unlock()
			return s.Expires
		},
		send: func(ctx context.Context, p Payload) error {
			h.mu.Lock()
			callback, secret := s.Callback, s.secret
			h.mu.Unlock()
			return h.post(ctx, callback, secret, p)
		}}
	switch err := l.run(ctx); {
	case errors.Is(err, errGone):
		h.end(s, "the callback answers 410")
	case errors.Is(err, errExpired):
		h.end(s, "its lease is over")
	}
}

// errExpired is the end of a lease.
var errExpired = errors.New("the lease is over")

// line is the way of payloads from a topic to one receiver, in order.
type line struct {
	h      *Hub
	topic  Topic
	at     Position
	record []byte // key of its position
	wake   <-chan struct{}
	label  string
	until  func() time.Time
	send   func(context.Context, Payload) error

	failures int
}

// run delivers until the end of ctx, of the lease, or of the receiver.
func (l *line) run(ctx context.Context) error {
	for {
		changed := l.topic.Changed()
		p, err := l.topic.Next(ctx, l.at)
		switch {
		case err != nil:
			l.h.log.Error("a payload cannot be made", "topic", l.label, "error", err)
			l.failures++
		case len(p.Body) == 0:
			l.at = p.At
		default:
			err = l.post(ctx, p)
		}
		if errors.Is(err, errGone) || ctx.Err() != nil {
			return err
		}
		pause := betweenPosts
		switch {
		case err != nil:
			pause, changed = l.pause(), nil
		case len(p.Body) == 0:
			pause = longestLease
		default:
			changed = nil
		}
		if err := l.wait(ctx, pause, changed); err != nil {
			return err
		}
	}
}

// post sends a payload in a free slot. Failing receivers have half of the slots, so that they do
// not hold up the others.
func (l *line) post(ctx context.Context, p Payload) error {
	slots := l.h.posts
	if l.failures > 0 {
		slots = l.h.retries
	}
	if !acquire(ctx, slots) {
		return ctx.Err()
	}
	err := l.send(ctx, p)
	release(slots)
	switch {
	case err == nil:
		l.failures, l.at = 0, p.At
		l.h.moveTo(l.record, l.at)
	case ctx.Err() == nil && !errors.Is(err, errGone):
		l.failures++
		l.h.log.Info("a payload is not taken, and is sent again", "to", l.label, "failures", l.failures, "pause", l.pause().String(), "error", err)
	}
	return err
}

// pause after a number of failures.
func (l *line) pause() time.Duration {
	return min(firstPause<<min(l.failures-1, 20), longestPause)
}

// wait waits for the first of: the pause, news, a renewal, the end of the lease.
func (l *line) wait(ctx context.Context, pause time.Duration, changed <-chan struct{}) error {
	rest := l.until().Sub(l.h.o.Now())
	if rest <= 0 {
		return errExpired
	}
	timer := time.NewTimer(min(pause, rest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		if l.until().After(l.h.o.Now()) {
			return nil
		}
		return errExpired
	case <-changed:
	case <-l.wake: // the subscriber lives
		l.failures = 0
	}
	return nil
}

// post sends a payload to a callback, signed if the subscriber gave a secret.
func (h *Hub) post(ctx context.Context, callback, secret string, p Payload) error {
	header := http.Header{"Content-Type": {p.Type}, "Link": {p.Links}}
	if secret != "" {
		mac := hmac.New(methods[h.o.Method], []byte(secret))
		mac.Write(p.Body)
		header.Set("X-Hub-Signature", h.o.Method+"="+hex.EncodeToString(mac.Sum(nil)))
	}
	status, err := h.send(ctx, callback, header, p.Body)
	switch {
	case err != nil:
		return err
	case status == http.StatusGone:
		return errGone
	case status/100 != 2:
		return &statusError{status}
	}
	return nil
}

// statusError is an answer without success.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("the answer is %d", e.status) }

// send sends a POST. It reads little of the answer, and follows no redirect.
func (h *Hub) send(ctx context.Context, address string, header http.Header, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = header
	res, err := h.client.Do(req)
	if err != nil {
		return 0, withoutAddress(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, mostAnswer) // the status counts
	return res.StatusCode, nil
}
