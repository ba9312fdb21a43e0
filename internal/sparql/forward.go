package sparql

import (
	"io"
	"net/http"
)

// Forward sends somebody else's request to this store, once, with the store's credentials. The
// answer is the store's own, whatever its status. A request with GetBody is sent again after a
// challenge (Digest).
func (c *Client) Forward(req *http.Request) (*http.Response, error) {
	c.conn.auth.sign(req)
	res, err := c.conn.http.Transport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized || !c.conn.auth.learn(res) || req.GetBody == nil {
		return res, err
	}
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // for the connection to be used again
	res.Body.Close()
	again := req.Clone(req.Context())
	if again.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	again.Header.Del("Authorization")
	c.conn.auth.sign(again)
	return c.conn.http.Transport.RoundTrip(again)
}
