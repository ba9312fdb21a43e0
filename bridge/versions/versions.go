// Package versions finds the descriptions of an entity at points of a log, and compares them.
package versions

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// ErrPoint comes for a malformed point of the log.
var ErrPoint = errors.New("is neither a sequence nor a time like 2026-01-31T12:00:00Z")

// ErrBeyond comes for a sequence beyond the end of the log.
var ErrBeyond = errors.New("the log is not there yet")

// point is a place in the log.
type point struct {
	sequence uint64
	time     time.Time // used when it is not zero
}

// before tells whether a change comes after the point.
func (p point) before(c *changetrack.Change) bool {
	if !p.time.IsZero() {
		return c.Time.After(p.time)
	}
	return c.Sequence > p.sequence
}

func parsePoint(s string) (p point, err error) {
	if p.sequence, err = strconv.ParseUint(s, 10, 64); err == nil {
		return p, nil
	}
	if p.time, err = resourcesync.ParseTime(s, true); err != nil || p.time.IsZero() {
		return p, fmt.Errorf("%s: %w", s, ErrPoint)
	}
	return p, nil
}

// At finds the versions at two points; nil without the entity. An entity that was never there gives
// kv.ErrNotFound.
func At(ctx context.Context, v *changetrack.View, entity, from, to string) (before, after *changetrack.Version, err error) {
	st, err := v.Entity(ctx, entity)
	if err != nil {
		return nil, nil, err
	}
	var first, last *point
	for _, p := range []struct {
		text string
		into **point
	}{{from, &first}, {to, &last}} {
		if p.text == "" {
			continue
		}
		at, err := parsePoint(p.text)
		if err != nil {
			return nil, nil, err
		}
		if head, _ := v.Head(); at.time.IsZero() && at.sequence > head {
			return nil, nil, fmt.Errorf("sequence %d: %w; its newest change is %d", at.sequence, ErrBeyond, head)
		}
		*p.into = &at
	}
	known := false // the history has begun
	for c, err := range v.History(ctx, entity) {
		if err != nil {
			return nil, nil, err
		}
		if !known { // the state before the first kept change
			known, before, after = true, c.Before, c.Before
		}
		if last == nil || !last.before(&c) {
			after = c.After
			if first == nil {
				before = c.Before
			}
		}
		if first != nil && !first.before(&c) {
			before = c.After
		}
	}
	if !known {
		before, after = st.Current, st.Current
	}
	return before, after, nil
}

// Lines gives the canonical N-Triples of a version, none of nil.
func Lines(ctx context.Context, v *changetrack.View, entity string, ver *changetrack.Version) ([]string, error) {
	if ver == nil {
		return nil, nil
	}
	blob, err := v.Representation(ctx, entity, ver.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("the version of sequence %d is no longer kept (retention.versions)", ver.Sequence)
	}
	if err != nil {
		return nil, err
	}
	data, err := blob.Bytes()
	if err == nil && ver.Format != rdfres.NTriples {
		var ts []rdfres.Triple
		if ts, err = codec.Decode(ver.Format, data, rdfres.ReadOptions{Name: entity}); err == nil {
			data, err = codec.Encode(rdfres.NTriples, entity, ts)
		}
	}
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' }), nil
}

// Compare gives the lines in only one of two lists, in their order.
func Compare(before, after []string) (removed, added []string) {
	only := func(list, other []string) []string {
		there := make(map[string]bool, len(other))
		for _, l := range other {
			there[l] = true
		}
		out := []string{}
		for _, l := range list {
			if !there[l] {
				out = append(out, l)
			}
		}
		return out
	}
	return only(before, after), only(after, before)
}
