package webguard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hidden stands for the value of a secret.
const hidden = "xxxxx"

// A name with one of these words is a secret's. key, auth, pass and sig are parts of other words
// too (keyword, author): they count at the end of a name or as a word.
var (
	secretField = regexp.MustCompile(`(?i)token|secret|passw|passphrase|pwd|credential|signature|auth[-_.]?code|(key|auth|pass)([-_.]?id)?$|(^|[-_.])(key|auth|pass|sig)([-_.]|$)`)
	tokenField  = regexp.MustCompile(`(?i)^(access[-_]?token|auth[-_]?token|token|api[-_]?key|password|passwd|pwd)$`)
	// tokensInText are fields of addresses in a text, named as secrets and nothing else.
	tokensInText = regexp.MustCompile(`(?i)((?:[?&;]|%(?:25)*(?:3f|26|3b))(?:(?:(?:access|auth|id|session)[-_]?)?token|api[-_]?key|password|passwd|pwd|secret|sig|signature|x-amz-(?:signature|security-token))(?:=|%(?:25)*3d))[^&;#\s"'<>()\[\]\\]+`)
	// fieldInText is any field of an address in a text: its name and its value.
	fieldInText = regexp.MustCompile(`[?&;]([^=&;?\s"'<>]+)=([^&;#\s"'<>()\[\]\\]+)`)
)

// IsSecret tells whether the field of a query may hold a secret, by its name.
func IsSecret(field string) bool { return secretField.MatchString(field) }

// IsToken tells whether the field of a query holds a secret and names nothing else.
func IsToken(field string) bool { return tokenField.MatchString(field) }

// WithoutFields is the query of an address with the values of some fields hidden.
func WithoutFields(query string, hide func(name string) bool) string {
	fields := strings.Split(query, "&")
	for i, f := range fields {
		if name, value, is := strings.Cut(f, "="); is && value != "" && hide(name) {
			fields[i] = name + "=" + hidden
		}
	}
	return strings.Join(fields, "&")
}

// withQuery is an address, perhaps a malformed one, with its query changed; "" drops it.
func withQuery(address string, change func(query string) string) string {
	before, query, is := strings.Cut(address, "?")
	if !is {
		return address
	}
	query, fragment, is := strings.Cut(query, "#")
	if is {
		fragment = "#" + fragment
	}
	changed := change(query)
	if changed != "" || query == "" {
		before += "?"
	}
	return before + changed + fragment
}

// withoutFields is an address without the secrets of its query.
func withoutFields(address string) string {
	return withQuery(address, func(query string) string { return WithoutFields(query, IsSecret) })
}

// withoutTokens is a text without the tokens in its addresses.
func withoutTokens(text string) string { return tokensInText.ReplaceAllString(text, "${1}"+hidden) }

// withoutFieldsInText is a text without the secrets in the queries of its addresses.
func withoutFieldsInText(text string) string {
	var out strings.Builder
	done := 0
	for _, m := range fieldInText.FindAllStringSubmatchIndex(text, -1) {
		if IsSecret(text[m[2]:m[3]]) {
			out.WriteString(text[done:m[4]] + hidden)
			done = m[5]
		}
	}
	return out.String() + text[done:]
}

// Secrets are those in the query of an address. Requests to its host get them; whoever
// makes them and reads the answers does not.
type Secrets struct {
	home    *url.URL
	fields  *regexp.Regexp    // a field with its secret, and the byte before it
	longest int               // of fields, in bytes
	reveal  map[string]string // fields by their placeholders
}

// Hide takes user, password and the secrets of its query out of an address: it can be
// recorded, published and printed then. s is nil if its query has no secret.
func Hide(address string) (shown string, user *url.Userinfo, s *Secrets) {
	shown, user = WithoutUser(address)
	u, err := url.Parse(shown)
	if err != nil || u.RawQuery == "" {
		return shown, user, nil
	}
	query := WithoutFields(u.RawQuery, IsSecret)
	if query == u.RawQuery {
		return shown, user, nil
	}
	home := *u
	s = &Secrets{home: &home, reveal: map[string]string{}}
	var fields []string
	secret := strings.Split(u.RawQuery, "&")
	for i, f := range strings.Split(query, "&") {
		if f != secret[i] {
			fields, s.reveal[f] = append(fields, regexp.QuoteMeta(secret[i])), secret[i]
			s.longest = max(s.longest, len(secret[i])+1)
		}
	}
	s.fields = regexp.MustCompile("[?&;](?:" + strings.Join(fields, "|") + ")")
	s.fields.Longest()
	u.RawQuery = query
	return u.String(), user, s
}

