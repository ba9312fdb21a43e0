package sparql

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

func readTable(data []byte) (out []Row, err error) {
	r, _, err := newTable(bytes.NewReader(data))
	for err == nil {
		var row Row
		if row, err = r.next(); err == nil {
			out = append(out, append(Row(nil), row...))
		}
	}
	if err == io.EOF {
		err = nil
	}
	return out, err
}

// TestTable: what was written is read, and no part of it is taken for all.
func TestTable(t *testing.T) {
	rows := []Row{
		{rdfres.NewIRI("http://example.org/a"), rdfres.NewIRI("urn:x:p"), rdfres.NewLiteral("", "", "")},
		{rdfres.NewIRI("http://example.org/a"), rdfres.NewIRI("urn:x:p"), rdfres.NewLiteral("a\t\"\\\n\r", "en-GB", "")},
		{"_:b1", rdfres.NewIRI("urn:x:p"), rdfres.NewLiteral("a\t\"\\\n\r", "en-gb", "")},
		{"_:b1", rdfres.NewIRI("urn:x:q#"), rdfres.NewLiteral("01", "", xsd+"integer")},
		{"", "", ""},
		{"", "", rdfres.NewLiteral("01", "", "")},
		{"_:b1", "", rdfres.NewLiteral(strings.Repeat("\U0001F600", 50_000), "", "urn:dt")},
	}
	w := sparqltest.NewTable("s", "p", "o")
	for _, row := range rows {
		w.Row(row...)
	}
	data := w.End()
	got, err := readTable(data)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(rows) {
		t.Fatalf("%v: %v", err, got)
	}
	for n := range len(data) {
		if n > 800 && n < len(data)-50 && n%997 != 0 {
			continue
		}
		if _, err := readTable(data[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d bytes of %d: %v", n, len(data), err)
		}
	}
	if got, err := readTable(append(data, "more is ignored"...)); err != nil || len(got) != len(rows) {
		t.Error(err)
	}
}

// TestEmptyRow: as RDF4J writes them, a row after one of no values repeats the row
// before it.
func TestEmptyRow(t *testing.T) {
	w := sparqltest.NewTable("s", "o")
	w.Row("_:a", "_:b")
	w.WriteByte(tableEmptyRow)
	w.WriteByte(tableRepeat)
	w.WriteByte(tableUnbound)
	w.WriteByte(tableEmptyRow)
	w.WriteByte(tableRepeat)
	w.WriteByte(tableRepeat)
	got, err := readTable(w.End())
	if want := []Row{{"_:a", "_:b"}, {"", ""}, {"_:a", ""}, {"", ""}, {"_:a", ""}}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTableRefused: what cannot be read for certain is an error that says why.
func TestTableRefused(t *testing.T) {
	many := sparqltest.NewTable("s")
	for i := range 2000 {
		many.Row(rdfres.NewIRI(fmt.Sprintf("http://example.org/%d/x", i)))
	}
	ahead := func(f func(w *sparqltest.Table)) []byte {
		w := sparqltest.NewTable("s", "o")
		f(w)
		return w.End()
	}
	for want, data := range map[string][]byte{
		"version 3 or 4":     []byte("BRTR\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x01s\x7f"),
		"too many":           many.End(),
		"row before":         ahead(func(w *sparqltest.Table) { w.WriteByte(tableRepeat) }),
		"ends after 1":       ahead(func(w *sparqltest.Table) { w.WriteByte(tableUnbound) }),
		"a triple":           ahead(func(w *sparqltest.Table) { w.WriteByte(tableTriple) }),
		"unknown record 11":  ahead(func(w *sparqltest.Table) { w.WriteByte(11) }),
		"namespace 7":        ahead(func(w *sparqltest.Table) { w.WriteByte(tableNamespace); w.Number(7); w.Text("x") }),
		"7 is not known":     ahead(func(w *sparqltest.Table) { w.WriteByte(tableName); w.Number(7); w.Text("x") }),
		"tag is empty":       ahead(func(w *sparqltest.Table) { w.WriteByte(tableLang); w.Text("x"); w.Text("") }),
		"datatype is no IRI": ahead(func(w *sparqltest.Table) { w.WriteByte(tableTyped); w.Text("x"); w.WriteByte(tablePlain) }),
		"4294967295 bytes":   ahead(func(w *sparqltest.Table) { w.WriteByte(tablePlain); w.Number(1<<32 - 1) }),
		"out of memory":      ahead(func(w *sparqltest.Table) { w.WriteByte(tableError); w.WriteByte(2); w.Text("out of memory") }),
	} {
		if rows, err := readTable(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d rows, %v", want, len(rows), err)
		}
	}
}

// TestTableBroken: bytes outside UTF-8 cost the terms that have them.
func TestTableBroken(t *testing.T) {
	w := sparqltest.NewTable("s", "o")
	w.Row("<http://e/s>", "_:b")
	w.WriteByte(tableIRI)
	w.Text("http://e/\xff")
	w.WriteByte(tablePlain)
	w.Text("\xff")
	w.WriteByte(tableRepeat)
	w.WriteByte(tableLang)
	w.Text("x")
	w.Text("\xff")
	rows, err := readTable(w.End())
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	for i, row := range rows {
		for _, term := range row {
			if bad := rdfres.CheckTerm(term) != nil; bad != (i > 0) {
				t.Errorf("row %d: %q", i, term)
			}
		}
	}
}

// FuzzTable reads anything; what is read is written and read again as the same.
func FuzzTable(f *testing.F) {
	w := sparqltest.NewTable("s", "o")
	w.Row("<http://example.org/a>", `"x"@en`)
	w.Row("_:b", `"1"^^<`+xsd+`integer>`)
	f.Add(w.End())
	f.Add([]byte("BRTR\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x01s\x09\x06\x00\x00\x00\x01a\x01\x04\x00\x00\x00\x03u:x\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, vars, err := newTable(bytes.NewReader(data))
		if err != nil {
			return
		}
		rows, err := readTable(data)
		if err != nil {
			return
		}
		w := sparqltest.NewTable(vars...)
		for _, row := range rows {
			for _, x := range row {
				if x != "" && x.Check() != nil {
					return
				}
			}
			w.Row(row...)
		}
		again, err := readTable(w.End())
		if err != nil && !strings.Contains(err.Error(), "too many") || err == nil && fmt.Sprint(again) != fmt.Sprint(rows) {
			t.Fatalf("%v:\n%q\n%q", err, rows, again)
		}
	})
}
