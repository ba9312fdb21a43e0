package publish

import (
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// htmlFormat is the page for people; it is offered beside the formats of rdfres.
const htmlFormat rdfres.Format = "html"

const htmlType = "text/html; charset=utf-8"

func mediaType(f rdfres.Format) string {
	if f == htmlFormat {
		return htmlType
	}
	return f.MediaType()
}

func suffixOf(f rdfres.Format) string {
	if f == htmlFormat {
		return ".html"
	}
	return f.Suffix()
}

// offered are the formats of a description; the set's own comes first.
func offered(main rdfres.Format) []rdfres.Format {
	all := []rdfres.Format{main}
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, htmlFormat} {
		if f != main {
			all = append(all, f)
		}
	}
	return all
}

// bySuffix splits a format's suffix off. f is "" when there is none that is
// offered; rest is then s, and other tells whether it ends in another suffix.
func bySuffix(s string) (rest string, f rdfres.Format, other bool) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, htmlFormat} {
		if r, ok := strings.CutSuffix(s, suffixOf(f)); ok {
			return r, f, false
		}
	}
	for _, x := range suffixes {
		if strings.HasSuffix(s, x) {
			return s, "", true
		}
	}
	return s, "", false
}

// acceptAliases are media types that mean a format of ours, though it answers
// with its registered type.
var acceptAliases = map[string]string{
	"application/json":      "application/ld+json",
	"application/x-turtle":  "text/turtle",
	"text/n3":               "text/turtle",
	"application/xhtml+xml": "text/html",
}

// negotiate picks the format that the Accept header likes best (RFC 9110,
// 12.5.1); the first of equals. ok is false when none is acceptable. No header
// accepts everything.
func negotiate(accept []string, formats []rdfres.Format) (best rdfres.Format, ok bool) {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return formats[0], true
	}
	bestQ := 0
	for _, f := range formats {
		essence, _, _ := strings.Cut(mediaType(f), ";")
		if q := quality(header, essence); q > bestQ {
			best, bestQ = f, q
		}
	}
	return best, bestQ > 0
}

// quality is the q-value, in thousandths, that the header gives a media type: the
// most specific range decides.
func quality(header, essence string) int {
	kind, _, _ := strings.Cut(essence, "/")
	q, specific := 0, -1
	for part := range strings.SplitSeq(header, ",") {
		r, params, _ := strings.Cut(part, ";")
		r = strings.ToLower(strings.TrimSpace(r))
		level := -1
		switch {
		case r == essence:
			level = 3
		case acceptAliases[r] == essence:
			level = 2
		case r == kind+"/*":
			level = 1
		case r == "*/*" || r == "*":
			level = 0
		}
		if v := qValue(params); level > specific || level >= 0 && level == specific && v > q {
			q, specific = v, level
		}
	}
	return q
}

// qValue reads the weight among parameters, in thousandths; 1000 when there is none.
func qValue(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(v >= 0 && v <= 1) {
				return 0
			}
			return int(v*1000 + 0.5)
		}
	}
	return 1000
}

// acceptsGzip reads Accept-Encoding (RFC 9110, 12.5.3).
func acceptsGzip(headers []string) bool {
	q, star := -1, -1
	for _, h := range headers {
		for part := range strings.SplitSeq(h, ",") {
			coding, params, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				q = qValue(params)
			case "*":
				star = qValue(params)
			}
		}
	}
	if q < 0 {
		q = star
	}
	return q > 0
}
