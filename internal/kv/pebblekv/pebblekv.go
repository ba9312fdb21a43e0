// Package pebblekv is the embedded kv.Store, on Pebble.
package pebblekv

import (
	"log/slog"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Options for Open; the zero value is sensible.
type Options struct {
	CacheBytes int64
	Logger     *slog.Logger
}

// Open opens or makes the store in dir. A folder held by another process gives
// an error that wraps ErrLocked.
func Open(dir string, o Options) (kv.Store, error) { panic("stub") }
