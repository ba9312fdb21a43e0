package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/rsbridge/rsbridge/bridge/backup"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/version"
)

// Backup writes the state of b to w (package backup). Everything goes on meanwhile.
func Backup(ctx context.Context, b *Bridge, w io.Writer) error {
	b.answering.Begin()
	defer b.answering.End()
	src := toBackUp(b.cfg)
	for path, name := range b.cfg.StoresInside() {
		s := b.stores[name]
		if src.Stores[path] = s.embedded; s.fault != nil {
			src.LeftOut = append(src.LeftOut, fmt.Sprintf("store %s: %v", name, s.fault))
		}
	}
	src.Records, src.Links = b.kv, b.cfg.TempDir()
	src.Now = b.now()
	return writeBackup(ctx, w, src, b.log)
}

// writeBackup writes a backup, and records that it was written whole.
func writeBackup(ctx context.Context, w io.Writer, src backup.Source, log *slog.Logger) error {
	if err := backup.Write(ctx, w, src); err != nil {
		return err
	}
	if err := backup.Note(src); err != nil {
		log.Warn("the backup is whole, and the state does not know of it", "error", err)
	}
	return nil
}

// BackupClosed is Backup of a state without its bridge, also of one of an earlier version. A held one gives a
// *HeldError.
func BackupClosed(ctx context.Context, cfg *Config, o Options, w io.Writer) (err error) {
	b := newBridge(cfg, o)
	records, end, err := reading(ctx, cfg, b.log, holderWait, true)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no state", cfg.Records())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	src := toBackUp(cfg)
	for path, name := range cfg.StoresInside() {
		dir := cfg.Stores[name].Embedded
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s, close, fault := readEmbedded(ctx, dir, "", embedstore.Budget{})
		if fault != nil {
			return fault
		}
		defer func() { err = errors.Join(err, close()) }()
		src.Stores[path] = s
	}
	src.Records, src.Now = records, b.now()
	return writeBackup(ctx, w, src, b.log)
}

// Restore restores a backup into the state folder of cfg, which is missing or empty.
func Restore(ctx context.Context, cfg *Config, log *slog.Logger, from io.ReadSeeker) (backup.Report, error) {
	return backup.Restore(ctx, from, cfg.Folder(), func(ctx context.Context) (kv.Store, error) {
		shared, err := Shared(ctx, cfg)
		if err != nil {
			return nil, err
		}
		s, err := cfg.Records().OpenNew(ctx, kv.OpenOptions{Logger: log})
		if led, ok := s.(kv.Led); ok && shared.Lead != "" { // what came after the backup is lost by intent
			err = led.Adopt(ctx, shared.Lead)
		}
		return s, err
	})
}

// toBackUp is the state without what has to be opened.
func toBackUp(c *Config) backup.Source {
	src := backup.Source{Dir: c.Folder(), Stores: map[string]*embedstore.Store{}, Program: version.String(), LeftOut: []string{"the configuration, and the files with secrets that it names"}}
	if c.PublishTo != "" {
		src.LeftOut = append(src.LeftOut, "the published files in "+c.PublishTo)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		if at := s.Folder(); at == "" {
			src.LeftOut = append(src.LeftOut, "store "+name+": it is on a server")
		} else if _, inside := c.Below(at); !inside {
			src.LeftOut = append(src.LeftOut, "store "+name+" in "+at+": it is outside of the state folder")
		}
	}
	return src
}
