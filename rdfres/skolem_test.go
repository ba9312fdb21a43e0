package rdfres

import (
	"strings"
	"testing"
)

func TestSkolem(t *testing.T) {
	wire := "rsb" + strings.Repeat("0a", 20) + "n12d3"
	iri := Term("<http://example.org:8080/.well-known/genid/" + wire + ">")
	for _, authority := range []string{"http://example.org:8080", "http://example.org:8080/"} {
		if got := Skolemize(Term("_:"+wire), authority); got != iri {
			t.Errorf("Skolemize = %s, want %s", got, iri)
		}
	}
	if got := Unskolemize(iri); got != Term("_:"+wire) {
		t.Errorf("Unskolemize = %s", got)
	}
	for _, same := range []Term{`"x"`, "<urn:a>", `"http://a/.well-known/genid/` + Term(wire) + `"`} {
		if Skolemize(same, "http://a") != same || Unskolemize(same) != same {
			t.Errorf("%s was changed", same)
		}
	}
	for _, foreign := range []string{
		"http://a/.well-known/genid/b1", "http://a/x/.well-known/genid/" + wire, "http:///.well-known/genid/" + wire,
		"http://a/.well-known/genid/" + wire + "?x", "http://a?/.well-known/genid/" + wire, "/.well-known/genid/" + wire,
		"1http://a/.well-known/genid/" + wire, "http://a/.well-known/genid/" + strings.ToUpper(wire), "http://a/.well-known/genid/x" + wire,
	} {
		if got := Unskolemize(NewIRI(foreign)); got != NewIRI(foreign) {
			t.Errorf("Unskolemize(%s) = %s", foreign, got)
		}
	}
	for _, authority := range []string{"http://a.example", "https://a.example", "http://a.example:80"} {
		if a, label, ok := CutSkolem(Skolemize(Term("_:"+wire), authority)); !ok || a != authority || label != wire {
			t.Errorf("CutSkolem of %s: %q %q %v", authority, a, label, ok)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Unskolemize(iri); Unskolemize("<http://dbpedia.org/resource/Berlin>") }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestIsWireName(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 3)[:40]
	for label, want := range map[string]bool{
		"rsb" + hex + "n0": true, "rsb" + hex + "n10": true, "rsb" + hex + "n0d1": true, "rsb" + hex + "n7d10": true,
		"": false, "rsb": false, "rsb" + hex: false, "rsb" + hex + "n": false, "rsb" + hex + "n01": false, "rsb" + hex + "n0d0": false,
		"rsb" + hex + "n0d": false, "rsb" + hex + "n0d01": false, "rsb" + hex + "d1": false, "rsb" + hex[1:] + "n0": false, "rsb" + hex + "0n0": false,
		"rsb" + strings.ToUpper(hex) + "n0": false, "x" + hex + "n0": false, "rsb" + hex + "n0x": false, "rsb" + hex + "n-1": false,
	} {
		if got := IsWireName(label); got != want {
			t.Errorf("IsWireName(%q) = %v", label, got)
		}
	}
}
