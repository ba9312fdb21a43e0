package filesink

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Each resource is at the path of its address below the folder: of the source's own host as
// it is, of another host below a folder HOST (with _PORT). Bytes unfit for a file name are
// written %XX, a query is a part of the name, empty and dot segments are written %, and a
// long segment ends in a hash. If a path is taken, as by /a and /a/b, the file is below %/ by
// the hash of its address.

const (
	maxSegment   = 120
	hashedFolder = "%/"
)

// pathsOf are the possible paths of an address: its own, the hashed one, and the one from a
// former host of the source.
func pathsOf(source, loc string) []string {
	u, err := url.Parse(loc)
	own, ownErr := url.Parse(source)
	if err != nil || u.Host == "" {
		return []string{hashedPath(loc), hashedPath(loc)}
	}
	elsewhere := ownErr != nil || !strings.EqualFold(own.Host, u.Host)
	paths := []string{pathFrom(u, loc, elsewhere), hashedPath(loc)}
	if p := pathFrom(u, loc, !elsewhere); !slices.Contains(paths, p) {
		paths = append(paths, p)
	}
	return paths
}

// pathFrom is the path of an address of the source's own host, or elsewhere.
func pathFrom(u *url.URL, loc string, elsewhere bool) string {
	var parts []string
	if elsewhere {
		parts = append(parts, safeSegment(strings.ReplaceAll(strings.ToLower(u.Host), ":", "_")))
	}
	rest := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.RawQuery != "" {
		rest[len(rest)-1] += "?" + strings.ReplaceAll(u.RawQuery, "/", "%2F")
	}
	if u.Fragment != "" {
		rest[len(rest)-1] += "#" + strings.ReplaceAll(u.EscapedFragment(), "/", "%2F")
	}
	for _, s := range rest {
		parts = append(parts, safeSegment(s))
	}
	p := strings.Join(parts, "/")
	if len(p) > 1000 || p == "%" || strings.HasPrefix(p, ".rsbridge") { // % is the folder of hashes
		return hashedPath(loc)
	}
	return p
}

// hashedPath is for files without a path of their own.
func hashedPath(loc string) string {
	sum := sha256.Sum256([]byte(loc))
	ext := ""
	if u, err := url.Parse(loc); err == nil {
		if e := path.Ext(u.Path); len(e) > 1 && len(e) < 10 && safeSegment(e) == e {
			ext = e
		}
	}
	return hashedFolder + hex.EncodeToString(sum[:16]) + ext
}

func safeSegment(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 0x80 || c <= 0x20 || c == 0x7f || strings.IndexByte(`\:*?"<>|#`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	out := b.String()
	if strings.Trim(out, ".") == "" || strings.HasSuffix(out, ".") {
		out += "%" // "", ".", "..", and names that some systems cut
	}
	if len(out) > maxSegment {
		sum := sha256.Sum256([]byte(s))
		ext := path.Ext(out)
		if len(ext) > 10 {
			ext = ""
		}
		out = out[:maxSegment-20-len(ext)] + "%" + hex.EncodeToString(sum[:8]) + ext
	}
	return out
}
