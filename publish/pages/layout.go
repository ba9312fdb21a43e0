package pages

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Limits of a laid out description.
const (
	openValues = 20  // of a property, before the fold
	mostValues = 200 // of a property, with the folded ones
	mostRows   = 500 // properties of a node
	mostNodes  = 500 // further nodes on a page
	mostDepth  = 8   // of nested blank nodes
	longText   = 800 // bytes of a literal before the fold
	mostText   = 20000
)

// Value is an object on a page: a text, a link, a nested node, or a list.
type Value struct {
	Text, Rest           string // Rest: the folded part of a long text
	Cut                  bool   // and there is more of it
	Href, Title          string
	Lang, Datatype       string
	Node                 string // anchor of a nested node
	Rows                 []Row
	List                 []Value
	ListMore             int
	IsNode, IsList, Here bool
	Changed              *Changed // in a comparison; nil: all of it
}

// Row is a property with its values.
type Row struct {
	IRI, Name, Href string
	Values, Folded  []Value
	More            int // left out
}

// Section is a further node of a description.
type Section struct {
	Name, Node string
	Rows       []Row
}

// Layout is a description laid out for people.
type Layout struct {
	Label, Lang string // Label: "" without one
	Comment     string
	Types       []Value
	Rows        []Row
	Others      []Section
	OthersMore  int
}

// resolver tells the label and the address of an IRI in this set; "" and "" for another.
type resolver func(iri string) (label, href string)

// describer lays out the triples of one description.
type describer struct {
	here      resolver
	bySubject map[rdfres.Term][]rdfres.Triple
	shown     map[rdfres.Term]bool // blank nodes
	deep      []rdfres.Term        // blank nodes too deep to be shown nested
}

const (
	rdfType  = nsRDF + "type"
	rdfFirst = nsRDF + "first"
	rdfRest  = nsRDF + "rest"
	rdfNil   = nsRDF + "nil"
	rdfList  = nsRDF + "List"
)

// lay lays out the triples about an entity, and then those about others.
func lay(entity string, triples []rdfres.Triple, here resolver) *Layout {
	d := &describer{here: here, bySubject: map[rdfres.Term][]rdfres.Triple{}, shown: map[rdfres.Term]bool{}}
	var subjects []rdfres.Term
	for _, t := range triples {
		if _, ok := d.bySubject[t.S]; !ok {
			subjects = append(subjects, t.S)
		}
		d.bySubject[t.S] = append(d.bySubject[t.S], t)
	}
	subject := rdfres.NewIRI(entity)
	l := &Layout{Label: clip.Middle(rdfres.Label(subject, d.bySubject[subject]))}
	for _, t := range d.bySubject[subject] {
		if text, lang, _ := literal(t.O); lang != "" && clip.Middle(text) == l.Label {
			l.Lang = lang
		}
	}
	l.Comment = comment(d.bySubject[subject])
	for _, r := range d.rows(subject, 0) {
		if r.IRI == rdfType {
			for i := range r.Values {
				if v := &r.Values[i]; v.Text == v.Title {
					v.Text = localName(v.Title)
				}
			}
			if l.Types = r.Values; len(r.Folded)+r.More == 0 {
				continue // all of them are in the heading
			}
		}
		l.Rows = append(l.Rows, r)
	}
	for len(d.deep)+len(subjects) > 0 { // not shown nested before: deep ones, orphans, incoming triples
		next := &d.deep
		if len(d.deep) == 0 {
			next = &subjects
		}
		s := (*next)[0]
		if *next = (*next)[1:]; s == subject || d.shown[s] {
			continue
		}
		if len(l.Others) == mostNodes {
			l.OthersMore++
			continue
		}
		o := Section{Name: "About " + clip.Middle(shortTerm(s))}
		if s.Kind() == rdfres.KindBlank {
			d.shown[s] = true
			o.Name, o.Node = "A node without a name", s.Label()
		}
		o.Rows = d.rows(s, 0)
		l.Others = append(l.Others, o)
	}
	return l
}

func literal(t rdfres.Term) (text, lang, datatype string) {
	if t.Kind() != rdfres.KindLiteral {
		return "", "", ""
	}
	return t.Literal()
}

// commentProperties describe an entity in a sentence.
var commentProperties = []string{nsRDFS + "comment", nsSKOS + "definition", "http://schema.org/description", "https://schema.org/description", "http://purl.org/dc/terms/description", "http://dbpedia.org/ontology/abstract"}

func comment(ts []rdfres.Triple) string {
	best, rank := "", len(commentProperties)*2
	for _, t := range ts {
		i := slices.Index(commentProperties, t.P.IRI())
		text, lang, _ := literal(t.O)
		if i < 0 || text == "" {
			continue
		}
		r := i * 2
		if lang != "" && !strings.HasPrefix(strings.ToLower(lang), "en") {
			r++
		}
		if r < rank {
			best, rank = text, r
		}
	}
	return clip.Middle(strings.Join(strings.Fields(best), " "))
}

