package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Difference is one between a mirror and its source.
type Difference = destination.Difference

// Other is a non-RDF resource of a mirror.
type Other = destination.Other

// ChangeLine is one change as `changes --json` and the API give it.
type ChangeLine struct {
	Sequence uint64       `json:"sequence"`
	Time     time.Time    `json:"time"`
	Change   string       `json:"change"`
	Entity   string       `json:"entity"`
	Location string       `json:"location"`
	Before   *VersionLine `json:"before"`
	After    *VersionLine `json:"after"`
	Finder   string       `json:"finder,omitempty"`
	Kind     string       `json:"kind,omitempty"` // "file": of a file behind descriptions; Entity is "" then, Location the file's own address
	// Note is of a change "rebased": the set's old and new addresses. Entity is "".
	Note json.RawMessage `json:"note,omitempty"`
}

// logTime always has six digits of fraction: lines sort as strings do.
func logTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// MarshalJSON writes times of fixed width.
func (l ChangeLine) MarshalJSON() ([]byte, error) {
	type plain ChangeLine
	return json.Marshal(struct {
		Sequence uint64 `json:"sequence"`
		Time     string `json:"time"`
		plain
	}{l.Sequence, logTime(l.Time), plain(l)})
}

// MarshalJSON writes times of fixed width.
func (v VersionLine) MarshalJSON() ([]byte, error) {
	type plain VersionLine
	return json.Marshal(struct {
		Sequence uint64 `json:"sequence"`
		Time     string `json:"time"`
		plain
	}{v.Sequence, logTime(v.Time), plain(v)})
}

// VersionLine is a version of a description: its digests and its size.
type VersionLine struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	Graph    string    `json:"graph"`  // sha-256 of the graph
	SHA256   string    `json:"sha256"` // of the representation
	Length   int64     `json:"length"`
	Type     string    `json:"type"`
	Triples  int       `json:"triples"`
}

// ResourceLine is a current resource.
type ResourceLine struct {
	Entity   string       `json:"entity"`
	Location string       `json:"location"`
	Current  *VersionLine `json:"current"` // null: deleted
	Changes  int          `json:"changes"`
}

func versionLine(v *changetrack.Version) *VersionLine {
	if v == nil {
		return nil
	}
	return &VersionLine{v.Sequence, v.Time.UTC(), v.Graph.String(), v.Fixity.SHA256.String(), v.Fixity.Length, v.Format.MediaType(), v.Triples}
}

// ChangeLine renders a change of a set.
func (b *Bridge) ChangeLine(ctx context.Context, set string, c changetrack.Change) ChangeLine {
	line := ChangeLine{Sequence: c.Sequence, Time: c.Time.UTC(), Change: string(c.Kind), Entity: c.Entity, Before: versionLine(c.Before), After: versionLine(c.After), Finder: c.Finder}
	if c.OfFile() {
		line.Kind, line.Location, line.Before, line.After = "file", c.File, fileVersionLine(c.FileBefore), fileVersionLine(c.FileAfter)
		return line
	}
	if c.Kind == changetrack.Rebased {
		var m publish.Move
		if json.Unmarshal([]byte(c.Note), &m) == nil {
			line.Location, line.Note = m.To.Base+"/"+set+"/capabilitylist.xml", json.RawMessage(c.Note)
		}
		return line
	}
	if b.pub == nil { // of a state that is only read, without an address
		return line
	}
	if loc, err := b.pub.Location(ctx, set, c.Entity); err == nil {
		line.Location = loc
	}
	return line
}

// Changes is a piece of a log. Next is the value of since for the next piece.
type Changes struct {
	Changes []ChangeLine `json:"changes"`
	Next    uint64       `json:"next"`
	More    bool         `json:"more"`
}

// ErrSince comes for a malformed since.
var ErrSince = errors.New("is neither a sequence nor a time like 2026-01-31T12:00:00Z")

// Changes gives at most limit changes after a sequence (digits alone) or a time,
// oldest first; "" and 0 are the beginning. The error changetrack.ErrBeyondRetention tells a
// late reader of dropped changes. A sequence beyond the end of the log is ErrBeyond: the log
// was set back since.
func (b *Bridge) Changes(ctx context.Context, set, since string, limit int) (Changes, error) {
	s := b.sets[set]
	if s == nil {
		return Changes{}, fmt.Errorf("set %s: %w", set, ErrUnknown)
	}
	v := s.log.View(ctx)
	defer v.Close()
	out := Changes{Changes: []ChangeLine{}}
	if since != "" {
		n, err := strconv.ParseUint(since, 10, 64)
		if err != nil {
			t, terr := resourcesync.ParseTime(since, true)
			if terr != nil {
				return out, fmt.Errorf("since=%s: %w", since, ErrSince)
			}
			if n, err = v.SequenceAt(ctx, t); err != nil {
				return out, err
			}
		}
		if head, _ := v.Head(); n > head { // the log is one of before, or another one
			return out, fmt.Errorf("changes of set %s since %d: %w; its newest change is %d", set, n, ErrBeyond, head)
		}
		if tail, _ := v.Tail(); n > 0 && n < tail {
			return out, fmt.Errorf("changes of set %s since %d: the log begins after %d: %w", set, n, tail, changetrack.ErrBeyondRetention)
		}
		out.Next = n
	}
	for c, err := range v.Changes(ctx, out.Next) {
		if err != nil {
			return out, err
		}
		if len(out.Changes) == limit {
			out.More = true
			break
		}
		out.Changes, out.Next = append(out.Changes, b.ChangeLine(ctx, set, c)), c.Sequence
	}
	return out, nil
}

// Resources gives one entity, or at most limit current ones in the order of
// their keys after a key (hex, "" for the first). next is "" at the end.
func (b *Bridge) Resources(ctx context.Context, set, entity, after string, limit int) (out []ResourceLine, next string, err error) {
	v := b.sets[set].log.View(ctx)
	defer v.Close()
	line := func(st changetrack.State) (ResourceLine, error) {
		loc, err := b.pub.Location(ctx, set, st.Entity)
		return ResourceLine{st.Entity, loc, versionLine(st.Current), st.Changes}, err
	}
	out = []ResourceLine{}
	if entity != "" {
		st, err := v.Entity(ctx, entity)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, "", fmt.Errorf("%s in set %s: %w", entity, set, ErrUnknown)
		}
		if err != nil {
			return nil, "", err
		}
		l, err := line(st)
		return append(out, l), "", err
	}
	var lo rdfres.Digest
	if after != "" {
		if lo, err = rdfres.ParseDigest(after); err != nil {
			return nil, "", fmt.Errorf("after=%s: %w", after, err)
		}
	}
	for st, err := range v.Current(ctx, lo, rdfres.Digest{}) {
		if err != nil {
			return nil, "", err
		}
		key := rdfres.EntityKey(st.Entity)
		if after != "" && key == lo {
			continue
		}
		if len(out) == limit {
			return out, next, nil
		}
		l, err := line(st)
		if err != nil {
			return nil, "", err
		}
		out, next = append(out, l), key.String()
	}
	return out, "", nil
}
