package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the power of a user. Each role has the powers of those before it.
type Role string

// The roles of the administration. Reader is a user of protected sets alone.
const (
	Reader  Role = "reader"
	Read    Role = "read"
	Operate Role = "operate"
	Admin   Role = "admin"
)

var ranks = []Role{Reader, Read, Operate, Admin}

// Roles are those of the administration, the weakest first.
func Roles() []Role { return ranks[1:] }

// Has tells whether a role has the powers of another one. Nobody has those of an unknown role.
func (r Role) Has(other Role) bool {
	least := slices.Index(ranks, other)
	return least >= 0 && slices.Index(ranks, r) >= least
}

// ParseRole reads a role of the administration.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("role %q is none of %s", text, RoleNames())
}

// RoleNames is a list for messages.
func RoleNames() string {
	var names []string
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// User is somebody with a token.
type User struct {
	Name string
	Role Role
	Sets []string // protected sets; of a reader alone

	key string // names the token, without telling it
}

// May tells whether a user may read a protected set.
func (u User) May(set string) bool { return slices.Contains(u.Sets, set) }

// A token open to attempts from other machines is at least so long, of so many different
// characters.
const (
	TokenLength  = 16
	TokenVariety = 8
)

// Strong tells whether nobody guesses a token.
func Strong(token string) bool {
	seen := map[rune]bool{}
	for _, r := range token {
		seen[r] = true
	}
	return len(token) >= TokenLength && len(seen) >= TokenVariety
}
