package resourcesync

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Hashes is a hash attribute. The digests of known algorithms are lower-case hex.
type Hashes struct {
	MD5, SHA1, SHA256 string   // hex, "" if absent
	Other             []string // of unknown algorithms: "algorithm:digest"
	Broken            []string // unreadable tokens, as written
}

// IsZero tells whether there is no hash at all.
func (h Hashes) IsZero() bool {
	return h.MD5 == "" && h.SHA1 == "" && h.SHA256 == "" && len(h.Other)+len(h.Broken) == 0
}

// String gives the attribute's value: md5, sha-1, sha-256, the others, then unreadable tokens.
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
	return strings.Join(append(append(parts, h.Other...), h.Broken...), " ")
}

// ParseHashes reads a hash attribute: "algorithm:hexdigest", several of them separated by white
// space. It also reads other unambiguous spellings: base64 and base64url, digests without their
// algorithm, commas and semicolons between them, the forms of Digest headers, ni: addresses and
// integrity attributes.
//
// An unknown algorithm is no error. A digest of the wrong form for its algorithm, a token without a
// digest, and an algorithm with two different digests are errors. The error names the token; the
// readable hashes are returned beside it.
func ParseHashes(s string) (Hashes, error) {
	h, _, err := parseHashes(s)
	return h, err
}

// parseHashes also names the first spelling read leniently.
func parseHashes(s string) (h Hashes, lapse string, err error) {
	h.Read(s, func(token, l, problem string) {
		if l != "" {
			lapse = l
		}
		if problem != "" {
			h.Broken = append(h.Broken, token)
			if err == nil {
				err = fmt.Errorf("resourcesync: hash %q: %s", clip(token), problem)
			}
		}
	})
	return h, lapse, err
}

// Read adds the digests of a hash attribute and calls each with its tokens. lapse names a spelling
// read leniently, problem the reason against reading a token.
func (h *Hashes) Read(s string, each func(token, lapse, problem string)) {
	for token, rest := nextHash(s); token != ""; token, rest = nextHash(rest) {
		lapse, problem := h.add(token)
		each(token, lapse, problem)
	}
}

// nextHash splits off the first token. A lone algorithm takes the word behind it: "sha-256:
// 01ba...".
func nextHash(s string) (token, rest string) {
	word, rest := nextField(s)
	if word == "" || len(word) > maxAlgorithm {
		return word, rest
	}
	if _, value, known := spelling(word); !known || value != "" {
		return word, rest
	}
	value, more := nextField(rest)
	if value == ":" || value == "=" {
		value, more = nextField(more)
	}
	if _, _, known := spelling(value); value == "" || known {
		return word, rest
	}
	return word + ":" + value, more
}

// nextField splits off the first word.
func nextField(s string) (word, rest string) {
	for s != "" && (isSpace(s[0]) || s[0] == ',' || s[0] == ';') {
		s = s[1:]
	}
	n := 0
	for n < len(s) && !isSpace(s[n]) && s[n] != ',' && s[n] != ';' {
		n++
	}
	return s[:n], s[n:]
}

// algorithm is a verified hash algorithm.
type algorithm struct {
	name  string
	bytes int
}

var algorithms = [...]algorithm{{"md5", 16}, {"sha-1", 20}, {"sha-256", 32}}

func (h *Hashes) slot(a *algorithm) *string {
	switch a.bytes {
	case 16:
		return &h.MD5
	case 20:
		return &h.SHA1
	}
	return &h.SHA256
}

func (h *Hashes) add(token string) (lapse, problem string) {
	name, value, _ := strings.Cut(token, ":")
	for i := range algorithms {
		if a := &algorithms[i]; a.name == name {
			if digest, ok := lowerHex(value); ok && len(digest) == 2*a.bytes {
				return h.set(a, digest, "")
			}
		}
	}
	return h.addOdd(token)
}

func (h *Hashes) set(a *algorithm, digest, lapse string) (_, problem string) {
	slot := h.slot(a)
	switch *slot {
	case "":
		*slot = digest
		return lapse, ""
	case digest:
		return "the algorithm is named twice", ""
	}
	return "", "the algorithm is named twice, with two digests"
}

