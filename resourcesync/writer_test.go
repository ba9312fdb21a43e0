package resourcesync

import (
	"bytes"
	"io"
	"testing"
	"time"
)

func sampleEntry(i int) *Entry {
	return &Entry{
		Loc: "http://127.0.0.1:8080/books/r/resource/Berlin_" + string(rune('a'+i%26)) + ".jsonld", LastMod: time.Unix(1700000000+int64(i), 123456000),
		HasMeta: true,
		Meta: Meta{
			Length: 1234, Type: "application/ld+json",
			Hash: Hashes{SHA256: "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"},
		},
		Links: []Link{
			{Rel: RelDescribes, Href: "http://dbpedia.org/resource/Berlin"},
			{Rel: RelMemento, Href: "http://127.0.0.1:8080/books/r/resource/Berlin.jsonld?version=20240102030405", Modified: time.Unix(1700000000, 0), Length: -1},
		},
	}
}

func BenchmarkWrite(b *testing.B) {
	h := Head{Meta: Meta{Capability: ResourceList, At: time.Now()}}
	for b.Loop() {
		w, err := NewWriter(io.Discard, h)
		if err != nil {
			b.Fatal(err)
		}
		e := sampleEntry(3)
		for range 10000 {
			if err := w.Write(e); err != nil {
				b.Fatal(err)
			}
		}
		w.Close()
		b.SetBytes(w.Size())
	}
}

func TestWriterSmoke(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{Meta: Meta{Capability: ResourceList, At: time.Unix(1e9, 0)}, Links: []Link{{Rel: RelUp, Href: "http://x/&"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sampleEntry(1)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Log(b.String())
}
