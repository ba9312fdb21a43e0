package extsort

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Export writes all records as one run to a new file, for Import of another sorter. It ends the adding.
func (s *Sorter) Export(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("extsort: export: %w", err)
	}
	w := &runWriter{file: f, path: path, limit: s.blockLen}
	var rec []byte
	var failed error
	for r, err := range s.Sort() {
		rec = append(append(rec[:0], r.Key...), r.Value...)
		if failed = errors.Join(err, w.add(rec)); failed != nil {
			break
		}
	}
	_, err = w.close(failed)
	return err
}

// Import takes the records of an exported run, whose keys have keySize bytes. They are first looked at when they are
// read. The caller knows their number.
func (s *Sorter) Import(from io.Reader, keySize int, records int64) error {
	switch {
	case s.closed || s.sorted:
		return errors.New("extsort: import: the sorter is closed, or already being read")
	case s.keySize < 0:
		s.keySize = keySize
	case s.keySize != keySize:
		return fmt.Errorf("extsort: import: keys of %d bytes into a sorter of keys of %d bytes", keySize, s.keySize)
	}
	if err := s.written(); err != nil {
		return err
	}
	w, err := s.newRun()
	if err != nil {
		return err
	}
	n, failed := io.Copy(w.file, from)
	r, err := w.close(failed)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	s.records += records
	s.spilled += n
	return nil
}
