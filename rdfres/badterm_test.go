package rdfres

import (
	"testing"
)

func TestCheckTerm(t *testing.T) {
	for term, ok := range map[Term]bool{
		`"x"@en`: true, `"x"@zh-Hant-TW`: true, `"a@b"`: true, `"x"^^<http://e/d>`: true, `"\"@"@en`: true, "_:b": true, "": true,
		`"x"@en--ltr`: false, `"x"@en_US`: false, `"x"@en-`: false, `"x"@1`: false, NewIRI("a b"): false, TripleTerm("<<( <s> <p> <o> )>>"): false,
	} {
		if err := CheckTerm(term); (err == nil) != ok {
			t.Errorf("%s: %v", term, err)
		}
	}
}

// A triple term is one bad term of a line that is read laxly, not the end of it.
func TestLaxTripleTerm(t *testing.T) {
	sc := LineScanner{Lax: true}
	ok, err := sc.Scan([]byte(`<http://e/s> <http://e/p> <<( <http://e/a> <http://e/p> <<( _:b <http://e/p> "\">>"@en )>> )>> <http://e/g> .`))
	if !ok || err != nil || CheckTerm(sc.O) == nil || string(sc.G) != "<http://e/g>" || sc.Canonical {
		t.Errorf("%v, %v: %s in %s", ok, err, sc.O, sc.G)
	}
	if ok, err := sc.Scan([]byte(`<http://e/s> <http://e/p> <<( <http://e/a> .`)); ok || err == nil {
		t.Error("a triple term without its end was taken")
	}
	if ok, err := new(LineScanner).Scan([]byte(`<http://e/s> <http://e/p> <<( <http://e/a> <http://e/p> <http://e/o> )>> .`)); ok || err == nil {
		t.Error("a triple term was taken strictly")
	}
}
