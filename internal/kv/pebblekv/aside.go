package pebblekv

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// asideFolder holds the values kept aside, a file for each, named by its key.
// A failure to write one is told, and ends nothing: they are not Pebble's.
const asideFolder = "aside"

var _ kv.Asider = (*Store)(nil)

// PutAside writes value into a file beside the store.
func (s *Store) PutAside(ctx context.Context, key, value []byte) error {
	if err := s.putAside(ctx, key, value); err != nil {
		return fmt.Errorf("write beside state %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) putAside(ctx context.Context, key, value []byte) error {
	err := errors.Join(s.writable(), kv.NotBegun(ctx))
	if err == nil {
		err = s.guard.Room(s.db, s.dir, len(value))
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, asideFolder)
	name := filepath.Join(dir, hex.EncodeToString(key))
	f, err := s.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(value); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.fs.Remove(name)) // a part of it may have taken Pebble's last room
	}
	d, err := s.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// GetAside reads it, or gives kv.ErrNotFound.
func (s *Store) GetAside(ctx context.Context, key []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	f, err := s.fs.Open(filepath.Join(s.dir, asideFolder, hex.EncodeToString(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read beside state %s: %w", s.dir, err)
	}
	value, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read beside state %s: %w", s.dir, err)
	}
	return value, nil
}

// DropAside removes the files of all keys with this prefix.
func (s *Store) DropAside(ctx context.Context, prefix []byte) error {
	if err := errors.Join(s.usable(), kv.NotBegun(ctx)); err != nil {
		return err
	}
	if s.read {
		return fmt.Errorf("remove beside state %s: %w", s.dir, ErrReadOnly)
	}
	dir := filepath.Join(s.dir, asideFolder)
	names, err := s.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, hex.EncodeToString(prefix)) {
			err = errors.Join(err, s.fs.Remove(filepath.Join(dir, name)))
		}
	}
	if err != nil {
		return fmt.Errorf("remove beside state %s: %w", s.dir, err)
	}
	return nil
}
