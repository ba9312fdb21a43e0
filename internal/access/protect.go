package access

import (
	"net/http"
	"net/url"
	"strings"
)

// Refuse writes an answer for a reader without leave, with a hint or "". It must forbid caches to keep it.
type Refuse func(w http.ResponseWriter, r *http.Request, status int, reason, hint string)

// Protect lets only readers with a token, by bearer or basic authentication, at the addresses of
// protected sets. bases gives the base URLs of all sets: a proxy may take their paths away, or leave
// them. Wrong tokens are slowed, and refused if too many of them wait. refuse writes 401, 403 and 429.
func Protect(next http.Handler, refuse Refuse, u *Users, protected map[string]bool, bases func() []string, wrong *Guesses) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sets []string
		for _, name := range firsts(r.URL.EscapedPath(), bases()) {
			if protected[name] {
				sets = append(sets, name)
			}
		}
		if len(sets) == 0 || r.Method == http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		user, known := reader(u, r)
		if given := r.Header.Get("Authorization"); !known && given != "" && !wrong.Failed(r.Context(), r.RemoteAddr) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "10")
			refuse(w, r, http.StatusTooManyRequests, "Too many wrong tokens came from this address.", "Wait, then send the right one.")
			return
		}
		for _, set := range sets {
			if !known || !user.May(set) && user.key != localKey {
				h := w.Header()
				h.Set("Access-Control-Allow-Origin", "*")
				if known {
					refuse(w, r, http.StatusForbidden, "This token is not for the set "+set+".", "")
					return
				}
				h.Add("WWW-Authenticate", `Bearer realm="`+set+`"`)
				h.Add("WWW-Authenticate", `Basic realm="`+set+`", charset="UTF-8"`)
				refuse(w, r, http.StatusUnauthorized, "The set "+set+" is for readers with a token.", "Send Authorization: Bearer TOKEN, or the token as the password of its name.")
				return
			}
		}
		w.Header().Add("Vary", "Authorization")
		next.ServeHTTP(&private{ResponseWriter: w}, r)
	})
}

// firsts are the first segments of a path below the root and below the bases.
func firsts(path string, bases []string) []string {
	first := func(rest string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		return name
	}
	out := []string{first(path)}
	for _, base := range bases {
		if at, err := url.Parse(base); err == nil && at.Path != "" {
			if rest, below := strings.CutPrefix(path, at.EscapedPath()); below && strings.HasPrefix(rest, "/") {
				out = append(out, first(rest))
			}
		}
	}
	return out
}

func reader(u *Users, r *http.Request) (User, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return u.ByToken(strings.TrimLeft(token, " "))
	}
	if name, token, ok := r.BasicAuth(); ok {
		user, known := u.ByToken(token)
		return user, known && name == user.Name
	}
	return User{}, false
}

// private keeps answers out of shared caches.
type private struct {
	http.ResponseWriter
	written bool
}

func (p *private) WriteHeader(status int) {
	if h := p.Header(); !p.written {
		p.written = true
		h.Set("Cache-Control", strings.ReplaceAll(h.Get("Cache-Control"), "public", "private"))
		if h.Get("Cache-Control") == "" {
			h.Set("Cache-Control", "private")
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *private) Write(b []byte) (int, error) {
	if !p.written {
		p.WriteHeader(http.StatusOK)
	}
	return p.ResponseWriter.Write(b)
}

// Flush is for writers that look for http.Flusher.
func (p *private) Flush() { _ = http.NewResponseController(p.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (p *private) Unwrap() http.ResponseWriter { return p.ResponseWriter }
