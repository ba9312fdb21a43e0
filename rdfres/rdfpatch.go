package rdfres

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// RDFPatchType is the media type of the text form of RDF Patch, RDFPatchSuffix
// the end of its file names, both as Apache Jena has them.
const (
	RDFPatchType   = "application/rdf-patch"
	RDFPatchSuffix = ".rdfp"
)

// PatchHeader is an "H name value ." row. RDF Patch knows the names "id" of the patch, and "prev"
// of the patch before it; others may be there.
type PatchHeader struct {
	Name  string
	Value Term // an IRI or a literal
}

// PatchRow is one row of an RDF Patch. Code decides the fields: "H" Header; "A" and "D" Quad (its G
// is "" for the default graph); "PA" and "PD" Header, the prefix as its name and the namespace as
// its value ("" for "PD"); "TX", "TC" and "TA" none.
type PatchRow struct {
	Line   int // from 1
	Code   string
	Header PatchHeader
	Quad   Quad
}

// DiffTriples gives the triples to delete from before and to add to it to make after. All are
// sorted and without doubles (SortUnique). Labels of blank nodes are names: in wire form equal
// nodes have equal labels.
func DiffTriples(before, after []Triple) (deleted, added []Triple) {
	for len(before) > 0 && len(after) > 0 {
		switch c := before[0].Compare(after[0]); {
		case c < 0:
			deleted, before = append(deleted, before[0]), before[1:]
		case c > 0:
			added, after = append(added, after[0]), after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return append(deleted, before...), append(added, after...)
}

// AppendPatch appends an RDF Patch (version 1, text form): the headers, then in
// one transaction the deletions, then the additions, one row each. The same arguments
// give the same bytes. Blank nodes are written <_:label>, the form of RDF Patch for
// labels with a meaning beyond the document: Jena's reader shortens _:label.
func AppendPatch(dst []byte, headers []PatchHeader, deleted, added []Triple) []byte {
	for _, h := range headers {
		dst = append(append(append(dst, "H "...), h.Name...), ' ')
		dst = append(append(dst, h.Value...), " .\n"...)
	}
	dst = append(dst, "TX .\n"...)
	for _, t := range deleted {
		dst = appendPatchRow(dst, 'D', t)
	}
	for _, t := range added {
		dst = appendPatchRow(dst, 'A', t)
	}
	return append(dst, "TC .\n"...)
}

func appendPatchRow(dst []byte, code byte, t Triple) []byte {
	dst = append(dst, code)
	for _, x := range [...]Term{t.S, t.P, t.O} {
		dst = append(dst, ' ')
		if x.Kind() == KindBlank {
			dst = append(append(append(dst, '<'), x...), '>')
		} else {
			dst = append(dst, x...)
		}
	}
	return append(dst, " .\n"...)
}

// ReadPatch streams the rows of an RDF Patch in text form, in their order. It checks each row by
// itself; the order of rows is the caller's to judge (ApplyPatch). Blank nodes may be written
// _:label or <_:label>. The sequence ends after the first error, a *SyntaxError for anything but
// RDF Patch.
func ReadPatch(r io.Reader, o ReadOptions) iter.Seq2[PatchRow, error] {
	return func(yield func(PatchRow, error) bool) {
		limited := &io.LimitedReader{R: r, N: o.MaxBytes + 1}
		if o.MaxBytes > 0 {
			r = limited
		}
		in := bufio.NewScanner(r)
		in.Buffer(make([]byte, 0, 64<<10), maxPatchLine)
		var p patchReader
		p.sc.Lax = o.Lax
		for n := 1; in.Scan(); n++ {
			line := in.Bytes()
			if o.MaxBytes > 0 && limited.N <= 0 {
				yield(PatchRow{}, fmt.Errorf("rdfres: read RDF Patch %s: more than %d bytes: %w", o.Name, o.MaxBytes, ErrTooLarge))
				return
			}
			row, ok, why := p.row(line)
			if why != "" {
				yield(PatchRow{}, &SyntaxError{Name: o.Name, Format: "RDF Patch", Line: n, Column: chars.Column(line, p.sc.at), Reason: why})
				return
			}
			row.Line = n
			if ok && !yield(row, nil) {
				return
			}
		}
		err := in.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line is longer than %d bytes: %w", maxPatchLine, ErrTooLarge)
		}
		if err != nil {
			yield(PatchRow{}, fmt.Errorf("rdfres: read RDF Patch %s: %w", o.Name, err))
		}
	}
}

const maxPatchLine = 64 << 20

// patchReader reads rows.
type patchReader struct {
	sc LineScanner
}

func (p *patchReader) row(line []byte) (row PatchRow, ok bool, why string) {
	p.sc.at, p.sc.scratch = 0, p.sc.scratch[:0]
	if !utf8.Valid(line) {
		p.sc.at = chars.InvalidAt(line)
		return row, false, "the text is not valid UTF-8"
	}
	i := p.sc.space(line, 0, 0)
	if i == len(line) || line[i] == '#' || line[i] == '\r' && i+1 == len(line) {
		return row, false, ""
	}
	end := i
	for end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != '.' && line[end] != '\r' {
		end++
	}
	row.Code = string(line[i:end])
	rest := p.sc.space(line, end, 0)
	switch row.Code {
	case "A", "D":
		why = p.statement(line, rest, &row.Quad)
		return row, why == "", why
	case "TX", "TC", "TA":
		return row, true, p.end(line, rest)
	case "H":
		i = rest
		for rest < len(line) && line[rest] != ' ' && line[rest] != '\t' {
			rest++
		}
		if row.Header.Name = string(line[i:rest]); row.Header.Name == "" || row.Header.Name == "." {
			p.sc.at = i
			return row, false, "the header has no name"
		}
		rest = p.sc.space(line, rest, 0)
		term, n, why := p.term(line, rest, "object")
		if why == "" && Term(term).Kind() == KindBlank {
			p.sc.at, why = rest, "the value of a header is an IRI or a literal"
		}
		if why != "" {
			return row, false, why
		}
		row.Header.Value = Term(term)
		return row, true, p.end(line, p.sc.space(line, n, 0))
	case "PA", "PD":
		return p.prefix(line, rest, row)
	}
	p.sc.at = i
	return row, false, fmt.Sprintf("a row begins with H, A, D, PA, PD, TX, TC or TA, not with %q", chars.Cut(row.Code))
}

// prefix reads the rest of PA and PD: a prefix as a string or as name: and, for PA, a namespace as
// a string or an IRI.
func (p *patchReader) prefix(line []byte, i int, row PatchRow) (PatchRow, bool, string) {
	if i < len(line) && line[i] == '"' {
		term, n, why := p.term(line, i, "object")
		if why != "" {
			return row, false, why
		}
		row.Header.Name, _, _ = Term(term).Literal()
		i = n
	} else {
		start := i
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			i++
		}
		name, ok := strings.CutSuffix(string(line[start:i]), ":")
		if !ok {
			p.sc.at = start
			return row, false, "a prefix is written as a string, or as a name with a colon"
		}
		row.Header.Name = name
	}
	row.Header.Name = strings.TrimSuffix(row.Header.Name, ":")
	i = p.sc.space(line, i, 0)
	if row.Code == "PA" {
		term, n, why := p.term(line, i, "object")
		if why != "" {
			return row, false, why
		}
		switch t := Term(term); t.Kind() {
		case KindIRI:
			row.Header.Value = Term(term)
		case KindLiteral:
			lexical, _, _ := t.Literal()
			row.Header.Value = NewIRI(lexical)
		default:
			p.sc.at = i
			return row, false, "a namespace is an IRI"
		}
		i = p.sc.space(line, n, 0)
	} else if i < len(line) && line[i] == '<' { // some writers repeat the namespace
		_, n, why := p.term(line, i, "object")
		if why != "" {
			return row, false, why
		}
		i = p.sc.space(line, n, 0)
	}
	return row, true, p.end(line, i)
}

