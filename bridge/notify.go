package bridge

import (
	"context"
	"net/http"

	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/push"
)

// openPush opens the notifications of the configured sets. keyFile seals the secrets of subscribers.
func openPush(c *Config, b *Bridge, keyFile string) (*push.Push, error) {
	var told []push.SetConfig
	for _, name := range b.ConfiguredSets() {
		notify := c.Sets[name].Notify
		notify.WebSub = notify.WebSub && !c.Sets[name].IsProtected()
		told = append(told, push.SetConfig{Name: name, Config: notify,
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
	return push.New(told, push.Options{Store: kv.Prefix(b.kv, spaces.Push), Source: c.Public.BaseURL + "/.well-known/resourcesync", Documents: b.answering.Counted(b.pub.Handler()),
		Former:  func(name string) string { to, _ := b.pub.Former(name); return to },
		Address: c.HubAddress(), Hub: c.Public.Hub, KeyFile: keyFile, UserAgent: c.UserAgent, Now: b.now, Logger: b.log.With("component", "push")})
}

// protect lets only readers with a token at protected sets.
func protect(b *Bridge, documents http.Handler) http.Handler {
	protected := map[string]bool{}
	for name, s := range b.sets {
		if s.cfg.IsProtected() {
			protected[name] = true
		}
	}
	if len(protected) == 0 {
		return documents
	}
	users := access.Open(access.Folder(b.cfg.Folder()), "")
	if b.holder != nil { // else the state is only read
		if err := users.Prepare(); err != nil {
			b.log.Error("commands cannot read protected sets", "error", err)
		}
	}
	return access.Protect(documents, b.pub.Refuse, users, protected, b.pub.Bases, access.NewGuesses("wrong tokens at protected sets", b.log))
}

// HangUp ends all notifications, sent and heard: another bridge goes on with them, or none.
func (b *Bridge) HangUp() {
	for _, m := range b.dests {
		m.hangUp()
	}
	if b.forms.push != nil {
		b.forms.push.Close()
	}
}
