// Package webclient is the common part of the program's HTTP clients: they name themselves,
// keep the cookies of a host for that host, and read codings and ranges that
// servers get wrong.
package webclient

import (
	"errors"
	"net/http"

	"github.com/rsbridge/rsbridge/internal/version"
)

// Agent is the default User-Agent: the program, its version, and where the people
// behind it are found, as Wikimedia and others demand.
var Agent = "rsbridge/" + version.String() + " (+https://github.com/rsbridge/rsbridge)"

// CheckAgent tells why a text cannot be a User-Agent.
func CheckAgent(s string) error {
	if len(s) > 1000 {
		return errors.New("is longer than 1000 bytes")
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return errors.New("has a character outside of printable ASCII")
		}
	}
	return nil
}

// Named gives a transport that adds the User-Agent to requests; "" is Agent.
func Named(rt http.RoundTripper, agent string) http.RoundTripper {
	if agent == "" {
		agent = Agent
	}
	return &named{rt, agent}
}

type named struct {
	http.RoundTripper
	agent string
}

func (n *named) RoundTrip(r *http.Request) (*http.Response, error) {
	again := *r
	again.Header = r.Header.Clone()
	again.Header.Set("User-Agent", n.agent)
	return n.RoundTripper.RoundTrip(&again)
}

// CloseIdleConnections is called by http.Client.
func (n *named) CloseIdleConnections() {
	if c, ok := n.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
