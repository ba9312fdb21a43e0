package inproc

import (
	"fmt"
	"net/http"
	"path"
)

// OnlyReading refuses requests to a store that would write.
type OnlyReading struct{ http.RoundTripper }

// RoundTrip sends a request that reads.
func (t OnlyReading) RoundTrip(r *http.Request) (*http.Response, error) {
	at := path.Base(r.URL.Path)
	if at == "update" || at == "data" && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, fmt.Errorf("%s: the store is only read now", r.Method)
	}
	return t.RoundTripper.RoundTrip(r)
}
