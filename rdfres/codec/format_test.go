package codec_test

import (
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

func TestFormatNames(t *testing.T) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, rdfres.NQuads, rdfres.TriG} {
		if got, ok := rdfres.FormatByMediaType(f.MediaType() + "; charset=utf-8"); !ok || got != f {
			t.Errorf("%s: by media type %s", f, got)
		}
		if got, ok := rdfres.FormatBySuffix("http://e/a.b/NAME" + f.Suffix()); !ok || got != f {
			t.Errorf("%s: by suffix %s", f, got)
		}
	}
	for mediaType, want := range map[string]rdfres.Format{"Text/Turtle": rdfres.Turtle, " application/rdf+xml ;q=1": rdfres.RDFXML, "text/plain": rdfres.NTriples, "text/x-nquads": rdfres.NQuads, "application/json": rdfres.JSONLD, "text/html": "", "": ""} {
		if got, ok := rdfres.FormatByMediaType(mediaType); got != want || ok != (want != "") {
			t.Errorf("%q: %q", mediaType, got)
		}
	}
	for name, want := range map[string]rdfres.Format{"a.TTL": rdfres.Turtle, "dump.nt.gz": rdfres.NTriples, "a.owl": rdfres.RDFXML, "a.json": rdfres.JSONLD, "a": "", "nt": "", "a.zip": ""} {
		if got, ok := rdfres.FormatBySuffix(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q", name, got)
		}
	}
	if rdfres.Format("x").MediaType() != "" || rdfres.Format("x").Suffix() != "" {
		t.Error("an unknown format has names")
	}
}

func TestSniffFormat(t *testing.T) {
	for head, want := range map[string]rdfres.Format{
		"":                                       "",
		"  \n":                                   "",
		"# only a comment":                       "",
		`<http://e/s> <http://e/p> "a" .` + "\n": rdfres.NTriples,
		"# c\n\n" + `_:a <http://e/p> "a" .`:     rdfres.NTriples,
		`<http://e/s> <http://e/p> "a long one that is cut`:        rdfres.NTriples,
		`<http://e/s> <http://e/p> "a" <http://e/g> .` + "\n<http": rdfres.NQuads,
		"<http://e/s> <http://e/p> 1 .\n":                          rdfres.Turtle,
		"<http://e/s>\n  a <http://e/C> .\n":                       rdfres.Turtle,
		"<s> <p> <o> .\n":                                          rdfres.Turtle,
		"\ufeff@prefix e: <http://e/> .":                           rdfres.Turtle,
		"# c\nPREFIX e: <http://e/>":                               rdfres.Turtle,
		"@base <http://e/> .":                                      rdfres.Turtle,
		"[] a <http://e/C> .":                                      rdfres.Turtle,
		"e:s e:p e:o .":                                            rdfres.Turtle,
		"GRAPH <http://e/g> { }":                                   rdfres.TriG,
		"VERSION \"1.2\"\n<http://e/s> <http://e/p> 'a' .\n":       rdfres.Turtle,
		"VERSION \"1.2\"\n<http://e/s> <http://e/p> \"a\" .":       rdfres.NTriples,
		"@version \"1.2\" .\n<http://e/s> <http://e/p> \"a\" .":    rdfres.Turtle,
		"{ <http://e/s> <http://e/p> 1 }":                          rdfres.TriG,
		`{"@id":"http://e/s"}`:                                     rdfres.JSONLD,
		" [ {":                                                     rdfres.JSONLD,
		"[]":                                                       rdfres.JSONLD,
		`<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`: rdfres.RDFXML,
		"<rdf:RDF\n xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>":                    rdfres.RDFXML,
		"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description/>":    rdfres.RDFXML,
		"<!DOCTYPE rdf:RDF [ ]>": rdfres.RDFXML,
		"<!DOCTYPE html><html xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>": "",
		"<html><body>":                  "",
		"<html lang='en'>":              "",
		"<?xml version='1.0'?><urlset>": "",
		"Not found":                     "",
		"error: not found":              "",
	} {
		if got, ok := codec.SniffFormat([]byte(head)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}
