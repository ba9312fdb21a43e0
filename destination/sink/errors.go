package sink

import (
	"errors"
	"fmt"
)

var (
	// ErrUnusable marks a resource the sink cannot hold.
	ErrUnusable = errors.New("cannot stand in the mirror")
	// ErrRefused marks a triple the sink refuses, in any batch.
	ErrRefused = errors.New("the mirror refuses a triple")
	// ErrUnconfirmed marks a write, confirmed and not done.
	ErrUnconfirmed = errors.New("the mirror confirmed a write that it has not done")
)

// ForeignFileError refuses a resource: a file of somebody else is at its path. Errors.Is calls it
// ErrRefused.
type ForeignFileError struct{ Folder, Path string }

func (e *ForeignFileError) Error() string {
	return fmt.Sprintf("%s is not written: folder %s has another file there: move it away, or audit --repair removes it", e.Path, e.Folder)
}

// Is tells of a refusal by the mirror.
func (e *ForeignFileError) Is(target error) bool { return target == ErrRefused }

// NotFileError refuses the place of a mirror's file, or of its folder: something else is there.
type NotFileError struct {
	Path   string
	Folder bool // is there
	Wanted bool // a folder
}

func (e *NotFileError) Error() string {
	what, want := "is no file", "file"
	switch {
	case e.Wanted:
		what, want = "is no folder", "folder"
	case e.Folder:
		what = "is a folder"
	}
	return fmt.Sprintf("%s %s, and should be the %s of the mirror; nothing was changed: move it away, and the %s is made again", e.Path, what, want, want)
}

// NoPlaceError refuses to make the folder of a mirror again: the folder above it is gone too.
type NoPlaceError struct{ Folder, Above string }

func (e *NoPlaceError) Error() string {
	return fmt.Sprintf("the folder %s of the mirror is gone, and so is %s above it; nothing was changed: mount its disk, or make %s to have the files fetched again", e.Folder, e.Above, e.Above)
}
