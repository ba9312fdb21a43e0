//go:build unix

package ownfile

import (
	"io/fs"
	"syscall"
)

// ownerOf is the owner of a file.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	if info == nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// syncsFolders tells that a folder can be flushed.
const syncsFolders = true
