package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// failures keeps the lines of go test that name what failed. The output of one test with its stacks has thousands of
// lines, and other packages write between them.
type failures struct {
	line []byte // begun, and cut at longestLine
	kept []string
}

const (
	longestLine = 300
	mostLines   = 200
)

// A test or package that failed, a panic, and the tests that ran when a package took too long.
var failure = regexp.MustCompile(`^(\s*--- FAIL: |FAIL\s|panic: |\t+Test\S* \(\d)`)

func (f *failures) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		f.line = append(f.line, part[:min(len(part), longestLine-len(f.line))]...)
		if whole {
			if failure.Match(f.line) && len(f.kept) < mostLines {
				f.kept = append(f.kept, string(f.line))
			}
			f.line = f.line[:0]
		}
		p = rest
	}
	return n, nil
}

// repeat writes the lines once more, in their order.
func (f *failures) repeat(w io.Writer) {
	if len(f.kept) == 0 {
		return
	}
	fmt.Fprintln(w, "failed, once more:")
	for _, line := range f.kept {
		fmt.Fprintln(w, line)
	}
}
