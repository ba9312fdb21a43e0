package live

import (
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	settling      = 5 * time.Second // a hub takes a subscription after its question; then the list is read once more
	wantedLease   = 10 * 24 * time.Hour
	shortestLease = 10 * time.Second // a shorter one would be renewed all the time
	longestLease  = 31 * 24 * time.Hour
)

// methods of signatures. SHA-1 is none: anybody with some money forges it.
var methods = map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

var (
	errDenied   = errors.New("the hub denied the subscription")
	errVerified = errors.New("the hub did not verify the subscription in time")
)

// subscription is one at a hub. Each has a callback and a secret of its own.
type subscription struct {
	token, secret string
	topic, hub    string
	h             *hearing

	verified chan time.Duration // the lease
	denied   chan string
	leaves   bool // guarded by the subscriber
}

// webSub hears a topic over a hub, and renews the subscription before its lease ends.
func (s *Subscriber) webSub(ctx context.Context, c feed.Channel, h *hearing) error {
	now, lease, err := s.subscribe(ctx, c, h)
	if err != nil {
		return err
	}
	defer func() { s.unsubscribe(ctx, now) }()
	h.opened()
	for {
		// The hub counts from its question. A part of the lease is left for further attempts.
		wait, stop := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { // ends with wait
			defer close(over)
			if s.Sleep(wait, settling) == nil {
				s.hint()
				_ = s.Sleep(wait, lease/2+rand.N(lease/8))
			}
		}()
		select {
		case reason := <-now.denied:
			err = fmt.Errorf("%w: %s", errDenied, clip.Middle(reason))
		case <-over:
			err = context.Cause(ctx)
		}
		stop()
		<-over
		if err != nil {
			return err
		}
		next, longer, err := s.subscribe(ctx, c, h)
		if err != nil { // the next attempt is by the channel anew, from the offer on
			return fmt.Errorf("renew the subscription: %w", err)
		}
		s.unsubscribe(ctx, now)
		now, lease = next, longer
	}
}

// subscribe asks the hub of a topic, and waits for its question.
func (s *Subscriber) subscribe(ctx context.Context, c feed.Channel, h *hearing) (*subscription, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, errVerified)
	defer cancel()
	topic, hubs, err := s.discover(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	var errs []error
	for _, hub := range hubs {
		x := &subscription{token: crand.Text(), secret: crand.Text() + crand.Text(), topic: topic, hub: hub, h: h, verified: make(chan time.Duration, 1), denied: make(chan string, 1)}
		s.mu.Lock()
		s.subscriptions[x.token] = x
		s.mu.Unlock()
		err := s.ask(ctx, x, "subscribe")
		if err == nil {
			select {
			case lease := <-x.verified:
				return x, lease, nil
			case reason := <-x.denied:
				err = fmt.Errorf("%w: %s", errDenied, clip.Middle(reason))
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		select {
		case lease := <-x.verified: // in the same moment: the hub has it, and is to be told when it ends
			return x, lease, nil
		default:
		}
		s.forget(x)
		errs = append(errs, err)
	}
	return nil, 0, errors.Join(errs...)
}

// discover asks the topic for its own address and its hubs.
func (s *Subscriber) discover(ctx context.Context, c feed.Channel) (topic string, hubs []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, c.Loc, nil)
	if err != nil {
		return "", nil, err
	}
	res, err := s.client.Plain().Do(req)
	if err != nil {
		return "", nil, err
	}
	res.Body.Close()
	if res.StatusCode/100 != 2 {
		return "", nil, fmt.Errorf("HEAD %s: %s", clip.Middle(c.Loc), res.Status)
	}
	at := res.Request.URL
	links := func(rel string) (out []string) {
		for _, target := range resourcesync.HeaderLinks(res.Header.Values("Link"), rel) {
			if u, err := at.Parse(target); err == nil {
				out = append(out, u.String())
			}
		}
		return out
	}
	topic, hubs = c.Loc, c.Hubs
	if self := links("self"); len(self) > 0 {
		topic = self[0]
	}
	if found := links("hub"); len(found) > 0 {
		hubs = found
	}
	return topic, hubs[:min(len(hubs), 3)], nil
}

// ask sends a request to the hub. It answers before it verifies.
func (s *Subscriber) ask(ctx context.Context, x *subscription, mode string) error {
	form := url.Values{"hub.mode": {mode}, "hub.topic": {x.topic}, "hub.callback": {s.o.callback() + x.token}}
	if mode == "subscribe" {
		form.Set("hub.secret", x.secret)
		form.Set("hub.lease_seconds", strconv.Itoa(int(wantedLease/time.Second)))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.hub, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.client.Plain().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(res.Body, 200))
	if res.StatusCode/100 != 2 || res.Request.Method != http.MethodPost {
		return fmt.Errorf("%s at %s: %s: %.200q", mode, clip.Middle(x.hub), res.Status, reason)
	}
	return nil
}

// unsubscribe ends a subscription, also while ctx ends. If the hub does not hear of it, its next
// notification is answered with 410.
func (s *Subscriber) unsubscribe(ctx context.Context, x *subscription) {
	s.mu.Lock()
	x.leaves = true
	s.mu.Unlock()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := s.ask(within, x, "unsubscribe"); err != nil {
		s.log.Debug("a subscription is not ended at the hub", "hub", x.hub, "error", err)
		s.forget(x)
	}
}

// leaveWithin bounds the request at the end of a process.
const leaveWithin = 3 * time.Second

func (s *Subscriber) forget(x *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscriptions, x.token)
}

