package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/pace"
)

func (f *Follower) prober(now time.Time) *prober {
	return &prober{f: f, now: now, pace: pace.Pacer{Rate: f.cfg.Rate}, down: map[string]int{}}
}

// Fetcher fetches listed files one after the other, by the rules of a run: from allowed hosts, at
// the configured rate, and not from a host after several failures in a row.
type Fetcher struct{ p *prober }

// Fetcher begins.
func (f *Follower) Fetcher() *Fetcher { return &Fetcher{f.prober(f.o.Now())} }

// Fetch writes a file to w, if it is still the listed version and has no more than most bytes.
// After an error the bytes in w are worthless.
func (x *Fetcher) Fetch(ctx context.Context, url string, v *changetrack.FileVersion, most int64, w io.Writer) error {
	host, down := x.p.host(url)
	if down {
		return errors.New("its host has failed several times in a row")
	}
	c := candidate{url: url, current: v}
	b, err := x.p.f.store.Get(ctx, lookKey(url))
	if err == nil {
		c.look, err = readLook(b)
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	a, err := x.p.request(ctx, http.MethodGet, &c, false, w, most)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x.p.heard(host, a.status, err)
	switch {
	case err != nil:
		return errors.New(reason(err))
	case a.status != http.StatusOK:
		return fmt.Errorf("%d %s", a.status, http.StatusText(a.status))
	case a.noHash:
		return fmt.Errorf("it has more than %d bytes", most)
	case !x.p.listed(&c, &a):
		return errors.New("it is not what was listed any more")
	}
	return nil
}

// listed tells whether the response is the current version: by its hash, or else by all headers.
func (p *prober) listed(c *candidate, a *answer) bool {
	v := c.current
	if v.Length >= 0 && v.Length != a.version.Length || v.Encoding != a.version.Encoding {
		return false
	}
	if !v.SHA256.IsZero() {
		return v.SHA256 == a.version.SHA256
	}
	return v.Type == a.version.Type && v.Modified.Equal(a.version.Modified) && (c.look.ETag == "" && a.etag == "" || weak(c.look.ETag, a.etag))
}
