package sparql

import "testing"

func TestCommonPrefix(t *testing.T) {
	for want, iris := range map[string][]string{
		"http://example.org/":         {"http://example.org/book/1", "http://example.org/author/2", "http://other.org/x"},
		"http://example.org/book/":    {"http://example.org/book/10", "http://example.org/book/11"},
		"http://example.org/v#":       {"http://example.org/v#aa", "http://example.org/v#ab"},
		"http://example.org/one/":     {"http://example.org/one/"},
		"":                            {"http://a.org/x", "http://b.org/x", "urn:isbn:1", "urn:isbn:2"},
		"https://example.org/a/b/c#x": nil,
	} {
		if iris == nil {
			iris, want = []string{"urn:a", "http://host"}, ""
		}
		if got := commonPrefix(iris); got != want {
			t.Errorf("%v: %q, want %q", iris, got, want)
		}
	}
}

func TestSplitPreset(t *testing.T) {
	for place, want := range map[string][3]string{
		"oxigraph:http://localhost:7878":                               {"oxigraph", "http://localhost:7878", ""},
		"oxigraph:http://localhost:7878/":                              {"oxigraph", "http://localhost:7878", ""},
		"fuseki:http://localhost:3030/ds":                              {"fuseki", "http://localhost:3030", "ds"},
		"fuseki:http://localhost:3030":                                 {"fuseki", "http://localhost:3030", ""},
		"rdf4j:http://localhost:8080/rdf4j-server/books":               {"rdf4j", "http://localhost:8080/rdf4j-server", "books"},
		"rdf4j:http://localhost:8080/rdf4j-server/repositories/my%20b": {"rdf4j", "http://localhost:8080/rdf4j-server", "my b"},
		"rdf4j:http://localhost:8080/rdf4j-server":                     {"rdf4j", "http://localhost:8080/rdf4j-server", ""},
	} {
		preset, base, repository, err := SplitPreset(place)
		if got := [3]string{preset, base, repository}; err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", place, got, err, want)
		}
	}
	for _, place := range []string{"oxigraph:", "oxigraph", "http://localhost:7878", "nothing:http://localhost", "oxigraph:localhost:7878"} {
		if preset, base, repository, err := SplitPreset(place); err == nil {
			t.Errorf("%s is %q %q %q", place, preset, base, repository)
		}
	}
}
