package rdfres

import (
	"errors"
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

// No format promises a literal that another reader of ours refuses.
func TestEncodeCheckedLanguage(t *testing.T) {
	for _, f := range []Format{JSONLD, NTriples, Turtle, RDFXML} {
		if _, err := EncodeChecked(f, "http://e/s", []Triple{{"<http://e/s>", "<http://e/p>", `"x"@en--ltr`}}); err == nil {
			t.Errorf("%s carries a language tag that is none", f)
		} else if f == JSONLD && !errors.Is(err, ErrCannotCarry) {
			t.Error(err)
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
