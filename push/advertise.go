package push

import (
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Channels are the ways a set tells of its changes; the zero value is none.
type Channels struct {
	WebSub    bool
	WebSocket bool
	Events    bool     // server-sent events
	Hubs      []string // addresses of hubs in place of the built-in one
}

// Any tells whether there is a way at all.
func (c *Channels) Any() bool { return c.WebSub || c.WebSocket || c.Events }

// hubs are the addresses of the hubs of the topics.
func (c *Channels) hubs(own string) []string {
	switch {
	case !c.WebSub:
		return nil
	case len(c.Hubs) > 0:
		return c.Hubs
	}
	return []string{own}
}

// Entries are the entries of a Capability List for the channels of a set at an address. Of one
// kind there may be two, a topic and a socket; the scheme tells them apart.
func (c *Channels) Entries(set, own string) (out []resourcesync.Entry) {
	for _, kind := range []resourcesync.Capability{resourcesync.ChangeNotification, resourcesync.FrameworkNotification} {
		topic := set + notify + segment(kind)
		add := func(loc string, hubs []string) {
			e := resourcesync.Entry{Loc: loc, HasMeta: true, Meta: resourcesync.Meta{Capability: kind, Length: -1}}
			for _, hub := range hubs {
				e.Links = append(e.Links, resourcesync.Link{Rel: resourcesync.RelHub, Href: hub, Length: -1})
			}
			if c.Events {
				e.Links = append(e.Links, resourcesync.Link{Rel: resourcesync.RelAlternate, Href: topic, Type: eventStream, Length: -1})
			}
			out = append(out, e)
		}
		if hubs := c.hubs(own); len(hubs) > 0 {
			add(topic, hubs)
		}
		if c.WebSocket {
			add("ws"+strings.TrimPrefix(topic, "http"), nil) // wss of https
		}
	}
	return out
}

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"