func (p *patchReader) statement(line []byte, i int, q *Quad) (why string) {
	for n, role := range []string{"subject", "predicate", "object", "graph"} {
		if role == "graph" && (i >= len(line) || line[i] == '.') {
			break
		}
		term, end, why := p.term(line, i, role)
		if why != "" {
			return why
		}
		switch t := Term(term); n {
		case 0:
			q.S = t
		case 1:
			q.P = t
		case 2:
			q.O = t
		case 3:
			q.G = t
		}
		i = p.sc.space(line, end, 0)
	}
	return p.end(line, i)
}

// term reads a term; <_:label> is a blank node.
func (p *patchReader) term(line []byte, i int, role string) (term []byte, end int, why string) {
	if bytes.HasPrefix(line[min(i, len(line)):], []byte("<_:")) {
		p.sc.at = i
		n := bytes.IndexByte(line[i:], '>')
		if n < len("<_:x") {
			return nil, i, "the blank node has no label, or no '>' at its end"
		}
		if role == "predicate" {
			return nil, i, "a blank node cannot be the predicate"
		}
		label := line[i+len("<_:") : i+n]
		if bytes.ContainsAny(label, "<\" \t") {
			return nil, i, "the label of a blank node has no spaces, quotes or brackets"
		}
		return []byte(NewBlank(string(label))), i + n + 1, ""
	}
	return p.sc.term(line, i, role)
}