// WithoutHidden is an address without the fields whose values Hide took out: nobody else can
// follow it with them.
func WithoutHidden(address string) string {
	return withQuery(address, func(query string) string {
		return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(f string) bool {
			name, value, _ := strings.Cut(f, "=")
			return value == hidden && IsSecret(name)
		}), "&")
	})
}

// hide is the beginning of a text without the secrets, and the rest of the text. A field is hidden
// whole or not at all. If more may follow, the rest holds the undecided part.
func (s *Secrets) hide(text string, more bool) (shown, rest string) {
	end := len(text)
	if more {
		end = max(0, len(text)-s.longest)
	}
	var out strings.Builder
	done := 0
	for _, m := range s.fields.FindAllStringIndex(text, -1) {
		if m[0] >= end {
			break
		}
		if m[1] == len(text) || strings.IndexByte("&;#\"'<>()[]\\ \t\r\n", text[m[1]]) >= 0 {
			name := strings.IndexByte(text[m[0]:], '=') + m[0]
			out.WriteString(text[done:name+1] + hidden)
			done = m[1]
		}
	}
	end = max(end, done)
	return out.String() + text[done:end], text[end:]
}

// atHome tells whether the secrets are for this address: those of its origin, or the same
// host by https instead of http.
func (s *Secrets) atHome(u *url.URL) bool {
	h := s.home
	return strings.EqualFold(u.Hostname(), h.Hostname()) &&
		(u.Scheme == h.Scheme && Port(u) == Port(h) || h.Scheme == "http" && Port(h) == "80" && u.Scheme == "https" && Port(u) == "443")
}

// Digest tells secrets from others, to nobody who does not know them.
func (s *Secrets) Digest(salt string) string {
	if s == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(salt + strings.Join(slices.Sorted(maps.Values(s.reveal)), "&")))
	return hex.EncodeToString(sum[:8])
}

// Transport adds the secrets to requests, and hides them in the Location and Link headers of
// responses.
func (s *Secrets) Transport(next http.RoundTripper) http.RoundTripper {
	if s == nil {
		return next
	}
	return revealing{s, next}
}

type revealing struct {
	s    *Secrets
	next http.RoundTripper
}

func (t revealing) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r
	if t.s.atHome(r.URL) {
		out = r.Clone(r.Context())
		fields := strings.Split(r.URL.RawQuery, "&")
		for i, f := range fields {
			fields[i] = cmp.Or(t.s.reveal[f], f)
		}
		out.URL.RawQuery = strings.Join(fields, "&")
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		return res, err
	}
	res.Request = r
	for _, name := range []string{"Location", "Content-Location", "Link"} {
		for i, v := range res.Header[name] {
			res.Header[name][i], _ = t.s.hide(v, false)
		}
	}
	return res, nil
}

// Reader hides the secrets in a document.
func (s *Secrets) Reader(r io.Reader) io.Reader {
	if s == nil {
		return r
	}
	return &hiding{s: s, in: r}
}

type hiding struct {
	s     *Secrets
	in    io.Reader
	raw   string // undecided yet
	ready string
	err   error
	buf   [16 << 10]byte
}

func (h *hiding) Read(p []byte) (int, error) {
	for h.ready == "" {
		if h.err != nil && h.raw == "" {
			return 0, h.err
		}
		if h.err == nil {
			var n int
			n, h.err = h.in.Read(h.buf[:])
			h.raw += string(h.buf[:n])
		}
		h.ready, h.raw = h.s.hide(h.raw, h.err == nil)
	}
	n := copy(p, h.ready)
	h.ready = h.ready[n:]
	return n, nil
}
