package resourcesync

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"
	"time"
)

const benchEntries = 10_000

func benchList() []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{Meta: Meta{Capability: ResourceList, At: time.Unix(1e9, 0)}})
	for i := 0; i < benchEntries && err == nil; i++ {
		err = w.Write(sampleEntry(i))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

func perEntry(b *testing.B, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkRead(b *testing.B) {
	doc := benchList()
	read := func(next func(*Reader) error) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(doc), ReaderOptions{})
				for err == nil {
					err = next(r)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			perEntry(b, len(doc))
		}
	}
	b.Run("Next", read(func(r *Reader) error { _, err := r.Next(); return err }))
	var e Entry
	b.Run("NextInto", read(func(r *Reader) error { return r.NextInto(&e) }))
}

// BenchmarkEncodingXML reads the same list's tokens with the standard library.
func BenchmarkEncodingXML(b *testing.B) {
	doc := benchList()
	for b.Loop() {
		d := xml.NewDecoder(bytes.NewReader(doc))
		var err error
		for err == nil {
			_, err = d.RawToken()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	perEntry(b, len(doc))
}

func BenchmarkWrite(b *testing.B) {
	e := sampleEntry(3)
	size := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		w, err := NewWriter(io.Discard, Head{Meta: Meta{Capability: ResourceList, At: time.Unix(1e9, 0)}})
		for i := 0; i < benchEntries && err == nil; i++ {
			err = w.Write(e)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
		size = w.Size()
	}
	perEntry(b, int(size))
}