// end wants the dot and nothing but a comment behind it.
func (p *patchReader) end(line []byte, i int) (why string) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	p.sc.at = min(i, len(line))
	if i >= len(line) || line[i] != '.' {
		return "the row has no '.' at its end"
	}
	if i = p.sc.space(line, i+1, 0); i < len(line) && line[i] != '#' {
		p.sc.at = i
		return "something stands after the '.'"
	}
	return ""
}

// ApplyPatch applies an RDF Patch to a graph and gives the headers too. Both graphs are sorted and
// without doubles. As in RDF Patch, adding a present triple and deleting an absent one changes
// nothing; digests tell whether the patch was meant for this graph. Changes stand in transactions.
// The changes of an aborted or unfinished one do not count. An unfinished transaction is an error,
// as are changes outside of one and changes of named graphs.
func ApplyPatch(before []Triple, patch []byte, o ReadOptions) (after []Triple, headers []PatchHeader, err error) {
	have := make(map[Triple]bool, len(before)) // false: deleted
	for _, t := range before {
		have[t] = true
	}
	var open map[Triple]bool
	fail := func(row PatchRow, why string) ([]Triple, []PatchHeader, error) {
		return nil, nil, &SyntaxError{Name: o.Name, Format: "RDF Patch", Line: row.Line, Reason: why}
	}
	last := PatchRow{}
	for row, err := range ReadPatch(bytes.NewReader(patch), o) {
		if err != nil {
			return nil, nil, err
		}
		last = row
		switch row.Code {
		case "H":
			headers = append(headers, row.Header)
		case "TX":
			if open != nil {
				return fail(row, "a transaction begins within another")
			}
			open = map[Triple]bool{}
		case "TC", "TA":
			if open == nil {
				return fail(row, "a transaction ends that has not begun")
			}
			if row.Code == "TC" {
				for t, there := range open {
					have[t] = there
				}
			}
			open = nil
		case "A", "D":
			if open == nil {
				return fail(row, "a change stands outside of a transaction")
			}
			if row.Quad.G != "" {
				return fail(row, "a change of a named graph in the patch of one graph")
			}
			open[row.Quad.Triple] = row.Code == "A"
		}
	}
	if open != nil {
		return fail(last, "the last transaction does not end")
	}
	for t, there := range have {
		if there {
			after = append(after, t)
		}
	}
	slices.SortFunc(after, Triple.Compare)
	return after, headers, nil
}
