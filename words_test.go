package rsbridge_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits of plain prose.
const (
	maxRelative  = 20   // that, which, what, who, whose, where in 1,000 words of docs
	goalRelative = 25   // the same in comments
	maxParagraph = 30   // words of a paragraph, on average
	maxSentence  = 35   // words
	maxPage      = 1200 // words
)

var (
	relative   = regexp.MustCompile(`(?i)\b(that|which|what|who|whose|where)\b`)
	word       = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}'’./_-]*`)
	sentence   = regexp.MustCompile(`[.!?][)"”*_]*(\s+|$)`)
	abbreviate = strings.NewReplacer("e.g.", "eg", "i.e.", "ie", "etc.", "etc")
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
	codeSpan   = regexp.MustCompile("`+[^`\n]+`+")
	linkTarget = regexp.MustCompile(`\]\([^)\s]+\)`)
	item       = regexp.MustCompile(`^\s*([*+-]|\d+\.)\s`)
	ruler      = regexp.MustCompile(`^\s*\|`)
)

// prose is what was counted in a text.
type prose struct {
	words, relative, paragraphs int
	long                        []string // sentences over the limit
}

func (p *prose) add(q prose) {
	p.words, p.relative, p.paragraphs = p.words+q.words, p.relative+q.relative, p.paragraphs+q.paragraphs
	p.long = append(p.long, q.long...)
}

func (p prose) rate() float64 { return 1000 * float64(p.relative) / float64(max(p.words, 1)) }

// count counts the paragraphs; code is one word each.
func count(paragraphs []string) (p prose) {
	for _, text := range paragraphs {
		text = abbreviate.Replace(codeSpan.ReplaceAllString(text, "x"))
		n := len(word.FindAllString(text, -1))
		if n == 0 {
			continue
		}
		p.words += n
		p.paragraphs++
		p.relative += len(relative.FindAllString(text, -1))
		from := 0
		for _, end := range append(sentence.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			if s := text[from:end[1]]; len(word.FindAllString(s, -1)) > maxSentence {
				p.long = append(p.long, strings.Join(strings.Fields(s), " "))
			}
			from = end[1]
		}
	}
	return p
}

// paragraphs are those of a Markdown page: no headings, tables, code or comments.
// An item of a list is a paragraph.
func paragraphs(page string) (out []string) {
	page = linkTarget.ReplaceAllString(comment.ReplaceAllString(page, ""), "]")
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
		}
		b.Reset()
	}
	fenced := false
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			flush()
			fenced = !fenced
		case fenced:
		case text == "", strings.HasPrefix(text, "#"), ruler.MatchString(line), b.Len() == 0 && strings.HasPrefix(line, "    ") && !item.MatchString(line):
			flush()
		case item.MatchString(line):
			flush()
			b.WriteString(item.ReplaceAllString(line, "") + " ")
		default:
			b.WriteString(text + " ")
		}
	}
	flush()
	return out
}

// pages are the Markdown files of the repository.
func pages(t *testing.T) (out []string) {
	t.Helper()
	for _, dir := range []string{"docs", "examples"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".md" {
				out = append(out, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return append(out, "README.md")
}

// TestPlainDocs holds every page to short sentences, short paragraphs, few
// relative clauses, and a length that is read in five minutes.
func TestPlainDocs(t *testing.T) {
	var all prose
	for _, file := range pages(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := count(paragraphs(string(raw)))
		if p.words == 0 {
			t.Errorf("%s is empty", file)
		}
		all.add(p)
		if testing.Verbose() {
			t.Logf("%-50s %5d words %5.1f relative %5.1f words a paragraph, %d long", file, p.words, p.rate(), float64(p.words)/float64(max(p.paragraphs, 1)), len(p.long))
		}
		if p.relative > 3 && p.rate() > maxRelative {
			t.Errorf("%s: %d of %d words are relative (%.0f in 1,000, at most %d)", file, p.relative, p.words, p.rate(), maxRelative)
		}
		if p.words > maxPage {
			t.Errorf("%s: %d words, at most %d", file, p.words, maxPage)
		}
		if p.words > maxParagraph*p.paragraphs {
			t.Errorf("%s: %d words a paragraph, at most %d", file, p.words/p.paragraphs, maxParagraph)
		}
		for _, s := range p.long {
			t.Errorf("%s: a sentence of more than %d words: %s", file, maxSentence, s)
		}
	}
	if all.words < 5000 {
		t.Errorf("only %d words were counted", all.words)
	}
}

// TestPlainComments holds the comments of every package to the goal.
func TestPlainComments(t *testing.T) {
	for dir, p := range comments(t) {
		if p.relative > 3 && p.rate() > goalRelative {
			t.Errorf("%s: %d of %d words of comments are relative (%.1f in 1,000, at most %d)", dir, p.relative, p.words, p.rate(), goalRelative)
		}
	}
}

// comments counts those of each package, by its folder, without tests.
func comments(t *testing.T) map[string]prose {
	t.Helper()
	out := map[string]prose{}
	for file, texts := range allComments(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		p := out[dir]
		p.add(count(texts))
		out[dir] = p
	}
	return out
}

// allComments are the paragraphs of all comments by file, without directives.
func allComments(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, g := range file.Comments {
			out[path] = append(out[path], strings.Split(g.Text(), "\n\n")...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
