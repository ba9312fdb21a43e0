package webguard

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Masked is an address for messages, without its user, its password and the secrets of its
// query, also a malformed one.
func Masked(address string) string {
	return withoutTokens(withoutFields(maskUsers(address, true)))
}

// MaskedText is a text without the users, passwords and tokens of the addresses in it.
func MaskedText(text string) string {
	if !strings.ContainsAny(text, signs) {
		return withoutTokens(text)
	}
	return withoutTokens(maskUsers(quoted.ReplaceAllStringFunc(text, func(s string) string {
		if inside := s[1 : len(s)-1]; addressInQuotes.MatchString(inside) {
			return `"` + maskUsers(inside, true) + `"`
		}
		return s
	}), false))
}

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// addressInQuotes is an address with a user, perhaps with blanks in its password: its first
	// word has a colon inside.
	addressInQuotes = regexp.MustCompile(`^\s*[^\s:]*:\S`)
)

// MaskedSetting is MaskedText of a message about settings. It hides fields like key too; in the
// address of a document such a field is no secret.
func MaskedSetting(text string) string {
	return withoutFieldsInText(MaskedText(text))
}

var (
	// opener stands before a host, or before the user of one. Schemes may be misspelt or doubled,
	// slashes missing or turned round.
	opener = regexp.MustCompile(`(?i)(?:^|[^a-z0-9._-]|https?)[/\\]{2,}|:[/\\]`)
	// properHost has a port behind its colon, and no password.
	properHost = regexp.MustCompile(`^(?:[^:]*|\[[^\]]*\])(?::[0-9]*)?$`)
	// blankPassword is a user and a password with blanks, at the end of a line.
	blankPassword = regexp.MustCompile(`(?i)(?:(?:^|[^a-z0-9._-]|https?)[/\\]{2,}|:[/\\])([^\s/?#:@"'<>]*:[0-9]*[^/?#@\n0-9:][^/?#@\n]*)$`)
	// escaped is a delimiter written as bytes in hexadecimal, perhaps more than once, or a wide one.
	escaped = regexp.MustCompile(`(?i)%(?:25)*(40|3a|2f|5c)|[＠﹫：／＼]`)
	meant   = strings.NewReplacer("40", "@", "＠", "@", "﹫", "@", "3a", ":", "：", ":", "2f", `\`, "5c", `\`, "／", `\`, "＼", `\`)
)

// signs: behind each user stands one of them.
const signs = "@%＠﹫"

// maskUsers replaces the users and passwords before every @ by "...". A whole text is one
// address; otherwise blanks, quotes and angle brackets end one.
func maskUsers(text string, whole bool) string {
	if !strings.ContainsAny(text, signs) {
		return text
	}
	users := usersIn(text, whole)
	if found := escaped.FindAllStringSubmatchIndex(text, -1); found != nil {
		plain, at := unescape(text, found)
		for _, u := range usersIn(plain, whole) {
			users = append(users, span{at[u.begin], at[u.end]})
		}
		slices.SortFunc(users, func(a, b span) int { return a.begin - b.begin })
	}
	var out strings.Builder
	done := 0
	for i, u := range users {
		if i == 0 || u.begin >= done {
			out.WriteString(text[done:u.begin] + "...")
		}
		done = max(done, u.end)
	}
	return out.String() + text[done:]
}

// span is a part of a text.
type span struct{ begin, end int }

// unescape is a text with its delimiters written plainly, and the place in the text of each of
// its bytes.
func unescape(text string, found [][]int) (plain string, at []int) {
	var out strings.Builder
	copied := func(from, to int) {
		for out.WriteString(text[from:to]); from < to; from++ {
			at = append(at, from)
		}
	}
	done := 0
	for _, m := range found {
		what := text[m[0]:m[1]]
		if m[2] >= 0 {
			what = strings.ToLower(text[m[2]:m[3]])
		}
		copied(done, m[0])
		out.WriteString(meant.Replace(what))
		at, done = append(at, m[0]), m[1]
	}
	copied(done, len(text))
	return out.String(), append(at, len(text))
}

// Bounds for hostile texts. Behind mostUsers a text is masked whole.
const (
	longestUser = 4096
	mostUsers   = 1000
)

// usersIn are the users in a text, in order and apart. One with a password ends before its @.
func usersIn(text string, whole bool) (users []span) {
	word, line, seen := 0, 0, 0 // begin there; the number of @
	for i := range len(text) {
		switch c := text[i]; {
		case c == '@':
			if seen++; seen > mostUsers {
				return append(users, span{i, len(text)})
			}
			word, line = max(word, i-longestUser), max(line, i-longestUser)
			begin := userBefore(text[word:i])
			if begin >= 0 {
				begin += word
			} else if m := blankPassword.FindStringSubmatchIndex(text[line:i]); m != nil && !whole {
				begin = line + m[2]
			} else {
				continue
			}
			for len(users) > 0 && begin < users[len(users)-1].end { // a password with an @
				begin = min(begin, users[len(users)-1].begin)
				users = users[:len(users)-1]
			}
			users = append(users, span{begin, i})
		case whole:
		case c == '\n':
			word, line = i+1, i+1
		case strings.IndexByte(" \t\r\"<>", c) >= 0:
			word = i + 1
		}
	}
	return users
}

// userBefore tells where the user begins in an address up to an @, -1 for none. Behind a host
// and its port an @ is part of a path, unless a colon stands in the path too.
func userBefore(address string) int {
	openers := opener.FindAllStringIndex(address, -1)
	if openers == nil {
		if !strings.Contains(address, ":") {
			return -1 // a mail address
		}
		openers = [][]int{{0, 0}}
	}
	path := ""
	for i, o := range openers {
		path = address[o[1]:]
		host, slash := path, strings.IndexAny(path, "/?#")
		if slash >= 0 {
			host = path[:slash]
		}
		switch {
		case slash >= 0 && properHost.MatchString(host) && !strings.Contains(host, "@"):
		case o[1] == 0:
			return label(host)
		case i == 0 && strings.Contains(address[:o[0]], ":"): // the password has a slash
			return 0
		default:
			return o[1]
		}
	}
	path = path[strings.IndexAny(path, "/?#"):]
	if !strings.Contains(path, ":") {
		return -1
	}
	return len(address) - len(path) + label(path)
}

// label is the length of what stands before a user and a colon.
func label(value string) int {
	name, _, _ := strings.Cut(value, ":")
	return strings.LastIndexAny(name, "/?#=&;,([{") + 1
}

// invalidPart is the part of an address quoted by net/url. In a malformed address it may be the
// password.
var invalidPart = regexp.MustCompile(`invalid (port|URL escape) "(?:\\.|[^"\\])*"`)

