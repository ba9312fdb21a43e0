package publish

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// benchWorld is a set of n entities on the embedded key space.
func benchWorld(b *testing.B, n int) (*Publisher, *changetrack.Log) {
	b.Helper()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	if keep := os.Getenv("RSBRIDGE_BENCH_DIR"); keep != "" { // of a bench before
		dir = fmt.Sprintf("%s/%d", keep, n)
	}
	store, err := pebblekv.Open(b.Context(), dir, pebblekv.Options{})
	check(err)
	track, err := changetrack.Open(b.Context(), kv.Prefix(store, []byte("log/")), changetrack.Options{Dir: b.TempDir()})
	check(err)
	log, err := track.Log(b.Context(), "data")
	check(err)
	if head, _ := log.Head(); head == 0 {
		benchFill(b, log, n)
	}
	pub, err := Open(context.Background(), kv.Prefix(store, []byte("pub/")), []SetConfig{{Name: "data", Log: log, Prefix: "http://example.org/resource/"}},
		Options{BaseURL: testBase, Dir: b.TempDir()})
	check(err)
	b.Cleanup(func() {
		check(pub.Close())
		check(track.Close())
		check(store.Close())
	})
	return pub, log
}

func benchFill(b *testing.B, log *changetrack.Log, n int) {
	b.Helper()
	entities := make([]string, n)
	for i := range entities {
		entities[i] = fmt.Sprintf("http://example.org/resource/Entity_%d", i)
	}
	slices.SortFunc(entities, func(x, y string) int {
		p, q := rdfres.EntityKey(x), rdfres.EntityKey(y)
		return bytes.Compare(p[:], q[:])
	})
	_, err := log.Scan(b.Context(), func(yield func(rdfres.Description, error) bool) {
		for i, e := range entities {
			if !yield(rdfres.Description{Entity: e, Triples: benchTriples(e, i)}, nil) {
				return
			}
		}
	}, changetrack.ScanOptions{Format: rdfres.JSONLD})
	if err != nil {
		b.Fatal(err)
	}
}

func benchTriples(entity string, value int) []rdfres.Triple {
	s := rdfres.NewIRI(entity)
	ts := []rdfres.Triple{
		{S: s, P: rdfres.NewIRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), O: rdfres.NewIRI("http://dbpedia.org/ontology/Place")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral("Entity number "+strconv.Itoa(value), "en", "")},
	}
	for i := range 7 {
		ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI(fmt.Sprintf("http://dbpedia.org/ontology/property%d", i)), O: rdfres.NewLiteral(fmt.Sprintf("value %d of %d, some words", i*value, value), "", "")})
	}
	return rdfres.SortUnique(ts)
}

func benchSize() int {
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_BENCH_ENTITIES")); err == nil {
		return n
	}
	return 100000
}

type discard struct {
	h http.Header
	n int64
}

func (d *discard) Header() http.Header { return d.h }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return len(b), nil
}

// BenchmarkResourceList assembles the whole Resource List of 100,000 entities.
func BenchmarkResourceList(b *testing.B) {
	pub, _ := benchWorld(b, benchSize())
	h := pub.Handler()
	for b.Loop() {
		pub.cache = newDocCache(64 << 20)
		for _, p := range pub.sets["data"].cur.parts {
			d := &discard{h: http.Header{}}
			r := httptest.NewRequest("GET", "/data/resourcelist-"+p.Bits()+".xml", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			h.ServeHTTP(d, r)
			if d.n < 1000 {
				b.Fatal("short")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(benchSize()), "ns/resource")
}

// BenchmarkDump writes the Resource Dump of 100,000 entities.
func BenchmarkDump(b *testing.B) {
	pub, _ := benchWorld(b, benchSize())
	s := pub.sets["data"]
	for b.Loop() {
		s.dump.Store(nil)
		if err := pub.Dump(b.Context(), "data"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(benchSize()), "ns/resource")
}

// BenchmarkPublish publishes 100 changes in a set of 100,000 entities.
func BenchmarkPublish(b *testing.B) {
	pub, log := benchWorld(b, benchSize())
	round := int(time.Now().Unix()) % 1e6
	for b.Loop() {
		b.StopTimer()
		round++
		_, err := log.Scan(b.Context(), func(yield func(rdfres.Description, error) bool) {
			for i := range 100 {
				e := fmt.Sprintf("http://example.org/resource/Entity_%d", (i*37123+round*7919)%benchSize())
				if !yield(rdfres.Description{Entity: e, Triples: benchTriples(e, i+round)}, nil) {
					return
				}
			}
		}, changetrack.ScanOptions{Format: rdfres.JSONLD, Partial: true})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := pub.Publish(b.Context(), "data"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRepresentation answers requests for descriptions, packed and as they
// are, without a network.
func BenchmarkRepresentation(b *testing.B) {
	pub, _ := benchWorld(b, 20000)
	h := pub.Handler()
	for _, coding := range []string{"gzip", "identity"} {
		b.Run(coding, func(b *testing.B) {
			i := 0
			for b.Loop() {
				i = (i + 7919) % 20000
				r := httptest.NewRequest("GET", "/data/r/Entity_"+strconv.Itoa(i)+".jsonld", nil)
				r.Header.Set("Accept-Encoding", coding)
				d := &discard{h: http.Header{}}
				h.ServeHTTP(d, r)
				if d.n < 100 {
					b.Fatal(d.h)
				}
			}
		})
	}
}
