// Package version tells the version of the program.
package version

import (
	"runtime/debug"
	"strings"
)

// Number is the newest version in CHANGELOG.md. It is 0.1.0 in the commit of that release, and
// 0.1.0-dev in the commits on the way there.
const Number = "0.1.0-dev"

const (
	module      = "github.com/rsbridge/rsbridge"
	shortCommit = 12
	modified    = "-dirty" // after a commit: files differ from it
)

// The linker sets it: -X github.com/rsbridge/rsbridge/internal/version.revision=COMMIT.
var revision string

// String is the version: 0.1.0 for a release, else 0.1.0-dev+COMMIT. With changed files it is
// 0.1.0+COMMIT.dirty.
func String() string { return Of(Revision()) }

// Of is the version of a build of a commit, "" if unknown; COMMIT-dirty has changed files.
func Of(revision string) string {
	commit, changed := strings.CutSuffix(revision, modified)
	if commit == "" || !changed && !strings.Contains(Number, "-") {
		return Number
	}
	v := Number + "+" + commit[:min(len(commit), shortCommit)]
	if changed {
		v += ".dirty"
	}
	return v
}

// Revision is the commit of the build, with -dirty if files differ from it. It is "" if unknown.
func Revision() string {
	info, _ := debug.ReadBuildInfo()
	return told(revision, info)
}

func told(revision string, info *debug.BuildInfo) string {
	if revision != "" || info == nil || info.Main.Path != module {
		return revision
	}
	ending := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			ending = modified
		}
	}
	if revision == "" {
		return ""
	}
	return revision + ending
}
