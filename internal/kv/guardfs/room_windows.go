package guardfs

import "golang.org/x/sys/windows"

// errNoRoom is the error of a full disk.
const errNoRoom = windows.ERROR_DISK_FULL
