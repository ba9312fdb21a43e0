package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
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

// TestConnections: no more connections are taken than files may be open for, until one
// of them ends.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		s := &server{log: slog.New(slog.DiscardHandler), fresh: fresh{conns: map[net.Conn]bool{}}}
		if _, err := s.open(l, "", "test", 2, http.NotFoundHandler()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.servers[0].Serve(s.listeners[0]) }()
		var clients []net.Conn
		taken := func() bool {
			synctest.Wait()
			client, server := net.Pipe()
			select {
			case l <- server:
				clients = append(clients, client)
				return true
			default:
				return false
			}
		}
		for len(clients) < 3 && taken() {
		}
		if len(clients) != 2 {
			t.Fatalf("%d connections were taken, want 2", len(clients))
		}
		clients[0].Close()
		if !taken() {
			t.Error("none was taken when one had ended")
		}
		for _, c := range clients {
			c.Close()
		}
		s.stop(t.Context())
		<-ended
	})
	if public, admin := connections(2), connections(8); public < admin || admin < 1 {
		t.Errorf("%d and %d connections", public, admin)
	}
}
