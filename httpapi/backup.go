package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
)

// archive stands in the table of routes for a tar file.
type archive struct{}

// backup answers with the whole state. An answer that breaks off is no backup: its end is missing.
func (a *api) backup(c *gin.Context) (any, error) {
	if _, err := arguments(c, new(no)); err != nil {
		return nil, err
	}
	ctx, cancel := a.until(c)
	defer cancel()
	c.Header("Content-Type", "application/x-tar")
	c.Header("Content-Disposition", `attachment; filename="rsbridge.tar"`)
	c.Header("Cache-Control", "no-store")
	err := bridge.Backup(ctx, a.b, c.Writer)
	if err != nil && c.Writer.Written() {
		a.log.Error("a backup broke off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, err
}

// Backup writes a backup of the running bridge to w.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	res, err := c.send(ctx, http.MethodPost, "/backup", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("the backup of the running bridge broke off: %w", err)
	}
	return nil
}

// send sends a request. Problems come back as *Problem.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the running bridge: %w", err)
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	defer res.Body.Close()
	p := &Problem{Status: res.StatusCode, Detail: res.Status}
	_ = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(p) // the status says enough without it
	return nil, p
}
