// Package webclient has what all HTTP clients of the program do alike: they say who
// asks, keep the cookies of a host for that host, and read codings and ranges that
// servers get wrong.
package webclient

import (
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
)

const module = "github.com/rsbridge/rsbridge"

// Agent is the default User-Agent: the program, its version, and where the people
// behind it are found, as Wikimedia and others demand.
var Agent = "rsbridge/" + Version() + " (+https://" + module + ")"

// Version is that of the program, or "devel".
func Version() string {
	version := ""
	if bi, ok := debug.ReadBuildInfo(); ok {
		if version = bi.Main.Version; bi.Main.Path != module { // a library of another program
			version = ""
			for _, d := range bi.Deps {
				if d.Path == module {
					version = d.Version
				}
			}
		}
	}
	if version = strings.Trim(version, "()"); version == "" {
		return "devel"
	}
	return version
}

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

// Named gives a transport whose requests carry the User-Agent; "" is Agent.
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

// CloseIdleConnections is what http.Client looks for.
func (n *named) CloseIdleConnections() {
	if c, ok := n.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
