// Package fence lets the effects of a process out only while it leads. A process that stood still, or lost its
// database, is asked before each request, and during each upload.
package fence

import (
	"context"
	"io"
	"net/http"

	"github.com/rsbridge/rsbridge/internal/blob"
)

// Hold waits until the process certainly leads, or tells why it does not.
type Hold func(context.Context) error

// Around is a transport behind the fence; a nil Hold changes nothing.
func Around(next http.RoundTripper, hold Hold) http.RoundTripper {
	if hold == nil {
		return next
	}
	return transport{next, hold}
}

type transport struct {
	next http.RoundTripper
	hold Hold
}

// RoundTrip sends a request while the process leads.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.hold(r.Context()); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(r.Context())
		r.Body = upload{r.Body, r.Context(), t.hold}
	}
	return t.next.RoundTrip(r)
}

// upload is a body that ends with an error as soon as the process does not lead.
type upload struct {
	io.ReadCloser
	ctx  context.Context
	hold Hold
}

func (u upload) Read(p []byte) (int, error) {
	if err := u.hold(u.ctx); err != nil {
		return 0, err
	}
	return u.ReadCloser.Read(p)
}

// Blobs is a store of published files whose writes are behind the fence; a nil Hold changes nothing.
func Blobs(s blob.Store, hold Hold) blob.Store {
	if hold == nil || s == nil {
		return s
	}
	return blobs{s, hold}
}

type blobs struct {
	blob.Store
	hold Hold
}

func (b blobs) Create(ctx context.Context, name string, r io.ReadSeeker, size int64, m blob.Meta) error {
	if err := b.hold(ctx); err != nil {
		return err
	}
	return b.Store.Create(ctx, name, r, size, m)
}

func (b blobs) Swap(ctx context.Context, name string, data []byte, old blob.Tag, m blob.Meta) (blob.Tag, error) {
	if err := b.hold(ctx); err != nil {
		return "", err
	}
	return b.Store.Swap(ctx, name, data, old, m)
}

func (b blobs) Delete(ctx context.Context, names ...string) error {
	if err := b.hold(ctx); err != nil {
		return err
	}
	return b.Store.Delete(ctx, names...)
}
