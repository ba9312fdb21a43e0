package rdfres

import (
	"strings"
	"testing"
)

func TestReadLinesEnds(t *testing.T) {
	const l = `<http://e/s> <http://e/p> "a" .`
	for name, doc := range map[string]string{
		"lf": l + "\n" + l + "\n", "no last end": l + "\n" + l, "crlf": l + "\r\n\r\n" + l + "\r\n",
		"cr": l + "\r" + l + "\r", "bom": "\ufeff" + l + "\n" + l, "mixed": "\r\r\n" + l + "\r\n\r" + l,
	} {
		n := 0
		for _, err := range Read(strings.NewReader(doc), NTriples, ReadOptions{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n++
		}
		if n != 2 {
			t.Errorf("%s: %d statements", name, n)
		}
	}
	_, err := Decode(NTriples, []byte(l+"\n\n"+l+"x\n"), ReadOptions{Name: "doc"})
	if want := "rdfres: read ntriples doc: line 3, column 32: something stands after the '.'"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadLax(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`<http://e/a b{c}|\d> <http://e/p> <http://e/"q"> .`, `<http://e/a\u0020b\u007Bc\u007D\u007C\u005Cd> <http://e/p> <http://e/\u0022q\u0022> .`},
		{`<s> <p> <o> .`, `<s> <p> <o> .`},
		{`_:nodeID://b1 <http://e/p> _:a .`, `_:x--6e6f646549443a2f2f6231 <http://e/p> _:a .`},
		{`<http://e/s> <http://e/p> "a"@en_US .`, `<http://e/s> <http://e/p> "a"@en_US .`},
		{`<http://e/s> <http://e/p> "\uD83C\uDF03" .`, `<http://e/s> <http://e/p> "🌃" .`},
	} {
		if _, err := Decode(NTriples, []byte(c.line), ReadOptions{}); err == nil {
			t.Errorf("%s: accepted by the strict reading", c.line)
		}
		ts, err := Decode(NTriples, []byte(c.line), ReadOptions{Lax: true})
		if err != nil || lines(ts) != c.want+"\n" {
			t.Errorf("%s: %v\n got %swant %s", c.line, err, lines(ts), c.want)
		}
	}
	// A broken term with a known end costs itself alone.
	for _, line := range []string{`<http://e/s> <http://e/p> "\uD83C" .`, `<http://e/s> <http://e/p> "\xff"@en .`, `<http://e/s> <http://e/\u00> "a" .`, "<http://e/s> <http://e/p> \"\xff\" ."} {
		sc := LineScanner{Lax: true}
		if ok, err := sc.Scan([]byte(line)); !ok || err != nil || string(sc.S) != "<http://e/s>" || CheckTerm(sc.P) == nil && CheckTerm(sc.O) == nil {
			t.Errorf("%s: %v, %s %s %s", line, err, sc.S, sc.P, sc.O)
		}
		if ok, err := new(LineScanner).Scan([]byte(line)); ok || err == nil {
			t.Errorf("%s: accepted by the strict reading", line)
		}
	}
	for _, bad := range []string{`<http://e/<a> <http://e/p> "a" .`, `<http://e/s> <http://e/p> "a"@ .`, `<http://e/s> <http://e/p> "\uD83C .`} {
		if ts, err := Decode(NTriples, []byte(bad), ReadOptions{Lax: true}); err == nil {
			t.Errorf("%s: accepted as %s", bad, lines(ts))
		}
	}
}
