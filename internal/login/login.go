// Package login gives requests to one host the credentials of a configuration, and requests to
// other hosts none, also over redirects.
package login

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Config are the credentials for one host: a name and a password, or a token, or those of an OAuth
// 2.0 client; and a certificate beside them or alone.
type Config struct {
	Username         string            `yaml:"username" doc:"basic authentication, with password"`
	Password         configfile.Secret `yaml:"password" doc:"better: password_file, or ${VARIABLE}"`
	PasswordFile     string            `yaml:"password_file" doc:"file with the password"`
	Token            configfile.Secret `yaml:"token" doc:"bearer token; better: token_file, or ${VARIABLE}"`
	TokenFile        string            `yaml:"token_file" doc:"file with the token"`
	TokenURL         string            `yaml:"token_url" doc:"OAuth 2.0 client credentials: the address of tokens; with client_id and client_secret"`
	ClientID         string            `yaml:"client_id" doc:"OAuth 2.0: name of the client"`
	ClientSecret     configfile.Secret `yaml:"client_secret" doc:"better: client_secret_file, or ${VARIABLE}"`
	ClientSecretFile string            `yaml:"client_secret_file" doc:"file with the client's secret"`
	Scopes           []string          `yaml:"scopes" doc:"OAuth 2.0: wanted scopes"`
	Audience         string            `yaml:"audience" doc:"OAuth 2.0: wanted audience, where the server needs one"`
	CertFile         string            `yaml:"cert_file" doc:"PEM file with a client certificate, read again at each connection"`
	KeyFile          string            `yaml:"key_file" doc:"PEM file with its private key"`
	CAFile           string            `yaml:"ca_file" doc:"PEM file with the authorities of the source's certificate; default: those of the system"`
}

// On tells whether there are any.
func (c Config) On() bool {
	return c.Username != "" || c.Password != "" || c.Token != "" || c.oauth() || c.certificate()
}

func (c Config) oauth() bool       { return c.TokenURL != "" || c.ClientID != "" || c.ClientSecret != "" }
func (c Config) certificate() bool { return c.CertFile != "" || c.KeyFile != "" || c.CAFile != "" }

// Resolve changes the paths, and reads secrets from their files.
func (c *Config) Resolve(path func(string) string, secret func(key, file string, into *configfile.Secret)) {
	secret("password_file", c.PasswordFile, &c.Password)
	secret("token_file", c.TokenFile, &c.Token)
	secret("client_secret_file", c.ClientSecretFile, &c.ClientSecret)
	c.CertFile, c.KeyFile, c.CAFile = path(c.CertFile), path(c.KeyFile), path(c.CAFile)
}

// Check tells the faults of the credentials for an address by their keys.
func (c Config) Check(address string, fault func(key, value, format string, args ...any)) {
	switch password := c.Password != "" || c.PasswordFile != ""; {
	case password && c.Username == "":
		fault("username", "", "is missing: a password goes with one")
	case !password && c.Username != "":
		fault("username", c.Username, "needs password or password_file too")
	}
	if !c.On() {
		return
	}
	home, err := url.Parse(address)
	if err != nil {
		return // told by others
	}
	ways := 0
	for _, way := range []bool{c.Username != "" || c.Password != "", c.Token != "", c.oauth(), home.User != nil} {
		if way {
			ways++
		}
	}
	if ways > 1 {
		fault("", "", "has several ways to log in: keep one of username, token, token_url, and a user in the address")
	}
	if strings.ContainsAny(string(c.Token), " \t\r\n") {
		fault("token", "", "has blanks in it: it is no token")
	}
	if c.oauth() {
		u, err := webguard.Parse(c.TokenURL)
		switch {
		case c.TokenURL == "" || c.ClientID == "" || c.ClientSecret == "":
			fault("token_url", c.TokenURL, "goes together with client_id and client_secret")
		case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
			fault("token_url", c.TokenURL, "is no http or https address")
		}
	}
	if c.certificate() {
		if home.Scheme != "https" {
			fault("cert_file", c.CertFile, "is for https: certificates are part of TLS")
		}
		if _, err := c.tls(); err != nil {
			fault("cert_file", c.CertFile, "%v", err)
		}
	}
}

