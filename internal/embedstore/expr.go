package embedstore

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

// evaluator gives the values of expressions in the row of x.
type evaluator struct {
	x    *exec
	now  time.Time
	base string      // of IRI()
	aggs []aggResult // of the group in the row

	constants map[*constExpr]id
	cache     []cachedValue
	regexps   map[string]*compiledRegexp

	solution int               // number of the solution under way, for BNODE
	bnodes   map[string]string // labels of BNODE(label) by solution
	fresh    int64             // blank nodes made so far

	tells bool   // note expressions without a value
	fault string // the last such expression, "" for an unbound variable
	noted string // the first that dropped a row or left a variable unbound
}

type cachedValue struct {
	id id
	v  value
}

const valueSlots = 1024

// valueOf is the value of a nonzero id.
func (ev *evaluator) valueOf(n id) (value, error) {
	if ev.cache == nil {
		ev.cache = make([]cachedValue, valueSlots)
	}
	s := &ev.cache[uint64(n>>2)%valueSlots]
	if s.id == n {
		return s.v, nil
	}
	t, err := ev.x.terms.term(n)
	if err != nil {
		return value{}, err
	}
	v := parseValue(t)
	if len(t) < 4096 {
		*s = cachedValue{n, v}
	}
	return v, nil
}

// test is the effective boolean value; an error of the expression is false.
func (ev *evaluator) test(e expr) (bool, error) {
	ev.fault = ""
	b, err := ev.truth(e)
	if err == errType {
		ev.noteFault()
		return false, nil
	}
	return b, err
}

func (ev *evaluator) truth(e expr) (bool, error) {
	v, err := ev.expr(e)
	if err != nil {
		return false, err
	}
	b, err := v.truth()
	if err != nil {
		ev.failed("the condition", v)
	}
	return b, err
}

// failed remembers an expression without a value, if requested. An unbound variable is no fault:
// OPTIONAL leaves many.
func (ev *evaluator) failed(name string, args ...value) {
	if !ev.tells {
		return
	}
	terms := make([]string, len(args))
	for i := range args {
		terms[i] = args[i].asTerm()
		if r := []rune(terms[i]); len(r) > 100 {
			terms[i] = string(r[:100]) + "..."
		}
	}
	switch {
	case len(args) == 2 && (!isAlpha(name[0]) || strings.HasSuffix(name, "IN")):
		ev.fault = terms[0] + " " + name + " " + terms[1]
	case strings.Contains(name, ":"):
		ev.fault = "<" + name + ">(" + terms[0] + ")"
	default:
		ev.fault = name + "(" + strings.Join(terms, ", ") + ")"
	}
}

// noteFault blames the last fault for a failed condition or binding.
func (ev *evaluator) noteFault() {
	if ev.fault != "" && ev.noted == "" {
		ev.noted = ev.fault
	}
}