// addOdd reads other spellings than "algorithm:hexdigest".
func (h *Hashes) addOdd(token string) (lapse, problem string) {
	a, value, known := spelling(token)
	switch {
	case !known && value != "": // an algorithm not verified here
		h.Other = append(h.Other, value)
		return "", ""
	case !known:
		for i := range algorithms {
			if digest, ok := bareDigest(token, algorithms[i].bytes); ok {
				return h.set(&algorithms[i], digest, "no algorithm is named; it is read as "+algorithms[i].name)
			}
		}
		return "", "want algorithm:hexdigest"
	case value == "":
		return "", "want algorithm:hexdigest"
	}
	digest, form, ok := decodeDigest(value, a.bytes)
	switch {
	case !ok:
		return "", fmt.Sprintf("want %d hex digits", 2*a.bytes)
	case form != "":
		lapse = fmt.Sprintf("%s in %s; want %d hex digits", strings.ToUpper(a.name), form, 2*a.bytes)
	case !strings.HasPrefix(token, a.name+":"):
		lapse = fmt.Sprintf("want %s:hexdigest, not %q", a.name, clip(strings.TrimSuffix(token, value)))
	}
	return h.set(a, digest, lapse)
}

// maxAlgorithm is the length of the longest name of an algorithm, with its punctuation.
const maxAlgorithm = 32

// spelling splits a token into its algorithm and the digest as written. For an unverified algorithm
// value is "algorithm:digest"; without any it is "".
func spelling(token string) (a *algorithm, value string, known bool) {
	s := strings.Trim(token, `"'`)
	switch scheme, rest, _ := strings.Cut(s, ":"); strings.ToLower(scheme) {
	case "urn":
		s = rest
	case "ni": // RFC 6920
		s, _, _ = strings.Cut(rest, "?")
		s = s[strings.LastIndexByte(s, '/')+1:]
	}
	s = strings.TrimPrefix(s, "{")
	for _, n := range names {
		if len(s) < len(n.name) || !strings.EqualFold(s[:len(n.name)], n.name) {
			continue
		}
		value := s[len(n.name):]
		if value == "" {
			return n.algorithm, "", true
		}
		if strings.IndexByte(":=-}", value[0]) < 0 || value[0] == '-' && n.name == "sha" { // sha-512
			continue
		}
		return n.algorithm, strings.TrimSuffix(strings.TrimPrefix(value[1:], ":"), ":"), true
	}
	n := 0
	for n < len(s) && strings.IndexByte(":={}\"'", s[n]) < 0 {
		n++
	}
	if n == 0 || n == len(s) || s[n] != ':' && s[n] != '=' || strings.EqualFold(s[:n], "ni") || strings.EqualFold(s[:n], "urn") {
		return nil, "", false
	}
	if s[n] == '=' && strings.Trim(s[n:], "=") == "" { // padding of base64
		return nil, "", false
	}
	if value = strings.Trim(s[n+1:], ":"); value != "" {
		value = s[:n] + ":" + value
	}
	return nil, value, false
}

// names are spellings of the algorithms; the first match counts.
var names = []struct {
	name string
	*algorithm
}{
	{"sha-256", &algorithms[2]}, {"sha256", &algorithms[2]}, {"sha_256", &algorithms[2]}, {"sha2-256", &algorithms[2]},
	{"sha-1", &algorithms[1]}, {"sha1", &algorithms[1]}, {"sha_1", &algorithms[1]}, {"sha", &algorithms[1]},
	{"md5", &algorithms[0]}, {"md-5", &algorithms[0]},
}

