package rdfres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// probeNS begins the subject and the predicates of probe triples.
const probeNS = "urn:rsbridge:probe:"

// probes are literals for telling the rules apart: each line has a datatype of XSD by local name,
// then lexical forms; "@" has language tags. Each literal gets a predicate of its own, to identify
// its answer.
var probes = []string{
	"integer|1|01|+1|-0|-01|000| 1|1 |9223372036854775807|09223372036854775807|-09223372036854775808|36028797018963967|036028797018963967|36028797018963968|036028797018963968|-036028797018963969|42",
	"int|1|01|-01|+2147483647", "long|01|036028797018963968", "short|01", "byte|-01|7",
	"nonNegativeInteger|01|12", "positiveInteger|01", "nonPositiveInteger|-01", "negativeInteger|-01",
	"unsignedInt|01", "unsignedLong|01", "unsignedShort|01", "unsignedByte|01",
	"decimal|1|1.0|1.10|01.1|+1.1|.5|-.5|-0.0|00|100|0100.00|14073748835532.7|14073748835532.70|14073748835532.80|14073748835532.8|01.4073748835532800|1.40737488355328|1.000000000000000000|0.0000000000000000001|0.00000000000000000010|0.1234567890123456789| 2.0|100000000000000|0140737488355327|140737488355328",
	"double|1|1.0|1E0|1e2|100|0.1|1.10|-0|0.0|INF|+INF|-INF|inf|1.5E300|15E299|1E-7|1E21|123456789|123456790|123456789.5|3.141592653589793|3.1415926535897931|-1.5| 3.0",
	"float|1|1.0|1E0|1e2|0.1|0.10|INF|+INF|-INF|inf|123456789|16777217|3.14159265|3.1415927|3.14159|-1.5|1.5E30| 3.0",
	"boolean|true|1|false|0",
	"dateTime|2020-01-01T00:00:00|2020-01-01T00:00:00Z|2020-01-01T00:00:00+00:00|2020-01-01T00:00:00-00:00|2020-01-01T12:00:00+05:30|2020-01-01T12:00:00.0Z|2020-01-01T12:00:00.100Z|2020-01-01T12:00:00.1230Z|2020-01-01T12:00:00.12340Z|2020-01-01T12:00:00.1234Z|2020-01-01T12:00:00.123456789Z|2020-12-31T24:00:00Z|8100-01-01T00:00:00.50Z|1850-06-01T00:00:00.50-01:00",
	"dateTimeStamp|2020-01-01T12:00:00.50+01:00|2020-01-01T12:00:00Z",
	"date|2020-01-01|2020-01-01Z|2020-01-01+00:00|2020-01-01-00:00|2020-01-01+05:30",
	"time|10:00:00|10:00:00Z|10:00:00+00:00|10:00:00.50|10:00:00.123|10:00:00.1230",
	"gYear|2020|2020Z|2020+00:00", "gYearMonth|2020-01+00:00", "gMonth|--01", "gDay|---01", "gMonthDay|--02-29",
	"dayTimeDuration|PT60S|P1DT24H|PT0S|P1D", "hexBinary|0a|0A", "anyURI|http://example.org/%7Ea", "base64Binary|AQ==",
	"@|en|EN|en-us|en-US|EN-gb|de-Latn-AT|zh-hant-tw|x-Private",
	"integer|99999999999999999999|099999999999999999999", "boolean| true",
	"duration|P1Y|P12M|P0Y|PT60S|P1Y0M|PT36H|-PT1.50S|P400D", "yearMonthDuration|P12M|P1Y|P0Y",
}

// probeGroups are literals with one predicate: a store with one value for them keeps one. Names of
// types stand after the last space.
var probeGroups = [][]string{
	{"1 integer", "1.0 float", "1 boolean"}, {"2 integer", "2.0 decimal"}, {"0.5 decimal", "0.5 double"}, {"3 integer", "03 integer"}, {"true boolean", "1 boolean"},
}

// ProbeTriples are written into a scratch graph of a store, to compare its answer
// (DetectNormalForm). They are literals of every kind ever seen rewritten, none of them ill-typed
// but inf. NaN is not among them: it breaks the index of Virtuoso 7.2.5, and every later insert
// fails. Some stores refuse a request because of a single literal (Virtuoso 7.2.5: xsd:duration,
// integers beyond 64 bits, a boolean with a space; they stand at the end): writers should then
// split it and go on.
func ProbeTriples() []Triple {
	var ts []Triple
	predicate := func() Term { return NewIRI(fmt.Sprintf("%sp%03d", probeNS, len(ts))) }
	subject := NewIRI(probeNS + "literals")
	plain := []string{"plain", " plain ", "a\tb\nc\rd\"e\\f", "caf\u00e9 e\u0301 \U0001F600", ""}
	for _, s := range plain {
		ts = append(ts, Triple{subject, predicate(), NewLiteral(s, "", "")})
	}
	for i, g := range probeGroups {
		p := NewIRI(fmt.Sprintf("%sg%02d", probeNS, i))
		for _, v := range g {
			lexical, local, _ := strings.Cut(v, " ")
			ts = append(ts, Triple{NewIRI(probeNS + "groups"), p, NewLiteral(lexical, "", chars.XSD+local)})
		}
	}
	for _, line := range probes {
		local, values, _ := strings.Cut(line, "|")
		for v := range strings.SplitSeq(values, "|") {
			o := NewLiteral(v, "", chars.XSD+local)
			if local == "@" {
				o = NewLiteral("tagged", v, "")
			}
			ts = append(ts, Triple{subject, predicate(), o})
		}
	}
	return ts
}

