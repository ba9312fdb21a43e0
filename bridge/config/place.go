package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// StateAddress is where the records of a state are kept.
func (c *Config) StateAddress() string { return "pebble:" + filepath.Join(c.State, "kv") }

// Vacant refuses a new state folder with a foreign tmp: each start empties tmp.
func (c *Config) Vacant() error {
	if _, err := os.Stat(filepath.Join(c.State, "kv")); err == nil {
		return nil
	}
	if left, err := os.ReadDir(c.TempDir()); err == nil && len(left) > 0 {
		return fmt.Errorf("the state folder %s is new, and %s in it is not empty: give the state a folder of its own", c.State, c.TempDir())
	}
	return nil
}

// TempDir is the folder for temporary files.
func (c *Config) TempDir() string { return cmp.Or(c.temp, filepath.Join(c.State, "tmp")) }

// StoresInside are the names of the embedded stores in the state folder, by their paths there.
func (c *Config) StoresInside() map[string]string {
	out := map[string]string{}
	for name, s := range c.Stores {
		if path, inside := c.Below(s.Embedded); inside && s.Embedded != "" {
			out[path] = name
		}
	}
	return out
}

// Below is the path of a folder in the state folder.
func (c *Config) Below(dir string) (path string, inside bool) {
	rel, err := filepath.Rel(c.State, dir)
	return filepath.ToSlash(rel), err == nil && rel != "." && filepath.IsLocal(rel)
}

// TryPlace is ownfile.Try for the place of a local store.
func (c Store) TryPlace() error {
	dir := c.Folder()
	if dir == "" {
		return nil
	}
	return ownfile.Try(dir)
}

// PublishedFolder has the published files, or those being made for a bucket.
func (c *Config) PublishedFolder() string { return filepath.Join(c.State, "published") }
