//go:build unix

package fairconn

import "syscall"

// openFiles is how many files the process may have open.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err
}
