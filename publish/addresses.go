package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/inventory"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
)

// Addresses are the parts of a set's addresses.
type Addresses struct {
	Base   string `json:"base"`   // base URL, without trailing slash
	Prefix string `json:"prefix"` // removed from entity IRIs
}

// Move is the note of a change of the kind changetrack.Rebased, as JSON: from
// there on the set is published at other addresses.
type Move struct {
	From Addresses `json:"from"`
	To   Addresses `json:"to"`

	FromSet string `json:"from_set,omitempty"` // name of the set in the addresses, if it is another one
	ToSet   string `json:"to_set,omitempty"`
}

// Note is the move as changetrack.Log.Rebase wants it.
func (m Move) Note() string {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings only
	}
	return string(data)
}

// Addresses tells the present addresses of a set, and those of its configuration. While they
// differ, documents and representations keep the present ones. To move the set, append the Note of
// a Move to its log and Publish: the lists begin anew at that change, the old ones are gone, and
// names with a former prefix are redirected.
func (p *Publisher) Addresses(name string) (inForce, configured Addresses, err error) {
	s, err := p.set(name)
	if err != nil {
		return Addresses{}, Addresses{}, err
	}
	return s.at.Addresses, Addresses{Base: p.base, Prefix: s.cfg.Prefix}, nil
}

// ReadAddresses tells the addresses in force of a set from its log and the publisher's
// records alone; false when nothing has been published yet.
func ReadAddresses(ctx context.Context, store kv.Store, name string, log *changetrack.Log) (Addresses, bool, error) {
	told, err := wasTold(ctx, log)
	at, _, known, err2 := readAddresses(ctx, setKeys(store, name))
	if err = errors.Join(err, err2); err != nil {
		return Addresses{}, false, fmt.Errorf("publish: addresses of %s: %w", name, err)
	}
	return at, known && told, nil
}

// Bases are the base URLs of published sets, the configured one first.
func (p *Publisher) Bases() []string {
	out := []string{p.base}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, name := range p.names {
		if base := p.sets[name].at.Base; !slices.Contains(out, base) {
			out = append(out, base)
		}
	}
	return out
}

// mostFormer is the number of former prefixes with redirected names.
const mostFormer = 8

// place is the address of a set, and so the addresses of its documents and the links to them.
type place struct {
	Addresses          // in force; the configured ones are in SetConfig and in the publisher
	former    []string // prefixes before Prefix, the last one first
	set       string   // its name
	url       string   // Base + "/" + set
}

func newPlace(set string, at Addresses, former []string) place {
	return place{at, former, set, at.Base + "/" + set}
}

// readAddresses gives the addresses in force; known is false when nothing has been published yet.
func readAddresses(ctx context.Context, r kv.Reader) (at Addresses, former []string, known bool, err error) {
	var gen genRecord
	if known, err = getJSON(ctx, r, []byte("g"), &gen); err != nil || known {
		return Addresses{gen.Base, gen.Prefix}, gen.Former, known, err
	}
	var anew anewRecord
	if known, err = getJSON(ctx, r, []byte("z"), &anew); err != nil || !known {
		return Addresses{}, nil, false, err
	}
	return Addresses{anew.Base, anew.Prefix}, anew.Former, true, nil
}

// wasTold tells whether a set ever had something to publish. Before that nobody has an address of
// it, so the configured ones are in force.
func wasTold(ctx context.Context, log *changetrack.Log) (bool, error) {
	view := log.View(ctx)
	head, _ := view.Head()
	return head > 0, errors.Join(view.Err(), view.Close())
}

// moved gives the set at its new addresses if the log, after a sequence, has a move; nil otherwise.
func (s *set) moved(ctx context.Context, view *changetrack.View, after uint64) (*set, error) {
	c, ok, err := view.Rebased(ctx)
	if err != nil || !ok || c.Sequence <= after {
		return nil, err
	}
	var m Move
	if err := json.Unmarshal([]byte(c.Note), &m); err != nil || m.To.Base == "" {
		return nil, fmt.Errorf("change %d of the log does not say to which addresses the set moves: %q (%v)", c.Sequence, clip.Middle(c.Note), err)
	}
	next := &set{p: s.p, cfg: s.cfg, kv: s.kv, files: s.files, sizes: s.sizes, locks: s.locks, inventory: inventory.New(s.kv), names: s.names}
	former := s.at.former
	if m.To.Prefix != s.at.Prefix {
		former = slices.DeleteFunc(append([]string{s.at.Prefix}, former...), func(p string) bool { return p == m.To.Prefix })
		former = former[:min(len(former), mostFormer)]
	}
	next.settle(m.To, former)
	next.archive.docEntries = s.archive.docEntries
	next.archive.list.Store(s.archive.list.Load())
	return next, nil
}

// anew drops all lists and dumps of s, so next begins with none. next may be s itself. Running
// readers keep their view. The caller holds s.publishing.
func (s *set) anew(ctx context.Context, next *set, generation uint64) (*set, error) {
	s.dumping.Lock()
	defer s.dumping.Unlock()
	if err := startAnew(ctx, s.kv, generation, &next.at); err != nil {
		return s, err
	}
	if next == s {
		s.dump.Store(nil)
		s.changeDumps.Store(&[]kept.Package{})
	}
	return next, next.openDumps(ctx) // there are none: their files are removed
}

// present gives the present set and its snapshot. The snapshot is nil when there is none; release
// it. The set is nil when there is none of that name.
func (p *Publisher) present(ctx context.Context, name string) (*set, *snapshot) {
	for {
		s := p.lookup(name)
		if s == nil {
			return nil, nil
		}
		if snap := s.acquire(ctx); snap != nil || s == p.lookup(name) {
			return s, snap
		}
	}
}

// put makes a set the one of its name.
func (p *Publisher) put(s *set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets[s.cfg.Name] = s
	bases := []string{p.base}
	for _, s := range p.sets {
		bases = append(bases, s.at.Base)
	}
	var paths []string
	for _, base := range bases {
		if u, err := url.Parse(base); err == nil && u.EscapedPath() != "" && !slices.Contains(paths, u.EscapedPath()) {
			paths = append(paths, u.EscapedPath())
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return len(b) - len(a) })
	p.paths.Store(&paths)
}

// movedError reports a NAME with a former prefix.
type movedError struct{ entity string }

func (e *movedError) Error() string { return "the resource has moved" }

// formerly finds the entity of a NAME with a former prefix.
func (a *place) formerly(ctx context.Context, snap *snapshot, name string) error {
	for _, prefix := range a.former {
		entity, err := naming.Decode(name, prefix)
		if errors.Is(err, naming.ErrHashed) {
			key, _ := naming.Hashed(name)
			if st, err := snap.view.EntityByKey(ctx, key); err == nil && naming.Encode(st.Entity, prefix) == name {
				entity = st.Entity
			}
		}
		if entity == "" {
			continue
		}
		if _, err := snap.view.Entity(ctx, entity); err == nil && naming.Encode(entity, a.Prefix) != name {
			return &movedError{entity}
		}
	}
	return nil
}

func (a *place) redirect(entity, folder, rest, query string) error {
	_, format, _ := offer.BySuffix(rest)
	to := a.url + "/" + folder + "/" + naming.Encode(entity, a.Prefix)
	if format != "" {
		to += offer.Suffix(format)
	}
	if query != "" {
		to += "?" + naming.HeaderSafe(query)
	}
	return &statusError{code: http.StatusMovedPermanently, reason: "This resource has moved to another address of this source.", location: to, detail: []string{to}}
}
