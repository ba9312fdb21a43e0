package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

const (
	served      = 20000 // representations requested
	connections = 4
	requests    = 5000 // on each connection
)

// serving requests representations over HTTP from the public handler, and equal bodies from a bare
// handler with all of them in memory.
func serving(coding string) func(context.Context, *env) (time.Duration, time.Duration, error) {
	return func(ctx context.Context, e *env) (took, base time.Duration, err error) {
		b, err := e.source(ctx)
		if err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		ours := b.PublicHandler()
		bodies := map[string][]byte{}
		var paths []string
		for _, part := range locations(get(b, "/data/resourcelist.xml")) {
			for _, path := range locations(get(b, part)) {
				if len(paths) == served {
					break
				}
				r := httptest.NewRequest(http.MethodGet, benchBase+path, nil)
				r.Header.Set("Accept-Encoding", coding)
				rec := httptest.NewRecorder()
				ours.ServeHTTP(rec, r)
				if rec.Code != http.StatusOK || rec.Header().Get("Content-Encoding") != map[string]string{"gzip": "gzip"}[coding] {
					return 0, 0, fmt.Errorf("%s: %d %s", path, rec.Code, rec.Header())
				}
				paths = append(paths, path)
				bodies[path] = rec.Body.Bytes()
			}
		}
		bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodies[r.URL.Path]
			h := w.Header()
			h.Set("Content-Type", "application/ld+json")
			h.Set("Content-Length", strconv.Itoa(len(body)))
			if coding == "gzip" {
				h.Set("Content-Encoding", coding)
			}
			w.Write(body)
		})
		var spent [2]time.Duration
		var servers [2]*httptest.Server
		for i, h := range []http.Handler{ours, bare} {
			servers[i] = httptest.NewServer(h)
			defer servers[i].Close()
		}
		for range 2 { // in turns, the first time to warm up
			for i, srv := range servers {
				began := time.Now()
				if err := askAll(ctx, srv.Listener.Addr().String(), coding, paths); err != nil {
					return 0, 0, err
				}
				spent[i] = time.Since(began)
			}
		}
		return spent[0], spent[1], nil
	}
}

// askAll sends requests over each of some connections, as cheaply as it can.
func askAll(ctx context.Context, address, coding string, paths []string) error {
	var wg sync.WaitGroup
	failed := make([]error, connections)
	for c := range connections {
		wg.Go(func() { failed[c] = askMany(ctx, address, coding, paths, c*977) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

func askMany(ctx context.Context, address, coding string, paths []string, at int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	var ask []byte
	for i := range requests {
		path := paths[(i*7919+at)%len(paths)]
		ask = append(append(ask[:0], "GET "...), path...)
		ask = append(append(append(ask, " HTTP/1.1\r\nHost: bench.example\r\nAccept-Encoding: "...), coding...), "\r\n\r\n"...)
		if _, err := conn.Write(ask); err != nil {
			return err
		}
		length := 0
		for first := true; ; first = false {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return err
			}
			if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
				return fmt.Errorf("%s: %s", path, line)
			}
			if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
			}
			if len(line) <= 2 {
				break
			}
		}
		if _, err := r.Discard(length); err != nil || length < 100 {
			return fmt.Errorf("%s: %d bytes: %v", path, length, err)
		}
	}
	return nil
}
