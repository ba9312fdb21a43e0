package sparql

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// authenticator adds credentials to the requests of one endpoint: Basic from the start, Digest (RFC
// 7616: MD5 and SHA-256, qop auth or none) once the store has asked for it. It keeps the challenge,
// so only the first request sends its body twice. Virtuoso refuses Basic without a challenge, and
// gives one to requests without credentials: so such a request is tried then.
type authenticator struct {
	username, password string

	mu        sync.Mutex
	challenge map[string]string // nil: Basic
	bare      bool              // no credentials until there is a challenge
	count     int
}

// expectFrom is the least length of a body sent only after the store has seen the head of the
// request.
const expectFrom = 32 << 10

func (a *authenticator) sign(req *http.Request) {
	if a.username == "" && a.password == "" {
		return
	}
	if req.ContentLength > expectFrom { // a store refusing the credentials may end the connection during the body
		req.Header.Set("Expect", "100-continue")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.challenge == nil && a.bare {
		return
	}
	if a.challenge == nil {
		req.SetBasicAuth(a.username, a.password)
		return
	}
	a.count++
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails (crypto/rand)
	req.Header.Set("Authorization", digestHeader(a.challenge, a.username, a.password, req.Method, req.URL.RequestURI(), hex.EncodeToString(nonce[:]), a.count))
}

// guesses tells whether credentials are sent as Basic unasked.
func (a *authenticator) guesses() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return (a.username != "" || a.password != "") && a.challenge == nil && !a.bare
}

// learn reads the challenges of a 401 answer and tells whether signing the
// request anew can help.
func (a *authenticator) learn(res *http.Response) bool {
	if a.username == "" && a.password == "" {
		return false
	}
	for _, h := range res.Header.Values("WWW-Authenticate") {
		ch := parseChallenge(h)
		if ch == nil || digestHash(ch) == nil {
			continue
		}
		a.mu.Lock()
		used := res.Request != nil && strings.HasPrefix(res.Request.Header.Get("Authorization"), "Digest ")
		again := !used || strings.EqualFold(ch["stale"], "true")
		a.challenge, a.count = ch, 0
		a.mu.Unlock()
		return again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bare = !a.bare && a.challenge == nil && len(res.Header.Values("WWW-Authenticate")) == 0
	return a.bare
}

// parseChallenge reads the parameters of a Digest challenge, nil for another
// scheme.
func parseChallenge(header string) map[string]string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	if !strings.EqualFold(scheme, "Digest") {
		return nil
	}
	ch := map[string]string{}
	for rest = strings.TrimLeft(rest, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		name, value, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		value = strings.TrimLeft(value, " \t")
		if strings.HasPrefix(value, `"`) {
			var b strings.Builder
			i := 1
			for ; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' && i+1 < len(value) {
					i++
				}
				b.WriteByte(value[i])
			}
			ch[strings.ToLower(strings.TrimSpace(name))] = b.String()
			rest = value[min(i+1, len(value)):]
			continue
		}
		v, after, _ := strings.Cut(value, ",")
		ch[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(v)
		rest = after
	}
	if ch["nonce"] == "" {
		return nil
	}
	return ch
}

// digestHash is the hash function of a challenge, nil when it is not known.
func digestHash(ch map[string]string) func() hash.Hash {
	switch strings.ToUpper(ch["algorithm"]) {
	case "", "MD5":
		return md5.New
	case "SHA-256":
		return sha256.New
	}
	return nil
}

// foreignSchemes names the store's authentication if it is unknown here, else "".
func foreignSchemes(h http.Header) string {
	var names []string
	for _, v := range h.Values("WWW-Authenticate") {
		scheme, _, _ := strings.Cut(strings.TrimSpace(v), " ")
		ch := parseChallenge(v)
		if strings.EqualFold(scheme, "Basic") || ch != nil && digestHash(ch) != nil || strings.Contains(strings.ToLower(v), ", basic ") {
			return ""
		}
		if ch != nil {
			scheme += " " + ch["algorithm"]
		}
		names = append(names, scheme)
	}
	return strings.Join(names, " or ")
}

// digestHeader computes the value of Authorization (RFC 7616, section 3.4).
func digestHeader(ch map[string]string, username, password, method, uri, cnonce string, count int) string {
	newHash := digestHash(ch)
	h := func(parts ...string) string {
		d := newHash()
		d.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(d.Sum(nil))
	}
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	ha1, ha2 := h(username, ch["realm"], password), h(method, uri)
	out := fmt.Sprintf("Digest username=%s, realm=%s, nonce=%s, uri=%s", quote(username), quote(ch["realm"]), quote(ch["nonce"]), quote(uri))
	auth := false
	for _, q := range strings.Split(ch["qop"], ",") {
		auth = auth || strings.EqualFold(strings.TrimSpace(q), "auth")
	}
	if auth {
		nc := fmt.Sprintf("%08x", count)
		out += fmt.Sprintf(", response=%q, qop=auth, nc=%s, cnonce=%q", h(ha1, ch["nonce"], nc, cnonce, "auth", ha2), nc, cnonce)
	} else {
		out += fmt.Sprintf(", response=%q", h(ha1, ch["nonce"], ha2))
	}
	if v := ch["algorithm"]; v != "" {
		out += ", algorithm=" + v
	}
	if v := ch["opaque"]; v != "" {
		out += ", opaque=" + quote(v)
	}
	return out
}

// withoutSecrets replaces the password of a store, its Basic credentials, and the secrets in its
// addresses.
func withoutSecrets(e Endpoint) *strings.Replacer {
	var secrets []string
	if e.Password != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(e.Username+":"+e.Password)), e.Password)
	}
	for _, address := range []string{e.Query, e.Update, e.GraphStore} {
		u, err := url.Parse(address)
		if err != nil {
			continue // New refuses it
		}
		for _, f := range strings.Split(u.RawQuery, "&") {
			if name, value, _ := strings.Cut(f, "="); value != "" && webguard.IsSecret(name) {
				secrets = append(secrets, value)
			}
		}
	}
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "xxxxx", url.QueryEscape(s), "xxxxx")
	}
	return strings.NewReplacer(pairs...)
}
