package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// errCannotCarry stands for rdfres.ErrCannotCarry in an answer.
func cannotCarry(f rdfres.Format, loc string) *statusError {
	return notFound("This description cannot be written as %s: the format cannot carry one of its terms.", offer.MediaType(f)).
		hint("Its main representation is %s.", loc)
}

// find gives the state of the entity with a NAME.
func (s *set) find(ctx context.Context, snap *snapshot, name string) (changetrack.State, error) {
	entity, err := naming.Decode(name, s.at.Prefix)
	var st changetrack.State
	switch {
	case errors.Is(err, naming.ErrHashed):
		key, _ := naming.Hashed(name)
		st, err = snap.view.EntityByKey(ctx, key)
		if err == nil && naming.Encode(st.Entity, s.at.Prefix) != name {
			err = kv.ErrNotFound
		}
	case err != nil:
		if err := s.at.formerly(ctx, snap, name); err != nil {
			return st, err
		}
		without := ""
		if s.at.Prefix != "" {
			without = fmt.Sprintf(" without %q", s.at.Prefix)
		}
		return st, notFound("%q is not the name of an entity.", clip.Middle(name)).
			hint("A name is the entity's IRI%s, with ~XX for what does not stand for itself.", without)
	default:
		st, err = snap.view.Entity(ctx, entity)
	}
	if errors.Is(err, kv.ErrNotFound) {
		if err := s.at.formerly(ctx, snap, name); err != nil {
			return st, err
		}
		return st, notFound("The set %s has no description of that name.", s.cfg.Name).
			hint("All its resources are listed at %s/resourcelist.xml.", s.at.url)
	}
	return st, err
}

// version finds a version of an entity by its sequence.
func (snap *snapshot) version(ctx context.Context, st *changetrack.State, sequence uint64) (*changetrack.Version, error) {
	if st.Current != nil && st.Current.Sequence == sequence {
		return st.Current, nil
	}
	for c, err := range snap.view.History(ctx, st.Entity) {
		if err != nil {
			return nil, err
		}
		if c.After != nil && c.After.Sequence == sequence {
			return c.After, nil
		}
		if c.Before != nil && c.Before.Sequence == sequence {
			return c.Before, nil
		}
	}
	return nil, notFound("The version %d of this description is not kept.", sequence).
		hint("The versions that are kept are listed at %s.", snap.set.at.timeMap(st.Entity, ""))
}

func (a *place) generic(entity string) string {
	return a.url + "/r/" + naming.Encode(entity, a.Prefix)
}

// serveDescription answers /SET/r/NAME, NAME.SUFFIX and both with ?version=SEQ.
func (s *set) serveDescription(w http.ResponseWriter, r *http.Request, snap *snapshot, rest string) error {
	rest, err := unescapePath(rest)
	if err != nil {
		return err
	}
	name, format, other := offer.BySuffix(rest)
	switch {
	case other:
		return errNoDocument
	case format == offer.HTML:
		return s.servePage(w, r, snap, name, offer.Suffix(format))
	case format != "" && r.URL.RawQuery == "": // the usual request of mirrors
		key := s.cfg.Name + "\x00" + strconv.FormatUint(snap.gen.Number, 36) + "\x00" + rest
		d, err := s.p.hot.Get(r.Context(), key, func() (*document, error) {
			return s.description(r.Context(), snap, name, format, "")
		})
		return s.p.send(w, r, d, err)
	}
	if format != "" {
		d, err := s.description(r.Context(), snap, name, format, r.URL.Query().Get("version"))
		if err == nil && r.URL.Query().Get("as") == "text" { // to be read in a browser
			own := *d
			own.contentType, d = "text/plain; charset=utf-8", &own
		}
		return s.p.send(w, r, d, err)
	}
	return s.negotiated(w, r, snap, name)
}

// description is one format of a description, or of a version of it, with its Link header.
func (s *set) description(ctx context.Context, snap *snapshot, name string, format rdfres.Format, version string) (*document, error) {
	suffix := offer.Suffix(format)
	st, v, err := s.choose(ctx, snap, name, suffix, version)
	if err != nil {
		return nil, err
	}
	return s.linked(ctx, snap, name, suffix, &st, v, format, version != "")
}

// choose finds an entity and the requested version, "" the present one.
func (s *set) choose(ctx context.Context, snap *snapshot, name, suffix, version string) (st changetrack.State, v *changetrack.Version, err error) {
	if st, err = s.find(ctx, snap, name); err != nil {
		return st, nil, err
	}
	if version == "" {
		if st.Current == nil {
			return st, nil, s.at.gone(&st, suffix)
		}
		return st, st.Current, nil
	}
	sequence, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return st, nil, &statusError{code: http.StatusBadRequest, reason: fmt.Sprintf("version=%q: want the number of a change.", clip.Middle(version))}
	}
	v, err = snap.version(ctx, &st, sequence)
	return st, v, err
}

func (s *set) linked(ctx context.Context, snap *snapshot, name, suffix string, st *changetrack.State, v *changetrack.Version, format rdfres.Format, memento bool) (*document, error) {
	d, err := s.represent(ctx, snap, st, v, format, memento)
	if err != nil {
		return nil, err
	}
	d.linked = &linked{&s.at, name, suffix, st.Entity, v, format, memento}
	if memento {
		d.memento = v.Time
	}
	return d, nil
}

