// Package accept reads the request headers in which a client lists the forms it takes:
// Accept and Accept-Encoding (RFC 9110, section 12.5), If-None-Match (13.1.2).
//
// All headers are given as their lines. Unreadable parts of one weigh nothing.
package accept

import (
	"strconv"
	"strings"
)

// Best is the position of the offer with most weight in Accept, the first of equals, and
// false when it takes none of them. No header takes everything. An offer is the media
// types, without parameters, by which it can be asked for; ranges mean the first only.
func Best(lines []string, offers ...[]string) (int, bool) {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return 0, len(offers) > 0
	}
	best, most := 0, 0.0
	for i, types := range offers {
		if q, _ := Weight(lines, types...); q > most {
			best, most = i, q
		}
	}
	return best, most > 0
}

// Weight is what Accept gives an offer, 0 to 1: the most specific of its ranges
// decides. named tells whether it names one of the types.
func Weight(lines []string, types ...string) (q float64, named bool) {
	const anything, kind, other, exact = 0, 1, 2, 3
	specific := -1
	each(lines, func(r, params string) {
		level := -1
		for i, t := range types {
			switch {
			case i == 0 && r == t:
				level = exact
			case r == t:
				level = other
			case i > 0:
			case r == "*/*" || r == "*":
				level = anything
			case strings.HasSuffix(r, "/*") && strings.HasPrefix(t, r[:len(r)-1]):
				level = kind
			}
		}
		if level < 0 || level < specific {
			return
		}
		if v := weight(params); level > specific || v > q {
			q, specific = v, level
		}
	})
	return q, specific >= other
}

// Gzip tells whether Accept-Encoding takes gzip. No header takes nothing packed.
func Gzip(lines []string) bool {
	q, star := -1.0, -1.0
	each(lines, func(coding, params string) {
		switch coding {
		case "gzip", "x-gzip":
			q = weight(params)
		case "*":
			star = weight(params)
		}
	})
	if q < 0 {
		q = star
	}
	return q > 0
}

// GzipTag ends the ETag of a body that goes out packed.
const GzipTag = "-gzip"

// Matches tells whether If-None-Match names a tag, given without quotes, of
// the body as it is or packed.
func Matches(lines []string, etag string) bool {
	for _, line := range lines {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" {
				return true
			}
			if tag, ok := strings.CutPrefix(tag, `"`); ok {
				if tag, ok := strings.CutSuffix(tag, `"`); ok && strings.TrimSuffix(tag, GzipTag) == etag {
					return true
				}
			}
		}
	}
	return false
}

// each gives the elements of a list, in small letters, with their parameters.
func each(lines []string, f func(element, params string)) {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			element, params, _ := strings.Cut(part, ";")
			f(strings.ToLower(strings.TrimSpace(element)), params)
		}
	}
}

// weight reads the q among parameters; 1 when there is none.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(v >= 0 && v <= 1) {
				return 0
			}
			return v
		}
	}
	return 1
}
