package webguard

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// hidden stands for the value of a secret.
const hidden = "xxxxx"

var (
	secretField = regexp.MustCompile(`(?i)(^|[-_.])(access|api|app|auth|client|id|license|private|security|session|shared|subscription|user)?[-_.]?(token|key|secret|passphrase|passw(or)?d|pass|pwd|auth|credentials?|signature|sig)$`)
	tokenField  = regexp.MustCompile(`(?i)^(access[-_]?token|auth[-_]?token|token|api[-_]?key|password|passwd|pwd)$`)
	// tokensInText are fields of addresses in a text, of names that are those of secrets.
	tokensInText = regexp.MustCompile(`(?i)([?&;](?:(?:(?:access|auth|id|session)[-_]?)?token|api[-_]?key|password|passwd|pwd|secret|sig|signature|x-amz-(?:signature|security-token))=)[^&;#\s"'<>()\[\]\\]+`)
	// secretsInText are the fields of secretField in a text.
	secretsInText = regexp.MustCompile(`(?i)([?&;][^=&;?\s"'<>]*(?:token|key|secret|pass|pwd|auth|credential|signature|sig)[^=&;?\s"'<>]*=)[^&;#\s"'<>()\[\]\\]+`)
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

// withoutFields is an address, perhaps a malformed one, without the secrets of its query.
func withoutFields(address string) string {
	before, query, is := strings.Cut(address, "?")
	if !is {
		return address
	}
	query, fragment, is := strings.Cut(query, "#")
	if is {
		fragment = "#" + fragment
	}
	return before + "?" + WithoutFields(query, IsSecret) + fragment
}

// Secrets are those in the query of an address. Requests to its host get them; whoever
// makes them and reads the answers does not.
type Secrets struct {
	host         string
	hide, reveal *strings.Replacer
	longest      int
}

// Hide takes user, password and the secrets of its query out of an address: it can be
// recorded, published and printed then.
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
	s = &Secrets{host: strings.ToLower(u.Hostname())}
	var hide, reveal []string
	secret := strings.Split(u.RawQuery, "&")
	for i, f := range strings.Split(query, "&") {
		if f != secret[i] {
			hide, reveal = append(hide, secret[i], f), append(reveal, f, secret[i])
			s.longest = max(s.longest, len(secret[i]))
		}
	}
	s.hide, s.reveal = strings.NewReplacer(hide...), strings.NewReplacer(reveal...)
	u.RawQuery = query
	return u.String(), user, s
}

// Text hides the secrets in a text.
func (s *Secrets) Text(text string) string {
	if s == nil {
		return text
	}
	return s.hide.Replace(text)
}

// Transport adds the secrets to requests, and hides them in answers that lead on.
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
	if strings.ToLower(r.URL.Hostname()) == t.s.host {
		if query := t.s.reveal.Replace(r.URL.RawQuery); query != r.URL.RawQuery {
			out = r.Clone(r.Context())
			out.URL.RawQuery = query
		}
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		return res, err
	}
	res.Request = r
	for _, name := range []string{"Location", "Content-Location", "Link"} {
		for i, v := range res.Header[name] {
			res.Header[name][i] = t.s.hide.Replace(v)
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
	raw   []byte // is not looked at yet
	ready string
	err   error
	buf   [16 << 10]byte
}

func (h *hiding) Read(p []byte) (int, error) {
	for h.ready == "" {
		if h.err != nil && len(h.raw) == 0 {
			return 0, h.err
		}
		if h.err == nil {
			n, err := h.in.Read(h.buf[:])
			h.raw, h.err = append(h.raw, h.buf[:n]...), err
		}
		text := h.s.hide.Replace(string(h.raw))
		keep := 0 // the begin of a secret may stand at the end
		if h.err == nil {
			keep = min(h.s.longest-1, len(text))
		}
		h.ready, h.raw = text[:len(text)-keep], []byte(text[len(text)-keep:])
	}
	n := copy(p, h.ready)
	h.ready = h.ready[n:]
	return n, nil
}