// exprID is the value of an expression as an id; 0 when it is an error.
func (ev *evaluator) exprID(e expr) (id, error) {
	switch e := e.(type) {
	case *varExpr:
		return ev.x.row[e.slot], nil
	case *constExpr:
		if n, ok := ev.constants[e]; ok {
			return n, nil
		}
		n, err := ev.x.idOf(e.v.asTerm())
		if err != nil {
			return 0, err
		}
		if ev.constants == nil {
			ev.constants = map[*constExpr]id{}
		}
		ev.constants[e] = n
		return n, nil
	}
	ev.fault = ""
	v, err := ev.expr(e)
	if err == errType {
		ev.noteFault()
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return ev.x.idOf(v.asTerm())
}

// expr evaluates an expression. errType is an error of SPARQL, everything else
// ends the query.
func (ev *evaluator) expr(e expr) (value, error) {
	switch e := e.(type) {
	case *varExpr:
		n := ev.x.row[e.slot]
		if n == 0 {
			ev.fault = ""
			return value{}, errType
		}
		return ev.valueOf(n)
	case *constExpr:
		return e.v, nil
	case *aggExpr:
		if e.n >= len(ev.aggs) || !ev.aggs[e.n].ok {
			return value{}, errType
		}
		return ev.aggs[e.n].v, nil
	case *existsExpr:
		found, err := ev.exists(e.in)
		return boolValue(found != e.not), err
	case *callExpr:
		return ev.call(e)
	}
	return value{}, fmt.Errorf("evaluate: unknown expression %T", e)
}

// exists tells whether the pattern has a solution compatible with the row.
func (ev *evaluator) exists(n node) (bool, error) {
	stop := &stopSign{}
	g := ev.x.g
	err := ev.x.eval(n, func() error { return stop })
	ev.x.g = g
	if err == error(stop) {
		return true, nil
	}
	return false, err
}

// known is the id of a variable or constant as an argument.
func (ev *evaluator) known(e expr) (id, bool, error) {
	switch e.(type) {
	case *varExpr, *constExpr:
		n, err := ev.exprID(e)
		return n, n != 0, err
	}
	return 0, false, nil
}

func (ev *evaluator) call(c *callExpr) (value, error) {
	switch c.name {
	case "BOUND":
		return boolValue(ev.x.row[c.args[0].(*varExpr).slot] != 0), nil
	case "&&", "||":
		return ev.logic(c)
	case "!":
		b, err := ev.truth(c.args[0])
		return boolValue(!b), err
	case "IF":
		b, err := ev.truth(c.args[0])
		if err != nil {
			return value{}, err
		}
		if b {
			return ev.expr(c.args[1])
		}
		return ev.expr(c.args[2])
	case "COALESCE":
		for _, a := range c.args {
			v, err := ev.expr(a)
			if err != errType {
				return v, err
			}
		}
		return value{}, errType
	case "IN", "NOT IN":
		return ev.in(c)
	case "=", "!=":
		if b, ok, err := ev.sameID(c.args[0], c.args[1]); err != nil {
			return value{}, err
		} else if ok {
			return boolValue(b == (c.name == "=")), nil
		}
	case "ISIRI", "ISURI", "ISBLANK", "ISLITERAL":
		return ev.isKind(c)
	case "BNODE":
		return ev.newBlank(c)
	case "RAND":
		return floatValue(vDouble, mrand.Float64()), nil
	case "NOW":
		v := value{kind: vOther, lex: ev.now.UTC().Format("2006-01-02T15:04:05.999Z"), lang: xsdNS + "dateTime"}
		v.classify()
		return v, nil
	case "UUID":
		return iriValue("urn:uuid:" + newUUID()), nil
	case "STRUUID":
		return stringValue(newUUID()), nil
	}
	var buf [4]value
	args := buf[:0]
	for _, a := range c.args {
		v, err := ev.expr(a)
		if err != nil {
			return value{}, err
		}
		args = append(args, v)
	}
	v, err := ev.apply(c.name, args)
	if err == errType {
		ev.failed(c.name, args...)
	}
	return v, err
}

// logic is && and || with errors (section 17.2).
func (ev *evaluator) logic(c *callExpr) (value, error) {
	settles := c.name == "||"
	a, aerr := ev.truth(c.args[0])
	if aerr != nil && aerr != errType {
		return value{}, aerr
	}
	if aerr == nil && a == settles {
		return boolValue(settles), nil
	}
	b, berr := ev.truth(c.args[1])
	if berr != nil {
		return value{}, berr
	}
	if b == settles {
		return boolValue(settles), nil
	}
	return boolValue(b), aerr
}

func (ev *evaluator) in(c *callExpr) (value, error) {
	found, failed := false, false
	var left value
	haveLeft := false
	for _, a := range c.args[1:] {
		b, ok, err := ev.sameID(c.args[0], a)
		if err != nil {
			return value{}, err
		}
		if !ok {
			if !haveLeft {
				if left, err = ev.expr(c.args[0]); err != nil {
					return value{}, err
				}
				haveLeft = true
			}
			right, err := ev.expr(a)
			if err == nil {
				if b, err = equalValues(&left, &right); err == errType {
					ev.failed(c.name, left, right)
				}
			}
			if err == errType {
				failed = true
				continue
			}
			if err != nil {
				return value{}, err
			}
		}
		if b {
			found = true
			break
		}
	}
	if !found && failed {
		return value{}, errType
	}
	if len(c.args) == 1 {
		if _, err := ev.expr(c.args[0]); err != nil {
			return value{}, err
		}
	}
	return boolValue(found == (c.name == "IN")), nil
}

// sameID compares by ids if they decide: the same IRI or blank node, or an IRI or blank node and
// something else.
func (ev *evaluator) sameID(a, b expr) (same, decided bool, err error) {
	m, ok, err := ev.known(a)
	if err != nil || !ok {
		return false, false, err
	}
	n, ok, err := ev.known(b)
	if err != nil || !ok {
		return false, false, err
	}
	if m.kind() != idLiteral || n.kind() != idLiteral {
		return m == n, true, nil
	}
	return false, false, nil
}

func (ev *evaluator) isKind(c *callExpr) (value, error) {
	var kind id
	if v, ok := c.args[0].(*varExpr); ok {
		n := ev.x.row[v.slot]
		if n == 0 {
			return value{}, errType
		}
		kind = n.kind()
	} else {
		v, err := ev.expr(c.args[0])
		if err != nil {
			return value{}, err
		}
		switch v.kind {
		case vIRI:
			kind = idIRI
		case vBlank:
			kind = idBlank
		default:
			kind = idLiteral
		}
	}
	switch c.name {
	case "ISBLANK":
		return boolValue(kind == idBlank), nil
	case "ISLITERAL":
		return boolValue(kind == idLiteral), nil
	}
	return boolValue(kind == idIRI), nil
}

// newBlank is BNODE: a fresh node, or with a label the same one throughout a
// solution.
func (ev *evaluator) newBlank(c *callExpr) (value, error) {
	label := ""
	if len(c.args) == 1 {
		v, err := ev.expr(c.args[0])
		if err != nil {
			return value{}, err
		}
		if v.kind != vString {
			ev.failed(c.name, v)
			return value{}, errType
		}
		key := strconv.Itoa(ev.solution) + " " + v.lex
		if ev.bnodes == nil || len(ev.bnodes) > 10000 {
			ev.bnodes = map[string]string{}
		}
		if ev.bnodes[key] == "" {
			ev.bnodes[key] = ev.freshLabel()
		}
		label = ev.bnodes[key]
	} else {
		label = ev.freshLabel()
	}
	return value{kind: vBlank, lex: label}, nil
}

// freshLabel names a blank node made by this query; labels of the store begin with e.
func (ev *evaluator) freshLabel() string {
	ev.fresh++
	return "q" + strconv.FormatInt(ev.fresh, 10)
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// textArgs checks two strings for STRSTARTS and its like (section 17.4.3.1.2).
func textArgs(a, b *value) error {
	if !a.isText() || !b.isText() || b.kind == vLang && (a.kind != vLang || a.lang != b.lang) {
		return errType
	}
	return nil
}

// likeText is a string with the language of v.
func likeText(v *value, s string) value {
	if v.kind == vLang {
		return langValue(s, v.lang)
	}
	return stringValue(s)
}

// apply is a function of evaluated arguments.
func (ev *evaluator) apply(name string, a []value) (value, error) {
	switch name {
	case "=", "!=":
		b, err := equalValues(&a[0], &a[1])
		return boolValue(b == (name == "=")), err
	case "<", ">", "<=", ">=":
		c, err := compareValues(&a[0], &a[1])
		if err != nil {
			return value{}, err
		}
		return boolValue(c < 2 && (name[0] == '<' && c < 0 || name[0] == '>' && c > 0 || len(name) == 2 && c == 0)), nil
	case "+", "-", "*", "/":
		return arithmetic(name, &a[0], &a[1])
	case "NEG":
		zero := intValue(0)
		if a[0].kind == vFloat || a[0].kind == vDouble {
			return floatValue(a[0].kind, -a[0].f), nil
		}
		return arithmetic("-", &zero, &a[0])
	case "POS":
		if !a[0].isNumeric() {
			return value{}, errType
		}
		return a[0], nil
	case "STR":
		if a[0].kind == vBlank {
			return value{}, errType
		}
		return stringValue(a[0].lex), nil
	case "LANG":
		if !a[0].isLiteral() {
			return value{}, errType
		}
		if a[0].kind == vLang {
			return stringValue(a[0].lang), nil
		}
		return stringValue(""), nil
	case "LANGMATCHES":
		if a[0].kind != vString || a[1].kind != vString {
			return value{}, errType
		}
		return boolValue(langMatches(a[0].lex, a[1].lex)), nil
	case "DATATYPE":
		if !a[0].isLiteral() {
			return value{}, errType
		}
		if a[0].kind == vLang {
			return iriValue(rdfNS + "langString"), nil
		}
		return iriValue(a[0].lang), nil
	case "SAMETERM":
		return boolValue(a[0].asTerm() == a[1].asTerm()), nil
	case "ISNUMERIC":
		return boolValue(a[0].isNumeric()), nil
	case "IRI", "URI":
		switch a[0].kind {
		case vIRI:
			return a[0], nil
		case vString:
			iri := a[0].lex
			if r, ok := rdfres.ResolveIRI(ev.base, iri); ok {
				iri = r
			}
			if !hasScheme(iri) || strings.ContainsAny(iri, "<>\"{}|^`\\") || strings.ContainsFunc(iri, func(r rune) bool { return r <= ' ' }) {
				return value{}, errType
			}
			return iriValue(iri), nil
		}
		return value{}, errType
	case "STRLANG":
		if a[0].kind != vString || a[1].kind != vString || !validTag(a[1].lex) {
			return value{}, errType
		}
		return langValue(a[0].lex, tagCase(a[1].lex)), nil
	case "STRDT":
		if a[0].kind != vString || a[1].kind != vIRI {
			return value{}, errType
		}
		return parseValue(string(rdfres.NewLiteral(a[0].lex, "", a[1].lex))), nil
	case "ABS", "CEIL", "FLOOR", "ROUND":
		return rounding(name, &a[0])
	case "CONCAT":
		if slices.ContainsFunc(a, func(v value) bool { return !v.isText() }) {
			return value{}, errType
		}
		return concat(a), nil
	case "STRLEN":
		if !a[0].isText() {
			return value{}, errType
		}
		return intValue(int64(utf8.RuneCountInString(a[0].lex))), nil
	case "UCASE", "LCASE":
		if !a[0].isText() {
			return value{}, errType
		}
		if name == "UCASE" {
			return likeText(&a[0], strings.ToUpper(a[0].lex)), nil
		}
		return likeText(&a[0], strings.ToLower(a[0].lex)), nil
	case "ENCODE_FOR_URI":
		if !a[0].isText() {
			return value{}, errType
		}
		return stringValue(encodeForURI(a[0].lex)), nil
	case "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER":
		if err := textArgs(&a[0], &a[1]); err != nil {
			return value{}, err
		}
		s, t := a[0].lex, a[1].lex
		switch name {
		case "CONTAINS":
			return boolValue(strings.Contains(s, t)), nil
		case "STRSTARTS":
			return boolValue(strings.HasPrefix(s, t)), nil
		case "STRENDS":
			return boolValue(strings.HasSuffix(s, t)), nil
		}
		n := strings.Index(s, t)
		switch {
		case n < 0:
			return stringValue(""), nil
		case name == "STRBEFORE":
			return likeText(&a[0], s[:n]), nil
		}
		return likeText(&a[0], s[n+len(t):]), nil
	case "SUBSTR":
		return substring(a)
	case "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ":
		return datePart(name, &a[0])
	case "MD5", "SHA1", "SHA256", "SHA384", "SHA512":
		if a[0].kind != vString {
			return value{}, errType
		}
		return stringValue(digestText(name, a[0].lex)), nil
	case "REGEX", "REPLACE":
		return ev.regex(name, a)
	}
	if isCast(name) {
		return cast(name, &a[0])
	}
	return value{}, unsupported("the function " + name)
}

func concat(a []value) value {
	var b strings.Builder
	same := len(a) > 0 && a[0].kind == vLang
	for i := range a {
		b.WriteString(a[i].lex)
		same = same && a[i].kind == vLang && a[i].lang == a[0].lang
	}
	if same {
		return langValue(b.String(), a[0].lang)
	}
	return stringValue(b.String())
}

func validTag(s string) bool {
	for i, part := range strings.Split(s, "-") {
		if part == "" {
			return false
		}
		for _, c := range []byte(part) {
			if !isAlpha(c) && (i == 0 || !isDigit(c)) {
				return false
			}
		}
	}
	return true
}

func langMatches(tag, rng string) bool {
	if rng == "*" {
		return tag != ""
	}
	return len(tag) >= len(rng) && strings.EqualFold(tag[:len(rng)], rng) && (len(tag) == len(rng) || tag[len(rng)] == '-')
}

func encodeForURI(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isAlpha(c) || isDigit(c) || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func digestText(name, s string) string {
	switch name {
	case "MD5":
		h := md5.Sum([]byte(s))
		return hex.EncodeToString(h[:])
	case "SHA1":
		h := sha1.Sum([]byte(s))
		return hex.EncodeToString(h[:])
	case "SHA256":
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:])
	case "SHA384":
		h := sha512.Sum384([]byte(s))
		return hex.EncodeToString(h[:])
	}
	h := sha512.Sum512([]byte(s))
	return hex.EncodeToString(h[:])
}

// substring is SUBSTR: positions count characters from 1 (XPath fn:substring).
func substring(a []value) (value, error) {
	if !a[0].isText() || !a[1].isNumeric() || len(a) == 3 && !a[2].isNumeric() {
		return value{}, errType
	}
	round := func(f float64) float64 { return math.Floor(f + 0.5) }
	from := round(a[1].float())
	to := math.Inf(1)
	if len(a) == 3 {
		to = from + round(a[2].float())
	}
	var b strings.Builder
	pos := 1.0
	for _, r := range a[0].lex {
		if pos >= from && pos < to {
			b.WriteRune(r)
		}
		pos++
	}
	return likeText(&a[0], b.String()), nil
}

type compiledRegexp struct {
	re  *regexp.Regexp
	err error
}

// regex is REGEX and REPLACE: XPath patterns, compiled once.
func (ev *evaluator) regex(name string, a []value) (value, error) {
	flags := ""
	n := 2
	if name == "REPLACE" {
		n = 3
	}
	for i := range a {
		if i == 0 && !a[0].isText() || i > 0 && a[i].kind != vString {
			return value{}, errType
		}
	}
	if len(a) > n {
		flags = a[n].lex
	}
	key := flags + "/" + a[1].lex
	c, ok := ev.regexps[key]
	if !ok {
		c = &compiledRegexp{}
		c.re, c.err = compileRegexp(a[1].lex, flags)
		if ev.regexps == nil || len(ev.regexps) > 1000 {
			ev.regexps = map[string]*compiledRegexp{}
		}
		ev.regexps[key] = c
	}
	if c.err != nil {
		return value{}, c.err
	}
	if name == "REGEX" {
		return boolValue(c.re.MatchString(a[0].lex)), nil
	}
	if c.re.MatchString("") {
		return value{}, errType
	}
	with, err := replacement(a[2].lex, strings.Contains(flags, "q"))
	if err != nil {
		return value{}, err
	}
	return likeText(&a[0], c.re.ReplaceAllString(a[0].lex, with)), nil
}

var backReference = regexp.MustCompile(`^(?:[^\\]|\\[^0-9])*\\[1-9]`)

func compileRegexp(pattern, flags string) (*regexp.Regexp, error) {
	opts := ""
	for _, f := range flags {
		switch f {
		case 'i', 's', 'm':
			opts += string(f)
		case 'q':
			pattern = regexp.QuoteMeta(pattern)
		case 'x':
			pattern = strings.Join(strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), "")
		default:
			return nil, errType
		}
	}
	if !strings.Contains(flags, "q") && backReference.MatchString(pattern) {
		return nil, unsupported("a regular expression with back references")
	}
	if opts != "" {
		pattern = "(?" + opts + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errType
	}
	return re, nil
}

// replacement turns $1 and \$ of XPath into Go's syntax.
func replacement(s string, plain bool) (string, error) {
	if plain {
		return strings.ReplaceAll(s, "$", "$$"), nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '\\'):
			i++
			if s[i] == '$' {
				b.WriteString("$$")
			} else {
				b.WriteByte('\\')
			}
		case s[i] == '$' && i+1 < len(s) && isDigit(s[i+1]):
			j := i + 1
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			b.WriteString("${" + s[i+1:j] + "}")
			i = j - 1
		case s[i] == '$' || s[i] == '\\':
			return "", errType
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
