package sparqlsink

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

var (
	wholeNumber   = regexp.MustCompile(`^[+-]?[0-9]+$`)
	early         = regexp.MustCompile(`^-0*([0-9]{1,4})([^0-9]|$)`)
	decimalNumber = regexp.MustCompile(`^[+-]?([0-9]{1,20}(\.[0-9]*)?|\.[0-9]+)$`)
)

// virtuosoHolds tells whether Virtuoso 7 holds the value of a literal, and whether an upload
// is as good as an update. As measured:
//   - NaN destroys its index: after it no write passes.
//   - xsd:duration becomes a number in an upload ("P1Y" 12, "PT1H" 3600.0), and is refused in
//     an update.
//   - 2^63 becomes -2^63 in an update.
//   - A malformed number becomes 0, or stays and cannot be deleted any more.
//   - The year -1 becomes 0, years from -4717 to -9999 are lost, and an empty date becomes
//     the first day. -0044 becomes -044, as in its normal form. All others stay: years of
//     more than four digits, 24:00:00, impossible days.
func virtuosoHolds(t rdfres.Term) (why string, upload bool) {
	if !strings.HasPrefix(string(t), `"`) || !strings.HasSuffix(string(t), ">") {
		return "", true
	}
	lexical, _, datatype := t.Literal()
	local, ok := strings.CutPrefix(datatype, "http://www.w3.org/2001/XMLSchema#")
	if !ok {
		return "", true
	}
	trimmed := strings.TrimSpace(lexical)
	switch local {
	case "double", "float":
		if strings.HasPrefix(strings.ToLower(strings.TrimLeft(trimmed, "+-")), "nan") {
			return "NaN destroys its index, after which it takes no writes at all", false
		}
		_, err := strconv.ParseFloat(trimmed, 64)
		if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrSyntax {
			return "it refuses what is no number of this type", false
		}
	case "decimal":
		if !decimalNumber.MatchString(trimmed) {
			return "it refuses, or changes, what is no decimal number of at most 20 digits before the point", false
		}
	case "boolean":
		switch lexical {
		case "true", "false", "1", "0":
		default:
			return "it refuses what is no boolean", false
		}
	case "dateTime", "date", "gYear", "gYearMonth", "time", "gMonth", "gMonthDay", "gDay":
		if trimmed == "" {
			return "it fills in an empty one", false
		}
		if m := early.FindStringSubmatch(trimmed); m != nil && (strings.HasPrefix(local, "date") || strings.HasPrefix(local, "gYear")) {
			if year, err := strconv.Atoi(m[1]); err == nil && (year == 1 || year >= 4717 && local != "gYear") {
				return "it changes the year -1, and those before -4716", false
			}
		}
	case "duration", "yearMonthDuration":
		return "it makes numbers of durations", false
	case "dayTimeDuration":
		return "", false
	case "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
		"unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte":
		if _, err := strconv.ParseInt(strings.TrimPrefix(trimmed, "+"), 10, 64); err != nil || !wholeNumber.MatchString(trimmed) {
			return "it changes what is no integer of 64 bits", false
		}
	}
	return "", true
}

// virtuosoLongest bounds the bytes of an IRI in Virtuoso 7. It cuts longer ones in silence:
// two may become one.
const virtuosoLongest = 1880

// virtuosoCuts gives a longer IRI of a triple or its graph.
func virtuosoCuts(graph string, t rdfres.Triple) string {
	for _, x := range [...]rdfres.Term{t.S, t.P, t.O} {
		if len(x) <= virtuosoLongest {
			continue
		}
		if iri := x.IRI(); len(iri) > virtuosoLongest {
			return iri
		}
		if _, _, datatype := x.Literal(); len(datatype) > virtuosoLongest {
			return datatype
		}
	}
	if len(graph) > virtuosoLongest {
		return graph
	}
	return ""
}

// virtuoso is Virtuoso 7.
type virtuoso struct{ common }

func (virtuoso) traits() traits {
	t := common{}.traits()
	// Of an rdf:XMLLiteral it holds a copy for each triple, and DELETE DATA finds one of them.
	t.copiesXML = true
	// The time of a request grows with the square of its operations, and some 700 are refused.
	t.operations = 100
	// A DELETE DATA of several graphs leaves each literal with a language tag, or with a
	// datatype it does not hold by value, and reports success.
	t.deletesApart = true
	// Threads wait for one another for ever in long uploads.
	t.longUploads = false
	t.ownGraphs = sparql.SystemGraphs("Virtuoso")
	return t
}

func (virtuoso) refuses(graph string, t rdfres.Triple) (what, why string) {
	if why, _ := virtuosoHolds(t.O); why != "" {
		return clip.Middle(string(t.S)) + " " + clip.Middle(string(t.P)) + " " + clip.Middle(string(t.O)), "does not hold this literal: " + why
	}
	if iri := virtuosoCuts(graph, t); iri != "" {
		return clip.Middle(iri), fmt.Sprintf("cuts off what an IRI has beyond %d bytes", virtuosoLongest)
	}
	return "", ""
}