// tls is the TLS of a client with the certificate.
func (c Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		roots, err := tlsfiles.Roots(c.CAFile)
		if err != nil {
			return nil, err
		}
		t.RootCAs = roots
	}
	if c.CertFile == "" && c.KeyFile == "" {
		return t, nil
	}
	own := tlsfiles.Config{CertFile: c.CertFile, KeyFile: c.KeyFile}
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.Load() }
	return t, own.Check()
}

// Transport sends requests to the host of an address with the credentials, by a transport of its
// own if there is a certificate, and all others by next.
func (c Config) Transport(address string, next http.RoundTripper) (http.RoundTripper, error) {
	if !c.On() {
		return next, nil
	}
	home, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("login: no address")
	}
	t := &transport{c: c, home: home, own: next, next: next}
	if c.certificate() {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost, own.DisableCompression = 32, true
		if own.TLSClientConfig, err = c.tls(); err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		t.own = own
	}
	return t, nil
}

type transport struct {
	c         Config
	home      *url.URL
	own, next http.RoundTripper

	mu     sync.Mutex // guards the field below
	tokens oauth2.TokenSource
}

// atHome tells whether an address has the scheme, the host and the port of the configured one.
func (t *transport) atHome(u *url.URL) bool {
	return u.Scheme == t.home.Scheme && strings.EqualFold(u.Hostname(), t.home.Hostname()) && webguard.Port(u) == webguard.Port(t.home)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.atHome(r.URL) {
		return t.next.RoundTrip(r)
	}
	res, err := t.send(r, r.Body)
	if err != nil || res.StatusCode != http.StatusUnauthorized || !t.c.oauth() || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return res, err
	}
	t.forget() // a token may end before its time
	body := r.Body
	if r.GetBody != nil {
		if body, err = r.GetBody(); err != nil {
			return res, nil
		}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // the connection is used again
	res.Body.Close()
	return t.send(r, body)
}

// send makes one request with the credentials.
func (t *transport) send(r *http.Request, body io.ReadCloser) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Body = body
	switch {
	case t.c.Username != "":
		out.SetBasicAuth(t.c.Username, string(t.c.Password))
	case t.c.Token != "":
		out.Header.Set("Authorization", "Bearer "+string(t.c.Token))
	case t.c.oauth():
		token, err := t.source().Token()
		if err != nil {
			if body != nil {
				body.Close()
			}
			return nil, t.failed(err)
		}
		token.SetAuthHeader(out)
	}
	res, err := t.own.RoundTrip(out)
	if err == nil {
		res.Request = r
	}
	return res, err
}

// failed is why there is no token, without the body of the answer: it may repeat the request.
func (t *transport) failed(err error) error {
	var no *oauth2.RetrieveError
	if errors.As(err, &no) && no.Response != nil {
		return fmt.Errorf("no token from %s: %s %s", webguard.Masked(t.c.TokenURL), no.Response.Status, no.ErrorCode)
	}
	return fmt.Errorf("no token from %s: %w", webguard.Masked(t.c.TokenURL), webguard.MaskedError(err))
}

// tokenTime is the time for a new token.
const tokenTime = 30 * time.Second

// source gives tokens, the same one until it ends. The client's secret goes to the configured
// address alone: redirects are not followed.
func (t *transport) source() oauth2.TokenSource {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == nil {
		config := clientcredentials.Config{ClientID: t.c.ClientID, ClientSecret: string(t.c.ClientSecret), TokenURL: t.c.TokenURL, Scopes: t.c.Scopes}
		if t.c.Audience != "" {
			config.EndpointParams = url.Values{"audience": {t.c.Audience}}
		}
		client := &http.Client{Timeout: tokenTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if t.own != t.next && sameHost(t.c.TokenURL, t.home) { // it may want the certificate too
			client.Transport = t.own
		}
		t.tokens = config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client))
	}
	return t.tokens
}

func sameHost(address string, home *url.URL) bool {
	u, err := url.Parse(address)
	return err == nil && strings.EqualFold(u.Host, home.Host)
}

// forget drops the present token.
func (t *transport) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens = nil
}
