package inproc

import (
	"net/http"
	"net/url"
	"strings"
)

// OwnOrWeb sends requests for a program's own addresses to Own, all others to Web.
type OwnOrWeb struct {
	Bases    func() []string // of the own addresses
	Own, Web http.RoundTripper
}

// RoundTrip serves req.
func (t OwnOrWeb) RoundTrip(req *http.Request) (*http.Response, error) {
	for _, base := range t.Bases() {
		u, err := url.Parse(base)
		if err != nil || req.URL.Scheme != u.Scheme || !strings.EqualFold(req.URL.Host, u.Host) {
			continue
		}
		// Beside the path of a base URL others may live, behind the same proxy.
		if rest, below := strings.CutPrefix(req.URL.Path, u.Path); below && (rest == "" || rest[0] == '/') {
			return t.Own.RoundTrip(req)
		}
	}
	return t.Web.RoundTrip(req)
}
