package sink

import "bytes"

var (
	blankMark = []byte("_:") // of a blank node
	space     = []byte(" ")
)

// HasBlank tells of a blank node in canonical lines.
func HasBlank(lines []byte) bool {
	if !bytes.Contains(lines, blankMark) {
		return false
	}
	for line := range bytes.Lines(lines) {
		_, rest, _ := bytes.Cut(line, space)
		_, object, _ := bytes.Cut(rest, space)
		if bytes.HasPrefix(line, blankMark) || bytes.HasPrefix(object, blankMark) {
			return true
		}
	}
	return false
}
