package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rsbridge/rsbridge/internal/ownfile"

	"github.com/rsbridge/rsbridge/bridge/records"
)

// Folder is the folder of the state, also where its records are in a database.
func (c *Config) Folder() string { return c.Records().Folder }

// Records is where those of the state are.
func (c *Config) Records() records.Place { return records.At(c.State, c.StateFolder) }

// place makes the folder of the state absolute.
func (c *Config) place(dir string) {
	if !records.IsDatabase(c.State) {
		c.State = absolute(dir, c.State)
		return
	}
	c.StateFolder = absolute(dir, cmp.Or(c.StateFolder, records.FolderOf(c.file)))
}

// Vacant refuses a new state folder with a foreign tmp: each start empties tmp.
func (c *Config) Vacant() error {
	for _, used := range []string{"kv", "stage"} {
		if _, err := os.Stat(filepath.Join(c.Folder(), used)); err == nil {
			return nil
		}
	}
	if left, err := os.ReadDir(c.TempDir()); err == nil && len(left) > 0 {
		return fmt.Errorf("the state folder %s is new, and %s in it is not empty: give the state a folder of its own", c.Folder(), c.TempDir())
	}
	return nil
}

// TempDir is the folder for temporary files.
func (c *Config) TempDir() string { return cmp.Or(c.temp, filepath.Join(c.Folder(), "tmp")) }

// OfThisMachine are the parts of the configuration with files that processes on other machines do not have.
func (c *Config) OfThisMachine() (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		if s := c.Stores[name]; s.IsLocal() {
			parts = append(parts, "stores."+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		if c.Destinations[name].Files != "" {
			parts = append(parts, "destinations."+name+".files")
		}
	}
	if c.PublishTo == "" && len(c.Sets) > 0 {
		parts = append(parts, "published files (set publish_to)")
	}
	return parts
}

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
	rel, err := filepath.Rel(c.Folder(), dir)
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
func (c *Config) PublishedFolder() string { return filepath.Join(c.Folder(), "published") }
