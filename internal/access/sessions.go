package access

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// SessionTime is the life of a session without a request.
const SessionTime = 12 * time.Hour

// session is the signed part of a cookie.
type session struct {
	Key   string `json:"k"` // of the user
	End   int64  `json:"e"` // in seconds since 1970
	Nonce string `json:"n"`
}

// Session makes the cookie of a user. It ends with the user's token, with the time, and by Leave.
// It survives a restart.
func (u *Users) Session(user User, now time.Time) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key, err := u.hashKey(true)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce) // never fails
	raw, err := json.Marshal(session{Key: user.key, End: now.Add(SessionTime).Unix(), Nonce: base64.RawURLEncoding.EncodeToString(nonce)})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text + "." + base64.RawURLEncoding.EncodeToString(sum(key, "session", text)), nil
}

// read checks the signature and the end of a session. The caller holds u.mu.
func (u *Users) read(cookie string, now time.Time) (s session, ok bool) {
	text, mac, found := strings.Cut(cookie, ".")
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if !found || err != nil {
		return s, false
	}
	key, err := u.hashKey(false)
	if err != nil || !hmac.Equal(given, sum(key, "session", text)) {
		return s, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	_, left := u.left[s.Nonce]
	return s, !left && now.Before(time.Unix(s.End, 0))
}

// BySession gives the user of a cookie. old tells that half of its time is over.
func (u *Users) BySession(cookie string, now time.Time) (user User, old, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.read(cookie, now)
	if !ok {
		return User{}, false, false
	}
	old = time.Unix(s.End, 0).Sub(now) < SessionTime/2
	if c := u.configuredUser(); u.configured != "" && s.Key == c.key {
		return c, old, true
	}
	u.refresh()
	r, ok := u.byID[s.Key]
	return r.user(), old, ok
}

// Leave ends a session in this process; a restart forgets that, so the cookie should go too.
func (u *Users) Leave(cookie string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.read(cookie, now)
	if !ok {
		return
	}
	for nonce, end := range u.left {
		if now.After(end) {
			delete(u.left, nonce)
		}
	}
	u.left[s.Nonce] = time.Unix(s.End, 0)
}
