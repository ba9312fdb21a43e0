package fence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/fileblob"
)

var errGone = errors.New("another process leads")

// leads is a process that leads for so many questions.
func leads(n int) Hold {
	return func(context.Context) error {
		if n--; n < 0 {
			return errGone
		}
		return nil
	}
}

// TestRequests: without the lead no request is sent, and an upload under way breaks off.
func TestRequests(t *testing.T) {
	var arrived, whole int
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived++
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole++
		}
	}))
	defer server.Close()
	send := func(n int) error {
		c := http.Client{Transport: Around(http.DefaultTransport, leads(n))}
		res, err := c.Post(server.URL, "text/plain", io.LimitReader(strings.NewReader(strings.Repeat("x", 1<<22)), 1<<22))
		if err == nil {
			err = res.Body.Close()
		}
		return err
	}
	if err := send(0); !errors.Is(err, errGone) || arrived != 0 {
		t.Errorf("without the lead: %v, %d requests", err, arrived)
	}
	if err := send(4); !errors.Is(err, errGone) {
		t.Errorf("with a lost lead: %v", err)
	}
	if err := send(1 << 20); err != nil || whole != 1 {
		t.Errorf("with the lead: %v, %d whole uploads", err, whole)
	}
	if Around(http.DefaultTransport, nil) != http.DefaultTransport {
		t.Error("a process alone has a fence")
	}
}

// TestBlobs: without the lead nothing is written, and all can be read.
func TestBlobs(t *testing.T) {
	files := fileblob.New(t.TempDir())
	create := func(s blob.Store, name string) error {
		return s.Create(t.Context(), name, strings.NewReader("x"), 1, blob.Meta{})
	}
	if err := create(Blobs(files, leads(1)), "a"); err != nil {
		t.Fatal(err)
	}
	s := Blobs(files, leads(0))
	_, err := s.Swap(t.Context(), "p", []byte("x"), "", blob.Meta{})
	for _, err := range []error{err, create(s, "b"), s.Delete(t.Context(), "a")} {
		if !errors.Is(err, errGone) {
			t.Errorf("a write = %v", err)
		}
	}
	if info, err := blob.Stat(t.Context(), s, "a"); err != nil || info.Size != 1 {
		t.Errorf("reading gives %+v, %v", info, err)
	}
}
