package config

import (
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/configfile"
)

// New is a configuration with the documented defaults, for programs with one of their own.
func New() *Config {
	c := configfile.Defaults[Config]()
	c.Stores, c.Sets, c.Destinations = map[string]Store{}, map[string]Set{}, map[string]Destination{}
	return &c
}

// Complete reads secrets from their files, makes paths absolute from dir, and validates, as
// Load does for a file.
func (c *Config) Complete(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if f := append(c.resolve(dir), c.check()...); len(f) > 0 {
		return &Error{Findings: f}
	}
	return nil
}
