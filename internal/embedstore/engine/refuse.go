package engine

import "regexp"

// What goRDFlib v0.1.5 gets wrong, beside what mend.go mends. Its parser is
// loose: it passes over what it does not know, and its tree does not tell what
// it lost, so that the text is looked at. A hit in a comment or a string refuses
// a query that would have been fine; the other way round never happens.
type textRule struct {
	re  *regexp.Regexp
	why string
	// fromOnly applies when the caller gives no dataset.
	fromOnly bool
}

var textRules = []textRule{
	{regexp.MustCompile(`\\`), "escapes: the parser ends literals at an escaped quote and leaves escaped names as they are", false},
	{regexp.MustCompile(`["']@[a-z-]*[A-Z0-9]`), "language tags with capitals or digits: the parser writes them in lower case and stops at a digit", false},
	{regexp.MustCompile(`[^"']\^\^`), "^^ within a literal: the parser takes it for a datatype", false},
	{regexp.MustCompile(`\[\s*[^\s\]]`), "blank nodes with properties: nested ones and those of templates are dropped", false},
	{regexp.MustCompile(`(?is)\}\s*(GROUP|HAVING|ORDER|LIMIT|OFFSET)\b[^{}]*\bVALUES\b`), "VALUES after modifiers: it is joined after they were applied", false},
	{regexp.MustCompile(`[^\x00-\x7F]`), "letters beyond ASCII: names and prefixes are read byte by byte", false},
}

// keywordRules are asked of the text without its names.
var keywordRules = []textRule{
	{regexp.MustCompile(`(?i)\bSERVICE\b`), "SERVICE", false},
	{regexp.MustCompile(`(?i)\bDESCRIBE\b`), "DESCRIBE", false},
	{regexp.MustCompile(`(?i)\bBINDINGS\b`), "BINDINGS", false},
	{regexp.MustCompile(`(?i)\bFROM\b`), "FROM in the text: it is passed over; give the dataset in the options", true},
	{regexp.MustCompile(`(?i)\bUSING\b|\bWITH\b`), "USING and WITH: give the dataset in the options", true},
}

// names are IRIs, prefixed names and variables. None hides a keyword of a text that
// is SPARQL: what stands behind each of the keywords ends at one of "<>{" or a space
// before an IRI that began before it could, and no keyword touches a colon.
var names = regexp.MustCompile("<[^<>\"{}|^`\\\\\\x00-\\x20]*>|[\\w-]*:[\\w-]*|[?$][\\w-]+")

// A group that begins with a group is the inner group in the tree.
var doubleBrace = regexp.MustCompile(`\{\s*\{`)

// maxText and maxDepth keep goRDFlib's recursive parser from the end of the
// stack, from which nothing recovers.
const (
	maxText  = 1 << 20
	maxDepth = 200
)

func checkText(text string, o Options) error {
	if len(text) > maxText {
		return refuse("a text of %d bytes", len(text))
	}
	depth, run := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
			run = 0
		case ')', '}', ']':
			depth--
			run = 0
		case '!', '-':
			run++
		case ' ', '\n', '\t', '\r':
		default:
			run = 0
		}
		if depth+run > maxDepth {
			return refuse("a text with more than %d levels", maxDepth)
		}
	}
	if err := checkRules(textRules, text, o); err != nil {
		return err
	}
	return checkRules(keywordRules, names.ReplaceAllString(text, " "), o)
}

func checkRules(rules []textRule, text string, o Options) error {
	for _, r := range rules {
		if (!r.fromOnly || !o.Dataset) && r.re.MatchString(text) {
			return refuse("%s", r.why)
		}
	}
	return nil
}