func (virtuoso) uploads(o rdfres.Term) bool {
	_, upload := virtuosoHolds(o)
	return upload
}

func (virtuoso) isForm(given, held rdfres.Term) bool {
	return virtuosoGeometry(given, held) || virtuosoXML(given, held)
}

// alone tells of an operation for the triples of one graph.
func (t *traits) alone(op updateOp) bool { return op.kind == 'd' && t.deletesApart }

var wktPart = regexp.MustCompile(`[(),]|[^(),\s]+`)

// virtuosoGeometry tells whether Virtuoso has made the one of the other: it holds a
// geo:wktLiteral as a geometry of its own, with coordinates of 32 bits, and shows it
// as such.
func virtuosoGeometry(given, held rdfres.Term) bool {
	wkt, _, from := given.Literal()
	text, _, to := held.Literal()
	if from != "http://www.opengis.net/ont/geosparql#wktLiteral" || to != "http://www.openlinksw.com/schemas/virtrdf#Geometry" {
		return false
	}
	return slices.EqualFunc(wktPart.FindAllString(wkt, -1), wktPart.FindAllString(text, -1), func(a, b string) bool {
		x, errA := strconv.ParseFloat(a, 32)
		y, errB := strconv.ParseFloat(b, 32)
		return x == y && errA == nil && errB == nil || strings.EqualFold(a, b)
	})
}

const xmlLiteral = "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral"

// virtuosoXML tells whether Virtuoso has made the one of the other: it parses an
// rdf:XMLLiteral and shows the parsed form: with prefixes of its own for namespaces without
// one, and without unused ones.
func virtuosoXML(given, held rdfres.Term) bool {
	a, _, from := given.Literal()
	b, _, to := held.Literal()
	if from != xmlLiteral || to != xmlLiteral {
		return false
	}
	x, errA := xmlTokens(a)
	y, errB := xmlTokens(b)
	return errA == nil && errB == nil && slices.Equal(x, y)
}

// xmlTokens are the parts of XML, without regard to its prefixes, quotes, order of
// attributes and ways of writing characters.
func xmlTokens(text string) (out []string, err error) {
	d := xml.NewDecoder(strings.NewReader(text))
	letters := ""
	for {
		t, err := d.Token()
		if c, ok := t.(xml.CharData); ok {
			letters += string(c)
			continue
		}
		if letters != "" {
			out, letters = append(out, "text "+letters), ""
		}
		if t == nil {
			if err == io.EOF {
				err = nil
			}
			return out, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			t.Attr = slices.DeleteFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Space == "xmlns" || a.Name == xml.Name{Local: "xmlns"} })
			slices.SortFunc(t.Attr, func(a, b xml.Attr) int {
				return cmp.Or(cmp.Compare(a.Name.Space, b.Name.Space), cmp.Compare(a.Name.Local, b.Name.Local))
			})
			out = append(out, fmt.Sprintf("%q", t))
		case xml.EndElement:
			out = append(out, "end")
		default:
			out = append(out, fmt.Sprintf("%T %q", t, t))
		}
	}
}

// byText tells of a statement to be found by comparing strings alone.
func (t *traits) byText(st *sink.Statement) bool {
	return t.copiesXML && st.Shown && isXML(st)
}

func isXML(st *sink.Statement) bool {
	return strings.HasSuffix(string(st.Triple.O), `"^^<`+xmlLiteral+`>`)
}

// asShown adds the shown forms to removals of rdf:XMLLiteral.
func (m *Mirror) asShown(ctx context.Context, ops []updateOp) ([]updateOp, error) {
	if !m.traits.copiesXML || !slices.ContainsFunc(ops, func(op updateOp) bool { return op.kind == 'd' && isXML(op.st) }) {
		return ops, nil
	}
	var out []updateOp
	for _, op := range ops {
		out = append(out, op)
		if op.kind != 'd' || op.st.Shown || !isXML(op.st) {
			continue
		}
		pattern := string(op.st.Triple.S) + " " + string(op.st.Triple.P) + " ?o"
		if g := m.graphFor(op.st); g != "" {
			pattern = "GRAPH <" + g + "> { " + pattern + " }"
		}
		s, err := m.Client.Select(ctx, "SELECT ?o WHERE { "+pattern+" }")
		if err != nil {
			return nil, err
		}
		for row, err := range s.Rows {
			if err != nil {
				return nil, err
			}
			if virtuosoXML(op.st.Triple.O, row[0]) {
				st := *op.st
				st.Triple.O, st.Shown = row[0], true
				out = append(out, updateOp{'d', &st})
			}
		}
	}
	return out, nil
}
