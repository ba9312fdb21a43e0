package feed

import (
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// A topic's entry may link its socket and its stream of events; a socket may be an entry too.
func TestChannelsOf(t *testing.T) {
	link := func(rel, href, mediaType string) resourcesync.Link {
		return resourcesync.Link{Rel: rel, Href: href, Type: mediaType}
	}
	topic := &resourcesync.Entry{Loc: "http://s.example/topic", Links: []resourcesync.Link{
		link(resourcesync.RelHub, "http://s.example/hub", ""),
		link(resourcesync.RelAlternate, "wss://s.example/topic", ""),
		link(resourcesync.RelAlternate, "http://s.example/topic", "text/event-stream; charset=utf-8"),
		link(resourcesync.RelAlternate, "http://s.example/page", "text/html"),
	}}
	if got, want := fmt.Sprint(channelsOf(topic)), "[{http://s.example/topic [http://s.example/hub] http://s.example/topic} {wss://s.example/topic [] }]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(channelsOf(&resourcesync.Entry{Loc: "ws://s.example/topic"})), "[{ws://s.example/topic [] }]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
