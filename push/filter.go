package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// filter is the part of the changes wanted by a subscriber; the zero value is all. Of each key one
// value must match.
type filter struct {
	classes, prefixes, changes []string
}

// Limits of what a stranger may ask to be compared with every change.
const (
	mostValues   = 16
	longestValue = 1024
)

func parseFilter(q url.Values) (f filter, err error) {
	for _, k := range []struct {
		name string
		to   *[]string
	}{{"class", &f.classes}, {"prefix", &f.prefixes}, {"change", &f.changes}} {
		values := slices.Compact(slices.Sorted(slices.Values(q[k.name])))
		if len(values) > mostValues {
			return f, fmt.Errorf("%s has %d values, at most %d", k.name, len(values), mostValues)
		}
		for _, v := range values {
			if v == "" || len(v) > longestValue {
				return f, fmt.Errorf("%s has a value of %d characters, want 1 to %d", k.name, len(v), longestValue)
			}
		}
		*k.to = values
	}
	for _, c := range f.changes {
		if c != resourcesync.Created && c != resourcesync.Updated && c != resourcesync.Deleted {
			return f, fmt.Errorf("change %q: want created, updated or deleted", clip.Middle(c))
		}
	}
	return f, nil
}

// unknownKey refuses keys beside those of a filter, and these: a misspelt one would ask for all.
func unknownKey(q url.Values, more ...string) error {
	for _, key := range slices.Sorted(maps.Keys(q)) {
		if known := append([]string{"class", "prefix", "change"}, more...); !slices.Contains(known, key) {
			return fmt.Errorf("%q is no key here: want %s", clip.Middle(key), strings.Join(known, ", "))
		}
	}
	return nil
}

func (f *filter) all() bool { return len(f.classes)+len(f.prefixes)+len(f.changes) == 0 }

// query is the filter as a part of an address: one form for each filter.
func (f *filter) query() string {
	q := url.Values{}
	for name, values := range map[string][]string{"class": f.classes, "prefix": f.prefixes, "change": f.changes} {
		if len(values) > 0 {
			q[name] = values
		}
	}
	return q.Encode()
}

// takes tells whether a change is wanted. A class is that of the description before or after the
// change.
func (f *filter) takes(ctx context.Context, view *changetrack.View, c *changetrack.Change) (bool, error) {
	if len(f.changes) > 0 && !slices.Contains(f.changes, string(c.Kind)) {
		return false, nil
	}
	name := c.Entity
	if c.OfFile() {
		name = c.File
	}
	if len(f.prefixes) > 0 && !slices.ContainsFunc(f.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return false, nil
	}
	if len(f.classes) == 0 {
		return true, nil
	}
	for _, v := range []*changetrack.Version{c.After, c.Before} {
		if v == nil {
			continue
		}
		found, err := f.isOf(ctx, view, c.Entity, v)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

const rdfType = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

func (f *filter) isOf(ctx context.Context, view *changetrack.View, entity string, v *changetrack.Version) (bool, error) {
	blob, err := view.Representation(ctx, entity, v.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil // its classes are not known any more: told once too often is better
	}
	if err != nil {
		return false, err
	}
	data, err := blob.Bytes()
	if err != nil {
		return false, err
	}
	triples, err := codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
	for _, t := range triples {
		if t.P.IRI() == rdfType && t.S.Kind() == rdfres.KindIRI && t.S.IRI() == entity && t.O.Kind() == rdfres.KindIRI && slices.Contains(f.classes, t.O.IRI()) {
			return true, nil
		}
	}
	return false, err
}
