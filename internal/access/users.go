package access

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/flock"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Token is a token as it is listed: never with its secret.
type Token struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Sets    []string  `json:"sets,omitempty"` // of a reader
	Created time.Time `json:"created"`
}

// record is a token in the file.
type record struct {
	Token
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

// file is the content of tokens.json.
type file struct {
	Version int      `json:"version"`
	Tokens  []record `json:"tokens"`
}

const (
	fileVersion = 1
	keySize     = 32
	secretBytes = 32
	prefix      = "rsb_" // lets scanners of secrets find a lost token
	mostTokens  = 10_000
)

// Users are the user of the configured token, and those of the tokens in a folder. They are
// read again when the file has changed.
type Users struct {
	dir        string
	configured string

	mu    sync.Mutex // guards the fields below
	key   []byte
	seen  os.FileInfo // of the file as it was read
	byID  map[string]record
	fault error

	left     left
	leftSeen os.FileInfo // of its file as it was read
}

// Open knows the users of a folder; it makes nothing. configured is the token of the
// configuration, "" for none.
func Open(dir, configured string) *Users {
	return &Users{dir: dir, configured: configured}
}

// Folder is the folder of the users in a state.
func Folder(state string) string { return filepath.Join(state, "access") }

func (u *Users) tokens() string { return filepath.Join(u.dir, "tokens.json") }

// Closed tells whether the administration asks for a token: there is one, or the file of tokens
// cannot be read.
func (u *Users) Closed() bool {
	if u.configured != "" {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refresh()
	for _, r := range u.byID {
		if r.Role != Reader {
			return true
		}
	}
	return u.fault != nil
}

// Fault is the error of the files of tokens and of left sessions, nil without one.
func (u *Users) Fault() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refresh()
	_, err := u.leftSessions()
	return errors.Join(u.fault, err)
}

// refresh reads the file again after a change. The caller holds u.mu.
func (u *Users) refresh() {
	now, err := os.Stat(u.tokens())
	switch {
	case ownfile.IsAbsent(err):
		u.seen, u.byID, u.fault = nil, nil, nil
		return
	case err != nil:
		u.seen, u.byID, u.fault = nil, nil, err
		return
	case sameFile(u.seen, now):
		return
	}
	u.seen, u.byID = now, map[string]record{}
	var f file
	if f, u.fault = readTokens(u.tokens()); u.fault != nil {
		return
	}
	for _, r := range f.Tokens {
		u.byID[r.ID] = r
	}
}

// sameFile tells whether a file is as it was when it was read; seen is nil for never.
func sameFile(seen, now os.FileInfo) bool {
	return seen != nil && os.SameFile(seen, now) && seen.ModTime().Equal(now.ModTime()) && seen.Size() == now.Size()
}

func readTokens(name string) (f file, err error) {
	raw, err := os.ReadFile(name)
	if ownfile.IsAbsent(err) {
		return file{Version: fileVersion}, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if f.Version > fileVersion {
		return f, fmt.Errorf("%s has version %d of a newer rsbridge; this one reads version %d", name, f.Version, fileVersion)
	}
	return f, nil
}

// hashKey is the key of hashes; make makes a missing one. The caller holds u.mu.
func (u *Users) hashKey(make bool) ([]byte, error) {
	if u.key != nil {
		return u.key, nil
	}
	name := filepath.Join(u.dir, "key")
	if _, err := os.Stat(name); !make && err != nil {
		return nil, err
	}
	key, err := ownfile.Secret(name, keySize, "remove it, and make all tokens again")
	if err == nil {
		u.key = key
	}
	return key, err
}

func sum(key []byte, purpose, text string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = io.WriteString(m, purpose+"\x00"+text) // a hash takes everything
	return m.Sum(nil)
}

// Prepare makes the key, so that commands of the owner have a secret.
func (u *Users) Prepare() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := u.hashKey(true)
	return err
}

// localKey is the id of the secret of commands.
const localKey = "local"

// LocalName is the name of commands beside a daemon.
const LocalName = "command"

// Local is the secret of commands: whoever may read the folder may use it. Without a key it is "".
func Local(dir string) string {
	u := Open(dir, "")
	key, err := u.hashKey(false)
	if err != nil {
		return ""
	}
	return prefix + localKey + "_" + hex.EncodeToString(sum(key, "local", ""))
}

// ByToken gives the user of a token.
func (u *Users) ByToken(secret string) (User, bool) {
	if u.configured != "" {
		given, want := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(u.configured))
		if hmac.Equal(given[:], want[:]) {
			return u.configuredUser(), true
		}
	}
	id, _, ok := strings.Cut(strings.TrimPrefix(secret, prefix), "_")
	if !ok || !strings.HasPrefix(secret, prefix) {
		return User{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refresh()
	key, err := u.hashKey(false)
	if err != nil {
		return User{}, false
	}
	if id == localKey {
		local := prefix + localKey + "_" + hex.EncodeToString(sum(key, "local", ""))
		return User{Name: LocalName, Role: Admin, key: id}, hmac.Equal([]byte(secret), []byte(local))
	}
	r, known := u.byID[id]
	hash, err := hex.DecodeString(r.Hash)
	if !known || err != nil || !hmac.Equal(sum(key, "token", secret), hash) {
		return User{}, false
	}
	return r.user(), true
}

func (r record) user() User { return User{Name: r.Name, Role: r.Role, Sets: r.Sets, key: r.ID} }

// configuredUser is the user of the configured token; its key changes with the token.
func (u *Users) configuredUser() User {
	digest := sha256.Sum256([]byte("configured\x00" + u.configured))
	return User{Name: "token_file", Role: Admin, key: "configured-" + hex.EncodeToString(digest[:8])}
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Errors of the tokens.
var (
	ErrName    = errors.New("is no name: letters, digits, -, _ and ., at most 64")
	ErrTaken   = errors.New("there is a token of this name: revoke it first, or choose another name")
	ErrUnknown = errors.New("there is no token of this name")
)

// Create makes a token and gives its secret, known to nobody afterwards.
func (u *Users) Create(t Token) (secret string, err error) {
	if !nameForm.MatchString(t.Name) {
		return "", fmt.Errorf("%q %w", t.Name, ErrName)
	}
	random := make([]byte, secretBytes)
	id := make([]byte, 6)
	_, _ = rand.Read(random) // never fails
	_, _ = rand.Read(id)
	r := record{Token: t, ID: hex.EncodeToString(id)}
	secret = prefix + r.ID + "_" + base64.RawURLEncoding.EncodeToString(random)
	return secret, u.change(func(f *file, key []byte) error {
		for _, old := range f.Tokens {
			if old.Name == t.Name {
				return fmt.Errorf("token %s: %w", t.Name, ErrTaken)
			}
		}
		if len(f.Tokens) >= mostTokens {
			return fmt.Errorf("there are %d tokens already", mostTokens)
		}
		r.Hash = hex.EncodeToString(sum(key, "token", secret))
		f.Tokens = append(f.Tokens, r)
		return nil
	})
}

// Revoke ends a token, and its sessions.
func (u *Users) Revoke(name string) error {
	return u.change(func(f *file, _ []byte) error {
		before := len(f.Tokens)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(r record) bool { return r.Name == name })
		if len(f.Tokens) == before {
			return fmt.Errorf("token %s: %w", name, ErrUnknown)
		}
		return nil
	})
}

// List gives all tokens by name.
func (u *Users) List() ([]Token, error) {
	f, err := readTokens(u.tokens())
	out := []Token{}
	for _, r := range f.Tokens {
		out = append(out, r.Token)
	}
	slices.SortFunc(out, func(a, b Token) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// change changes the file whole or not at all; other processes wait meanwhile.
func (u *Users) change(do func(f *file, key []byte) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return locked(u.dir, func() error {
		key, err := u.hashKey(true)
		if err != nil {
			return err
		}
		f, err := readTokens(u.tokens())
		if err != nil {
			return err
		}
		if err := do(&f, key); err != nil {
			return err
		}
		f.Version = fileVersion
		if err := ownfile.Replace(u.tokens(), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(f)
		}); err != nil {
			return err
		}
		return ownfile.Sync(u.dir)
	})
}

// locked works alone among all processes in a folder.
func locked(dir string, work func() error) error {
	if err := ownfile.MkdirAll(dir); err != nil {
		return ownfile.Forbidden(err, os.Geteuid())
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, ownfile.FileMode)
	if err != nil {
		return ownfile.Forbidden(err, os.Geteuid())
	}
	defer f.Close()
	if err := flock.Lock(f); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return work()
}
