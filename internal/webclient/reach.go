package webclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Reach fetches the head of a source: of the address itself or, if a site has nothing
// there, of its well-known address. An agent of "" is the default.
func Reach(ctx context.Context, source, agent string, with func(http.RoundTripper) (http.RoundTripper, error)) (err error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	defer t.CloseIdleConnections()
	var web http.RoundTripper = t
	if with != nil {
		web, err = with(t)
	}
	if err != nil {
		return err
	}
	var jar Cookies
	source, user, secrets := webguard.Hide(source)
	client := &http.Client{Transport: secrets.Transport(Named(web, agent)), Jar: &jar}
	get := func(address string) (int, error) {
		if _, err := webguard.Parse(address); err != nil {
			return 0, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return 0, err
		}
		req.URL.User = user
		res, err := jar.Get(client, req)
		if h := webguard.Hint(err); h != "" {
			return 0, fmt.Errorf("%w (%s)", err, h)
		}
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		_, _ = io.CopyN(io.Discard, res.Body, 4096) // the status counts
		if res.StatusCode >= 400 {
			err = fmt.Errorf("%s answers %s", address, res.Status)
		}
		return res.StatusCode, err
	}
	code, err := get(source)
	if u, wrong := url.Parse(source); wrong == nil && (code == http.StatusNotFound || code == http.StatusGone) && strings.Trim(u.Path, "/") == "" {
		_, err = get(u.Scheme + "://" + u.Host + "/.well-known/resourcesync")
	}
	return err
}
