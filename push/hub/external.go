package hub

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// External is a hub of others, told of a topic. Modes are fat (the payload itself; after a refusal
// a ping), ping (the address of the topic, for the hub to fetch) and both.
type External struct {
	Topic              Topic
	Address, Hub, Mode string // Address is the topic's
}

// Modes of External.
const (
	Fat  = "fat"
	Ping = "ping"
	Both = "both"
)

// tell delivers a topic to an external hub.
func (h *Hub) tell(e External) {
	record := recordKey('x', keyOf(e.Address, e.Hub))
	at := h.position(h.ctx, record)
	if at == (Position{}) {
		head, err := e.Topic.Head(h.ctx)
		if err != nil {
			h.log.Error("an external hub is told from the beginning of the topic", "hub", e.Hub, "topic", e.Address, "error", err)
		}
		at = head
	}
	l := line{h: h, topic: e.Topic, at: at, record: record, label: e.Hub,
		until: func() time.Time { return h.o.Now().Add(longestLease) },
		send:  func(ctx context.Context, p Payload) error { return h.publish(ctx, e, p) }}
	for h.ctx.Err() == nil {
		if err := l.run(h.ctx); errors.Is(err, errGone) {
			h.log.Error("an external hub answers 410; it is told nothing more until the next start", "hub", e.Hub, "topic", e.Address)
			return
		}
	}
}

// publish tells an external hub once.
func (h *Hub) publish(ctx context.Context, e External, p Payload) error {
	ping := func() error {
		form := url.Values{"hub.mode": {"publish"}, "hub.url": {e.Address}, "hub.topic": {e.Address}} // hubs read one of the two names
		return h.post(ctx, e.Hub, "", Payload{Body: []byte(form.Encode()), Type: "application/x-www-form-urlencoded", Links: p.Links})
	}
	if e.Mode == Ping {
		return ping()
	}
	err := h.post(ctx, e.Hub, "", p)
	var refused *statusError
	if e.Mode == Both && err == nil || errors.As(err, &refused) && refused.status/100 == 4 {
		return ping()
	}
	return err
}
