package ownfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A check tries the folders that a bridge writes, and leaves nothing behind.
func TestTryFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ok := range []string{dir, filepath.Join(dir, "new"), filepath.Join(dir, "much", "newer")} {
		if err := Try(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	for bad, why := range map[string]string{file: "is no folder", filepath.Join(file, "below"): "not a directory", "/proc/x": "cannot be made", "/dev/full/x": "not a directory"} {
		if err := Try(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", bad, err, why)
		}
	}
}
