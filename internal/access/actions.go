package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Action is a line of the log: somebody did something, or was refused.
type Action struct {
	ID     uint64    `json:"id"`
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`            // name of the token; "local" without tokens, "command" for a command
	Role   Role      `json:"role,omitempty"` // at that time
	From   string    `json:"from,omitempty"` // client address
	Action string    `json:"action"`         // method and path, or a command
	Status int       `json:"status,omitempty"`
	Run    uint64    `json:"run,omitempty"` // begun by it
	Detail string    `json:"detail,omitempty"`
}

const (
	longestLog  = 1 << 20 // bytes of one file; there are two
	longestText = 500     // bytes of a text in it
)

// Log is the bounded log of actions in a folder. Processes share it.
type Log struct{ dir string }

// OpenLog is the log of a folder; it makes nothing.
func OpenLog(dir string) *Log { return &Log{dir} }

func (l *Log) file() string   { return filepath.Join(l.dir, "actions.jsonl") }
func (l *Log) before() string { return filepath.Join(l.dir, "actions.1.jsonl") }

// Add appends an action, durably. The oldest actions go when both files are full.
func (l *Log) Add(a Action) error {
	a.Time = a.Time.UTC()
	for _, text := range []*string{&a.Who, &a.From, &a.Action, &a.Detail} {
		if len(*text) > longestText {
			*text = string(bytes.ToValidUTF8([]byte((*text)[:longestText]), nil)) + "..."
		}
	}
	return locked(l.dir, func() (err error) {
		if st, err := os.Stat(l.file()); err == nil && st.Size() > longestLog {
			if err := os.Rename(l.file(), l.before()); err != nil {
				return err
			}
		}
		last, cut, err := lastAction(l.file())
		if err == nil && last == 0 {
			last, _, err = lastAction(l.before())
		}
		if err != nil {
			return err
		}
		a.ID = last + 1
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if cut {
			raw = append([]byte("\n"), raw...)
		}
		f, err := os.OpenFile(l.file(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, ownfile.FileMode)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if _, err := f.Write(append(raw, '\n')); err != nil {
			return err
		}
		return f.Sync()
	})
}

// lastAction is the id of the last whole line of a file, 0 for none. cut tells of a line behind it,
// left by a crash.
func lastAction(name string) (id uint64, cut bool, err error) {
	f, err := os.Open(name)
	if ownfile.IsAbsent(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	tail := make([]byte, min(st.Size(), 16<<10))
	if _, err := f.ReadAt(tail, st.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	lines := bytes.Split(tail, []byte("\n"))
	cut = len(lines[len(lines)-1]) > 0
	for _, line := range slices.Backward(lines) {
		var a Action
		if json.Unmarshal(line, &a) == nil && a.ID > 0 {
			return a.ID, cut, nil
		}
	}
	return 0, cut, nil
}

// Read gives the newest actions before an id, the newest first; 0 is the end of the log. next is
// the value of before for the rest, 0 at the end.
func (l *Log) Read(before uint64, limit int) (out []Action, next uint64, err error) {
	out = []Action{}
	var all []byte
	if err := locked(l.dir, func() error {
		for _, name := range []string{l.before(), l.file()} {
			raw, err := os.ReadFile(name)
			if err != nil && !ownfile.IsAbsent(err) {
				return err
			}
			all = append(append(all, raw...), '\n')
		}
		return nil
	}); err != nil {
		return out, 0, err
	}
	for _, line := range slices.Backward(bytes.Split(all, []byte("\n"))) {
		var a Action
		if json.Unmarshal(line, &a) != nil || a.ID == 0 || before > 0 && a.ID >= before {
			continue
		}
		if len(out) == limit {
			return out, out[limit-1].ID, nil
		}
		out = append(out, a)
	}
	return out, 0, nil
}
