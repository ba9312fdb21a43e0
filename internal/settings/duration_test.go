package settings

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOneReader: every duration of the module is read by ParseDuration, so all take days and weeks.
func TestOneReader(t *testing.T) {
	root, files := filepath.Join("..", ".."), 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "internal/settings/duration.go" {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(root, name))
		files++
		for _, other := range []string{"time.ParseDuration(", ".DurationVar", "flag.Duration(", "Flags().Duration"} {
			if strings.Contains(string(raw), other) {
				t.Errorf("%s reads a duration by %s", name, other)
			}
		}
		return err
	})
	if err != nil || files < 300 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "2w": 336 * time.Hour, "1w2d12h": 228 * time.Hour, "1.5d": 36 * time.Hour, "0.5w": 84 * time.Hour, "0": 0, "0d": 0,
		"90s": 90 * time.Second, "24h": 24 * time.Hour, "1d1ms": day + time.Millisecond, "-5m": -5 * time.Minute,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "30", "1d2w", "1d1d", "1h1d", "-1d", "1d-1h", "1D", "1y", "1 d", "200000w", "1d2"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	for d, want := range map[time.Duration]string{720 * time.Hour: "30d", 25 * time.Hour: "25h0m0s", 0: "0s", time.Minute: "1m0s"} {
		got := FormatDuration(d)
		if back, err := ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v is written %s and read %v, %v", d, got, back, err)
		}
	}
}