// DetectNormalForm finds the rewriting rules of a store: written was given to it (ProbeTriples, or
// any triples without blank nodes), read is its answer.
//
// For each family it chooses the variant under which most of written is in read; then the one
// confusing the fewest terms the store tells apart; then the narrowest. It never chooses a variant
// that takes two terms for one if the store gave both for one subject and predicate. A store may
// also confuse a literal with an earlier one (Jena TDB2: an integer beyond 56 bits comes back as
// the xsd:long of the same digits); this says nothing of the others.
//
// unexplained are the triples of written missing from read under this form (refused, lost, or
// rewritten without a rule), and the triples of read without an origin in written.
func DetectNormalForm(written, read []Triple) (n NormalForm, unexplained []Triple) {
	d := detection{read: map[[2]Term][]Term{}, written: map[[2]Term][]Term{}}
	for _, t := range written {
		d.written[[2]Term{t.S, t.P}] = append(d.written[[2]Term{t.S, t.P}], t.O)
	}
	distinct := map[Term]bool{}
	for _, t := range read {
		d.read[[2]Term{t.S, t.P}] = append(d.read[[2]Term{t.S, t.P}], t.O)
		distinct[t.O] = true
	}
	for o := range distinct {
		d.terms = append(d.terms, o)
	}
	for _, family := range families() {
		best, bestScore := "", d.score(n)
		for _, rule := range family {
			with := NormalForm{Rules: append(slices.Clone(n.Rules), rule)}
			if s := d.score(with); s.less(bestScore) && !d.refutes(with) {
				best, bestScore = rule, s
			}
		}
		if best != "" {
			n.Rules = append(n.Rules, best)
		}
	}
	slices.Sort(n.Rules)
	return n, d.unexplained(n, written, read)
}

// families are the rules by family, the narrower variants first. The rule joining families is last.
func families() (out [][]string) {
	return [][]string{
		{"boolean", "boolean-trimmed"},
		{"decimal-47bit", "decimal-18places", "decimal", "decimal-15places"},
		{"double-62bit", "double", "double-lenient", "double-6digits"},
		{"duration"},
		{"float", "float-trimmed", "float-lenient", "float-6digits"},
		{"integer-56bit", "integer-64bit-one", "integer-64bit-typed", "integer"},
		{"language-case"},
		{"time-ms", "time-18places", "time", "time-us-dated"},
		{"virtuoso-values"},
	}
}

type detection struct {
	written, read map[[2]Term][]Term // objects by subject and predicate
	terms         []Term             // distinct objects of read
}

// score is how badly a normal form explains the answer.
type score struct {
	missed   int // terms written and not found again, or read and never written
	confused int // terms read as different, but one in the normal form
}

func (a score) less(b score) bool {
	return a.missed < b.missed || a.missed == b.missed && a.confused < b.confused
}

func (d *detection) score(n NormalForm) (s score) {
	for key, written := range d.written {
		if read := d.read[key]; len(read) > 0 { // else refused: no rule explains it
			s.missed += missing(n, written, read) + missing(n, read, written)
		}
	}
	forms := make(map[Term]bool, len(d.terms))
	for _, o := range d.terms {
		forms[n.Term(o)] = true
	}
	s.confused = len(d.terms) - len(forms)
	return s
}

// refutes tells whether n takes terms read side by side for one.
func (d *detection) refutes(n NormalForm) bool {
	for _, read := range d.read {
		forms := make(map[Term]Term, len(read))
		for _, o := range read {
			if other, ok := forms[n.Term(o)]; ok && other != o {
				return true
			}
			forms[n.Term(o)] = o
		}
	}
	return false
}

// missing counts the terms of a without an equal in b under n.
func missing(n NormalForm, a, b []Term) (count int) {
	for _, x := range a {
		if !holds(n, b, n.Term(x)) {
			count++
		}
	}
	return count
}

func holds(n NormalForm, terms []Term, form Term) bool {
	return slices.ContainsFunc(terms, func(y Term) bool { return n.Term(y) == form })
}

func (d *detection) unexplained(n NormalForm, written, read []Triple) (out []Triple) {
	for _, t := range written {
		if !holds(n, d.read[[2]Term{t.S, t.P}], n.Term(t.O)) {
			out = append(out, t)
		}
	}
	for _, t := range read {
		if !holds(n, d.written[[2]Term{t.S, t.P}], n.Term(t.O)) {
			out = append(out, t)
		}
	}
	return out
}
