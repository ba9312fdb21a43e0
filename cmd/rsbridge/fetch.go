package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// fetcher gets documents from the web and from files, for commands that read
// sources.
type fetcher struct {
	client *http.Client
	users  sync.Map // of hosts, by scheme and host: who asks, as an address before told it
}

func newFetcher() *fetcher {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	t.ResponseHeaderTimeout = time.Minute
	return &fetcher{client: &http.Client{Transport: t}}
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// onWeb tells an address from the path of a file.
func onWeb(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// remember takes the user and password out of an address, which is printed and told in
// reports: they go with every request to its host all the same.
func (f *fetcher) remember(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || !onWeb(address) {
		return address
	}
	f.users.Store(u.Scheme+"://"+u.Host, u.User)
	u.User = nil
	return u.String()
}

// fetch is what resourcesync's Checker and Explore ask for.
func (f *fetcher) fetch(ctx context.Context, address string) (*resourcesync.Fetched, error) {
	if !onWeb(address) {
		return openFile(address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/xml, text/xml;q=0.9, text/html;q=0.8, */*;q=0.5")
	own := req.URL.User
	if host := req.URL.Scheme + "://" + req.URL.Host; own != nil {
		f.users.Store(host, own)
	} else if user, ok := f.users.Load(host); ok {
		req.URL.User = user.(*url.Userinfo)
	}
	req.Header.Set("User-Agent", "rsbridge (+https://github.com/rsbridge/rsbridge)")
	res, err := f.client.Do(req)
	if h := webguard.Hint(err); h != "" {
		return nil, fmt.Errorf("%w (%s)", err, h)
	}
	if err != nil {
		return nil, err
	}
	got := &resourcesync.Fetched{
		Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), ContentEncoding: res.Header.Get("Content-Encoding"),
		ContentLength: res.ContentLength, LastModified: res.Header.Get("Last-Modified"), Links: res.Header.Values("Link"), Body: res.Body,
	}
	final := *res.Request.URL
	if final.User != nil {
		final.User = own
	}
	if final.String() != address {
		got.URL = final.String()
	}
	return got, nil
}

func openFile(path string) (*resourcesync.Fetched, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fmt.Errorf("%s is a folder, want a file or an address", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &resourcesync.Fetched{Status: http.StatusOK, ContentLength: st.Size(), LastModified: st.ModTime().UTC().Format(http.TimeFormat), Body: f}, nil
}

// documentsIn lists the documents below a folder: files that end in .xml, and
// the well-known one.
func documentsIn(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".xml") || strings.HasSuffix(filepath.ToSlash(path), ".well-known/resourcesync")) {
			out = append(out, path)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("there is no document (*.xml) below %s", dir)
	}
	return out, err
}

// isPackage looks whether a file begins as a ZIP package.
func isPackage(r io.ReaderAt) bool {
	head := make([]byte, 4)
	_, err := r.ReadAt(head, 0)
	return err == nil && string(head) == "PK\x03\x04"
}
