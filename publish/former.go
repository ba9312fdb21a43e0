package publish

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/pages"
)

// A renamed or forgotten set leaves its name: requests are redirected to the new name, or answered
// with 410 Gone. A new set of that name ends this.

// formerRecord is the end of a set of that name.
type formerRecord struct {
	Version int       `json:"v"`
	To      string    `json:"to,omitempty"` // its name now; "": it is gone
	At      time.Time `json:"at"`
}

func formerKey(name string) []byte { return append([]byte("t"), name...) }

// Forget removes the records of a set, in a batch of any store around store. No publisher has the
// set open. The caller removes its folder below Options.Dir.
func Forget(ctx context.Context, store kv.Store, batch kv.Batch, name string, now time.Time) error {
	kv.Join(setKeys(store, name), batch).DeleteRange(nil, nil)
	return leaveName(ctx, store, batch, name, "", now)
}

// Rename moves the records of a set to another name: its archives and numbers. Its lists begin anew
// there. See Forget; the caller renames the folder.
func Rename(ctx context.Context, store kv.Store, batch kv.Batch, from, to string, now time.Time) error {
	old, gone, next := setKeys(store, from), kv.Join(setKeys(store, from), batch), kv.Join(setKeys(store, to), batch)
	at, former, known, err := readAddresses(ctx, old)
	if err != nil {
		return err
	}
	next.DeleteRange(nil, nil)
	gone.DeleteRange(nil, nil)
	if !known {
		return nil
	}
	var gen genRecord
	if _, err := getJSON(ctx, old, []byte("g"), &gen); err != nil {
		return err
	}
	var last anewRecord
	if _, err := getJSON(ctx, old, []byte("z"), &last); err != nil {
		return err
	}
	lists, err := loadLists(ctx, old)
	if err != nil {
		return err
	}
	for _, l := range lists {
		last.List = max(last.List, l.Number)
	}
	last.Version, last.Generation = recordVersion, max(last.Generation, gen.Number)
	last.Base, last.Prefix, last.Former = at.Base, at.Prefix, former
	if err := setJSON(next, []byte("z"), last); err != nil {
		return err
	}
	for pair, err := range old.Scan(ctx, []byte("A"), []byte("B")) {
		if err != nil {
			return err
		}
		next.Set(pair.Key, pair.Value)
	}
	return leaveName(ctx, store, batch, from, to, now)
}

// leaveName notes the end of a name, and updates names redirected to it.
func leaveName(ctx context.Context, store kv.Store, batch kv.Batch, name, to string, now time.Time) error {
	b := kv.Join(store, batch)
	former, err := formerNames(ctx, store)
	if err != nil {
		return err
	}
	former[name] = formerRecord{To: name, At: now}
	for other, r := range former {
		if r.To == name {
			r.Version, r.To = recordVersion, to
			if err := setJSON(b, formerKey(other), r); err != nil {
				return err
			}
		}
	}
	b.Delete(formerKey(to))
	return nil
}

func formerNames(ctx context.Context, r kv.Reader) (map[string]formerRecord, error) {
	out := map[string]formerRecord{}
	for pair, err := range r.Scan(ctx, []byte("t"), []byte("u")) {
		if err != nil {
			return nil, err
		}
		var f formerRecord
		if err := decodeRecord(pair.Key, pair.Value, &f); err != nil {
			return nil, err
		}
		out[string(pair.Key[1:])] = f
	}
	return out, nil
}

// Former tells the end of a set of that name: its name now, "" if it was forgotten.
func (p *Publisher) Former(name string) (to string, known bool) {
	f, known := p.former[name]
	return f.To, known
}

// HasFormer tells whether any former name is recorded.
func HasFormer(ctx context.Context, store kv.Reader) (bool, error) {
	former, err := formerNames(ctx, store)
	return len(former) > 0, err
}

// openFormer reads the former names of sets. A name in use again is dropped.
func (p *Publisher) openFormer(ctx context.Context, store kv.Store) (err error) {
	if p.former, err = formerNames(ctx, store); err != nil {
		return fmt.Errorf("publish: former names of sets: %w", err)
	}
	b := store.Batch()
	defer b.Close()
	for name := range p.former {
		if slices.Contains(p.names, name) {
			delete(p.former, name)
			b.Delete(formerKey(name))
		}
	}
	if b.Size() == 0 {
		return nil
	}
	return b.Commit(ctx, true)
}

func (p *Publisher) formerSet(r *http.Request, name, rest string) error {
	f, ok := p.former[name]
	if !ok {
		return notFound("There is no set %q here.", clip.Middle(name)).hint("The sets of this source are listed at %s.", p.wellKnown())
	}
	if s := p.lookup(f.To); s != nil {
		to := s.at.url + strings.TrimSuffix("/"+rest, "/")
		if r.URL.RawQuery != "" {
			to += "?" + naming.HeaderSafe(r.URL.RawQuery)
		}
		return &statusError{code: http.StatusMovedPermanently, reason: "This set has another name.", location: naming.HeaderSafe(to), detail: []string{naming.HeaderSafe(to)}}
	}
	e := &statusError{code: http.StatusGone, reason: fmt.Sprintf("The set %s was removed on %s UTC.", name, pages.At(f.At).Text)}
	return e.hint("The sets of this source are listed at %s.", p.wellKnown())
}
