package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	// frameworkPause is between two framework notifications: the open Change List grows at each change.
	frameworkPause = 5 * time.Second
	keptEvents     = 50
	recordVersion  = 1
)

// frameworkRecord is the memory of the framework notifications of a set.
type frameworkRecord struct {
	Version  int                `json:"v"`
	Sequence uint64             `json:"sequence"` // of the last event
	From     time.Time          `json:"from"`     // of the event before the first one kept
	Told     map[string]toldDoc `json:"told"`     // capability documents as they were told, by capability
	Events   []frameworkEvent   `json:"events"`   // the last ones
}

type toldDoc struct {
	Loc     string `json:"loc"`
	Version string `json:"version"`
}

// frameworkEvent is one entry of a framework notification, rendered.
type frameworkEvent struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	Change   string    `json:"change"`
	Entry    []byte    `json:"entry"`
}

func (s *set) frameworkRecord(ctx context.Context) (*frameworkRecord, error) {
	raw, err := s.p.o.Store.Get(ctx, s.record)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r frameworkRecord
	if err := json.Unmarshal(raw, &r); err != nil || r.Version != recordVersion {
		return nil, fmt.Errorf("framework notifications of %s: record of version %d: %w", s.Name, r.Version, errors.Join(err, errRecord))
	}
	return &r, nil
}

var errRecord = errors.New("the record was written by another version of this program")

