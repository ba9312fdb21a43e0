package resourcesync

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// spool keeps bytes in memory, and beyond a bound in a temporary file.
type spool struct {
	dir   string
	bound int
	mem   []byte
	file  *os.File
	size  int64
}

func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(b) > s.bound {
		f, err := os.CreateTemp(s.dir, "manifest-*.xml")
		if err != nil {
			return 0, fmt.Errorf("resourcesync: making room for a manifest: %w", err)
		}
		s.file = f
		if _, err := f.Write(s.mem); err != nil {
			return 0, err
		}
		s.mem = nil
	}
	s.size += int64(len(b))
	if s.file != nil {
		return s.file.Write(b)
	}
	s.mem = append(s.mem, b...)
	return len(b), nil
}

func (s *spool) open() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.mem), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return s.file, nil
}

// remove lets go of the memory and the file.
func (s *spool) remove() {
	s.mem = nil
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
		s.file = nil
	}
}
