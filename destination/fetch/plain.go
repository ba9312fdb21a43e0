package fetch

import "net/http"

// Plain is a client under the same rules of addresses and names, for what is no document:
// streams, and subscriptions. Its user bounds bodies and times.
func (f *Client) Plain() *http.Client {
	return &http.Client{Transport: guarded{f}, CheckRedirect: f.client.CheckRedirect}
}

type guarded struct{ f *Client }

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.f.Allowed(r.URL); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	g.f.authorize(r)
	return g.f.client.Transport.RoundTrip(r)
}