// decodeDigest reads a digest of n bytes in any notation; form names the notation unless it is
// hexadecimal.
func decodeDigest(s string, n int) (digest, form string, ok bool) {
	if digest, ok = lowerHex(s); ok && len(digest) == 2*n {
		return digest, "", true
	}
	if len(s) == 3*n-1 { // in pairs, as certificates have it
		if digest, ok = lowerHex(strings.NewReplacer(":", "", "-", "").Replace(s)); ok && len(digest) == 2*n {
			return digest, "pairs of hex digits", true
		}
	}
	if len(s) == base32.StdEncoding.EncodedLen(n) && n == 20 { // as web archives have it
		if sum, err := base32.StdEncoding.DecodeString(strings.ToUpper(s)); err == nil {
			return hex.EncodeToString(sum), "base32", true
		}
	}
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if len(plain) == base64.RawStdEncoding.EncodedLen(n) && len(s)-len(plain) <= 2 {
		if sum, err := base64.RawStdEncoding.DecodeString(plain); err == nil {
			return hex.EncodeToString(sum), "base64", true
		}
	}
	return "", "", false
}

// bareDigest reads a digest of n bytes without an algorithm: in hexadecimal, or in base64 with its
// padding. Anything else may be no digest at all.
func bareDigest(s string, n int) (digest string, ok bool) {
	s = strings.Trim(s, `"'`)
	digest, form, ok := decodeDigest(s, n)
	return digest, ok && (form == "" || form == "base64" && len(s) == base64.StdEncoding.EncodedLen(n))
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

// hexByte classifies each byte: the digits of a hash cannot be predicted, and a branch for each
// would take far longer.
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

// HashesOf computes the SHA-256 of a body, and its MD5 and SHA-1 if like has them. Hashes
// of unknown algorithms are those of like.
func HashesOf(body []byte, like Hashes) Hashes {
	sum := sha256.Sum256(body)
	h := Hashes{SHA256: hex.EncodeToString(sum[:]), Other: like.Other}
	if like.MD5 != "" {
		m := md5.Sum(body)
		h.MD5 = hex.EncodeToString(m[:])
	}
	if like.SHA1 != "" {
		s := sha1.Sum(body)
		h.SHA1 = hex.EncodeToString(s[:])
	}
	return h
}

// Check compares a body with all digests of known algorithms. The error names the first
// difference.
func (h Hashes) Check(body []byte) error {
	if h.SHA256 != "" {
		sum := sha256.Sum256(body)
		if err := agrees("sha-256", sum[:], h.SHA256); err != nil {
			return err
		}
	}
	if h.SHA1 != "" {
		sum := sha1.Sum(body)
		if err := agrees("sha-1", sum[:], h.SHA1); err != nil {
			return err
		}
	}
	if h.MD5 != "" {
		sum := md5.Sum(body)
		return agrees("md5", sum[:], h.MD5)
	}
	return nil
}

func agrees(name string, sum []byte, want string) error {
	if got := hex.EncodeToString(sum); !strings.EqualFold(got, want) {
		return fmt.Errorf("%s is %s, promised was %s", name, got, want)
	}
	return nil
}

// CheckReader is Check of a stream, read to its end.
func (h Hashes) CheckReader(r io.Reader) error {
	type check struct {
		name, want string
		sum        hash.Hash
	}
	var checks []check
	var sums []io.Writer
	for _, c := range []struct {
		name, want string
		sum        func() hash.Hash
	}{{"sha-256", h.SHA256, sha256.New}, {"sha-1", h.SHA1, sha1.New}, {"md5", h.MD5, md5.New}} {
		if c.want != "" {
			sum := c.sum()
			checks, sums = append(checks, check{c.name, c.want, sum}), append(sums, sum)
		}
	}
	if _, err := io.Copy(io.MultiWriter(sums...), r); err != nil {
		return err
	}
	for _, c := range checks {
		if err := agrees(c.name, c.sum.Sum(nil), c.want); err != nil {
			return err
		}
	}
	return nil
}

// Compare tells whether two hash attributes prove equality or difference; known is false
// without a common algorithm.
func (h Hashes) Compare(o Hashes) (equal, known bool) {
	equal = true
	for _, c := range [][2]string{{h.SHA256, o.SHA256}, {h.SHA1, o.SHA1}, {h.MD5, o.MD5}} {
		if c[0] != "" && c[1] != "" {
			known = true
			equal = equal && strings.EqualFold(c[0], c[1])
		}
	}
	return equal && known, known
}
