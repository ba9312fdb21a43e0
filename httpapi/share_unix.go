//go:build unix

package httpapi

import "golang.org/x/sys/unix"

func shareSocket(fd uintptr, value int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, value)
}