// ServeHTTP answers at the callbacks, below [CallbackPath].
func (s *Subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var x *subscription
	if s != nil {
		s.mu.Lock()
		x = s.subscriptions[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
		s.mu.Unlock()
	}
	switch {
	case x == nil && r.Method == http.MethodPost:
		http.Error(w, "There is no such subscription any more.", http.StatusGone)
	case x == nil:
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		s.receive(x, w, r)
	case r.Method == http.MethodGet:
		s.confirm(x, w, r.URL.Query())
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "A hub asks by GET and sends by POST.", http.StatusMethodNotAllowed)
	}
}

// confirm answers the question of a hub, if it is about what was requested.
func (s *Subscriber) confirm(x *subscription, w http.ResponseWriter, q url.Values) {
	mode := q.Get("hub.mode")
	s.mu.Lock()
	leaves := x.leaves
	s.mu.Unlock()
	switch {
	case q.Get("hub.topic") != x.topic:
	case mode == "denied":
		select {
		case x.denied <- q.Get("hub.reason"):
		default:
		}
		w.WriteHeader(http.StatusOK)
		return
	case mode == "subscribe" && !leaves:
		seconds, _ := strconv.ParseInt(q.Get("hub.lease_seconds"), 10, 32)
		lease := min(time.Duration(seconds)*time.Second, longestLease)
		if lease <= 0 {
			lease = wantedLease
		}
		select {
		case x.verified <- max(lease, shortestLease):
		default:
		}
		echo(w, q)
		return
	case mode == "unsubscribe" && leaves:
		s.forget(x)
		echo(w, q)
		return
	}
	http.Error(w, "That was not asked for.", http.StatusNotFound)
}

// echo repeats the challenge, as text and nothing else.
func echo(w http.ResponseWriter, q url.Values) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	io.WriteString(w, q.Get("hub.challenge"))
}

// receive takes a notification with the signature of the subscription. A forged one is answered
// alike, and not taken.
func (s *Subscriber) receive(x *subscription, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			s.log.Warn("a notification is too large, and is left out", "hub", x.hub, "limit", mostBytes)
			http.Error(w, errTooLarge.Error(), http.StatusRequestEntityTooLarge)
		}
		return
	}
	if err := x.signed(r.Header.Get("X-Hub-Signature"), body); err != nil {
		s.log.Warn("a notification without a right signature is left out", "hub", x.hub, "from", r.RemoteAddr, "error", err)
	} else {
		x.h.take(body)
	}
	w.WriteHeader(http.StatusAccepted)
}

func (x *subscription) signed(signature string, body []byte) error {
	method, digits, _ := strings.Cut(signature, "=")
	make := methods[strings.ToLower(strings.TrimSpace(method))]
	if make == nil {
		return fmt.Errorf("signature %.20q: want one by sha256, sha384 or sha512", signature)
	}
	got, err := hex.DecodeString(strings.TrimSpace(digits))
	if err != nil {
		return fmt.Errorf("signature %.20q is not hexadecimal", signature)
	}
	mac := hmac.New(make, []byte(x.secret))
	mac.Write(body)
	if !hmac.Equal(got, mac.Sum(nil)) {
		return errors.New("the signature is of another secret, or of another body")
	}
	return nil
}
