package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// faulty stands before a server and spoils its answers as a script says.
type faulty struct {
	mu    sync.Mutex
	which *regexp.Regexp // of method, path and body; nil: all is well
	mode  string
	arg   string
}

// proxies of one script, by name.
type proxies map[string]*faulty

type proxiesKey struct{}

// faultyCmds are: faulty NAME PORT (a proxy before that port of this machine; its
// own port goes into the variable NAME) and fault NAME [REGEXP MODE [ARG]] (from
// now on answers to such requests are spoiled; without a mode all is well). The mode hang gives no
// answer.
func faultyCmds() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"faulty": func(ts *testscript.TestScript, _ bool, args []string) {
			f := &faulty{}
			srv := httptest.NewServer(f.before(&url.URL{Scheme: "http", Host: "127.0.0.1:" + args[1]}))
			ts.Defer(srv.Close)
			ts.Value(proxiesKey{}).(proxies)[args[0]] = f
			ts.Setenv(args[0], srv.URL[strings.LastIndexByte(srv.URL, ':')+1:])
		},
		"fault": func(ts *testscript.TestScript, _ bool, args []string) {
			f := ts.Value(proxiesKey{}).(proxies)[args[0]]
			if f == nil {
				ts.Fatalf("no proxy %s", args[0])
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.which, f.arg = nil, ""
			if len(args) > 1 {
				f.which, f.mode = regexp.MustCompile(args[1]), args[2]
			}
			if len(args) > 3 {
				f.arg = args[3]
			}
		},
	}
}

func (f *faulty) before(up *url.URL) http.Handler {
	rp := httputil.NewSingleHostReverseProxy(up)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is the client's to notice
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		f.mu.Lock()
		hit := f.which != nil && f.which.MatchString(r.Method+" "+r.URL.Path+" "+string(body))
		mode, arg := f.mode, f.arg
		f.mu.Unlock()
		if !hit {
			rp.ServeHTTP(w, r)
			return
		}
		switch mode {
		case "status":
			code, _ := strconv.Atoi(arg)
			http.Error(w, "the proxy says "+arg, code)
			return
		case "hang":
			<-r.Context().Done()
			return
		case "body":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, arg)
			return
		}
		for _, h := range []string{"If-None-Match", "If-Modified-Since", "Accept-Encoding"} {
			r.Header.Del(h)
		}
		rec := httptest.NewRecorder()
		rp.ServeHTTP(rec, r)
		data := rec.Body.Bytes()
		switch mode {
		case "half": // ends as if that were all
			data = data[:bytes.LastIndexByte(data[:len(data)/2], '\n')+1]
		case "rows": // no more than these, as a store with a limit gives without a word
			n, _ := strconv.Atoi(arg)
			data = firstRows(rec.Header().Get("Content-Type"), data, n)
		case "flip":
			data[len(data)/2] ^= 1
		case "replace":
			from, to, _ := strings.Cut(arg, "=>")
			data = bytes.ReplaceAll(data, []byte(from), []byte(to))
		}
		for k, v := range rec.Header() {
			if k != "Content-Length" {
				w.Header()[k] = v
			}
		}
		w.WriteHeader(rec.Code)
		w.Write(data)
	})
}

func firstRows(mediaType string, data []byte, n int) []byte {
	if strings.Contains(mediaType, "json") {
		var doc map[string]any
		if json.Unmarshal(data, &doc) != nil {
			return data
		}
		if res, ok := doc["results"].(map[string]any); ok {
			rows, _ := res["bindings"].([]any)
			res["bindings"] = rows[:min(n, len(rows))]
		}
		data, _ = json.Marshal(doc) // it was JSON before
		return data
	}
	if strings.Contains(mediaType, "separated") {
		n++ // the head
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	return bytes.Join(lines[:min(n, len(lines))], nil)
}
