package hub

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// mostAnswer is how much is read of an answer.
const mostAnswer = 4 << 10

// verify asks the callback whether it wants what was requested, and then does it. Until then an
// older subscription of the same key stays as it is.
func (h *Hub) verify(ctx context.Context, i *intent) {
	if !acquire(ctx, h.checks) {
		return
	}
	defer release(h.checks)
	head, err := i.to.Head(ctx) // before the answer: what is published then is not lost
	if err == nil {
		challenge := rand.Text() + rand.Text()
		q := url.Values{"hub.mode": {i.mode}, "hub.topic": {i.topic}, "hub.challenge": {challenge}}
		if i.mode == "subscribe" {
			q.Set("hub.lease_seconds", strconv.FormatInt(int64(i.lease/time.Second), 10))
		}
		err = h.ask(ctx, i.callback, q, challenge)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil && i.mode == "unsubscribe" {
		h.mu.Lock()
		s := h.subs[i.key]
		h.mu.Unlock()
		if s != nil {
			h.end(s, "it was unsubscribed")
		}
		return
	}
	if err == nil {
		err = h.admit(ctx, i, head)
	}
	var no *deniedError
	if errors.As(err, &no) {
		h.deny(ctx, i.topic, i.callback, no.reason)
	}
	if err != nil {
		h.log.Info("a request to the hub is not verified", "mode", i.mode, "host", i.host, "topic", i.topic, "error", err)
	}
}

// deniedError is a limit met after the verification.
type deniedError struct{ reason string }

func (e *deniedError) Error() string { return e.reason }

// ask sends a GET to a callback. With a challenge only its echo is a success.
func (h *Hub) ask(ctx context.Context, callback string, q url.Values, challenge string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	join := "?"
	if strings.Contains(callback, "?") {
		join = "&"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, callback+join+q.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := h.client.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	switch {
	case err != nil:
		return err
	case res.StatusCode/100 != 2:
		return fmt.Errorf("the callback answers %s", res.Status)
	case challenge != "" && string(body) != challenge:
		return errors.New("the callback does not answer with the challenge")
	}
	return nil
}

// withoutAddress takes the address out of an error of a request: a callback is a secret of its
// subscriber.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// admit makes a verified intent a subscription, or renews one with its lease and secret.
func (h *Hub) admit(ctx context.Context, i *intent, head Position) error {
	now := h.o.Now().UTC()
	r := record{Version: recordVersion, Topic: i.topic, Callback: i.callback, Client: i.client, Since: now, Expires: now.Add(i.lease)}
	if i.secret != "" {
		r.Secret = h.sealed(i.secret, i.key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.intents[i.key] != i || h.ctx.Err() != nil { // replaced
		return nil
	}
	if no := h.full(i.key, i.host, i.client); no != "" {
		return &deniedError{no}
	}
	old := h.subs[i.key]
	if old != nil {
		r.Since, r.Client = old.Since, old.Client
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b := h.store.Batch()
	defer b.Close()
	b.Set(recordKey('s', i.key), raw)
	if old == nil {
		b.Set(recordKey('p', i.key), binary.AppendUvarint(nil, head.Told))
	}
	if err := b.Commit(context.WithoutCancel(ctx), true); err != nil {
		return err
	}
	if old != nil {
		old.record, old.secret = r, i.secret
		select {
		case old.wake <- struct{}{}:
		default:
		}
		return nil
	}
	s, err := h.subscription(r)
	if err != nil {
		return err
	}
	h.log.Info("a subscription begins", "host", s.host, "topic", s.Topic, "until", s.Expires)
	h.take(s, i.to, head)
	return nil
}

func (h *Hub) subscription(r record) (*subscription, error) {
	s := &subscription{record: r, at: r.Topic, key: keyOf(r.Topic, r.Callback), wake: make(chan struct{}, 1)}
	if u, err := url.Parse(r.Callback); err == nil {
		s.host = strings.ToLower(u.Host)
	}
	var err error
	s.secret, err = h.opened(r.Secret, s.key)
	return s, err
}

// take counts a subscription and begins its deliveries; the caller holds h.mu.
func (h *Hub) take(s *subscription, topic Topic, at Position) {
	h.subs[s.key] = s
	h.hosts[s.host]++
	if s.Client != "" {
		h.clients[s.Client]++
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(h.ctx)
	h.running.Go(func() { h.serve(ctx, s, topic, at) })
}

// end removes a subscription.
func (h *Hub) end(s *subscription, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[s.key] != s {
		return
	}
	delete(h.subs, s.key)
	less := func(m map[string]int, k string) {
		if m[k]--; m[k] <= 0 {
			delete(m, k)
		}
	}
	less(h.hosts, s.host)
	less(h.clients, s.Client)
	s.cancel()
	h.log.Info("a subscription ends", "host", s.host, "topic", s.Topic, "reason", why)
	h.remove(s)
}

// remove deletes the records of a subscription; the caller holds h.mu.
func (h *Hub) remove(s *subscription) {
	delete(h.moved, string(recordKey('p', s.key)))
	b := h.store.Batch()
	defer b.Close()
	b.Delete(recordKey('s', s.key))
	b.Delete(recordKey('p', s.key))
	if err := b.Commit(context.WithoutCancel(h.ctx), true); err != nil {
		h.log.Error("an ended subscription is still kept", "host", s.host, "topic", s.Topic, "error", err)
	}
}

// denied ends a kept subscription without a topic.
func (h *Hub) denied(s *subscription, reason string) {
	if !acquire(h.ctx, h.checks) {
		return
	}
	defer release(h.checks)
	h.deny(h.ctx, s.Topic, s.Callback, reason)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log.Info("a subscription is denied", "host", s.host, "topic", s.Topic, "reason", reason)
	h.remove(s)
}

// deny tells a subscriber of the end of its subscription.
func (h *Hub) deny(ctx context.Context, topic, callback, reason string) {
	if err := h.ask(ctx, callback, url.Values{"hub.mode": {"denied"}, "hub.topic": {topic}, "hub.reason": {reason}}, ""); err != nil {
		h.log.Info("a subscriber does not hear of its denial", "topic", topic, "error", err)
	}
}

func acquire(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func release(slots chan struct{}) { <-slots }
