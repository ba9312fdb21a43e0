package rdfres

import (
	"strconv"
	"strings"
)

// docLabels names the blank nodes of one document while it is read: those with
// a label keep it, those without one are called anon-1, anon-2 and so on, and
// the two never meet.
type docLabels struct {
	last int
	odd  map[string]Term // labels of the document that begin as ours do
	used map[Term]bool   // the terms given for them
}

const anonPrefix = "anon-"

// fresh names a node that has no label.
func (d *docLabels) fresh() Term {
	for {
		d.last++
		if t := Term("_:" + anonPrefix + strconv.Itoa(d.last)); !d.used[t] {
			return t
		}
	}
}

// of is the term of a label of the document.
func (d *docLabels) of(label string) Term {
	t := NewBlank(label)
	if !strings.HasPrefix(label, anonPrefix) {
		return t
	}
	if known, ok := d.odd[label]; ok {
		return known
	}
	if d.odd == nil {
		d.odd, d.used = map[string]Term{}, map[Term]bool{}
	}
	for d.given(t) || d.used[t] {
		t = "_:" + anonPrefix + "x-" + t[2:]
	}
	d.odd[label] = t
	d.used[t] = true
	return t
}

// given tells whether fresh has given t.
func (d *docLabels) given(t Term) bool {
	n, err := strconv.Atoi(string(t[len("_:")+len(anonPrefix):]))
	return err == nil && n > 0 && n <= d.last && !d.used[t] && t == Term("_:"+anonPrefix+strconv.Itoa(n))
}
