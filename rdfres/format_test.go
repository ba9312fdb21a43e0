package rdfres

import "testing"

func TestFormatNames(t *testing.T) {
	for _, f := range []Format{JSONLD, NTriples, Turtle, RDFXML, NQuads, TriG} {
		if got, ok := FormatByMediaType(f.MediaType() + "; charset=utf-8"); !ok || got != f {
			t.Errorf("%s: by media type %s", f, got)
		}
		if got, ok := FormatBySuffix("http://e/a.b/NAME" + f.Suffix()); !ok || got != f {
			t.Errorf("%s: by suffix %s", f, got)
		}
	}
	for mediaType, want := range map[string]Format{"Text/Turtle": Turtle, " application/rdf+xml ;q=1": RDFXML, "text/plain": NTriples, "text/x-nquads": NQuads, "application/json": JSONLD, "text/html": "", "": ""} {
		if got, ok := FormatByMediaType(mediaType); got != want || ok != (want != "") {
			t.Errorf("%q: %q", mediaType, got)
		}
	}
	for name, want := range map[string]Format{"a.TTL": Turtle, "dump.nt.gz": NTriples, "a.owl": RDFXML, "a.json": JSONLD, "a": "", "nt": "", "a.zip": ""} {
		if got, ok := FormatBySuffix(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q", name, got)
		}
	}
	if Format("x").MediaType() != "" || Format("x").Suffix() != "" {
		t.Error("an unknown format has names")
	}
}

func TestSniffFormat(t *testing.T) {
	for head, want := range map[string]Format{
		"":                                       "",
		"  \n":                                   "",
		"# only a comment":                       "",
		`<http://e/s> <http://e/p> "a" .` + "\n": NTriples,
		"# c\n\n" + `_:a <http://e/p> "a" .`:     NTriples,
		`<http://e/s> <http://e/p> "a long one that is cut`:        NTriples,
		`<http://e/s> <http://e/p> "a" <http://e/g> .` + "\n<http": NQuads,
		"<http://e/s> <http://e/p> 1 .\n":                          Turtle,
		"<http://e/s>\n  a <http://e/C> .\n":                       Turtle,
		"<s> <p> <o> .\n":                                          Turtle,
		"\ufeff@prefix e: <http://e/> .":                           Turtle,
		"# c\nPREFIX e: <http://e/>":                               Turtle,
		"@base <http://e/> .":                                      Turtle,
		"[] a <http://e/C> .":                                      Turtle,
		"e:s e:p e:o .":                                            Turtle,
		"GRAPH <http://e/g> { }":                                   TriG,
		"VERSION \"1.2\"\n<http://e/s> <http://e/p> 'a' .\n":       Turtle,
		"VERSION \"1.2\"\n<http://e/s> <http://e/p> \"a\" .":       NTriples,
		"@version \"1.2\" .\n<http://e/s> <http://e/p> \"a\" .":    Turtle,
		"{ <http://e/s> <http://e/p> 1 }":                          TriG,
		`{"@id":"http://e/s"}`:                                     JSONLD,
		" [ {":                                                     JSONLD,
		"[]":                                                       JSONLD,
		`<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`: RDFXML,
		"<rdf:RDF\n xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>":                    RDFXML,
		"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description/>":    RDFXML,
		"<!DOCTYPE rdf:RDF [ ]>": RDFXML,
		"<!DOCTYPE html><html xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>": "",
		"<html><body>":                  "",
		"<html lang='en'>":              "",
		"<?xml version='1.0'?><urlset>": "",
		"Not found":                     "",
		"error: not found":              "",
	} {
		if got, ok := SniffFormat([]byte(head)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}
