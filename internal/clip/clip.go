// Package clip shortens text for messages.
package clip

import "strings"

// Middle leaves the middle of a long text out: its beginning and its end tell most.
func Middle(s string) string {
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:200]+"..."+s[len(s)-60:], "") // no part of a letter
	}
	return s
}
