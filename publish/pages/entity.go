package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Limits of what a page reads of the log.
const (
	mostLaid     = 4 << 20  // bytes of a laid out representation
	mostLocal    = 300      // IRIs looked up in the set
	mostLabels   = 60       // linked descriptions read for their label
	labelBytes   = 64 << 10 // of such a description
	shortHistory = 8        // changes on the page of an entity
)

// Format is a form of a description to be read or kept.
type Format struct{ Name, Type, View, Download, File string }

// Entity is the page of a description, or of one version.
type Entity struct {
	Frame      Frame
	Layout     *Layout
	IRI        string
	Linked     bool // the IRI is an address
	Formats    []Format
	Deleted    *Time // no longer described since then: the version before is shown
	Version    *Time // not the present version, but the one of that time
	Now        string
	TooLong    string // its length, if it is not laid out
	Changes    []Change
	History    string  // address of the whole history; "": there is none
	Diff       []Group // made by this version
	Modified   Time
	Triples    string
	Hash, Main string
}

// Entity makes the page of an entity in its present version, of a deleted one in its last, or with
// memento of the version v.
func (s *Set) Entity(ctx context.Context, st *changetrack.State, v *changetrack.Version, memento bool) ([]byte, error) {
	base := s.Generic(st.Entity)
	p := &Entity{IRI: st.Entity, Linked: naming.Absolute(st.Entity), Modified: At(v.Time), Triples: Count(int64(v.Triples), "triple", "triples"), Hash: v.Fixity.SHA256.String(), Main: formatName(v.Format), Layout: &Layout{}}
	var triples []rdfres.Triple
	if v.Fixity.Length > mostLaid {
		p.TooLong = Bytes(v.Fixity.Length)
	} else {
		var err error
		if triples, err = s.triples(ctx, st.Entity, v); err != nil {
			return nil, err
		}
		p.Layout = lay(st.Entity, triples, s.resolver(ctx))
	}
	if p.Layout.Label == "" {
		p.Layout.Label = localName(st.Entity)
	}
	query := ""
	switch {
	case memento:
		t := At(v.Time)
		p.Version = &t
		if query = fmt.Sprintf("?version=%d", v.Sequence); st.Current != nil {
			p.Now = base + ".html"
		}
	case st.Current == nil:
		t := At(st.Deleted.Time)
		p.Deleted, query = &t, fmt.Sprintf("?version=%d", v.Sequence)
	}
	if p.Frame = s.frame(p.Layout.Label); !s.Static {
		p.Frame.Links = append(p.Frame.Links, HeadLink{Rel: "canonical", Href: base})
	}
	p.Frame.About = p.Layout.Comment
	name := naming.Encode(st.Entity, s.Prefix)
	for _, f := range offer.Formats(v) {
		if f == offer.HTML || s.Static && f == rdfres.RDFXML && f != v.Format { // lists do not offer it, so a site has none
			continue
		}
		address := base + offer.Suffix(f) + query
		x := Format{Name: formatName(f), Type: offer.MediaType(f), View: address, Download: address, File: name[strings.LastIndexAny(name, "/:")+1:] + offer.Suffix(f)}
		if join := "?"; !s.Static {
			if query != "" {
				join = "&"
			}
			x.View += join + "as=text"
		}
		p.Formats = append(p.Formats, x)
		p.Frame.Links = append(p.Frame.Links, HeadLink{Rel: "alternate", Type: x.Type, Href: address})
	}
	if s.Static {
		return write("entity.html", p)
	}
	h, err := s.changes(ctx, st.Entity, 0, shortHistory)
	if err != nil {
		return nil, err
	}
	p.Changes, p.History = h.Rows, s.URL+"/history/"+name
	if memento && triples != nil {
		if before := h.before(v); before != nil && before.Fixity.Length <= mostLaid {
			if old, err := s.triples(ctx, st.Entity, before); err == nil { // otherwise it is no longer kept
				removed, added := missing(old, triples), missing(triples, old)
				p.Diff = groups(st.Entity, removed[:min(len(removed), mostLines)], added[:min(len(added), mostLines)], s.resolver(ctx))
			}
		}
	}
	return write("entity.html", p)
}

// resolver finds IRIs in the set. It reads a bounded number of labels.
func (s *Set) resolver(ctx context.Context) resolver {
	type found struct{ label, href string }
	known, labels := map[string]found{}, 0
	return func(iri string) (string, string) {
		if f, ok := known[iri]; ok {
			return f.label, f.href
		}
		if len(known) >= mostLocal {
			return "", ""
		}
		var f found
		if st, err := s.View.Entity(ctx, iri); err == nil && st.Current != nil {
			f.href = s.Generic(iri) + ".html"
			if labels++; labels <= mostLabels && st.Current.Fixity.Length <= labelBytes {
				if ts, err := s.triples(ctx, iri, st.Current); err == nil {
					f.label = clip.Middle(rdfres.Label(rdfres.NewIRI(iri), ts))
				}
			}
		}
		known[iri] = f
		return f.label, f.href
	}
}

// ErrNotKept is a version without bytes.
var ErrNotKept = errors.New("this version is not kept")

// triples reads a version.
func (s *Set) triples(ctx context.Context, entity string, v *changetrack.Version) ([]rdfres.Triple, error) {
	blob, err := s.View.Representation(ctx, entity, v.Sequence)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	data, err := blob.Bytes()
	if err != nil {
		return nil, err
	}
	return codec.Decode(v.Format, data, rdfres.ReadOptions{Name: entity})
}
