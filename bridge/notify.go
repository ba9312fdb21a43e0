package bridge

import (
	"context"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/push"
)

// openPush opens the notifications of the configured sets. keyFile seals the secrets of subscribers.
func (c *Config) openPush(b *Bridge, keyFile string) (*push.Push, error) {
	var told []push.SetConfig
	for _, name := range b.ConfiguredSets() {
		told = append(told, push.SetConfig{Name: name, Config: c.Sets[name].Notify,
			Address: func() string {
				at, _, _ := b.pub.Addresses(name) // fails while the publisher is being closed
				return at.Base + "/" + name
			},
			Read: func(ctx context.Context) push.State {
				if r := b.pub.Read(ctx, name); r != nil {
					return r
				}
				return nil
			}})
	}
	return push.New(told, push.Options{Store: kv.Prefix(b.kv, prefixPush), Source: c.Public.BaseURL + "/.well-known/resourcesync", Documents: b.pub.Handler(),
		Former:  func(name string) string { to, _ := b.pub.Former(name); return to },
		Address: c.hub(), Hub: c.Public.Hub, KeyFile: keyFile, UserAgent: c.UserAgent, Now: b.now, Logger: b.log.With("component", "push")})
}

// hub is the address of the built-in hub.
func (c *Config) hub() string { return c.Public.BaseURL + "/hub" }

// HangUp ends all notifications, sent and heard: another bridge goes on with them, or none.
func (b *Bridge) HangUp() {
	for _, m := range b.dests {
		m.hangUp()
	}
	if b.forms.push != nil {
		b.forms.push.Close()
	}
}
