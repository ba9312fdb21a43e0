package codec_test

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

func TestReadLinesEnds(t *testing.T) {
	const l = `<http://e/s> <http://e/p> "a" .`
	for name, doc := range map[string]string{
		"lf": l + "\n" + l + "\n", "no last end": l + "\n" + l, "crlf": l + "\r\n\r\n" + l + "\r\n",
		"cr": l + "\r" + l + "\r", "bom": "\ufeff" + l + "\n" + l, "mixed": "\r\r\n" + l + "\r\n\r" + l,
	} {
		n := 0
		for _, err := range codec.Read(strings.NewReader(doc), rdfres.NTriples, rdfres.ReadOptions{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n++
		}
		if n != 2 {
			t.Errorf("%s: %d statements", name, n)
		}
	}
	_, err := codec.Decode(rdfres.NTriples, []byte(l+"\n\n"+l+"x\n"), rdfres.ReadOptions{Name: "doc"})
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
		if _, err := codec.Decode(rdfres.NTriples, []byte(c.line), rdfres.ReadOptions{}); err == nil {
			t.Errorf("%s: accepted by the strict reading", c.line)
		}
		ts, err := codec.Decode(rdfres.NTriples, []byte(c.line), rdfres.ReadOptions{Lax: true})
		if err != nil || rdftest.Lines(ts) != c.want+"\n" {
			t.Errorf("%s: %v\n got %swant %s", c.line, err, rdftest.Lines(ts), c.want)
		}
	}
	// A broken term with a known end costs itself alone.
	for _, line := range []string{`<http://e/s> <http://e/p> "\uD83C" .`, `<http://e/s> <http://e/p> "\xff"@en .`, `<http://e/s> <http://e/\u00> "a" .`, "<http://e/s> <http://e/p> \"\xff\" ."} {
		sc := rdfres.LineScanner{Lax: true}
		if ok, err := sc.Scan([]byte(line)); !ok || err != nil || string(sc.S) != "<http://e/s>" || rdfres.CheckTerm(sc.P) == nil && rdfres.CheckTerm(sc.O) == nil {
			t.Errorf("%s: %v, %s %s %s", line, err, sc.S, sc.P, sc.O)
		}
		if ok, err := new(rdfres.LineScanner).Scan([]byte(line)); ok || err == nil {
			t.Errorf("%s: accepted by the strict reading", line)
		}
	}
	for _, bad := range []string{`<http://e/<a> <http://e/p> "a" .`, `<http://e/s> <http://e/p> "a"@ .`, `<http://e/s> <http://e/p> "\uD83C .`} {
		if ts, err := codec.Decode(rdfres.NTriples, []byte(bad), rdfres.ReadOptions{Lax: true}); err == nil {
			t.Errorf("%s: accepted as %s", bad, rdftest.Lines(ts))
		}
	}
}
