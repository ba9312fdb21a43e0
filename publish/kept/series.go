package kept

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Series writes the packages of one dump: NAME/00001.zip and so on, each closed beside the next.
type Series struct {
	Folder *Folder
	Name   string            // of the folder of its files
	Prefix string            // removed from entity IRIs in paths
	Head   resourcesync.Head // of each manifest
	Bounds Bounds

	out     *Writer
	begun   int
	closing chan error // of the package before out; nil: there is none
	done    []Package
}

// Bounds are those of one package. One resource may be larger.
type Bounds struct {
	Entries       int
	ManifestBytes int64
	Bytes         int64
}

// Room gives the package for so many more bytes. ctx is of the whole dump.
func (s *Series) Room(ctx context.Context, bytes int64) (*Writer, error) {
	if w := s.out; w != nil && w.Entries() > 0 && (w.Entries() >= s.Bounds.Entries || w.ManifestSize() > s.Bounds.ManifestBytes || w.Size()+bytes > s.Bounds.Bytes) {
		if err := s.close(ctx); err != nil {
			return nil, err
		}
	}
	if s.out == nil {
		s.begun++
		var err error
		if s.out, err = s.Folder.NewPackage(fmt.Sprintf("%s/%05d", s.Name, s.begun), s.Prefix, s.Head); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// close packs the manifest and makes the file durable, after the file of the package before.
func (s *Series) close(ctx context.Context) error {
	if err := s.wait(); err != nil {
		return err
	}
	last, closing := s.out, make(chan error, 1)
	s.out, s.closing = nil, closing
	go func() {
		rec, err := last.Close(ctx)
		if err == nil {
			s.done = append(s.done, rec)
		}
		closing <- err
	}()
	return nil
}

func (s *Series) wait() error {
	if s.closing == nil {
		return nil
	}
	err := <-s.closing
	s.closing = nil
	return err
}

// End closes the last package, and gives the records of all. An empty set has one empty package.
func (s *Series) End(ctx context.Context) (_ []Package, err error) {
	if s.begun == 0 {
		_, err = s.Room(ctx, 0)
	}
	if err == nil && s.out != nil {
		err = s.close(ctx)
	}
	if err == nil {
		err = s.wait()
	}
	return s.done, err
}

// Abort removes the package that End did not close.
func (s *Series) Abort() {
	s.wait() // nothing to tell: the dump has failed
	if s.out != nil {
		s.out.Abort()
	}
}
