package fairconn

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread is how many bytes of a connection have not arrived at its reader.
func unread(c net.Conn) (n int64) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // of a closed connection it is 0
		if q, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			n = int64(q)
		}
	})
	return n
}
