package sparqlsrc

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// benchData is N-Triples of n entities, a fifth of them with two levels of
// blank nodes: 9.8 triples each.
func benchData(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		e := fmt.Sprintf("<http://example.org/resource/Thing_%d>", i)
		fmt.Fprintf(&b, "%s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/ontology/Class%d> .\n", e, i%7)
		fmt.Fprintf(&b, "%s <http://www.w3.org/2000/01/rdf-schema#label> \"Thing number %d\"@en .\n", e, i)
		fmt.Fprintf(&b, "%s <http://example.org/ontology/related> <http://example.org/resource/Thing_%d> .\n", e, i*7919%n)
		fmt.Fprintf(&b, "%s <http://example.org/ontology/count> \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", e, i)
		fmt.Fprintf(&b, "%s <http://example.org/ontology/abstract> \"Some longer text about the thing number %d, so that the lines are as long as usual in such data.\" .\n", e, i)
		for k := range 3 {
			fmt.Fprintf(&b, "%s <http://example.org/ontology/p%d> \"value %d\" .\n", e, k, i)
		}
		if i%5 == 0 {
			fmt.Fprintf(&b, "%s <http://example.org/ontology/address> _:a%d .\n", e, i)
			for _, p := range []string{"street", "zip", "city", "country", "state"} {
				fmt.Fprintf(&b, "_:a%d <http://example.org/ontology/%s> \"%s %d\" .\n", i, p, p, i)
			}
			fmt.Fprintf(&b, "_:a%d <http://example.org/ontology/geo> _:g%d .\n", i, i)
			fmt.Fprintf(&b, "_:g%d <http://example.org/ontology/lat> \"%d.5\" .\n_:g%d <http://example.org/ontology/long> \"%d.25\" .\n", i, i%90, i, i%180)
		}
	}
	return b.Bytes()
}

// BenchmarkGroup is the work of a scan without the network: N-Triples bytes in,
// descriptions of 100,000 entities (980,000 triples) in order out.
func BenchmarkGroup(b *testing.B) {
	data := benchData(100_000)
	for _, memory := range []int64{64 << 20, 8 << 20} {
		b.Run(fmt.Sprintf("%dMiB", memory>>20), func(b *testing.B) {
			old := runtime.GOMAXPROCS(1)
			defer runtime.GOMAXPROCS(old)
			cfg := Config{TempDir: b.TempDir(), MemoryBytes: memory, MaxDescriptionTriples: 2_000_000, MaxDepth: 100_000, Progress: func(string, int64, int64) {}}
			var rows int64
			from := cpuSeconds()
			for b.Loop() {
				g, err := newGrouper(&cfg, false)
				if err != nil {
					b.Fatal(err)
				}
				in := rdfres.NewLines(bytes.NewReader(data), rdfres.NTriples, rdfres.ReadOptions{Lax: true})
				for in.Next() {
					if err := g.add(in.S, in.P, in.O); err != nil {
						b.Fatal(err)
					}
				}
				if err := in.Err(); err != nil {
					b.Fatal(err)
				}
				if err := g.finish(context.Background()); err != nil {
					b.Fatal(err)
				}
				sc := &Scan{cfg: &cfg, group: g}
				n := 0
				for _, err := range sc.Descriptions() {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if st := sc.Stats(); n != 100_000 || st.Covered != st.Triples {
					b.Fatalf("%d entities, %+v", n, st)
				}
				rows = g.rows
				sc.Close()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "triples/s")
			b.ReportMetric(float64(rows)*float64(b.N)/(cpuSeconds()-from), "triples/cpu-s") // what a busy machine does not change
		})
	}
}

// BenchmarkAnswer is the digest of an answer of 980,000 triples.
func BenchmarkAnswer(b *testing.B) {
	const entities, times = 10_000, 10
	var terms [][]byte
	in := rdfres.NewLines(bytes.NewReader(benchData(entities)), rdfres.NTriples, rdfres.ReadOptions{Lax: true})
	for in.Next() {
		terms = append(terms, bytes.Clone(in.S), bytes.Clone(in.P), bytes.Clone(in.O))
	}
	if err := in.Err(); err != nil {
		b.Fatal(err)
	}
	from := cpuSeconds()
	for b.Loop() {
		a, err := newAnswer("")
		if err != nil {
			b.Fatal(err)
		}
		a.begin()
		for range times {
			for i := 0; i < len(terms); i += 3 {
				a.add(terms[i], terms[i+1], terms[i+2])
			}
		}
		_ = a.String()
	}
	b.ReportMetric((cpuSeconds()-from)/float64(b.N)*1e3, "cpu-ms/op")
}

// cpuSeconds is the processor time that this process used so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
