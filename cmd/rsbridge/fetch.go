package main

import (
	"context"
	"errors"
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

	"github.com/spf13/pflag"

	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// fetcher gets documents for commands about sources. It obeys the rule of mirrors: it asks
// only the hosts on the command line and in --allow, at the first request and at every
// redirect. Documents may name any host.
type fetcher struct {
	client *http.Client
	jar    webclient.Cookies
	users  sync.Map // user and password in addresses, by scheme and host
	hosts  webguard.Rules
	files  bool // the command line names a file, so documents may name files

	secrets []*webguard.Secrets // of the addresses of the command line
}

func newFetcher(allow []string) (*fetcher, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	t.ResponseHeaderTimeout = time.Minute
	f := &fetcher{}
	f.client = &http.Client{Transport: webclient.Named(t, ""), Jar: &f.jar, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("more than 10 redirects in a row")
		}
		return f.allowed(req.URL)
	}}
	for _, a := range allow {
		r, err := webguard.ParseRule(a)
		if err != nil {
			return nil, fmt.Errorf("--allow: %w", err)
		}
		f.hosts = append(f.hosts, r)
	}
	return f, nil
}

// addAllow adds the flag for newFetcher.
func addAllow(flags *pflag.FlagSet, allow *[]string) {
	flags.StringSliceVar(allow, "allow", nil, "also fetch from this `HOST` or host:port, where documents lead to it (may be repeated)")
}

func (f *fetcher) allowed(u *url.URL) error {
	err := f.hosts.Allowed(u)
	if errors.Is(err, webguard.ErrNotAllowed) {
		return fmt.Errorf("%w (--allow %s fetches from it)", err, u.Host)
	}
	return err
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// onWeb tells an address from the path of a file.
func onWeb(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// name takes an address of the command line: its host may be asked. It gives the address
// without its secrets, since it is printed; they go with every request to the host.
func (f *fetcher) name(address string) string {
	u, err := url.Parse(address)
	if err != nil || !onWeb(address) {
		f.files = true
		return address
	}
	f.hosts = append(f.hosts, webguard.Rule{Host: strings.ToLower(u.Hostname()), Port: webguard.Port(u), Own: true})
	shown, user, secrets := webguard.Hide(address)
	if user != nil {
		f.users.Store(u.Scheme+"://"+u.Host, user)
	}
	if secrets != nil {
		f.secrets = append(f.secrets, secrets)
		f.client.Transport = secrets.Transport(f.client.Transport)
	}
	return shown
}

// fetch is the fetch function of check.Checker and check.Explore.
func (f *fetcher) fetch(ctx context.Context, address string) (*check.Fetched, error) {
	if !onWeb(address) {
		if !f.files {
			return nil, fmt.Errorf("%s is no address of the web", address)
		}
		return openFile(address)
	}
	u, err := webguard.Parse(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err == nil {
		err = f.allowed(req.URL)
	}
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
	res, err := f.jar.Get(f.client, req)
	if h := webguard.Hint(err); h != "" {
		return nil, fmt.Errorf("%w (%s)", err, h)
	}
	if err != nil {
		return nil, err
	}
	got := &check.Fetched{
		Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), ContentEncoding: res.Header.Get("Content-Encoding"),
		ContentLength: res.ContentLength, LastModified: res.Header.Get("Last-Modified"), Links: res.Header.Values("Link"), Body: res.Body,
	}
	got.Shown = func(document io.Reader) io.Reader {
		for _, s := range f.secrets {
			document = s.Reader(document)
		}
		return document
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

func openFile(path string) (*check.Fetched, error) {
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
	return &check.Fetched{Status: http.StatusOK, ContentLength: st.Size(), LastModified: st.ModTime().UTC().Format(http.TimeFormat), Body: f}, nil
}

// documentsIn lists the documents below a folder: *.xml, and the well-known one.
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
