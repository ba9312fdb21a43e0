package resourcesync

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Hashes is a hash attribute. The digests of known algorithms are lower-case hex.
type Hashes struct {
	MD5, SHA1, SHA256 string   // hex, "" if absent
	Other             []string // tokens that cannot be used, as written: unknown algorithms, broken digests
}

// IsZero says that there is no hash at all.
func (h Hashes) IsZero() bool {
	return h.MD5 == "" && h.SHA1 == "" && h.SHA256 == "" && len(h.Other) == 0
}

// String gives the attribute's value: md5, sha-1, sha-256, then the others.
func (h Hashes) String() string {
	var parts []string
	if h.MD5 != "" {
		parts = append(parts, "md5:"+h.MD5)
	}
	if h.SHA1 != "" {
		parts = append(parts, "sha-1:"+h.SHA1)
	}
	if h.SHA256 != "" {
		parts = append(parts, "sha-256:"+h.SHA256)
	}
	return strings.Join(append(parts, h.Other...), " ")
}

// ParseHashes reads a hash attribute: "algorithm:hexdigest", several of them
// separated by white space. An MD5 in base64, as sources before 2017 wrote it, is
// read too.
//
// An unknown algorithm is no error; it is kept in Other. A digest that is not
// what its algorithm gives, a token without a colon and an algorithm that is
// named twice with two digests are errors that name the token; what could be
// read is returned beside them.
func ParseHashes(s string) (Hashes, error) {
	h, _, err := parseHashes(s)
	return h, err
}

// parseHashes also says what was read although it is not by the letter.
func parseHashes(s string) (h Hashes, lapse string, err error) {
	for rest := s; ; {
		var token string
		if token, rest = nextField(rest); token == "" {
			return h, lapse, err
		}
		l, problem := h.add(token)
		if l != "" {
			lapse = l
		}
		if problem != "" {
			h.Other = append(h.Other, token)
			if err == nil {
				err = fmt.Errorf("resourcesync: hash %q: %s", clip(token), problem)
			}
		}
	}
}

// nextField splits off the first word.
func nextField(s string) (word, rest string) {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	n := 0
	for n < len(s) && !isSpace(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

func (h *Hashes) add(token string) (lapse, problem string) {
	algorithm, value, ok := strings.Cut(token, ":")
	if !ok || algorithm == "" || value == "" {
		return "", "want algorithm:hexdigest"
	}
	var slot *string
	var digits int
	switch algorithm {
	case "md5":
		slot, digits = &h.MD5, 32
	case "sha-1":
		slot, digits = &h.SHA1, 40
	case "sha-256":
		slot, digits = &h.SHA256, 64
	default:
		if slot, digits = h.misspelt(algorithm); slot == nil {
			h.Other = append(h.Other, token)
			return "", ""
		}
		lapse = fmt.Sprintf("the algorithms are called md5, sha-1 and sha-256, not %q", clip(algorithm))
	}
	if digits == 32 && len(value) == 24 && strings.HasSuffix(value, "==") {
		if sum, err := base64.StdEncoding.DecodeString(value); err == nil && len(sum) == 16 {
			value, lapse = hex.EncodeToString(sum), "MD5 in base64; want 32 hex digits"
		}
	}
	value, ok = lowerHex(value)
	if len(value) != digits || !ok {
		return "", fmt.Sprintf("want %d hex digits", digits)
	}
	if *slot != "" {
		if *slot != value {
			return "", "the algorithm is named twice, with two digests"
		}
		return "the algorithm is named twice", ""
	}
	*slot = value
	return lapse, ""
}

func (h *Hashes) misspelt(algorithm string) (slot *string, digits int) {
	switch strings.ToLower(algorithm) {
	case "md5":
		return &h.MD5, 32
	case "sha1", "sha-1":
		return &h.SHA1, 40
	case "sha256", "sha-256":
		return &h.SHA256, 64
	}
	return nil, 0
}

// lowerHex gives hex digits in lower case; ok is false if others are among them.
func lowerHex(s string) (_ string, ok bool) {
	seen := byte(0)
	for i := range len(s) {
		seen |= hexByte[s[i]]
	}
	if seen&notHex != 0 {
		return s, false
	}
	if seen&upperHex != 0 {
		s = strings.ToLower(s)
	}
	return s, true
}

const upperHex, notHex = 1, 2

// hexByte tells of each byte what it is: the digits of a hash cannot be foreseen, and a
// branch for each would take far longer.
var hexByte = func() (of [256]byte) {
	for c := range of {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		case c >= 'A' && c <= 'F':
			of[c] = upperHex
		default:
			of[c] = notHex
		}
	}
	return of
}()
