// Package version tells the version of the program: the released one, or the one in the making
// with its commit.
package version

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// Next is the newest version in CHANGELOG.md. A build of no release is on its way there.
const Next = "0.1.0"

const module = "github.com/rsbridge/rsbridge"

// The linker sets these: -X github.com/rsbridge/rsbridge/internal/version.release=0.1.0.
var (
	release  string
	revision string
)

// String is the version: 0.1.0 for a release, else 0.1.0-dev+COMMIT.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return told(release, Revision(), info)
}

// Revision is the commit of the build, "" if unknown.
func Revision() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == module {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// tagged matches the version of a tagged commit. A pseudo-version ends with a time and a commit.
var (
	tagged = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$`)
	pseudo = regexp.MustCompile(`\d{14}-[0-9a-f]{12}$`)
)

const shortCommit = 12

func told(release, revision string, info *debug.BuildInfo) string {
	if release != "" {
		return release
	}
	if v := tagged.FindStringSubmatch(ofModule(info)); v != nil && !pseudo.MatchString(v[1]) {
		return v[1]
	}
	v := Next + "-dev"
	if revision != "" {
		v += "+" + revision[:min(len(revision), shortCommit)]
	}
	return v
}

// ofModule is the version of this module in the build, also as a library of another program.
func ofModule(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	if info.Main.Path == module {
		return strings.Trim(info.Main.Version, "()")
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return ""
}
