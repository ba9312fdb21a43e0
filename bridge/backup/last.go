package backup

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Last is the last backup of a state that was written whole, to wherever it was asked for.
type Last struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"` // its moment
	Program string    `json:"program"`
}

const lastVersion = 1

func lastFile(dir string) string { return filepath.Join(dir, "backup.json") }

// LastOf is the last backup of the state in a folder, nil for none. A copy of a folder, and a restored one, know that
// of the original.
func LastOf(dir string) (*Last, error) {
	raw, err := os.ReadFile(lastFile(dir))
	if ownfile.IsAbsent(err) {
		return nil, nil
	}
	var l Last
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err == nil && l.Version != lastVersion {
		err = fmt.Errorf("%s has version %d, this program knows %d", lastFile(dir), l.Version, lastVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("read when the last backup was: %w", err)
	}
	return &l, nil
}

// Note records a backup of src that was written whole.
func Note(src Source) error {
	if err := ownfile.Replace(lastFile(src.Dir), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(Last{lastVersion, src.Now.UTC(), src.Program})
	}); err != nil {
		return fmt.Errorf("record the backup in the state: %w", err)
	}
	return ownfile.Sync(src.Dir)
}
