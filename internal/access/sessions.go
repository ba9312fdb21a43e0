package access

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// SessionTime is the life of a session without a request.
const SessionTime = 12 * time.Hour

// session is the signed part of a cookie.
type session struct {
	Key   string `json:"k"` // of the user
	End   int64  `json:"e"` // in seconds since 1970
	Nonce string `json:"n"` // of the session; a longer cookie keeps it
}

// began is when the cookie was made, in seconds since 1970.
func (s session) began() int64 { return s.End - int64(SessionTime/time.Second) }

// Session makes the cookie of a user. It ends with the user's token, with the time, and by Leave.
// It survives a restart.
func (u *Users) Session(user User, now time.Time) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce) // never fails
	return u.sign(session{Key: user.key, Nonce: base64.RawURLEncoding.EncodeToString(nonce)}, now)
}

// sign makes a cookie for the time from now on. The caller holds u.mu.
func (u *Users) sign(s session, now time.Time) (string, error) {
	key, err := u.hashKey(true)
	if err != nil {
		return "", err
	}
	s.End = now.Add(SessionTime).Unix()
	raw, err := json.Marshal(s)
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
	left, err := u.leftSessions()
	return s, err == nil && !left.has(s) && now.Before(time.Unix(s.End, 0))
}

// BySession gives the user of a cookie. When half of its time is over, longer is another cookie of
// the session, with the whole time.
func (u *Users) BySession(cookie string, now time.Time) (user User, longer string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.read(cookie, now)
	if !ok {
		return User{}, "", false
	}
	if c := u.configuredUser(); u.configured != "" && s.Key == c.key {
		user = c
	} else {
		u.refresh()
		r, ok := u.byID[s.Key]
		if !ok {
			return User{}, "", false
		}
		user = r.user()
	}
	if time.Unix(s.End, 0).Sub(now) < SessionTime/2 {
		longer, _ = u.sign(s, now) // without a key there is no session
	}
	return user, longer, true
}

// Leave ends a session, durably: all its cookies, wherever they were copied to.
func (u *Users) Leave(cookie string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.read(cookie, now)
	if !ok {
		return nil
	}
	return locked(u.dir, func() error {
		left, err := readLeft(u.leftFile())
		if err != nil {
			return err
		}
		left.add(s.Nonce, now)
		if err := ownfile.Replace(u.leftFile(), func(w io.Writer) error { return json.NewEncoder(w).Encode(left) }); err != nil {
			return err
		}
		return ownfile.Sync(u.dir)
	})
}

// left is the content of left.json: the sessions that were left.
type left struct {
	Version int `json:"version"`
	// Before ends all cookies made before it, in seconds since 1970.
	Before   int64            `json:"before,omitempty"`
	Sessions map[string]int64 `json:"sessions"` // the end of the last cookie, by nonce
}

const (
	leftVersion = 1
	mostLeft    = 10_000
)

func (l left) has(s session) bool {
	_, is := l.Sessions[s.Nonce]
	return is || s.began() < l.Before
}

// add adds a session, and forgets those with an end before now. With too many of them, it ends the
// sessions of all users instead.
func (l *left) add(nonce string, now time.Time) {
	for old, end := range l.Sessions {
		if end < now.Unix() {
			delete(l.Sessions, old)
		}
	}
	l.Sessions[nonce] = now.Add(SessionTime).Unix()
	if len(l.Sessions) > mostLeft {
		l.Before, l.Sessions = now.Unix()+1, map[string]int64{}
	}
}

func (u *Users) leftFile() string { return filepath.Join(u.dir, "left.json") }

// leftSessions reads the file again after a change. The caller holds u.mu.
func (u *Users) leftSessions() (left, error) {
	now, err := os.Stat(u.leftFile())
	if ownfile.IsAbsent(err) {
		return left{}, nil
	}
	if err == nil && sameFile(u.leftSeen, now) {
		return u.left, nil
	}
	var l left
	if err == nil {
		l, err = readLeft(u.leftFile())
	}
	if err == nil {
		u.left, u.leftSeen = l, now
	}
	return l, err
}

func readLeft(name string) (l left, err error) {
	raw, err := os.ReadFile(name)
	switch {
	case ownfile.IsAbsent(err):
		err = nil
	case err == nil:
		if err = json.Unmarshal(raw, &l); err != nil {
			err = fmt.Errorf("%s is damaged: %w", name, err)
		} else if l.Version > leftVersion {
			err = fmt.Errorf("%s has version %d of a newer rsbridge; this one reads version %d", name, l.Version, leftVersion)
		}
	}
	if l.Version = leftVersion; l.Sessions == nil {
		l.Sessions = map[string]int64{}
	}
	return l, err
}
