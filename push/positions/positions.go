// Package positions keeps where the mirrors of sets stand, as they report it.
//
// A report is signed with a key of the mirror: its first one introduces the key, and nobody else can
// report for it. The set's configuration may name the permitted keys. Reports are for one address and
// newer than the last one, so a repeated report says nothing. Mirrors are limited in number, and
// forgotten a week after their last report.
//
// Behind a proxy on this machine all senders look alike, and one could take all places. So in a full
// set a mirror proves itself by an hour of reports: until then a new one may take its place, if it has
// reported once only or is silent for a quarter of an hour.
//
// # Records
//
//	SET 0 KEY  the last report, JSON (record)
package positions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/position"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/push/hub"
)

// Limits of mirrors and reports.
const (
	MostMirrors  = 200 // of a set
	mostOfClient = 20  // of a set, introduced by one address, except loopback
	keptFor      = 7 * 24 * time.Hour
	clocksDiffer = 10 * time.Minute
	settleEvery  = time.Hour
	provenAfter  = time.Hour
	silentAfter  = 15 * time.Minute // a mirror at rest reports every few minutes
)

// Mirror is a mirror by its last report.
type Mirror struct {
	Name     string
	Key      position.Key
	Sequence uint64
	Pending  uint64
	InSync   bool
	First    time.Time // report
	Last     time.Time
}

// record is a mirror as it is kept.
type record struct {
	Version int    `json:"v"`
	Client  string `json:"client,omitempty"` // that introduced it; "" is loopback
	position.Report
	First time.Time `json:"first"`
	Last  time.Time `json:"last"` // by our clock
}

const recordVersion = 1

// Options of New.
type Options struct {
	Store  kv.Store
	Now    func() time.Time
	Logger *slog.Logger
}

// Book has the mirrors of all sets. Safe for concurrent use.
type Book struct {
	o     Options
	log   *slog.Logger
	lines repeats.Lines

	mu      sync.Mutex // guards the fields below
	settled time.Time
	sets    map[string]map[position.Key]*record
}

// New opens a book.
func New(o Options) *Book {
	b := &Book{o: o, settled: o.Now(), sets: map[string]map[position.Key]*record{}}
	b.log = slog.New(b.lines.Handler(o.Logger.Handler()))
	return b
}

// Close writes how often refusals came that were not all logged.
func (b *Book) Close() { b.lines.Settle(b.o.Logger) }

func keyOf(set string, by position.Key) []byte { return []byte(set + "\x00" + string(by)) }

// of gives the mirrors of a set. The caller holds mu.
func (b *Book) of(ctx context.Context, set string) (map[position.Key]*record, error) {
	known := b.sets[set]
	if known == nil {
		known = map[position.Key]*record{}
		prefix := keyOf(set, "")
		for pair, err := range b.o.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				return nil, fmt.Errorf("positions of the mirrors of set %s: %w", set, err)
			}
			r := new(record)
			if err := json.Unmarshal(pair.Value, r); err != nil || r.Version != recordVersion {
				return nil, fmt.Errorf("position of a mirror of set %s: version %d, this program knows %d: %w", set, r.Version, recordVersion, errors.Join(err, errRecord))
			}
			known[position.Key(bytes.Clone(pair.Key[len(prefix):]))] = r
		}
		b.sets[set] = known
	}
	return known, nil
}

func (b *Book) isOld(r *record) bool { return b.o.Now().Sub(r.Last) > keptFor }

// drop removes the mirrors of long ago.
func (b *Book) drop(known map[position.Key]*record, set string, batch kv.Batch) {
	for by, r := range known {
		if b.isOld(r) {
			b.log.Info("a mirror has not reported for a week, and is forgotten", "set", set, "mirror", r.Mirror, "key", by)
			batch.Delete(keyOf(set, by))
			delete(known, by)
		}
	}
}

// makeRoom removes the mirror with the shortest time of reports, the longest silent one of several.
// false: all are proven, or reporting.
func (b *Book) makeRoom(known map[position.Key]*record, set string, batch kv.Batch) bool {
	var least position.Key
	for by, r := range known {
		life := r.Last.Sub(r.First)
		if life >= provenAfter || life > 0 && b.o.Now().Sub(r.Last) < silentAfter {
			continue
		}
		if than := known[least]; than == nil || cmp.Or(cmp.Compare(life, than.Last.Sub(than.First)), r.Last.Compare(than.Last), cmp.Compare(by, least)) < 0 {
			least = by
		}
	}
	if known[least] == nil {
		return false
	}
	b.log.Warn("a mirror of few reports is forgotten: a set with all places taken has a new one", "set", set, "mirror", known[least].Mirror, "key", least)
	batch.Delete(keyOf(set, least))
	delete(known, least)
	return true
}

