package filesink

import (
	"io/fs"
	"strings"
	"testing"
)

func TestPathsOfAddresses(t *testing.T) {
	seen := map[string]string{}
	for loc, want := range map[string]string{
		"http://src.example/a/b.nt":           "a/b.nt",
		"http://src.example/a/":               "a/%",
		"http://src.example":                  "%/c35f0df7e4fc530cf0692a64a3eacd4f",
		"http://src.example/../../etc/passwd": "..%/..%/etc/passwd",
		"http://src.example/a//b":             "a/%/b",
		"http://src.example/q?x=/../y&z":      "",
		"http://src.example/.rsbridge.json":   "",
		"http://src.example/C:%5Cx":           "C%3A%5Cx",
		"http://other.example:81/a.nt":        "other.example_81/a.nt",
		"http://src.example/" + string(make([]byte, 0)) + strings.Repeat("long", 100) + ".nt": "",
		"http://src.example/é": "%C3%A9",
	} {
		got := pathsOf("http://src.example/.well-known/resourcesync", loc)[0]
		if want != "" && got != want {
			t.Errorf("%s is at %q, want %q", loc, got, want)
		}
		if !fs.ValidPath(got) || seen[got] != "" {
			t.Errorf("%s is at %q", loc, got)
		}
		seen[got] = loc
	}
}
