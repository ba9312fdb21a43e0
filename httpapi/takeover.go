package httpapi

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// listenBeside listens at an address. If one of addr and old is all addresses of the machine and
// the other one of them, both are open for a while.
func listenBeside(old net.Listener, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if old == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	before, can := old.(syscall.Conn)
	if !can || share(before, true) != nil {
		return nil, err
	}
	defer share(before, false)
	both := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return shareRaw(c, true) }}
	if l, err := both.Listen(context.Background(), "tcp", addr); err == nil {
		return l, share(l.(syscall.Conn), false) // with no other process
	}
	return nil, err
}

func share(c syscall.Conn, on bool) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return shareRaw(raw, on)
}

func shareRaw(c syscall.RawConn, on bool) (err error) {
	value := 0
	if on {
		value = 1
	}
	if wrong := c.Control(func(fd uintptr) {
		err = shareSocket(fd, value)
	}); wrong != nil {
		return wrong
	}
	return err
}