// rank puts names and descriptions before the rest.
func rank(iri string) int {
	switch {
	case iri == rdfType:
		return 0
	case strings.HasSuffix(iri, "abel") || iri == "http://schema.org/name" || iri == "https://schema.org/name" || strings.HasSuffix(iri, "/title"):
		return 1
	case slices.Contains(commentProperties, iri):
		return 2
	}
	return 3
}

func (d *describer) rows(subject rdfres.Term, depth int) []Row {
	var rows []Row
	at := map[rdfres.Term]int{}
	objects := [][]rdfres.Term{}
	for _, t := range d.bySubject[subject] {
		i, ok := at[t.P]
		if !ok {
			i = len(rows)
			at[t.P] = i
			rows, objects = append(rows, Row{IRI: t.P.IRI()}), append(objects, nil)
		}
		objects[i] = append(objects[i], t.O)
	}
	for i := range rows {
		r := &rows[i]
		r.Name = propertyName(r.IRI)
		if naming.Absolute(r.IRI) {
			r.Href = r.IRI
		}
		for n, o := range objects[i] {
			if n >= mostValues || i >= mostRows {
				r.More = len(objects[i]) - n
				break
			}
			if n < openValues {
				r.Values = append(r.Values, d.value(o, depth))
			} else {
				r.Folded = append(r.Folded, d.value(o, depth))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		if x, y := rank(a.IRI), rank(b.IRI); x != y {
			return x - y
		}
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return rows
}

func (d *describer) value(o rdfres.Term, depth int) Value {
	switch o.Kind() {
	case rdfres.KindIRI:
		iri := o.IRI()
		if iri == rdfNil {
			return Value{IsList: true, Title: iri}
		}
		v := Value{Text: shortIRI(iri), Title: iri}
		if label, href := d.here(iri); href != "" {
			v.Href, v.Here = href, true
			if label != "" {
				v.Text = label
			}
		} else if naming.Absolute(iri) {
			v.Href = iri
		}
		v.Text = clip.Middle(v.Text)
		return v
	case rdfres.KindBlank:
		if items, ok := d.list(o); ok {
			v := Value{IsList: true, Node: o.Label()}
			for i, item := range items {
				if i == mostValues {
					v.ListMore = len(items) - i
					break
				}
				v.List = append(v.List, d.value(item, depth+1))
			}
			return v
		}
		if len(d.bySubject[o]) > 0 && !d.shown[o] && depth < mostDepth {
			d.shown[o] = true
			return Value{IsNode: true, Node: o.Label(), Rows: d.rows(o, depth+1)}
		}
		v := Value{Text: "_:" + o.Label()}
		if len(d.bySubject[o]) > 0 {
			v.Href = "#" + o.Label()
			d.deep = append(d.deep, o)
		}
		return v
	}
	lexical, lang, datatype := o.Literal()
	v := Value{Text: lexical, Lang: lang}
	if len(lexical) > longText {
		cut := longText
		if i := strings.LastIndexByte(lexical[:cut], ' '); i > cut/2 {
			cut = i
		}
		v.Text, v.Rest = strings.ToValidUTF8(lexical[:cut], ""), lexical[len(strings.ToValidUTF8(lexical[:cut], "")):]
		if len(v.Rest) > mostText {
			v.Rest, v.Cut = strings.ToValidUTF8(v.Rest[:mostText], ""), true
		}
	}
	if lang == "" && datatype != nsXSD+"string" {
		v.Datatype, v.Title = shortIRI(datatype), datatype
	}
	return v
}

// list gives the items of an RDF list, if its nodes hold nothing else and lead to the end once. Its nodes are
// shown then.
func (d *describer) list(head rdfres.Term) (items []rdfres.Term, ok bool) {
	var nodes []rdfres.Term
	seen := map[rdfres.Term]bool{}
	for node := head; ; {
		if node.Kind() == rdfres.KindIRI && node.IRI() == rdfNil {
			break
		}
		ts := d.bySubject[node]
		if node.Kind() != rdfres.KindBlank || len(ts) > 3 || d.shown[node] || seen[node] {
			return nil, false
		}
		seen[node] = true
		var first, rest rdfres.Term
		for _, t := range ts {
			switch p := t.P.IRI(); {
			case p == rdfFirst && first == "":
				first = t.O
			case p == rdfRest && rest == "":
				rest = t.O
			case p == rdfType && t.O.Kind() == rdfres.KindIRI && t.O.IRI() == rdfList:
			default:
				return nil, false
			}
		}
		if first == "" || rest == "" {
			return nil, false
		}
		nodes, items, node = append(nodes, node), append(items, first), rest
	}
	for _, n := range nodes {
		d.shown[n] = true
	}
	return items, true
}
