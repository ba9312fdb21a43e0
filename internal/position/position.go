// Package position is how a mirror reports its position in a source's log: a small JSON document,
// signed with a key of the mirror.
package position

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a report.
const (
	MostBytes  = 4 << 10
	mostName   = 64      // runes
	mostNumber = 1 << 53 // JSON numbers are exact up to it
)

// ContentType of a report.
const ContentType = "application/json"

// Report is where a mirror stands.
type Report struct {
	To       string    `json:"to"`     // its own address
	Mirror   string    `json:"mirror"` // its name, for people
	Time     time.Time `json:"time"`   // by the mirror's clock
	Sequence uint64    `json:"sequence"`
	Pending  uint64    `json:"pending"` // resources before it, not applied
	InSync   bool      `json:"in_sync"`
}

// Key is who signs: an Ed25519 key, in the form for people.
type Key string

// sealed is a report with its signature over exactly these bytes.
type sealed struct {
	Report    json.RawMessage `json:"report"`
	Key       Key             `json:"key"`
	Signature []byte          `json:"signature"`
}

// KeyOf makes the key of a mirror from a secret of its state, another for each mirror.
func KeyOf(secret []byte, mirror string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "rsbridge position report of "+mirror, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Name is the public part of a key.
func Name(k ed25519.PrivateKey) Key {
	return Key(base64.RawURLEncoding.EncodeToString(k.Public().(ed25519.PublicKey)))
}

// Check tells whether it has the form of a key.
func (k Key) Check() error {
	_, err := k.public()
	return err
}

func (k Key) public() (ed25519.PublicKey, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(k))
	if err != nil || len(raw) != ed25519.PublicKeySize || Key(base64.RawURLEncoding.EncodeToString(raw)) != k { // line breaks are passed over
		return nil, fmt.Errorf("%.50q is no key of a mirror", string(k))
	}
	return raw, nil
}

// Seal writes a report.
func Seal(r Report, by ed25519.PrivateKey) ([]byte, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed{Report: raw, Key: Name(by), Signature: ed25519.Sign(by, raw)})
}

// ErrForged comes for a report without the signature of its key.
var ErrForged = errors.New("the signature is not of its key, or of another report")

// Open reads a report, and proves the signature. The key is told with any error behind its form.
func Open(body []byte) (r Report, by Key, err error) {
	var s sealed
	if err := strict(body, &s); err != nil {
		return r, "", err
	}
	public, err := s.Key.public()
	if err != nil {
		return r, "", err
	}
	if !ed25519.Verify(public, s.Report, s.Signature) {
		return r, s.Key, ErrForged
	}
	if err := strict(s.Report, &r); err != nil {
		return r, s.Key, err
	}
	if r.Sequence > mostNumber || r.Pending > mostNumber {
		return r, s.Key, fmt.Errorf("no report of a position: a number is above %d", uint64(mostNumber))
	}
	return r, s.Key, checkName(r.Mirror)
}

func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("no report of a position: %w", err)
	}
	if d.More() {
		return errors.New("no report of a position: something follows it")
	}
	return nil
}

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > mostName || !utf8.ValidString(name) {
		return fmt.Errorf("the name of the mirror has %d characters, want 1 to %d", n, mostName)
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("the name of the mirror has the character %U", c)
		}
	}
	return nil
}
