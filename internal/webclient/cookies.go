package webclient

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

const (
	maxCookieHosts = 100
	maxCookies     = 50   // of a host, counted as they are set
	maxCookieBytes = 4096 // of one
)

// Cookies is a jar in memory. A cookie goes back to the host and port that set it, and
// nowhere else: a Domain is left out. The zero value is empty.
type Cookies struct {
	mu    sync.Mutex
	hosts map[string]*hostCookies
}

type hostCookies struct {
	jar *cookiejar.Jar
	set int
}

// Clear forgets all of them.
func (c *Cookies) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.hosts)
}

// place is the host and port of an address; the default ports of http and https are one.
func place(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), webguard.Port(u)
	if port == "80" || port == "443" {
		return host
	}
	return host + ":" + port
}

// SetCookies implements http.CookieJar. Cookies beyond a bound are left out.
func (c *Cookies) SetCookies(u *url.URL, cookies []*http.Cookie) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[place(u)]
	if h == nil {
		if len(c.hosts) >= maxCookieHosts {
			return
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			return // it has no options to get wrong
		}
		if c.hosts == nil {
			c.hosts = map[string]*hostCookies{}
		}
		h = &hostCookies{jar: jar}
		c.hosts[place(u)] = h
	}
	for _, k := range cookies {
		if len(k.Name)+len(k.Value)+len(k.Path) > maxCookieBytes {
			continue
		}
		known := false
		for _, have := range h.jar.Cookies(u) {
			known = known || have.Name == k.Name
		}
		if !known {
			if h.set++; h.set > maxCookies {
				continue
			}
		}
		own := *k
		own.Domain = ""
		h.jar.SetCookies(u, []*http.Cookie{&own})
	}
}

// Cookies implements http.CookieJar.
func (c *Cookies) Cookies(u *url.URL) []*http.Cookie {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[place(u)]; h != nil {
		return h.jar.Cookies(u)
	}
	return nil
}

// Get sends a request, and once more if the answer is a wall before the thing asked
// for: a refusal or a page for people, with a cookie new to the request. c
// is a client with this jar.
func (c *Cookies) Get(client *http.Client, req *http.Request) (*http.Response, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, webguard.MaskedError(err)
	}
	if !c.wall(res) {
		return res, nil
	}
	_ = res.Body.Close()
	req.Header.Del("Cookie") // the client has added its own
	res, err = client.Do(req)
	return res, webguard.MaskedError(err)
}

func (c *Cookies) wall(res *http.Response) bool {
	kind, _, _ := strings.Cut(strings.ToLower(res.Header.Get("Content-Type")), ";")
	switch kind = strings.TrimSpace(kind); res.StatusCode {
	case http.StatusOK:
		if kind != "text/html" && kind != "application/xhtml+xml" {
			return false
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable:
	default:
		return false
	}
	for _, k := range c.Cookies(res.Request.URL) {
		if _, err := res.Request.Cookie(k.Name); err != nil {
			return true
		}
	}
	return false
}
