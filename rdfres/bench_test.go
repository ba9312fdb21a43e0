package rdfres

import (
	"bytes"
	"io"
	"testing"

	"github.com/knakk/rdf"
)

// BenchmarkNTriples reads the same document with knakk/rdf and with this
// package, as terms and as bytes, in one run:
//
//	go test -bench NTriples ./rdfres
func BenchmarkNTriples(b *testing.B) {
	doc, n := benchDoc(b)
	perSecond := func(b *testing.B) {
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "triples/s")
		b.SetBytes(int64(len(doc)))
	}
	b.Run("knakk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dec := rdf.NewTripleDecoder(bytes.NewReader(doc), rdf.NTriples)
			for {
				if _, err := dec.Decode(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
		perSecond(b)
	})
	b.Run("Read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range Read(bytes.NewReader(doc), NTriples, ReadOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		perSecond(b)
	})
	b.Run("Lines", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in := NewLines(bytes.NewReader(doc), NTriples, ReadOptions{})
			for in.Next() {
			}
			if in.Err() != nil {
				b.Fatal(in.Err())
			}
		}
		perSecond(b)
	})
}

// BenchmarkDescription writes, reads and checks one description of ten triples.
func BenchmarkDescription(b *testing.B) {
	d := sampleDescription(4711)
	for _, f := range []Format{JSONLD, NTriples} {
		data, err := Encode(f, d.Entity, d.Triples)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(f)+"/Encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Encode(f, d.Entity, d.Triples); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(f)+"/Decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(f, data, ReadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(f)+"/EncodeChecked", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := EncodeChecked(f, d.Entity, d.Triples); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("GraphDigest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			GraphDigest(d.Triples)
		}
	})
}
