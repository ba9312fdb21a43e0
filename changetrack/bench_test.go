//go:build unix

package changetrack

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// generated makes n descriptions of ten triples, in order.
func generated(n int) []rdfres.Description {
	r := rand.New(rand.NewPCG(1, 1))
	words := []string{"the", "city", "river", "of", "born", "in", "station", "district", "population", "football", "club", "album", "released", "by", "species", "family"}
	out := make([]rdfres.Description, n)
	for i := range out {
		e := fmt.Sprintf("http://dbpedia.org/resource/Entity_%06d", i)
		d := rdfres.Description{Entity: e}
		for j := range 10 {
			o := rdfres.NewIRI(fmt.Sprintf("http://dbpedia.org/resource/Entity_%06d", r.IntN(n)))
			if j%2 == 0 {
				var text []byte
				for range 4 + r.IntN(12) {
					text = append(append(text, words[r.IntN(len(words))]...), ' ')
				}
				o = rdfres.NewLiteral(string(text), "en", "")
			}
			d.Triples = append(d.Triples, rdfres.Triple{S: rdfres.NewIRI(e), P: rdfres.NewIRI(fmt.Sprintf("http://dbpedia.org/ontology/property%d", j)), O: o})
		}
		d.Triples = rdfres.SortUnique(d.Triples)
		out[i] = d
	}
	slices.SortFunc(out, func(a, b rdfres.Description) int {
		x, y := rdfres.EntityKey(a.Entity), rdfres.EntityKey(b.Entity)
		return bytes.Compare(x[:], y[:])
	})
	return out
}

// BenchmarkScan: a first scan of 100,000 descriptions of ten triples into the
// embedded store, then one that finds nothing changed, then one per cent changed.
func BenchmarkScan(b *testing.B) {
	const n = 100_000
	ds := generated(n)
	all := func(yield func(rdfres.Description, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
	}
	format := rdfres.JSONLD
	if _, err := codec.Encode(format, ds[0].Entity, ds[0].Triples); err != nil {
		b.Logf("JSON-LD cannot be written yet (%v): N-Triples", err)
		format = rdfres.NTriples
	}
	o := ScanOptions{Format: format, MaxDeleteRatio: 0.2, Fingerprint: "one"}
	for b.Loop() {
		dir := b.TempDir()
		s, err := pebblekv.Open(b.Context(), filepath.Join(dir, "kv"), pebblekv.Options{})
		if err != nil {
			b.Fatal(err)
		}
		tr, err := Open(b.Context(), s, Options{Dir: filepath.Join(dir, "stage")})
		if err != nil {
			b.Fatal(err)
		}
		l, err := tr.Log(b.Context(), "bench")
		if err != nil {
			b.Fatal(err)
		}
		step := func(what string) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			began, cpu := time.Now(), cpuSeconds()
			res, err := l.Scan(b.Context(), all, o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(began).Seconds(), what+"-s")
			b.ReportMetric(cpuSeconds()-cpu, what+"-cpu-s")
			runtime.ReadMemStats(&after)
			b.Logf("%s: %d created, %d updated, %d unchanged; heap in use %d MB more", what,
				res.Created, res.Updated, res.Unchanged, (int64(after.HeapInuse)-int64(before.HeapInuse))>>20)
		}
		step("first")
		b.ReportMetric(float64(size(b, dir))/1e6, "first-MB")
		step("unchanged")
		for i := 0; i < n; i += 100 {
			ts := slices.Clone(ds[i].Triples)
			ts[0].O = rdfres.NewLiteral(fmt.Sprint("changed ", i), "", "http://www.w3.org/2001/XMLSchema#string")
			ds[i].Triples = rdfres.SortUnique(ts)
		}
		step("one-percent")
		began := time.Now()
		if err := l.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "check-s")
		began = time.Now()
		for _, d := range ds {
			rdfres.GraphDigest(d.Triples)
		}
		b.ReportMetric(time.Since(began).Seconds(), "digest-alone-s")
		tr.Close()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size(b, dir))/1e6, "MB")
	}
}

// cpuSeconds is what the process has used so far, of all cores.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func size(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil // compacted away
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return n
}
