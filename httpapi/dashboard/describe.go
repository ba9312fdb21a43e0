package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/lru"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const rdfType = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

// Statement is a triple as people read it.
type Statement struct {
	Subject     string // "" for the entity itself
	Property    string
	PropertyIRI string
	Value       string
	IRI         string // of the value
	Lang, Type  string // of a literal
	Only        bool   // the other side does not have it

	line string
}

// Description is a known description of an entity.
type Description struct {
	Label      string
	Types      []string
	Statements []Statement
	More       int // statements that are left out
	Missing    string
}

// mostShown bounds the statements of a page, and mostRead the bytes of a description that is read
// for a label.
const (
	mostShown = 400
	mostRead  = 64 << 10
)

// describe reads N-Triples.
func describe(entity string, data []byte) (d Description, err error) {
	ts, err := codec.Decode(rdfres.NTriples, data, rdfres.ReadOptions{Name: entity, Lax: true})
	if err != nil {
		return d, err
	}
	return descriptionOf(entity, ts), nil
}

func descriptionOf(entity string, ts []rdfres.Triple) (d Description) {
	about := rdfres.NewIRI(entity)
	d.Label = rdfres.Label(about, ts)
	for _, t := range ts {
		s := Statement{Property: localName(t.P.IRI()), PropertyIRI: t.P.IRI(), line: string(t.S) + " " + string(t.P) + " " + string(t.O)}
		switch t.S.Kind() {
		case rdfres.KindIRI:
			if t.S != about {
				s.Subject = localName(t.S.IRI())
			}
		default:
			s.Subject = "_:" + t.S.Label()
		}
		switch t.O.Kind() {
		case rdfres.KindIRI:
			s.IRI, s.Value = t.O.IRI(), localName(t.O.IRI())
			if s.PropertyIRI == rdfType && t.S == about {
				d.Types = append(d.Types, s.IRI)
			}
		case rdfres.KindLiteral:
			s.Value, s.Lang, s.Type = t.O.Literal()
			s.Type = localName(s.Type)
		case rdfres.KindBlank:
			s.Value = "_:" + t.O.Label()
		default:
			s.Value = string(t.O)
		}
		d.Statements = append(d.Statements, s)
	}
	slices.SortStableFunc(d.Statements, func(a, b Statement) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Property, b.Property), cmp.Compare(a.Value, b.Value))
	})
	return d
}

// rank puts types and labels first.
func rank(s Statement) int {
	switch s.Property {
	case "type":
		return 0
	case "label", "prefLabel", "name", "title":
		return 1
	}
	return 2
}

// cut leaves at most so many statements.
func (d *Description) cut(most int) {
	if n := len(d.Statements); n > most {
		d.Statements, d.More = d.Statements[:most], n-most
	}
}

// compare marks the statements of only one side, and puts them first. Of blank nodes nothing is said: a mirror
// is asked for the entity alone.
func compare(a, b *Description) (same bool) {
	same = true
	lines := func(d *Description) map[string]bool {
		out := map[string]bool{}
		for _, s := range d.Statements {
			out[s.line] = true
		}
		return out
	}
	inA, inB := lines(a), lines(b)
	mark := func(d *Description, other map[string]bool) {
		for i := range d.Statements {
			if d.Statements[i].Subject == "" && !other[d.Statements[i].line] {
				d.Statements[i].Only, same = true, false
			}
		}
		slices.SortStableFunc(d.Statements, func(x, y Statement) int {
			switch {
			case x.Only == y.Only:
				return 0
			case x.Only:
				return -1
			}
			return 1
		})
	}
	mark(a, inB)
	mark(b, inA)
	return same
}

// ofSet is the description of an entity in a set, now or at a time.
func (d *Dashboard) ofSet(ctx context.Context, set, entity string, at time.Time) (Description, error) {
	data, _, err := d.b.Describe(ctx, set, entity, at, rdfres.NTriples)
	if err != nil {
		return Description{}, err
	}
	return describe(entity, data)
}

// inStore are the triples of an entity in the store of a mirror, without its blank nodes.
func (d *Dashboard) inStore(ctx context.Context, destination, entity string) (Description, error) {
	ts, err := bridge.ReadMirror(ctx, d.b, destination, entity)
	if err != nil {
		return Description{}, err
	}
	for i := range ts {
		ts[i].O = rdfres.Unskolemize(ts[i].O)
	}
	return descriptionOf(entity, ts), nil
}

// ofMirror is the last description of an entity written into a mirror.
func (d *Dashboard) ofMirror(ctx context.Context, destination, entity string) (Description, error) {
	data, err := d.b.DescribeMirror(ctx, destination, entity, time.Time{}, rdfres.NTriples)
	if err != nil {
		return Description{}, err
	}
	return describe(entity, data)
}

// labels are those of versions; they never change.
type labels struct{ cache *lru.Cache[string] }

func newLabels() labels {
	return labels{lru.New(1<<20, func(key, v string) int64 { return int64(len(key)+len(v)) + 100 })}
}

// of is the label of a version, "" for none.
func (l labels) of(ctx context.Context, set string, v *changetrack.View, entity string, ver *changetrack.Version) string {
	if ver == nil || entity == "" || ver.Fixity.Length > mostRead {
		return ""
	}
	label, err := l.cache.Get(ctx, set+"\x00"+strconv.FormatUint(ver.Sequence, 10)+"\x00"+entity, func() (string, error) {
		blob, err := v.Representation(ctx, entity, ver.Sequence)
		if err != nil {
			return "", err
		}
		data, err := blob.Bytes()
		if err != nil {
			return "", err
		}
		ts, err := codec.Decode(ver.Format, data, rdfres.ReadOptions{Name: entity})
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(rdfres.Label(rdfres.NewIRI(entity), ts)), nil
	})
	if err != nil { // it is no longer kept, or too strange: the entity has its IRI
		return ""
	}
	return label
}
