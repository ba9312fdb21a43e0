package s3blob

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/blobtest"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// servers are S3 servers by others.
var servers = map[string]func(testing.TB) string{"moto": teststores.Moto, "versitygw": teststores.Versitygw}

func start(t testing.TB, address string) *Store {
	t.Helper()
	s, err := Open(t.Context(), address, true)
	if err != nil {
		t.Fatal(err)
	}
	s.page = 4 // lists have many pages
	return s
}

func TestStore(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, func(t testing.TB) blob.Store { return start(t, server(t)) })
		})
	}
}

// TestMeta: what a reader of the bucket is sent.
func TestMeta(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			s := start(t, server(t))
			want := blob.Meta{ContentType: "application/xml", ContentEncoding: "gzip", CacheControl: "public, max-age=60", Generation: 12}
			if _, err := s.Swap(t.Context(), "live/a.xml", []byte("\x1f\x8b1"), "", want); err != nil {
				t.Fatal(err)
			}
			info, err := blob.Stat(t.Context(), s, "live/a.xml")
			if err != nil || info.Meta != want {
				t.Errorf("Stat = %+v, %v; want %+v", info.Meta, err, want)
			}
			r, info, err := s.Open(t.Context(), "live/a.xml", 0, -1)
			if err != nil || info.Meta != want {
				t.Fatalf("Open = %+v, %v", info.Meta, err)
			}
			defer r.Close()
			if data, err := io.ReadAll(r); err != nil || string(data) != "\x1f\x8b1" {
				t.Errorf("read %q, %v: the coding is the reader's to undo", data, err)
			}
		})
	}
}

// fault changes what happens to a request; false: it is passed on, and the answer comes back.
type fault func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool

// between puts a proxy in front of the server, with faults told before each.
func between(t testing.TB, f *atomic.Pointer[fault]) {
	to, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := f.Load(); f == nil || !(*f)(w, r, proxy) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
}

// once is a fault of the first request with a method.
func once(method string, f fault) *fault {
	var done atomic.Bool
	first := fault(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		return r.Method == method && !done.Swap(true) && f(w, r, pass)
	})
	return &first
}

// dropped: the request is carried out, and its answer is lost.
func dropped(_ http.ResponseWriter, r *http.Request, pass http.Handler) bool {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// refused: the connection is cut before anything is done.
func refused(http.ResponseWriter, *http.Request, http.Handler) bool { panic(http.ErrAbortHandler) }

// slow is the answer of a busy server.
func slow(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
	return true
}

// cut ends an answer half way.
func cut(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
	rec := httptest.NewRecorder()
	pass.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// changed alters the first byte of a body that is sent.
func changed(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	at := strings.Index(string(data), "body")
	data[at]++
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	pass.ServeHTTP(w, r)
	return true
}

// TestFaults: a request that failed on its way is made again, and its own work is not taken for another
// writer's.
func TestFaults(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			address := server(t)
			var f atomic.Pointer[fault]
			between(t, &f)
			s := start(t, address)
			for what, fault := range map[string]fault{"dropped": dropped, "refused": refused, "slow": slow} {
				f.Store(once(http.MethodPut, fault))
				if err := s.Create(t.Context(), what, strings.NewReader(what), int64(len(what)), blob.Meta{}); err != nil {
					t.Errorf("Create with an answer %s: %v", what, err)
				}
				f.Store(once(http.MethodPut, fault))
				if err := s.Create(t.Context(), what, strings.NewReader(what), int64(len(what)), blob.Meta{}); !errors.Is(err, blob.ErrExists) {
					t.Errorf("Create of another writer's, with an answer %s: %v", what, err)
				}
				f.Store(once(http.MethodPut, fault))
				tag, err := s.Swap(t.Context(), "p-"+what, []byte("1"), "", blob.Meta{})
				if err != nil {
					t.Errorf("Swap with an answer %s: %v", what, err)
				}
				f.Store(once(http.MethodPut, fault))
				if tag, err = s.Swap(t.Context(), "p-"+what, []byte("2"), tag, blob.Meta{}); err != nil {
					t.Errorf("Swap by its tag with an answer %s: %v", what, err)
				}
				if info, err := blob.Stat(t.Context(), s, "p-"+what); err != nil || info.Tag != tag {
					t.Errorf("the tag is %q, want %q: %v", info.Tag, tag, err)
				}
				for n, method := range map[int64]string{-1: http.MethodGet, 0: http.MethodHead} {
					f.Store(once(method, fault))
					r, info, err := s.Open(t.Context(), what, 0, n)
					if err != nil || info.Size != int64(len(what)) {
						t.Errorf("Open with an answer %s: %+v %v", what, info, err)
						continue
					}
					if data, err := io.ReadAll(r); err != nil || n < 0 && string(data) != what {
						t.Errorf("read %q with an answer %s: %v", data, what, err)
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			body := strings.Repeat("body of an object. ", 20000)
			f.Store(nil)
			if err := s.Create(t.Context(), "long", strings.NewReader(body), int64(len(body)), blob.Meta{}); err != nil {
				t.Fatal(err)
			}
			f.Store(once(http.MethodGet, cut))
			r, _, err := s.Open(t.Context(), "long", 10, 200000)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if data, err := io.ReadAll(r); err != nil || string(data) != body[10:200010] {
				t.Errorf("an answer that was cut gave %d bytes, %v", len(data), err)
			}
			f.Store(once(http.MethodPut, changed))
			if err := s.Create(t.Context(), "wrong", strings.NewReader("body"), 4, blob.Meta{}); err == nil && name != "moto" { // it compares no digests
				t.Error("bytes changed on their way are taken")
			}
		})
	}
}

// TestRefusals: an Open that cannot work tells why.
func TestRefusals(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			address := server(t)
			_, err := Open(t.Context(), "s3://no-such-bucket/a", true)
			want(t, "a missing bucket", err, "there is no bucket no-such-bucket")
			var f atomic.Pointer[fault]
			between(t, &f)
			for _, header := range []string{"If-Match", "If-None-Match"} {
				ignored := fault(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
					r.Header.Del(header)
					return false
				})
				f.Store(&ignored)
				if _, err := Open(t.Context(), address, true); name == "moto" && !errors.Is(err, ErrUnconditional) { // versitygw sees that the header was signed
					t.Errorf("a server without %s: %v", header, err)
				}
			}
			f.Store(nil)
			if name == "moto" { // it takes any key
				return
			}
			t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-secret")
			_, err = Open(t.Context(), address, true)
			want(t, "a wrong secret", err, "AWS_SECRET_ACCESS_KEY")
			if strings.Contains(err.Error(), "wrong-and-secret") {
				t.Error("the secret is told:", err)
			}
		})
	}
}

func want(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{"s3://bucket": true, "s3://bucket/": true, "s3://bucket/a/b": true, "s3://b": false, "s3:///a": false, "s3://bucket//a": false,
		"s3://key:secret@bucket/a": false, "http://bucket/a": false, "": false, "s3://bucket/a?b": false} {
		if _, _, err := Split(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://user:hidden@host")
	if _, err := Open(context.Background(), "s3://bucket", false); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}
