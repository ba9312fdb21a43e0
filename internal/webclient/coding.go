package webclient

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/html/charset"
)

// Packed tells whether the body of an answer is said to be packed with gzip, and how
// many times. Codings without compression, written there by mistake, count
// as none: identity, binary, the names of charsets. Any other one is an error.
func Packed(h http.Header) (times int, err error) {
	for _, line := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.ToLower(strings.Trim(strings.TrimSpace(name), `"'`)); name {
			case "gzip", "x-gzip":
				times++
			case "", "identity", "none", "null", "no", "off", "false", "binary", "7bit", "8bit", "base", "raw", "plain", "text", "utf8", "chunked", "aws-chunked":
			default:
				if e, _ := charset.Lookup(strings.TrimPrefix(name, "charset=")); e == nil {
					return 0, fmt.Errorf("content coding %q was not asked for and is not known", name)
				}
			}
		}
	}
	return times, nil
}

// Whole tells that an answer with status 206 to a request without Range has all bytes.
func Whole(res *http.Response) bool {
	var from, to, total int64
	n, err := fmt.Sscanf(res.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
	return err == nil && n == 3 && from == 0 && to == total-1
}

// Continues tells that a partial answer goes on from a byte, and of how many bytes the
// whole is, -1 unknown.
func Continues(res *http.Response, from int64) (total int64, ok bool) {
	var first, last int64
	s := res.Header.Get("Content-Range")
	if n, err := fmt.Sscanf(s, "bytes %d-%d/%d", &first, &last, &total); err == nil && n == 3 {
		return total, first == from && last >= first && last < total
	}
	if n, err := fmt.Sscanf(s, "bytes %d-%d/", &first, &last); err == nil && n == 2 && strings.HasSuffix(s, "/*") {
		return -1, first == from && last >= first
	}
	return 0, false
}
