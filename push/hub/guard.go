package hub

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// newClient follows no redirects, keeps no cookies, and calls permitted addresses only. The hubs of
// others are named by the configuration, so they are permitted.
func newClient(o Options) *http.Client {
	allow := o.Allow
	for _, e := range o.External {
		if u, err := url.Parse(e.Hub); err == nil {
			allow = append(allow[:len(allow):len(allow)], webguard.Rule{Host: strings.ToLower(u.Hostname()), Port: webguard.Port(u)})
		}
	}
	t := o.Transport
	if t == nil {
		t = &http.Transport{
			DialContext:         dialer(allow),
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: answerTime, IdleConnTimeout: time.Minute,
			MaxIdleConnsPerHost: 8, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
		}
	}
	return &http.Client{Transport: webclient.Named(t, o.UserAgent), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// dialer opens connections to public addresses, and to allowed hosts wherever they are.
func dialer(allow webguard.Rules) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := webguard.Dialer{Timeout: 10 * time.Second, Strict: true}
		if allow.Allowed(&url.URL{Scheme: "http", Host: address}) == nil {
			d = webguard.Dialer{Timeout: 10 * time.Second, Private: true}
		}
		return d.DialContext(ctx, network, address)
	}
}

// permitted refuses a callback known to be no public address. Names are looked up at each call.
func permitted(allow webguard.Rules, u *url.URL) error {
	if allow.Allowed(u) == nil {
		return nil
	}
	a, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]"))
	if err == nil && !webguard.Public(a) || err != nil && (strings.EqualFold(u.Hostname(), "localhost") || strings.HasSuffix(strings.ToLower(u.Hostname()), ".localhost")) {
		return fmt.Errorf("%w: %s", webguard.ErrPrivate, u.Hostname())
	}
	return nil
}

// openKey opens the key of secrets, or makes one.
func openKey(file string) (cipher.AEAD, error) {
	k := make([]byte, 32)
	if file == "" {
		if _, err := rand.Read(k); err != nil {
			return nil, err
		}
	} else { // durable before a secret is sealed with it
		kept, err := ownfile.Secret(file, len(k), "remove it, and subscribers with a secret subscribe anew")
		if err != nil {
			return nil, err
		}
		k = kept
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealed hides the secret of a subscription.
func (h *Hub) sealed(secret string, k key) []byte { return h.seal.Seal(nil, nil, []byte(secret), k[:]) }

func (h *Hub) opened(sealed []byte, k key) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	secret, err := h.seal.Open(nil, nil, sealed, k[:])
	if err != nil {
		return "", errors.New("it was sealed with another key")
	}
	return string(secret), nil
}
