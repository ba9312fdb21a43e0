package version

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// TestOf: a build of a commit tells it, unless the commit is a release and nothing was changed.
func TestOf(t *testing.T) {
	plain := Number
	if strings.HasSuffix(Number, "-dev") {
		plain += "+0123456789ab"
	}
	for revision, want := range map[string]string{
		"":                Number,
		commit:            plain,
		commit + modified: Number + "+0123456789ab.dirty",
		"0123":            strings.Replace(plain, "456789ab", "", 1),
	} {
		if got := Of(revision); got != want {
			t.Errorf("%q: %q, want %q", revision, got, want)
		}
	}
}

// TestRevision: the linker's commit counts before that of the build information; as a library the
// program has no commit of its own.
func TestRevision(t *testing.T) {
	built := func(path, revision, changed string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: path}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: changed}}}
	}
	for _, c := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"", nil, ""},
		{commit, nil, commit},
		{commit, built(module, "f00", "true"), commit},
		{"", built(module, commit, "false"), commit},
		{"", built(module, commit, "true"), commit + modified},
		{"", built("example.org/other", commit, "false"), ""},
		{"", built(module, "", "true"), ""},
	} {
		if got := told(c.linked, c.info); got != c.want {
			t.Errorf("%q %v: %q, want %q", c.linked, c.info, got, c.want)
		}
	}
}

// TestChangelog: the newest heading of the change log is the version, "unreleased" until its day.
func TestChangelog(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), "\n## ")
	heading, _, _ := strings.Cut(after, "\n")
	number, day, _ := strings.Cut(heading, " ")
	if day == "(unreleased)" {
		number += "-dev"
	}
	if number != Number {
		t.Errorf("CHANGELOG.md begins with %q, and the version is %s", heading, Number)
	}
}
