package push

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/internal/position"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Config is how a set tells of its changes, as a part of a configuration file; the zero value is
// not at all.
type Config struct {
	WebSub    bool     `yaml:"websub" doc:"topics for WebSub subscribers, at the built-in hub or at hubs" default:"true"`
	WebSocket bool     `yaml:"websocket" doc:"WebSocket channels (notification 0.8)" default:"true"`
	Events    bool     `yaml:"events" doc:"server-sent events" default:"true"`
	Positions bool     `yaml:"positions" doc:"take the positions that mirrors report" default:"true"`
	Mirrors   []string `yaml:"mirrors" doc:"keys of the mirrors whose reports are taken, as rsbridge status shows them there; empty: any"`
	Hubs      []string `yaml:"hubs" doc:"hubs in place of the built-in one, each as ADDRESS, or ADDRESS MODE. Modes: fat (send the notification; the default), ping (send the address of the topic), both"`
}

// HubConfig is of the built-in hub.
type HubConfig struct {
	Callbacks []string `yaml:"callbacks" doc:"hosts outside of the public internet that may be called back: host or host:port"`
	Signature string   `yaml:"signature" doc:"method of X-Hub-Signature, for subscribers with a secret" allowed:"sha1|sha256|sha384|sha512" default:"sha256"`
}

// Any tells whether there is a way at all.
func (c *Config) Any() bool { return c.tells() || c.Positions }

// tells tells whether there is a way to hear of changes.
func (c *Config) tells() bool { return c.WebSub || c.WebSocket || c.Events }

// Check finds the first error of the configuration.
func (c *Config) Check() error {
	if len(c.Hubs) > 0 && !c.WebSub {
		return errors.New("hubs are for websub, which is off")
	}
	if len(c.Mirrors) > 0 && !c.Positions {
		return errors.New("mirrors are for positions, which is off")
	}
	for _, key := range c.Mirrors {
		if err := position.Key(key).Check(); err != nil {
			return fmt.Errorf("mirrors: %w", err)
		}
	}
	_, err := c.hubs()
	return err
}

// Check finds the first error of the configuration.
func (c *HubConfig) Check() error {
	_, err := c.allow()
	return err
}

func (c *HubConfig) allow() (rules webguard.Rules, err error) {
	for _, text := range c.Callbacks {
		r, err := webguard.ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("callbacks: %w", err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// hubs are the hubs of others.
func (c *Config) hubs() (out []hub.External, err error) {
	for _, text := range c.Hubs {
		f := strings.Fields(text)
		if len(f) == 1 {
			f = append(f, hub.Fat)
		}
		if len(f) != 2 || f[1] != hub.Fat && f[1] != hub.Ping && f[1] != hub.Both {
			return nil, fmt.Errorf("hub %q: want ADDRESS or ADDRESS MODE; modes are fat, ping and both", webguard.Masked(text))
		}
		u, err := url.Parse(f[0])
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			return nil, fmt.Errorf("hub %q: want an http or https address without user and fragment", webguard.Masked(f[0]))
		}
		out = append(out, hub.External{Hub: f[0], Mode: f[1]})
	}
	return out, nil
}

// advertised are the addresses of the hubs of the topics. The configuration is checked.
func (c *Config) advertised(own string) (out []string) {
	hubs, _ := c.hubs()
	switch {
	case !c.WebSub:
		return nil
	case len(hubs) == 0:
		return []string{own}
	}
	for _, h := range hubs {
		out = append(out, h.Hub)
	}
	return out
}

// Entries gives the entries of a Capability List for the channels of a set at an address; nil
// without channels. A topic with a hub has its socket as an alternate link: who reads loc alone
// may know no other scheme than http. Without a hub the socket is the entry (notification 0.8).
func (c Config) Entries(own string) func(set string) []resourcesync.Entry {
	if !c.tells() {
		return nil
	}
	return func(set string) (out []resourcesync.Entry) {
		for _, kind := range []resourcesync.Capability{resourcesync.ChangeNotification, resourcesync.FrameworkNotification} {
			topic := set + notify + segment(kind)
			socket := "ws" + strings.TrimPrefix(topic, "http") // wss of https
			add := func(loc string, hubs []string) {
				e := resourcesync.Entry{Loc: loc, HasMeta: true, Meta: resourcesync.Meta{Capability: kind, Length: -1}}
				for _, hub := range hubs {
					e.Links = append(e.Links, resourcesync.Link{Rel: resourcesync.RelHub, Href: hub, Length: -1})
				}
				if c.WebSocket && loc == topic {
					e.Links = append(e.Links, resourcesync.Link{Rel: resourcesync.RelAlternate, Href: socket, Type: contentType, Length: -1})
				}
				if c.Events {
					e.Links = append(e.Links, resourcesync.Link{Rel: resourcesync.RelAlternate, Href: topic, Type: eventStream, Length: -1})
				}
				out = append(out, e)
			}
			if hubs := c.advertised(own); len(hubs) > 0 {
				add(topic, hubs)
			} else if c.WebSocket {
				add(socket, nil)
			}
		}
		return out
	}
}
