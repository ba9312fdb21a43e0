package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// far is a byte behind any content: Windows refuses others to read a locked one.
const far = 1 << 30

// Lock waits for the lock.
func Lock(f *os.File) error { return lock(f, 0) }

// Try takes the lock if no other process has it.
func Try(f *os.File) (taken bool, err error) {
	err = lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|flags, 0, 1, 0, &windows.Overlapped{Offset: far})
}