// MaskedError is an error without the users and passwords of addresses. A url.Error in it
// is changed: callers take its cause out.
func MaskedError(err error) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		u.URL, u.Err = MaskedText(u.URL), MaskedError(u.Err)
	}
	if text := MaskedText(err.Error()); text != err.Error() {
		return &maskedError{invalidPart.ReplaceAllString(text, "invalid $1"), err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// Parse is url.Parse with errors without users and passwords. Those of url.Parse quote
// parts of the address, perhaps of a password.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err == nil && schemeIsHost(u):
		return nil, fmt.Errorf("%q has its scheme twice", Masked(address))
	case err == nil:
		return u, nil
	case Masked(address) != address:
		return nil, fmt.Errorf("%q is no address (a password in it writes / : @ %% as %%2F %%3A %%40 %%25)", Masked(address))
	}
	return nil, err
}

// schemeIsHost tells of http://http://host: nobody means a host of that name.
func schemeIsHost(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return (host == "http" || host == "https") && (strings.HasSuffix(u.Host, ":") || strings.HasPrefix(u.Path, "//"))
}

// badScheme begins an address with a misspelt scheme, or without a host.
var badScheme = regexp.MustCompile(`(?i)^(?:[a-z][a-z0-9+-]*[:;][/\\]|https?[/\\]{2}|https?:(?:[^0-9]|$)|[/\\])`)

// WithScheme is an address with http:// before it, unless it has a scheme.
func WithScheme(address string) (string, error) {
	switch {
	case strings.Contains(address, "://"):
		return address, nil
	case badScheme.MatchString(address):
		return "", fmt.Errorf("%q is no address: write http://HOST/ or https://HOST/", Masked(address))
	}
	return "http://" + address, nil
}
