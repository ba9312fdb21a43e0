package codec_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/knakk/rdf"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

// BenchmarkNTriples reads the same document with knakk/rdf and with this
// package, as terms and as bytes, in one run:
//
//	go test -bench NTriples ./rdfres
func BenchmarkNTriples(b *testing.B) {
	doc, n := rdftest.BenchDoc(b)
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
			for _, err := range codec.Read(bytes.NewReader(doc), rdfres.NTriples, rdfres.ReadOptions{}) {
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
			in := rdfres.NewLines(bytes.NewReader(doc), rdfres.NTriples, rdfres.ReadOptions{})
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
	d := rdftest.Sample(4711)
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples} {
		data, err := codec.Encode(f, d.Entity, d.Triples)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(f)+"/Encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Encode(f, d.Entity, d.Triples); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(f)+"/Decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Decode(f, data, rdfres.ReadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(f)+"/EncodeChecked", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.EncodeChecked(f, d.Entity, d.Triples); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("GraphDigest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rdfres.GraphDigest(d.Triples)
		}
	})
}
