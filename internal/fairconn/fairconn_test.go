package fairconn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections come from a channel.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a pipe's end whose other end has an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", f.addr)
	return a
}

// world is a server in virtual time.
type world struct {
	t   *testing.T
	l   pipes
	mu  sync.Mutex
	log bytes.Buffer
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// serve runs test beside a server. Its answers: /long has a megabyte, /work ends after
// ten minutes, /take reads the body and says how it went.
func serve(t *testing.T, limits Limits, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, l: make(pipes)}
		l := New(w.l, limits, slog.New(slog.NewTextHandler(w, nil)))
		srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnState: l.ConnState, ConnContext: l.ConnContext,
			Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				defer l.Body(rw, r)()
				switch r.URL.Path {
				case "/long":
					for range 64 {
						if _, err := rw.Write(make([]byte, 16<<10)); err != nil {
							return
						}
					}
				case "/work":
					select {
					case <-time.After(10 * time.Minute):
					case <-r.Context().Done():
					}
				case "/take":
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprintf(rw, "%d %v", n, errors.Is(err, ErrSlowBody))
				}
			})}
		ended := make(chan error)
		go func() { ended <- srv.Serve(l) }()
		test(w)
		l.CloseUnused()
		srv.Close()
		<-ended
	})
}

// dial opens a connection and sends a request; nil: it is not taken within the time.
func (w *world) dial(addr, request string, within time.Duration) net.Conn {
	w.t.Helper()
	client, server := net.Pipe()
	select {
	case w.l <- from{server, addr}:
	case <-time.After(within):
		return nil
	}
	synctest.Wait()
	if request != "" {
		if err := client.SetWriteDeadline(time.Now().Add(within)); err != nil { // refused
			return nil
		}
		if _, err := io.WriteString(client, request); err != nil { // refused
			return nil
		}
		if err := client.SetWriteDeadline(time.Time{}); err != nil {
			return nil
		}
	}
	synctest.Wait()
	return client
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: example\r\n\r\n" }

// answered tells whether a new client is answered within a time.
func (w *world) answered(addr string, within time.Duration) bool {
	c := w.dial(addr, get("/"), within)
	if c == nil {
		return false
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		w.t.Fatal(err)
	}
	_, err := io.ReadFull(c, make([]byte, 12))
	return err == nil
}

// TestFull: connections that stand still give way to others when all are taken, those
// that are worked for do not.
func TestFull(t *testing.T) {
	for _, tc := range []struct {
		name, request string
		wait          time.Duration // until others are tried
		want          bool
		say           string
	}{
		{"readers that take nothing", get("/long"), 10 * time.Second, true, "gave way"},
		{"connections without a request", "", 3 * time.Second, true, "gave way"},
		{"half a request", "GET / HT", 3 * time.Second, true, "gave way"},
		{"work under way", get("/work"), 10 * time.Second, false, "all taken and busy"},
		{"many readers of one client", get("/long"), time.Second, true, "gave way"},
	} {
		serve(t, Limits{Connections: 4}, func(w *world) {
			var held []net.Conn
			for i := range 4 {
				held = append(held, w.dial(fmt.Sprintf("192.0.2.1:%d", i+1), tc.request, time.Second))
			}
			time.Sleep(tc.wait)
			if got := w.answered("192.0.2.2:1", time.Second); got != tc.want {
				t.Errorf("%s: another client is answered: %t, want %t", tc.name, got, tc.want)
			}
			if !strings.Contains(w.said(), tc.say) {
				t.Errorf("%s: the log says %q, want %q", tc.name, w.said(), tc.say)
			}
			for _, c := range held {
				c.Close()
			}
			synctest.Wait()
			if !w.answered("192.0.2.3:1", 2*time.Second) {
				t.Errorf("%s: nobody is answered when all have gone", tc.name)
			}
		})
	}
}

// TestFlood: many addresses that open connections all the time and hold them keep no new
// one from its answer, and none with a single transfer from the rest of it.
func TestFlood(t *testing.T) {
	for name, request := range map[string]string{
		"connections without a request": "",
		"half a request":                "GET / HT",
		"used once":                     get("/"),
		"readers that take nothing":     get("/long"),
		"a body that drips":             "POST /take HTTP/1.1\r\nHost: example\r\nContent-Length: 1000\r\n\r\n",
		"a body that nobody reads":      "POST / HTTP/1.1\r\nHost: example\r\nContent-Length: 1000\r\n\r\n",
		"a long answer without it":      "POST /long HTTP/1.1\r\nHost: example\r\nContent-Length: 1000\r\n\r\n",
	} {
		serve(t, Limits{Connections: 64}, func(w *world) {
			download := w.dial("198.51.100.1:1", get("/long"), time.Second)
			port := 0
			for round := range 20 {
				for i := range 50 {
					port++
					if c := w.dial(fmt.Sprintf("192.0.2.%d:%d", i, port), request, time.Second); c != nil {
						defer c.Close()
					}
				}
				if !w.answered(fmt.Sprintf("198.51.100.%d:1", round+2), time.Second) {
					t.Fatalf("%s: a new client is not answered in round %d; the log says %q", name, round, w.said())
				}
				if _, err := io.ReadFull(download, make([]byte, 16<<10)); err != nil {
					t.Fatalf("%s: a download ends in round %d: %v", name, round, err)
				}
			}
			if n := strings.Count(w.said(), "\n"); n > 4 {
				t.Errorf("%s: %d lines of the log: %q", name, n, w.said())
			}
		})
	}
}

// TestClient: one address has a part of the connections only; loopback may stand for many.
func TestClient(t *testing.T) {
	for _, tc := range []struct {
		limits       Limits
		first, other string
		want         bool
	}{
		{Limits{Connections: 10, Client: 2}, "192.0.2.1:%d", "192.0.2.1:9", false},
		{Limits{Connections: 10, Client: 2}, "192.0.2.1:%d", "192.0.2.2:9", true},
		{Limits{Connections: 10, Client: 2}, "127.0.0.1:%d", "127.0.0.1:9", true},
		{Limits{Connections: 10, Client: 2, Loopback: true}, "127.0.0.1:%d", "127.0.0.1:9", false},
		{Limits{Connections: 10, Client: 2}, "[2001:db8::1]:%d", "[2001:db8::2]:9", false},
		{Limits{Connections: 10, Client: 2}, "[2001:db8::1]:%d", "[2001:db8:1::2]:9", true},
	} {
		serve(t, tc.limits, func(w *world) {
			for i := range 2 {
				defer w.dial(fmt.Sprintf(tc.first, i+1), get("/work"), time.Second).Close()
			}
			if got := w.answered(tc.other, time.Second); got != tc.want {
				t.Errorf("%s beside %s: answered %t, want %t", tc.other, tc.first, got, tc.want)
			}
			if refused := strings.Contains(w.said(), "too many connections"); refused == tc.want {
				t.Errorf("%s: the log says %q", tc.other, w.said())
			}
		})
	}
}

// TestSlowReader: a reader that takes something is never cut, however long it takes; one
// that takes nothing is, and the log says so.
func TestSlowReader(t *testing.T) {
	serve(t, Limits{Connections: 4}, func(w *world) {
		c := w.dial("192.0.2.1:1", get("/long"), time.Second)
		began, got := time.Now(), 0
		for buf := make([]byte, 1000); got < 1<<20; {
			n, err := c.Read(buf)
			got += n
			if err != nil {
				t.Fatalf("a slow reader is cut after %d bytes, %v: %v", got, time.Since(began), err)
			}
			time.Sleep(time.Second)
		}
		c.Close()
		c = w.dial("192.0.2.1:2", get("/long"), time.Second)
		time.Sleep(longestGap - time.Second)
		if w.said() != "" {
			t.Errorf("the log says %q", w.said())
		}
		time.Sleep(10 * time.Second)
		if _, err := io.Copy(io.Discard, c); err != nil || !strings.Contains(w.said(), "a reader takes nothing") {
			t.Errorf("a reader that takes nothing: %v, the log says %q", err, w.said())
		}
	})
}

// TestSlowBody: a body that drips is cut, one that comes steadily is not, and one that no
// handler reads does not hold the connection.
func TestSlowBody(t *testing.T) {
	for _, tc := range []struct {
		path     string
		length   int
		each     int // bytes a second
		most     time.Duration
		complete bool
	}{
		{"/take", 1000, 1, 35 * time.Second, false},
		{"/take", 20, 1, 25 * time.Second, true},
		{"/take", 1 << 20, 2000, 10 * time.Minute, true},
		{"/", 1000, 1, 15 * time.Second, false},
		{"/long", 1000, 1, 15 * time.Second, false},
	} {
		serve(t, Limits{Connections: 4}, func(w *world) {
			c := w.dial("192.0.2.1:1", fmt.Sprintf("POST %s HTTP/1.1\r\nHost: example\r\nContent-Length: %d\r\n\r\n", tc.path, tc.length), time.Second)
			defer c.Close()
			answer := make(chan string, 1)
			go func() {
				raw, _ := io.ReadAll(c)
				answer <- string(raw)
			}()
			began, sent := time.Now(), 0
			for sent < tc.length {
				n, err := c.Write(make([]byte, min(tc.each, tc.length-sent)))
				if sent += n; err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took > tc.most || (sent == tc.length) != tc.complete {
				t.Errorf("%s, %d bytes, %d a second: %d were sent in %v", tc.path, tc.length, tc.each, sent, took)
			}
			c.Close()
			if said := <-answer; tc.path == "/take" && !tc.complete && !strings.Contains(w.said(), "too slowly") {
				t.Errorf("the answer is %q, the log says %q", said, w.said())
			}
		})
	}
}

// TestUnread: what lies in the kernel's buffers has not arrived.
func TestUnread(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := &conn{Conn: server, l: New(l, Limits{Connections: 1}, slog.New(slog.DiscardHandler))}
	if err := server.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, 32<<20))
		written <- err
	}()
	if n, err := io.Copy(io.Discard, io.LimitReader(client, 32<<20)); err != nil || n != 32<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-written; err != nil || c.sent != 32<<20 {
		t.Errorf("%d bytes sent, %v", c.sent, err)
	}
	if public, admin := Files(2), Files(8); public < admin || admin < 1 {
		t.Errorf("%d and %d connections", public, admin)
	}
}
