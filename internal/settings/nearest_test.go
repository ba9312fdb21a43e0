package settings

import "testing"

// TestMeant: slips of the pen are recognized, other words are not.
func TestMeant(t *testing.T) {
	list := []string{"oxigraph", "fuseki", "rdf4j", "store", "source", "resourcelist", "format", "set", "listen"}
	for word, want := range map[string]string{
		"fusekii": "fuseki", "oxigarph": "oxigraph", "Fuseki": "fuseki", "rdf4": "rdf4j", "stor": "store", "sorce": "source",
		"resourcelsit": "resourcelist", "forma": "format", "listn": "listen", "zzz": "", "": "", "virtuoso": "", "x": "",
	} {
		got := Meant(word, list)
		if want == "" && got != "" || want != "" && got != "; did you mean "+want+"?" {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
