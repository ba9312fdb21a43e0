//go:build unix

package guardfs

import "syscall"

// errNoRoom is the other error of a full disk: the quota of a user.
const errNoRoom = syscall.EDQUOT
