package rsbridge_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestFloorPicture holds the picture in docs/design.md to the table of floors,
// and the table to the packages that there are.
func TestFloorPicture(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		number, rest, ok := strings.Cut(line, "  ")
		floor, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		rest, _, _ = strings.Cut(rest, "      ") // what the floor is for
		for _, name := range strings.Fields(strings.ReplaceAll(rest, "||", "")) {
			for _, room := range expand(name) {
				if _, twice := drawn[room]; twice {
					t.Errorf("%s stands in the picture twice", room)
				}
				drawn[room] = floor
			}
		}
	}
	there := map[string]bool{}
	for _, p := range packages(t) {
		there[room(strings.TrimPrefix(p.ImportPath, module))] = true
	}
	for _, room := range slices.Sorted(maps.Keys(floors)) {
		if floor, ok := drawn[room]; !ok || floor != floors[room] {
			t.Errorf("%s is on floor %d, and in the picture: %t, on %d", room, floors[room], ok, floor)
		}
		if !there[room] {
			t.Errorf("%s is in the floor plan and not in the tree", room)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(drawn)) {
		if _, ok := floors[room]; !ok {
			t.Errorf("%s is in the picture and not in the table", room)
		}
	}
}

// expand gives the names that a{b,c} stands for.
func expand(name string) (out []string) {
	before, rest, ok := strings.Cut(name, "{")
	inner, after, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return []string{name}
	}
	for part := range strings.SplitSeq(inner, ",") {
		out = append(out, before+part+after)
	}
	return out
}

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

// TestLinks: every relative link of the README and the documents leads to a file
// that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	n := 0
	for _, file := range pages(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(raw), "x"), -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			n++
			name, anchor, _ := strings.Cut(target, "#")
			to := file
			if name != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
			}
			text, err := os.ReadFile(to)
			if st, serr := os.Stat(to); serr == nil && st.IsDir() && anchor == "" {
				continue
			}
			if err != nil {
				t.Errorf("%s links to %s: %v", file, target, err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s links to %s, where that heading is not", file, target)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d links were looked at", n)
	}
}

var (
	citedPage = regexp.MustCompile(`\b[\w./-]+\.(?:md|txtar|schema\.json)\b`)
	citedFile = regexp.MustCompile("`([a-z][\\w/-]*/[\\w.-]+\\.(?:go|md|json|svg))`")
	outside   = regexp.MustCompile(`(?i)\bdossier\b|\(house\b|\bdecision \d`)
)

// TestCitations: comments and pages name files only that are there, and no
// document from outside of the repository.
func TestCitations(t *testing.T) {
	there := func(from, name string) bool {
		for _, dir := range []string{".", filepath.Dir(from), "docs"} {
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
				return true
			}
		}
		return false
	}
	n := 0
	for file, texts := range allComments(t) {
		for _, text := range texts {
			if cited := outside.FindString(text); cited != "" {
				t.Errorf("%s cites %q, a document that is not in the repository", file, cited)
			}
			for _, name := range citedPage.FindAllString(text, -1) {
				if n++; !there(file, name) {
					t.Errorf("%s names %s, a file that is not there", file, name)
				}
			}
		}
	}
	for _, file := range pages(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range citedFile.FindAllStringSubmatch(string(raw), -1) {
			if n++; !there(file, m[1]) {
				t.Errorf("%s names %s, a file that is not there", file, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names were looked at", n)
	}
}

// anchors are those of the headings of a document.
func anchors(text string) (out []string) {
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line {
			out = append(out, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title)))
		}
	}
	return out
}
