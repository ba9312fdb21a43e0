package syntax

import (
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Labels names the blank nodes of one document while it is read: those with
// a label keep it, those without one are called anon-1, anon-2 and so on, and
// the two never meet.
type Labels struct {
	last int
	odd  map[string]rdfres.Term // labels of the document with our prefix
	used map[rdfres.Term]bool   // the terms given for them
}

const AnonPrefix = "anon-"

// Fresh names a node without a label.
func (d *Labels) Fresh() rdfres.Term {
	for {
		d.last++
		if t := rdfres.Term("_:" + AnonPrefix + strconv.Itoa(d.last)); !d.used[t] {
			return t
		}
	}
}

// Of is the term of a label of the document.
func (d *Labels) Of(label string) rdfres.Term {
	t := rdfres.NewBlank(label)
	if !strings.HasPrefix(label, AnonPrefix) {
		return t
	}
	if known, ok := d.odd[label]; ok {
		return known
	}
	if d.odd == nil {
		d.odd, d.used = map[string]rdfres.Term{}, map[rdfres.Term]bool{}
	}
	for d.given(t) || d.used[t] {
		t = "_:" + AnonPrefix + "x-" + t[2:]
	}
	d.odd[label] = t
	d.used[t] = true
	return t
}

// given tells whether fresh has given t.
func (d *Labels) given(t rdfres.Term) bool {
	n, err := strconv.Atoi(string(t[len("_:")+len(AnonPrefix):]))
	return err == nil && n > 0 && n <= d.last && !d.used[t] && t == rdfres.Term("_:"+AnonPrefix+strconv.Itoa(n))
}
