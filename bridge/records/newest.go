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
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// NewestFile is the note of Place.Note, in the state folder.
const NewestFile = "newest.json"

// newest is what is known of the commits of a database. Both numbers only grow.
type newest struct {
	Move   string `json:"move,omitempty"` // by which the records came: another move is another history
	Lead   int64  `json:"lead"`
	Commit int64  `json:"commit"`
}

// LostError is about a database with older records than this process knew there. A failover to a copy that lags
// does so, and the return of a backup. It wraps kv.ErrLost.
type LostError struct {
	Place    string
	File     string // with the note
	has, had newest
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%v: %s is at commit %d of leader %d, and was at %d of %d", kv.ErrLost, e.Place, e.has.Commit, e.has.Lead, e.had.Commit, e.had.Lead)
}

func (e *LostError) Unwrap() error { return kv.ErrLost }

// Hint tells how to go on.
func (e *LostError) Hint() string {
	return "bring back the database with these commits; or remove " + e.File + " to go on with the older state, as after the return of a backup"
}

// noting orders the notes of a process: no answer of the database is compared with a later one.
var noting sync.Mutex

// Note keeps the newest commit of a database in the state folder. It gives a *LostError if the folder has a note
// of a newer one.
func (p Place) Note(ctx context.Context, r kv.Reader, led kv.Led) error {
	noting.Lock()
	defer noting.Unlock()
	now, err := newestOf(ctx, r, led)
	if err != nil {
		return fmt.Errorf("note the newest commit: %w", err)
	}
	file := filepath.Join(p.Folder, NewestFile)
	was, known, err := readNewest(file)
	switch {
	case err != nil:
		return fmt.Errorf("note the newest commit: %w", err)
	case !known || was.Move != now.Move && now.Move != "":
	case was == now:
		return nil
	case was.Move != now.Move || now.Commit < was.Commit || now.Lead < was.Lead: // records that came by a move are gone
		return &LostError{p.String(), file, now, was}
	}
	err = ownfile.Replace(file, func(w io.Writer) error { return json.NewEncoder(w).Encode(now) })
	if err == nil {
		err = ownfile.Sync(p.Folder)
	}
	if err != nil {
		return fmt.Errorf("note the newest commit: %w", err)
	}
	return nil
}

func readNewest(file string) (n newest, known bool, err error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return n, false, nil
	}
	if err == nil {
		if err = json.Unmarshal(raw, &n); err != nil {
			err = fmt.Errorf("read %s: %w", file, err)
		}
	}
	return n, err == nil, err
}

// Own fails with ErrNotEmpty for a database with records that no process of the folder has noted.
func (p Place) Own(ctx context.Context, o kv.OpenOptions) error {
	if _, err := os.Stat(filepath.Join(p.Folder, NewestFile)); err == nil {
		return nil
	}
	s, err := p.OpenNew(ctx, o)
	if err == nil {
		err = s.Close()
	}
	return err
}

func newestOf(ctx context.Context, r kv.Reader, led kv.Led) (n newest, err error) {
	l, err := led.Leader(ctx)
	if err != nil {
		return n, err
	}
	n.Lead, n.Commit = l.Number, l.Commit
	raw, err := r.Get(ctx, markCame)
	if errors.Is(err, kv.ErrNotFound) {
		return n, nil
	}
	var came mark
	if err == nil {
		err = json.Unmarshal(raw, &came)
	}
	n.Move = came.ID
	return n, err
}

// Note is Note of the watched place.
func (w *Watch) Note(ctx context.Context) error { return w.place.Note(ctx, w.store, w.led) }