// negotiated answers at the address without suffix (RFC 9110, section 12).
func (s *set) negotiated(w http.ResponseWriter, r *http.Request, snap *snapshot, name string) error {
	version, h := r.URL.Query().Get("version"), w.Header()
	vary(h, "Accept")
	st, v, err := s.choose(r.Context(), snap, name, "", version)
	if page, named := accept.Weight(r.Header["Accept"], "text/html"); err != nil && named && page > 0 {
		return s.servePage(w, r, snap, name, "") // a deleted one has a page
	}
	if err != nil {
		return err
	}
	formats := offer.Formats(v)
	format, ok := offer.Negotiate(r.Header["Accept"], formats)
	if !ok {
		return notAcceptable(s.at.generic(st.Entity), formats)
	}
	h.Set("Content-Location", s.at.generic(st.Entity)+offer.Suffix(format)+versionQuery(v, version != ""))
	if format == offer.HTML {
		return s.servePage(w, r, snap, name, "")
	}
	d, err := s.linked(r.Context(), snap, name, "", &st, v, format, version != "")
	if err != nil {
		h.Del("Content-Location")
		return err
	}
	s.p.answer(w, r, d)
	return nil
}

func versionQuery(v *changetrack.Version, memento bool) string {
	if !memento {
		return ""
	}
	return "?version=" + strconv.FormatUint(v.Sequence, 10)
}

// gone is the answer for a deleted entity, at the address with a suffix. Its versions are still
// there (RFC 7089, 4.5.1).
func (a *place) gone(st *changetrack.State, suffix string) error {
	e := &statusError{code: http.StatusGone, reason: "The entity " + clip.Middle(st.Entity) + " is no longer described here.", link: a.gates(naming.Encode(st.Entity, a.Prefix), suffix)}
	if c := st.Deleted; c != nil {
		e.reason = fmt.Sprintf("The entity %s is no longer described here since %s.", clip.Middle(st.Entity), c.Time.UTC().Format(time.RFC3339))
		if c.Before != nil {
			e.hint("What was there before: %s", versionAddress(a.address(st.Entity, c.Before.Format), c.Before.Sequence))
		}
		e.hint("All versions that are kept: %s", a.timeMap(st.Entity, ""))
	}
	return e
}

// linked holds the parts of a representation's Link header. The header is longer than most packed
// representations, and quickly made.
type linked struct {
	at           *place
	name, suffix string // of the address
	entity       string
	version      *changetrack.Version
	format       rdfres.Format
	memento      bool
}

func (l *linked) header() string {
	return l.at.links(l.name, l.suffix, l.entity, l.version, l.format, l.memento)
}

// links is the Link header: the set of a representation, its other formats, and its versions (RFC
// 8288, RFC 7089). The original resource of a version is the address without the version, either
// the negotiating one or one with a suffix.
func (a *place) links(name, suffix, entity string, v *changetrack.Version, format rdfres.Format, memento bool) string {
	generic := a.url + "/r/" + name
	b := make([]byte, 0, 2048) // most headers fit in it
	text := func(parts ...string) {
		for _, p := range parts {
			b = append(b, p...)
		}
	}
	add := func(rel string, target ...string) {
		if len(b) > 0 {
			text(", ")
		}
		text("<")
		text(target...)
		text(`>; rel="`, rel, `"`)
	}
	add("resourcesync", a.capabilityList())
	if naming.Describable(entity) {
		add("describes", naming.HeaderIRI(entity))
	}
	add("describedby", a.about())
	query := versionQuery(v, memento)
	for _, f := range offer.Formats(v) {
		if f != format {
			add("alternate", generic, offer.Suffix(f), query)
			text(`; type="`, offer.MediaType(f), `"`)
		}
	}
	if memento {
		add("original", generic, suffix)
	} else {
		add("canonical", generic)
		add("memento", versionAddress(generic+suffix, v.Sequence))
		text(`; datetime="`, httpTime(v.Time), `"`)
	}
	text(", ", a.gates(name, suffix))
	return string(b)
}

// represent gives a version in a format: the stored bytes, or bytes converted from them.
func (s *set) represent(ctx context.Context, snap *snapshot, st *changetrack.State, v *changetrack.Version, format rdfres.Format, memento bool) (*document, error) {
	if format == v.Format {
		blob, err := snap.view.Representation(ctx, st.Entity, v.Sequence)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, s.notKept(st, v.Sequence)
		}
		if err != nil {
			return nil, err
		}
		return &document{etag: v.Fixity.SHA256.String()[:32], contentType: offer.ContentType(format), modified: v.Time, immutable: memento, body: blob}, nil
	}
	key := nameTag("as %s %s %s %s", layout, v.Fixity.SHA256, v.Format, format)
	d, err := s.p.cache.Get(ctx, key, func() (*document, error) {
		triples, err := snap.triples(ctx, st.Entity, v)
		if err != nil {
			return nil, err
		}
		data, err := codec.Encode(format, st.Entity, triples)
		if errors.Is(err, rdfres.ErrCannotCarry) {
			return nil, cannotCarry(format, s.at.address(st.Entity, v.Format))
		}
		if err != nil {
			return nil, err
		}
		return packed(data, offer.ContentType(format))
	})
	if err != nil {
		return nil, err
	}
	own := *d // the times are this version's
	own.modified, own.immutable = v.Time, memento
	return &own, nil
}

func (snap *snapshot) triples(ctx context.Context, entity string, v *changetrack.Version) ([]rdfres.Triple, error) {
	data, err := versionBytes(ctx, snap.view, entity, v.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, notFound("The version %d of this description is not kept.", v.Sequence)
	}
	if err != nil {
		return nil, err
	}
	return codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
}

func versionBytes(ctx context.Context, view *changetrack.View, entity string, sequence uint64) ([]byte, error) {
	blob, err := view.Representation(ctx, entity, sequence)
	if err != nil {
		return nil, err
	}
	return blob.Bytes()
}