// watch looks for new capability documents after each change, with a pause between two looks.
func (s *set) watch(ctx context.Context) {
	for {
		changed := s.changes.wait()
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.p.log.Error("capability documents are not looked at", "set", s.Name, "error", err)
		}
		pause := time.NewTimer(frameworkPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// look appends an event for each capability document with another content than was told, by the
// first look for all of them.
func (s *set) look(ctx context.Context) error {
	now, err := s.documents(ctx)
	if err != nil {
		return err
	}
	r, err := s.frameworkRecord(ctx)
	if err != nil {
		return err
	}
	first := r == nil
	if first {
		r = &frameworkRecord{Version: recordVersion, From: s.p.now(), Told: map[string]toldDoc{}}
	}
	before := r.Sequence
	seen := map[string]bool{}
	for _, e := range now {
		c := string(e.Meta.Capability)
		seen[c] = true
		version := e.Meta.Hash.SHA256 + " " + resourcesync.FormatTime(e.LastMod)
		old, known := r.Told[c]
		if known && old == (toldDoc{e.Loc, version}) {
			continue
		}
		r.Told[c] = toldDoc{e.Loc, version}
		if err := r.add(e, changeOf(e, old, known), s.p.now()); err != nil {
			return err
		}
	}
	for c, old := range r.Told {
		if seen[c] {
			continue
		}
		delete(r.Told, c)
		if c == string(resourcesync.CapabilityList) || c == string(resourcesync.Description) { // table 2 knows no other end
			e := resourcesync.Entry{Loc: old.Loc, Meta: resourcesync.Meta{Capability: resourcesync.Capability(c), Length: -1}}
			if err := r.add(e, resourcesync.Deleted, s.p.now()); err != nil {
				return err
			}
		}
	}
	if !first && r.Sequence == before {
		return nil
	}
	if n := len(r.Events) - keptEvents; n > 0 {
		r.From, r.Events = r.Events[n-1].Time, r.Events[n:]
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b := s.p.o.Store.Batch()
	defer b.Close()
	b.Set(s.record, raw)
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	s.framework.tell()
	return nil
}

// changeOf is the kind of change of a capability document: of table 2 of Framework Notification.
func changeOf(e resourcesync.Entry, old toldDoc, known bool) string {
	switch e.Meta.Capability {
	case resourcesync.ResourceDump, resourcesync.ChangeDump: // made anew each time
		return resourcesync.Created
	case resourcesync.ChangeList:
		if !known || old.Loc != e.Loc {
			return resourcesync.Created
		}
	default:
		if !known {
			return resourcesync.Created
		}
	}
	return resourcesync.Updated
}

// add appends an event.
func (r *frameworkRecord) add(e resourcesync.Entry, change string, now time.Time) error {
	last := r.From
	if n := len(r.Events); n > 0 {
		last = r.Events[n-1].Time
	}
	if at := now.UTC().Truncate(time.Microsecond); at.After(last) {
		last = at
	} else {
		last = last.Add(time.Microsecond) // times rise, as positions do
	}
	r.Sequence++
	e.HasMeta, e.LastMod = true, last
	e.Meta.Change, e.Meta.DateTime, e.Meta.Hash = change, last, resourcesync.Hashes{}
	text, err := resourcesync.AppendEntry(nil, &e)
	if err != nil {
		return err
	}
	r.Events = append(r.Events, frameworkEvent{r.Sequence, last, change, text})
	return nil
}

// documents are the capability documents of the set, and the Source Description: their addresses,
// and the hash or time of their content.
func (s *set) documents(ctx context.Context) ([]resourcesync.Entry, error) {
	out := []resourcesync.Entry{
		{Loc: s.p.o.Source, Meta: resourcesync.Meta{Capability: resourcesync.Description, Length: -1}},
		{Loc: s.capabilityList(), Meta: resourcesync.Meta{Capability: resourcesync.CapabilityList, Length: -1}},
	}
	for i := range out {
		sum, err := s.p.sum(ctx, out[i].Loc)
		if err != nil {
			return nil, err
		}
		out[i].Meta.Hash.SHA256 = sum
	}
	if st := s.Read(ctx); st != nil {
		out = append(out, st.Documents()...)
		st.Close()
	}
	return out, nil
}

// sum is the hash of a document of the source.
func (p *Push) sum(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", address, res.Status)
	}
	h := sha256.New()
	if _, err := io.Copy(h, res.Body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (s *set) capabilityList() string { return s.Address() + "/capabilitylist.xml" }

func (p *Push) now() time.Time {
	if p.o.Now != nil {
		return p.o.Now()
	}
	return time.Now()
}

// frameworkAfter is the Framework Notification for a subscriber at a position.
func (t *topic) frameworkAfter(ctx context.Context, at hub.Position, dialect string) (*notification, error) {
	r, err := t.s.frameworkRecord(ctx)
	if err != nil || r == nil {
		return &notification{at: at}, err
	}
	if at.Told > r.Sequence {
		at.Told = r.Sequence
	}
	from, until := r.From, r.From
	var text []byte
	n := &notification{}
	for _, e := range r.Events {
		if e.Sequence <= at.Told {
			from, until = e.Time, e.Time
			continue
		}
		until = e.Time
		if len(t.filter.changes) == 0 || strings.Contains(strings.Join(t.filter.changes, " "), e.Change) {
			text = append(text, e.Entry...)
			n.entries++
		}
	}
	n.at = hub.Position{Told: r.Sequence, Seen: r.Sequence}
	if n.entries == 0 {
		return n, nil
	}
	up := t.s.capabilityList()
	if bytes.Count(text, []byte(`capability="capabilitylist"`)) == n.entries {
		up = t.s.p.o.Source
	}
	var b bytes.Buffer
	w, err := resourcesync.NewWriter(&b, resourcesync.Head{
		Dialect: dialect,
		Meta: resourcesync.Meta{Capability: resourcesync.FrameworkNotification, From: from, Until: until, Length: -1,
			Ext: map[string]string{resourcesync.ExtSequence: strconv.FormatUint(r.Sequence, 10)}},
		Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: up, Length: -1}},
	})
	if err == nil {
		err = w.WriteRaw(text, n.entries)
	}
	if err == nil {
		err = w.Close()
	}
	n.body = b.Bytes()
	return n, err
}

// after is the notification for a subscriber at a position.
func (t *topic) after(ctx context.Context, at hub.Position, dialect string) (*notification, error) {
	if t.kind == resourcesync.FrameworkNotification {
		return t.frameworkAfter(ctx, at, dialect)
	}
	return t.changesAfter(ctx, at, dialect)
}

// latest is the notification at the address of the topic.
func (t *topic) latest(ctx context.Context) (*notification, error) {
	if t.kind == resourcesync.FrameworkNotification {
		return t.frameworkAfter(ctx, hub.Position{}, "")
	}
	return t.window(ctx)
}

// Head is the present position of the topic.
func (t *topic) Head(ctx context.Context) (hub.Position, error) {
	var head uint64
	if t.kind == resourcesync.FrameworkNotification {
		r, err := t.s.frameworkRecord(ctx)
		if err != nil {
			return hub.Position{}, err
		}
		if r != nil {
			head = r.Sequence
		}
	} else if st := t.s.Read(ctx); st != nil {
		head, _ = st.End()
		st.Close()
	}
	return hub.Position{Told: head, Seen: head}, nil
}

// Changed is closed when there may be something new.
func (t *topic) Changed() <-chan struct{} {
	if t.kind == resourcesync.FrameworkNotification {
		return t.s.framework.wait()
	}
	return t.s.changes.wait()
}

// Next is the notification for a subscriber of the hub.
func (t *topic) Next(ctx context.Context, at hub.Position) (hub.Payload, error) {
	n, err := t.after(ctx, at, "")
	if err != nil {
		return hub.Payload{}, err
	}
	return hub.Payload{Body: n.body, Type: contentType, Links: t.links(), At: n.at}, nil
}
