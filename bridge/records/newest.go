package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// NewestFile is the note about the newest commit, in the state folder: a kv.Point as JSON.
const NewestFile = "newest.json"

// noteBytes is the length of the note. Spaces fill it, so it is written in place: that needs no room on a full disk.
const noteBytes = 128

// LostError is about a database without a commit that was noted. A failover to a copy that lags does so, and the
// return of a backup. It wraps kv.ErrLost.
type LostError struct {
	Place string
	Note  string // where the commit is noted
	Had   kv.Point
	Has   kv.Point // the newest one there
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%v: %s is at commit %d, and has not commit %d of lead %s in %s", kv.ErrLost, e.Place, e.Has.Commit, e.Had.Commit, e.Had.Lead, e.Note)
}

func (e *LostError) Unwrap() error { return kv.ErrLost }

// Hint tells how to go on.
func (e *LostError) Hint() string {
	return "bring back the database with this commit; or go on with the older state, as after the return of a backup: rsbridge accept --lost-commits"
}

// Has gives the newest durable commit of a database, and a *LostError if the commit was, noted at a place, is lost.
func (p Place) Has(ctx context.Context, led kv.Led, was kv.Point, note string) (newest kv.Point, err error) {
	newest, has, err := led.Newest(ctx, was)
	if err == nil && !has {
		err = &LostError{p.String(), note, was, newest}
	}
	return newest, err
}

// compare is Has of the note in the folder.
func (p Place) compare(ctx context.Context, led kv.Led) (newest, was kv.Point, err error) {
	if was, err = p.noted(); err == nil {
		newest, err = p.Has(ctx, led, was, p.noteFile())
	}
	return newest, was, err
}

func (p Place) noteFile() string { return filepath.Join(p.Folder, NewestFile) }

// noted is the zero point without a note.
func (p Place) noted() (was kv.Point, err error) {
	raw, err := os.ReadFile(p.noteFile())
	if errors.Is(err, fs.ErrNotExist) {
		return was, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &was)
	}
	if err == nil && was.Lead == "" {
		err = errors.New("it names no commit")
	}
	if err != nil {
		return kv.Point{}, &noteError{p.noteFile(), err}
	}
	return was, nil
}

// noteError is about a note that cannot be read.
type noteError struct {
	file string
	err  error
}

func (e *noteError) Error() string {
	return fmt.Sprintf("read the newest commit in %s: %v", e.file, e.err)
}
func (e *noteError) Unwrap() error { return e.err }

// Hint tells how to go on.
func (e *noteError) Hint() string {
	return "if the database is known to be whole: rsbridge accept --lost-commits"
}

// note writes the note, durably.
func (p Place) note(at kv.Point) error {
	raw, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("note the newest commit: %w", err)
	}
	raw = fmt.Appendf(nil, "%-*s\n", noteBytes-1, raw)
	f, err := os.OpenFile(p.noteFile(), os.O_WRONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = ownfile.Replace(p.noteFile(), func(w io.Writer) error { _, err := w.Write(raw); return err }); err == nil {
			err = ownfile.Sync(p.Folder)
		}
	case err == nil:
		_, err = f.WriteAt(raw, 0)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("note the newest commit: %w", err)
	}
	return nil
}

// Note notes the newest durable commit. The error is a *LostError if the noted one is lost.
func (w *Watch) Note(ctx context.Context) error {
	newest, was, err := w.place.compare(ctx, w.led)
	if err != nil || newest == was || newest.Lead == "" {
		return err
	}
	return w.place.note(newest)
}

// ErrNoneLost comes from accepting a loss when nothing is lost.
var ErrNoneLost = errors.New("no commits are lost")

// AcceptLoss goes on with the older state of a database: the lead of the commit noted in the folder, and those of the
// other points, may lack commits. It notes the newest commit, and returns it with the lost ones. Without any of them
// it changes nothing, and gives ErrNoneLost. If a process holds the folder, the error is a *holder.HeldError.
func (p Place) AcceptLoss(ctx context.Context, o kv.OpenOptions, others ...kv.Point) (now kv.Point, lost []kv.Point, err error) {
	lock, err := holder.Take(ctx, p.Folder, "rsbridge accept", holderWait)
	if err != nil {
		return now, nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	o.Noted = func(at kv.Point) error { now = at; return p.note(at) }
	s, err := p.open(ctx, o)
	if err != nil {
		return now, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	led, several := s.(kv.Led)
	was, err := p.noted()
	var damaged *noteError
	if !several || err != nil && !errors.As(err, &damaged) {
		return now, nil, errors.Join(ErrNoneLost, err)
	}
	var leads []string
	for _, at := range append(others, was) {
		_, has, err := led.Newest(ctx, at)
		if err != nil {
			return now, nil, err
		}
		if !has {
			lost = append(lost, at)
		}
		if !has && !slices.Contains(leads, at.Lead) {
			leads = append(leads, at.Lead)
		}
	}
	if len(lost) == 0 && damaged == nil {
		return now, nil, ErrNoneLost
	}
	return now, lost, led.Adopt(ctx, leads...)
}

// Own fails with ErrNotEmpty for a database with records that no process of the folder has noted.
func (p Place) Own(ctx context.Context, o kv.OpenOptions) error {
	if _, err := os.Stat(p.noteFile()); err == nil {
		return nil
	}
	s, err := p.OpenNew(ctx, o)
	if err == nil {
		err = s.Close()
	}
	return err
}
