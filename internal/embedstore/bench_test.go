package embedstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// benchData is DBpedia-like: per entity about ten triples, a fifth of the
// entities with two levels of blank nodes.
func benchData(entities int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := range entities {
		s := "<http://dbpedia.org/resource/Entity_" + strconv.Itoa(i) + ">"
		fmt.Fprintf(&b, "%s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://dbpedia.org/ontology/Class%d> .\n", s, r.IntN(50))
		fmt.Fprintf(&b, "%s <http://www.w3.org/2000/01/rdf-schema#label> \"Entity %d of the test\"@en .\n", s, i)
		fmt.Fprintf(&b, "%s <http://www.w3.org/2000/01/rdf-schema#comment> \"A longer text about entity %d, as the abstracts of DBpedia are, number %d.\"@en .\n", s, i, r.IntN(1e9))
		fmt.Fprintf(&b, "%s <http://dbpedia.org/ontology/population> \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", s, r.IntN(1e7))
		for k := range 4 {
			fmt.Fprintf(&b, "%s <http://dbpedia.org/ontology/link%d> <http://dbpedia.org/resource/Entity_%d> .\n", s, k, r.IntN(entities))
		}
		fmt.Fprintf(&b, "%s <http://dbpedia.org/ontology/wikiPageID> \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", s, i)
		if i%5 == 0 {
			fmt.Fprintf(&b, "%s <http://dbpedia.org/ontology/address> _:a%d .\n", s, i)
			fmt.Fprintf(&b, "_:a%d <http://dbpedia.org/ontology/street> \"Street %d\" .\n", i, r.IntN(1000))
			fmt.Fprintf(&b, "_:a%d <http://dbpedia.org/ontology/geo> _:g%d .\n", i, i)
			fmt.Fprintf(&b, "_:g%d <http://dbpedia.org/ontology/lat> \"%d.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n", i, r.IntN(90))
		}
	}
	return b.Bytes()
}

type lineCount struct{ lines, bytes int64 }

func (c *lineCount) Write(p []byte) (int, error) {
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	c.bytes += int64(len(p))
	return len(p), nil
}

func rss() string {
	data, _ := os.ReadFile("/proc/self/status")
	var out []string
	for _, l := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(l, "VmRSS") || strings.HasPrefix(l, "VmHWM") {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
	}
	return strings.Join(out, ", ")
}

// BenchmarkStore loads and streams; RSBRIDGE_BENCH_ENTITIES sets the size
// (10,000 by default; 100,000 are a million triples).
func BenchmarkStore(b *testing.B) {
	entities := 10_000
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_BENCH_ENTITIES")); err == nil {
		entities = n
	}
	file := b.TempDir() + "/data.nt"
	if err := os.WriteFile(file, benchData(entities), 0o644); err != nil {
		b.Fatal(err)
	}
	triples := 0
	ctx := context.Background()
	open := func() *Store {
		s, err := Open(b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	fill := func(s *Store) {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		n, err := s.Load(ctx, "http://x/g", rdfres.NTriples, f, LoadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		triples = int(n)
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var before time.Duration
	report := func(b *testing.B, n int64) {
		b.ReportMetric(float64(n)*float64(b.N)/(cpu()-before).Seconds(), "triples/cpu-s")
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "triples/s")
	}
	b.Run("load", func(b *testing.B) {
		before = cpu()
		for range b.N {
			s := open()
			fill(s)
			b.StopTimer()
			s.Close()
			b.StartTimer()
		}
		report(b, int64(triples))
		b.Log(rss())
	})
	runtime.GC()
	s := open()
	defer s.Close()
	fill(s)
	for _, c := range []struct{ name, query string }{
		{"tsv", "SELECT ?s ?p ?o FROM <http://x/g> { ?s ?p ?o }"},
		{"construct", "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <http://x/g> { ?s ?p ?o } }"},
		{"distinct-s", "SELECT DISTINCT ?s FROM <http://x/g> { ?s ?p ?o FILTER(isIRI(?s)) }"},
		{"class", "SELECT ?s ?l FROM <http://x/g> { ?s a <http://dbpedia.org/ontology/Class7> ; <http://www.w3.org/2000/01/rdf-schema#label> ?l }"},
		{"count-class", "SELECT ?c (COUNT(?s) AS ?n) FROM <http://x/g> { ?s a ?c } GROUP BY ?c"},
		{"page", `SELECT DISTINCT ?s FROM <http://x/g> { ?s ?p ?o FILTER(STR(?s) > "http://dbpedia.org/resource/Entity_5") } ORDER BY ?s LIMIT 1000`},
		{"cbd-200", cbdQuery(200, entities)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var n lineCount
			start := time.Now()
			before = cpu()
			for range b.N {
				n = lineCount{}
				r, err := s.Query(ctx, c.query, QueryOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if r.Kind == Graph {
					err = r.WriteGraph(&n, rdfres.NTriples)
				} else {
					err = r.WriteRows(&n, string(rowsTSV))
				}
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
			report(b, n.lines)
			b.Logf("%d lines, %d bytes, %v each; %s", n.lines, n.bytes, time.Since(start)/time.Duration(b.N), rss())
		})
	}
	b.Run("dump", func(b *testing.B) {
		before = cpu()
		var n lineCount
		for range b.N {
			n = lineCount{}
			if err := s.Dump(ctx, &n, rdfres.NTriples, DumpOptions{Graph: "http://x/g"}); err != nil {
				b.Fatal(err)
			}
		}
		report(b, n.lines)
	})
	b.Run("insert-10", func(b *testing.B) {
		before = cpu()
		for i := range b.N {
			var u strings.Builder
			u.WriteString("INSERT DATA {")
			for k := range 10 {
				fmt.Fprintf(&u, "<http://x/new/%d> <http://x/p%d> %d .", i, k, i)
			}
			u.WriteString("}")
			if err := s.Update(ctx, u.String()); err != nil {
				b.Fatal(err)
			}
		}
		report(b, 10)
	})
}

// cbdQuery is the blank-node closure of several entities in one query.
func cbdQuery(n, entities int) string {
	var v strings.Builder
	for i := range n {
		fmt.Fprintf(&v, " <http://dbpedia.org/resource/Entity_%d>", i*(entities/n))
	}
	values := "VALUES ?e {" + v.String() + " }"
	return "CONSTRUCT { ?s ?p ?o } FROM <http://x/g> WHERE { { VALUES ?s {" + v.String() + " } } UNION { " + values +
		" ?e ?p1 ?s FILTER(isBlank(?s)) } UNION { " + values + " ?e ?p2 ?b . ?b ?p3 ?s FILTER(isBlank(?b) && isBlank(?s)) } ?s ?p ?o }"
}
