package filesink

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// flushesAll tells that flushAll makes every file of a folder durable.
const flushesAll = true

// flushAll makes what was written into a folder durable, by writing out the file
// system that it is on.
func flushAll(folder *os.Root) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	c, err := f.SyscallConn()
	if err == nil {
		var serr error
		err = c.Control(func(fd uintptr) { serr = unix.Syncfs(int(fd)) })
		if err = errors.Join(err, serr); err != nil {
			err = fmt.Errorf("make the files durable: %w", err)
		}
	}
	return errors.Join(err, f.Close())
}
