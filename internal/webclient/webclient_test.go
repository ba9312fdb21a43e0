package webclient

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestPacked(t *testing.T) {
	for _, c := range []struct {
		header string // lines
		times  int
		err    string
	}{
		{"", 0, ""}, {"gzip", 1, ""}, {"X-Gzip", 1, ""}, {"gzip, gzip", 2, ""}, {"gzip\ngzip", 2, ""},
		{"identity", 0, ""}, {"none", 0, ""}, {"binary", 0, ""}, {"UTF-8", 0, ""}, {"utf8", 0, ""}, {"ISO-8859-1", 0, ""}, {"windows-1252", 0, ""},
		{"charset=utf-8", 0, ""}, {`"UTF-8"`, 0, ""}, {"8bit", 0, ""}, {"aws-chunked", 0, ""}, {"utf-8, gzip", 1, ""}, {"identity, x-gzip", 1, ""}, {",", 0, ""},
		{"br", 0, `"br"`}, {"deflate", 0, `"deflate"`}, {"zstd", 0, `"zstd"`}, {"gzip, br", 0, `"br"`}, {"compress", 0, `"compress"`}, {"anything", 0, `"anything"`},
	} {
		h := http.Header{}
		for line := range strings.SplitSeq(c.header, "\n") {
			h.Add("Content-Encoding", line)
		}
		times, err := Packed(h)
		if times != c.times || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Content-Encoding %q is packed %d times, %v; want %d, %q", c.header, times, err, c.times, c.err)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		header string
		from   int64
		total  int64
		ok     bool
		whole  bool
	}{
		{"bytes 0-9/10", 0, 10, true, true},
		{"bytes 5-9/10", 5, 10, true, false},
		{"bytes 5-7/10", 5, 10, true, false}, // less than was asked for
		{"bytes 5-9/*", 5, -1, true, false},
		{"bytes 4-9/10", 5, 10, false, false},
		{"bytes 5-10/10", 5, 10, false, false},
		{"bytes 5-4/10", 5, 10, false, false},
		{"items 5-9/10", 5, 0, false, false},
		{"bytes */10", 5, 0, false, false},
		{"bytes", 5, 0, false, false},
		{"", 5, 0, false, false}, // of multipart/byteranges
	} {
		res := &http.Response{Header: http.Header{"Content-Range": {c.header}}}
		total, ok := Continues(res, c.from)
		if ok != c.ok || ok && total != c.total || Whole(res) != c.whole {
			t.Errorf("Content-Range %q goes on from %d: %v, of %d, whole %v; want %v, %d, %v", c.header, c.from, ok, total, Whole(res), c.ok, c.total, c.whole)
		}
	}
}

func TestAgent(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.UserAgent())
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	}))
	defer s.Close()
	for _, agent := range []string{"", "catalogue/2 (mailto:data@museum.example)"} {
		c := &http.Client{Transport: Named(s.Client().Transport, agent)}
		res, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	want := []string{Agent, Agent, "catalogue/2 (mailto:data@museum.example)", "catalogue/2 (mailto:data@museum.example)"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests were made as %q, want %q", got, want)
	}
	if !strings.HasPrefix(Agent, "rsbridge/") || !strings.Contains(Agent, "+https://") {
		t.Errorf("the default agent is %q, which has no version or no address", Agent)
	}
	for s, ok := range map[string]bool{"": true, "a/1 (b@c.example)": true, "a\r\nX: y": false, "a\x00": false, "Bücherei": false, strings.Repeat("x", 1001): false} {
		if err := CheckAgent(s); (err == nil) != ok {
			t.Errorf("CheckAgent(%q): %v", s, err)
		}
	}
}

func TestCookies(t *testing.T) {
	at := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var jar Cookies
	jar.SetCookies(at("http://data.example.org/list.xml"), []*http.Cookie{{Name: "sid", Value: "1", Path: "/", Domain: "example.org"}, {Name: "big", Value: strings.Repeat("x", maxCookieBytes)}})
	for place, want := range map[string]string{
		"http://data.example.org/x": "sid=1", "https://DATA.example.org/x": "sid=1",
		"http://data.example.org:8080/x": "", "http://other.example.org/": "", "http://example.org/": "", "http://a.data.example.org/": "",
	} {
		if got := fmt.Sprint(jar.Cookies(at(place))); got != "["+want+"]" {
			t.Errorf("%s is sent the cookies %s, want %q", place, got, want)
		}
	}
	for i := range 1000 {
		jar.SetCookies(at("http://data.example.org/"), []*http.Cookie{{Name: fmt.Sprint("n", i), Value: "v"}})
		jar.SetCookies(at(fmt.Sprintf("http://h%d.example/", i)), []*http.Cookie{{Name: "n", Value: "v"}})
	}
	if n := len(jar.Cookies(at("http://data.example.org/"))); n > maxCookies {
		t.Errorf("%d cookies of one host are kept", n)
	}
	if n := len(jar.hosts); n > maxCookieHosts {
		t.Errorf("cookies of %d hosts are kept", n)
	}
	jar.Clear()
	if n := len(jar.Cookies(at("http://data.example.org/"))); n > 0 {
		t.Errorf("%d cookies are kept after Clear", n)
	}
}

func TestWall(t *testing.T) {
	for _, c := range []struct {
		status    int
		kind, set string
		requests  int
	}{
		{200, "text/html; charset=utf-8", "sid=1; Path=/", 2},
		{200, "application/xhtml+xml", "sid=1", 2},
		{302, "text/html", "sid=1", 2}, // to itself
		{401, "text/html", "sid=1", 2},
		{403, "text/plain", "sid=1", 2},
		{503, "text/html", "sid=1", 2},
		{403, "text/html", "sid=; Max-Age=0", 1},
		{200, "text/html", "", 1},
		{404, "text/html", "sid=1", 1},
		{500, "text/html", "sid=1", 1},
		{200, "text/turtle", "sid=1", 1},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			if k := r.Header["Cookie"]; len(k) > 0 {
				if fmt.Sprint(k) != "[sid=1]" {
					t.Errorf("%+v: the cookies %q came back", c, k)
				}
				return
			}
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Location", r.URL.Path)
			if c.set != "" {
				w.Header().Set("Set-Cookie", c.set)
			}
			w.WriteHeader(c.status)
		}))
		var jar Cookies
		req, err := http.NewRequest(http.MethodGet, s.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := jar.Get(&http.Client{Transport: s.Client().Transport, Jar: &jar}, req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if requests != c.requests || c.requests == 2 && res.StatusCode != 200 {
			t.Errorf("%+v: %d requests, status %d", c, requests, res.StatusCode)
		}
		s.Close()
	}
}
