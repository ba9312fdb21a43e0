package codec_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/knakk/rdf"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

// readKnakk reads N-Triples with knakk/rdf. A panic there counts as an error.
func readKnakk(doc []byte) (ts []rdfres.Triple, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	dec := rdf.NewTripleDecoder(bytes.NewReader(doc), rdf.NTriples)
	for {
		t, err := dec.Decode()
		if err == io.EOF {
			return ts, true
		}
		if err != nil {
			return nil, false
		}
		ts = append(ts, rdfres.Triple{S: fromKnakk(t.Subj), P: fromKnakk(t.Pred), O: fromKnakk(t.Obj)})
	}
}

func fromKnakk(t rdf.Term) rdfres.Term {
	switch v := t.(type) {
	case rdf.IRI:
		return rdfres.NewIRI(v.String())
	case rdf.Blank:
		return rdfres.NewBlank(v.String())
	case rdf.Literal:
		return rdfres.NewLiteral(v.String(), v.Lang(), v.DataType.String())
	}
	return ""
}

// compareKnakk checks one document: what knakk/rdf takes we take, and it is the
// same. Its lexer runs in a goroutine of its own and panics there on literals
// that are not closed: harmless tells that there are none, otherwise it only
// gets what we accept. (It is lax in what is not harmless: raw controls, UTF-8,
// some characters in IRIs, other quotes.)
func compareKnakk(t *testing.T, doc []byte, harmless bool) {
	t.Helper()
	ours, err := rdftest.ReadAll(doc, rdfres.NTriples, rdfres.ReadOptions{})
	if err != nil && !harmless {
		return
	}
	theirs, ok := readKnakk(doc)
	if !ok {
		return
	}
	if err != nil {
		t.Fatalf("only knakk/rdf reads %q: %v", doc, err)
	}
	if len(ours) != len(theirs) {
		t.Fatalf("%q: %d statements, knakk/rdf has %d", doc, len(ours), len(theirs))
	}
	for i := range ours {
		if ours[i].Triple != theirs[i] {
			t.Fatalf("%q: %s, knakk/rdf has %s", doc, ours[i].AppendLine(nil), theirs[i].AppendLine(nil))
		}
	}
}

// checkLines checks what must hold for every document that is accepted.
func checkLines(t *testing.T, doc []byte) {
	t.Helper()
	for _, lax := range []bool{false, true} {
		in := rdfres.NewLines(bytes.NewReader(doc), rdfres.NQuads, rdfres.ReadOptions{Lax: lax})
		for in.Next() {
			line := in.AppendLine(nil)
			again := rdfres.LineScanner{Lax: lax}
			if ok, err := again.Scan(bytes.TrimSuffix(line, []byte("\n"))); !ok || err != nil || !bytes.Equal(again.AppendLine(nil), line) {
				t.Fatalf("%q: the canonical line %q is read as %q: %v", doc, line, again.AppendLine(nil), err)
			}
			if lax {
				continue
			}
			for _, term := range []rdfres.Term{rdfres.Term(in.S), rdfres.Term(in.P), rdfres.Term(in.O)} {
				if err := term.Check(); err != nil {
					t.Fatalf("%q: %v", doc, err)
				}
			}
			lexical, lang, datatype := rdfres.Term(in.O).Literal()
			if rdfres.Term(in.O).Kind() == rdfres.KindLiteral && rdfres.NewLiteral(lexical, lang, datatype) != rdfres.Term(in.O) {
				t.Fatalf("%q: taken apart and put together: %s", doc, rdfres.NewLiteral(lexical, lang, datatype))
			}
			if iri := rdfres.Term(in.S).IRI(); iri != "" && rdfres.NewIRI(iri) != rdfres.Term(in.S) {
				t.Fatalf("%q: taken apart and put together: %s", doc, rdfres.NewIRI(iri))
			}
		}
	}
	var sc rdfres.LineScanner
	if bytes.ContainsAny(doc, "\r\n") {
		return
	}
	if ok, err := sc.Scan(doc); ok && err == nil && sc.Canonical && string(sc.AppendLine(nil)) != string(doc)+"\n" {
		t.Fatalf("%q is called canonical, %q is", doc, sc.AppendLine(nil))
	}
}

func FuzzNTriples(f *testing.F) {
	for _, s := range []string{
		`<http://e/s> <http://e/p> "a\tb\u0041"@en-GB .`, `_:a.b<http://e/p>"1"^^<http://e/d>.#c`, "<http://e/\\u0020> <http://e/p> _:1 .\r\n\r<a:b> <c:d> \"\" <e:f> .",
		"VERSION \"1.2\"\n<a:b> <a:c> <<( <a:b> <a:c> \"\" )>> .", "<http://e/s> <http://e/p> \"\xff\\uD800\" .", `<s> <p> "a"@en_US .`, "_:a:b <http://e/p> \"\uFFFE\x7f\" .",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		checkLines(t, doc)
		compareKnakk(t, doc, false)
	})
}

// The same on lines that are made to be nearly right, in every test run.
func TestNTriplesAgainstKnakk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"<http://e/s>", "<http://e/\\u00e9>", "<urn:é>", "_:a", "_:a.b", "_:1-2", `"a"`, `""`, `"\t\"\\"`, `"\u0041\U0001F303"`, `"é"`, "@en", "@en-GB", "^^<http://e/d>", "^^<http://www.w3.org/2001/XMLSchema#string>", " ", "\t", ".", " .", "#c", "<a", "\"", "\\", "<http://e/{a}>", "\n", "é", "\x01", "\xff", `'`, "<", ">", "_:", "@", "^^"}
	broken := []string{"<a", `'`, "\"", "\\", "\x01", "\xff", "\n", "<", "<http://e/{a}>"}
	for range 6_000 {
		var doc bytes.Buffer
		if r.IntN(3) > 0 {
			doc.WriteString("<http://e/s> <http://e/p> ")
		}
		harmless := true
		for range 1 + r.IntN(6) {
			part := parts[r.IntN(len(parts))]
			harmless = harmless && !slices.Contains(broken, part)
			doc.WriteString(part)
		}
		if r.IntN(3) > 0 {
			doc.WriteString(" .")
		}
		checkLines(t, doc.Bytes())
		compareKnakk(t, doc.Bytes(), harmless && !bytes.Contains(doc.Bytes(), []byte(`"""`)))
	}
}

func FuzzTurtle(f *testing.F) {
	for _, c := range turtleGood {
		f.Add([]byte(c.doc))
	}
	f.Add([]byte("@prefix : <http://e/> . GRAPH :g { :s a [ :p (1 2.5 'x'@en) ] }"))
	rdftest.FuzzFormat(f, rdfres.TriG)
}

func FuzzSniffFormat(f *testing.F) {
	f.Add([]byte("@prefix a: <b> ."))
	f.Fuzz(func(t *testing.T, head []byte) { codec.SniffFormat(head) })
}
