package version

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// TestTold: a release tells its number, a tagged module too, and any other build its commit.
func TestTold(t *testing.T) {
	main := func(v string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: module, Version: v}}
	}
	library := &debug.BuildInfo{Main: debug.Module{Path: "example.org/other", Version: "v9.9.9"}, Deps: []*debug.Module{{Path: module, Version: "v0.3.1"}}}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		release, revision string
		info              *debug.BuildInfo
		want              string
	}{
		{"1.2.3", commit, main("(devel)"), "1.2.3"},
		{"", "", nil, Next + "-dev"},
		{"", commit, main("(devel)"), Next + "-dev+0123456789ab"},
		{"", commit, main("v0.2.0"), "0.2.0"},
		{"", commit, main("v0.2.0-rc.1"), "0.2.0-rc.1"},
		{"", commit, main("v0.2.0+dirty"), Next + "-dev+0123456789ab"},
		{"", commit, main("v0.0.0-20261128020000-0123456789ab"), Next + "-dev+0123456789ab"},
		{"", commit, main("v0.1.1-0.20261128020000-0123456789ab"), Next + "-dev+0123456789ab"},
		{"", "", library, "0.3.1"},
	} {
		if got := told(c.release, c.revision, c.info); got != c.want {
			t.Errorf("%q %q %v: %q, want %q", c.release, c.revision, c.info, got, c.want)
		}
	}
}

// TestChangelog: the newest heading of the change log is the version in the making.
func TestChangelog(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), "\n## ")
	heading, _, _ := strings.Cut(after, "\n")
	if v, _, _ := strings.Cut(heading, " "); v != Next {
		t.Errorf("CHANGELOG.md begins with %q, and the version is %s", heading, Next)
	}
}
