package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
)

// Versions in time (RFC 7089). Each address of a description is an original
// resource with a TimeGate and a TimeMap of its own: /SET/r/NAME.ttl has
// /SET/timegate/NAME.ttl and /SET/timemap/NAME.ttl, and its versions are Turtle;
// those of /SET/r/NAME are negotiated, as it is.

const linkFormat = "application/link-format"

// timeMapVersions is how many versions a TimeMap lists. One of more leads to parts.
const timeMapVersions = 2000

func (a *place) timeMap(entity, suffix string) string {
	return a.url + "/timemap/" + naming.Encode(entity, a.Prefix) + suffix
}

// gates are the links from an original resource or a version of it to its TimeGate and TimeMap.
func (a *place) gates(name, suffix string) string {
	return "<" + a.url + "/timegate/" + name + suffix + `>; rel="timegate", <` + a.url + "/timemap/" + name + suffix + `>; rel="timemap"; type="` + linkFormat + `"`
}

// original is an original resource and its kept versions, oldest first.
type original struct {
	s        *set
	address  string
	timeMap  string // address
	name     string // with the suffix
	versions []*changetrack.Version
}

// original finds the resource of NAME or NAME.SUFFIX below /SET/timegate/ or /SET/timemap/.
func (s *set) original(ctx context.Context, snap *snapshot, rest string) (*original, error) {
	rest, err := unescapePath(rest)
	if err != nil {
		return nil, err
	}
	name, format, _ := offer.BySuffix(rest)
	st, err := s.find(ctx, snap, name)
	if err != nil {
		return nil, err
	}
	suffix := ""
	if format != "" {
		suffix = offer.Suffix(format)
	}
	versions, err := snap.versions(ctx, &st)
	if err == nil && len(versions) == 0 {
		err = notFound("No version of %s is kept.", clip.Middle(st.Entity))
	}
	return &original{s: s, address: s.at.generic(st.Entity) + suffix, timeMap: s.at.timeMap(st.Entity, suffix), name: naming.Encode(st.Entity, s.at.Prefix) + suffix, versions: versions}, err
}

// link is the link of one version; i is its place in the list.
func (o *original) link(i int) string {
	v, rel := o.versions[i], "memento"
	if i == len(o.versions)-1 {
		rel = "last " + rel
	}
	if i == 0 {
		rel = "first " + rel
	}
	return fmt.Sprintf("<%s>; rel=%q; datetime=%q", versionAddress(o.address, v.Sequence), rel, httpTime(v.Time))
}

// span is a TimeMap of the versions i up to but not including j.
func (o *original) span(address, rel string, i, j int) string {
	return fmt.Sprintf("<%s>; rel=%q; type=%q; from=%q; until=%q", address, rel, linkFormat, httpTime(o.versions[i].Time), httpTime(o.versions[j-1].Time))
}

// serveTimeGate redirects to the version current at Accept-Datetime, or to the last one (RFC 7089,
// 4.2.1). A time before the first gets the first.
func (s *set) serveTimeGate(w http.ResponseWriter, r *http.Request, snap *snapshot, rest string) error {
	head := w.Header()
	head.Add("Vary", "Accept-Datetime")
	o, err := s.original(r.Context(), snap, rest)
	if err != nil {
		return err
	}
	last := len(o.versions) - 1
	found := last
	if text := r.Header.Get("Accept-Datetime"); text != "" {
		at, err := http.ParseTime(text)
		if err != nil {
			return &statusError{code: http.StatusBadRequest, reason: fmt.Sprintf("Accept-Datetime %q: want a date as in Last-Modified.", clip.Middle(text))}
		}
		at = at.Add(time.Second) // to the end of that second
		found = max(0, sort.Search(len(o.versions), func(i int) bool { return !o.versions[i].Time.Before(at) })-1)
	}
	links := []string{"<" + o.address + `>; rel="original"`, o.span(o.timeMap, "timemap", 0, last+1), o.link(0)}
	if last > 0 {
		links = append(links, o.link(last))
	}
	head.Set("Cache-Control", "no-cache")
	head.Set("Location", versionAddress(o.address, o.versions[found].Sequence))
	head.Set("Link", strings.Join(links, ", "))
	w.WriteHeader(http.StatusFound)
	return nil
}

// serveTimeMap lists the versions in link format (RFC 7089, section 5). If there are very many, it
// lists further TimeMaps, each named by its first version.
func (s *set) serveTimeMap(w http.ResponseWriter, r *http.Request, snap *snapshot, rest string) error {
	o, err := s.original(r.Context(), snap, rest)
	if err != nil {
		return err
	}
	self, from, to, step := o.timeMap, 0, len(o.versions), 1
	if first := r.URL.Query().Get("first"); first != "" {
		n, err := strconv.ParseUint(first, 10, 64)
		from = sort.Search(to, func(i int) bool { return o.versions[i].Sequence >= n })
		if err != nil || from == to {
			return notFound("No version of this description is kept from %q on.", clip.Middle(first)).hint("All that are kept: %s", o.timeMap)
		}
		self, to = o.part(from), min(to, from+s.sizes.timeMapVersions)
	} else if to > s.sizes.timeMapVersions {
		step = s.sizes.timeMapVersions
	}
	lines := []string{"<" + o.address + `>; rel="original"`, o.span(self, "self", from, to), "<" + s.at.url + "/timegate/" + o.name + `>; rel="timegate"`}
	for i := from; i < to; i += step {
		if step > 1 {
			lines = append(lines, o.span(o.part(i), "timemap", i, min(to, i+step)))
		} else {
			lines = append(lines, o.link(i))
		}
	}
	d, err := packed([]byte(strings.Join(lines, ",\n")+"\n"), linkFormat)
	return s.p.send(w, r, d, err)
}

// part is the address of the TimeMap beginning with the version at i.
func (o *original) part(i int) string {
	return fmt.Sprintf("%s?first=%d", o.timeMap, o.versions[i].Sequence)
}

// versions gives the kept versions, oldest first.
func (snap *snapshot) versions(ctx context.Context, st *changetrack.State) ([]*changetrack.Version, error) {
	var vs []*changetrack.Version
	add := func(v *changetrack.Version) error {
		if v == nil || len(vs) > 0 && vs[len(vs)-1].Sequence >= v.Sequence {
			return nil
		}
		if _, err := snap.view.Representation(ctx, st.Entity, v.Sequence); errors.Is(err, kv.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		vs = append(vs, v)
		return nil
	}
	for c, err := range snap.view.History(ctx, st.Entity) {
		if err != nil {
			return nil, err
		}
		if err := add(c.Before); err != nil {
			return nil, err
		}
		if err := add(c.After); err != nil {
			return nil, err
		}
	}
	return vs, add(st.Current)
}