var errRecord = errors.New("the record was written by another version of this program")

// List gives the mirrors of a set, by name.
func (b *Book) List(ctx context.Context, set string) ([]Mirror, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, err := b.of(ctx, set)
	out := make([]Mirror, 0, len(known))
	for by, r := range known {
		if b.isOld(r) {
			continue
		}
		out = append(out, Mirror{Name: r.Mirror, Key: by, Sequence: r.Sequence, Pending: r.Pending, InSync: r.InSync, First: r.First, Last: r.Last})
	}
	slices.SortFunc(out, func(a, b Mirror) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key)) })
	return out, err
}

// Forget forgets the mirrors of all sets but these.
func (b *Book) Forget(ctx context.Context, but func(set string) bool) error {
	batch := b.o.Store.Batch()
	defer batch.Close()
	for pair, err := range b.o.Store.Scan(ctx, nil, nil) {
		if err != nil {
			return err
		}
		if set, _, _ := bytes.Cut(pair.Key, []byte{0}); !but(string(set)) {
			batch.Delete(bytes.Clone(pair.Key))
		}
	}
	return batch.Commit(ctx, false)
}

// refusal is why a report is not taken.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

func refuse(status int, format string, a ...any) error {
	return &refusal{status, fmt.Sprintf(format, a...)}
}

// Place is where reports of a set arrive.
type Place struct {
	Set     string
	Address string         // as mirrors know it
	From    []position.Key // the mirrors whose reports are taken; none: any
}

// Serve takes a report.
func (b *Book) Serve(p Place, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Mirrors report their positions here, by POST.", http.StatusMethodNotAllowed)
		return
	}
	rep, by, err := b.take(p, w, r)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var no *refusal
	if !errors.As(err, &no) {
		b.log.Error("a position is not kept", "set", p.Set, "error", err)
		http.Error(w, "The report could not be kept.", http.StatusInternalServerError)
		return
	}
	b.log.Warn("the position report of a mirror is refused", "set", p.Set, "mirror", rep.Mirror, "key", by, "client", r.RemoteAddr, "reason", no.why)
	http.Error(w, "Refused: "+no.why+".", no.status)
}

func (b *Book) take(p Place, w http.ResponseWriter, r *http.Request) (rep position.Report, by position.Key, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != position.ContentType {
		return rep, by, refuse(http.StatusUnsupportedMediaType, "a report is %s", position.ContentType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, position.MostBytes))
	if err != nil {
		return rep, by, refuse(http.StatusRequestEntityTooLarge, "a report has at most %d bytes: %v", position.MostBytes, err)
	}
	signed, by, err := position.Open(body)
	switch {
	case errors.Is(err, position.ErrForged):
		return rep, by, refuse(http.StatusUnauthorized, "%v", err)
	case err != nil:
		return rep, by, refuse(http.StatusBadRequest, "%v", err)
	}
	return signed, by, b.keep(r.Context(), p, signed, by, hub.Client(r.RemoteAddr))
}

// keep keeps a report with a right signature.
func (b *Book) keep(ctx context.Context, p Place, rep position.Report, by position.Key, client string) error {
	now := b.o.Now().UTC()
	switch off := now.Sub(rep.Time); {
	case len(p.From) > 0 && !slices.Contains(p.From, by):
		return refuse(http.StatusForbidden, "the key is not among notify.mirrors of the set")
	case rep.To != p.Address:
		return refuse(http.StatusUnauthorized, "it was made for %.200q", rep.To)
	case off.Abs() > clocksDiffer:
		return refuse(http.StatusUnauthorized, "its time %s is %s off", rep.Time.UTC().Format(time.RFC3339), off.Abs().Round(time.Second))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.settled) > settleEvery {
		b.settled = now
		b.lines.Settle(b.o.Logger)
	}
	known, err := b.of(ctx, p.Set)
	if err != nil {
		return err
	}
	batch := b.o.Store.Batch()
	defer batch.Close()
	b.drop(known, p.Set, batch)
	was := known[by]
	switch {
	case was == nil:
		of := 0
		for _, r := range known {
			if client != "" && r.Client == client {
				of++
			}
		}
		if of >= mostOfClient || len(known) >= MostMirrors && !b.makeRoom(known, p.Set, batch) {
			return refuse(http.StatusServiceUnavailable, "as many mirrors report as there may be")
		}
		was = &record{Client: client, First: now}
	case !rep.Time.After(was.Time):
		return refuse(http.StatusConflict, "a later report was taken before")
	}
	next := &record{Version: recordVersion, Client: was.Client, Report: rep, First: was.First, Last: now}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	batch.Set(keyOf(p.Set, by), raw)
	if err := batch.Commit(ctx, false); err != nil {
		return err
	}
	known[by] = next
	return nil
}
