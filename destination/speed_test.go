package destination

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// speedSource serves n simulated descriptions with everything promised, from memory.
type speedSource struct {
	srv    *httptest.Server
	docs   map[string][]byte
	n      int
	triple int
}

func newSpeedSource(b *testing.B, n int, dump bool) *speedSource {
	s := &speedSource{docs: map[string][]byte{}, n: n}
	s.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := s.docs[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}))
	b.Cleanup(s.srv.Close)
	u := func(p string) string { return s.srv.URL + p }
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	up := []rs.Link{{Rel: "up", Href: u("/s/capabilitylist.xml"), Length: -1}}
	var list, zip bytes.Buffer
	lw, err := rs.NewWriter(&list, rs.Head{Meta: rs.Meta{Capability: rs.ResourceList, At: at, Length: -1}, Links: up})
	if err != nil {
		b.Fatal(err)
	}
	zw, err := rs.NewPackageWriter(&zip, rs.Head{Meta: rs.Meta{Capability: rs.ResourceDumpManifest, At: at, Length: -1}, Links: up})
	if err != nil {
		b.Fatal(err)
	}
	world := simulate.World{Seed: 1}
	for i := range n {
		ts, _, err := rdfres.NameBlanks(world.Entity(int64(i), 0, int64(n)), rdfres.NameOptions{})
		if err != nil {
			b.Fatal(err)
		}
		s.triple += len(ts)
		body := obtain.AppendLines(nil, ts)
		p := fmt.Sprintf("/r/%d.nt", i)
		s.docs[p] = body
		sum := sha256.Sum256(body)
		e := rs.Entry{Loc: u(p), LastMod: at, HasMeta: true, Meta: rs.Meta{Type: "application/n-triples", Length: int64(len(body)), Hash: rs.Hashes{SHA256: hex.EncodeToString(sum[:])},
			Ext: map[string]string{rs.ExtGraph: "sha-256:" + rdfres.GraphDigest(ts).String()}}, Links: []rs.Link{{Rel: rs.RelDescribes, Href: simulate.IRI(int64(i)), Length: -1}}}
		if err := lw.Write(&e); err != nil {
			b.Fatal(err)
		}
		if dump {
			if err := zw.Add(p, body, &e); err != nil {
				b.Fatal(err)
			}
		}
	}
	lw.Close()
	zw.Close()
	s.docs["/s/resourcelist.xml"] = list.Bytes()
	s.docs["/s/dump.zip"] = zip.Bytes()
	doc := func(p string, h rs.Head, es ...rs.Entry) {
		var out bytes.Buffer
		w, err := rs.NewWriter(&out, h)
		if err != nil {
			b.Fatal(err)
		}
		for i := range es {
			if err := w.Write(&es[i]); err != nil {
				b.Fatal(err)
			}
		}
		w.Close()
		s.docs[p] = out.Bytes()
	}
	caps := []rs.Entry{{Loc: u("/s/resourcelist.xml"), HasMeta: true, Meta: rs.Meta{Capability: rs.ResourceList, Length: -1}}}
	if dump {
		caps = append(caps, rs.Entry{Loc: u("/s/resourcedump.xml"), HasMeta: true, Meta: rs.Meta{Capability: rs.ResourceDump, Length: -1}})
	}
	doc("/s/capabilitylist.xml", rs.Head{Meta: rs.Meta{Capability: rs.CapabilityList, Length: -1}, Links: up}, caps...)
	doc("/s/resourcedump.xml", rs.Head{Meta: rs.Meta{Capability: rs.ResourceDump, At: at, Length: -1}, Links: up},
		rs.Entry{Loc: u("/s/dump.zip"), HasMeta: true, Meta: rs.Meta{Type: "application/zip", Length: int64(zip.Len())}})
	return s
}

// BenchmarkBaseline loads RSBRIDGE_ENTITIES (default 2000) descriptions by
// single requests and by a dump into a mirror (Oxigraph at RSBRIDGE_TEST_OXIGRAPH,
// else one that throws everything away), then audits it.
func BenchmarkBaseline(b *testing.B) {
	n := 2000
	if s := os.Getenv("RSBRIDGE_ENTITIES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for _, way := range []string{"list", "dump"} {
		b.Run(way, func(b *testing.B) {
			src := newSpeedSource(b, n, way == "dump")
			sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				buf := make([]byte, 64<<10)
				for {
					if _, err := r.Body.Read(buf); err != nil {
						break
					}
				}
				switch {
				case r.URL.Path != "/query":
					w.WriteHeader(http.StatusNoContent)
				case strings.Contains(r.Header.Get("Accept"), "tab-separated"):
					w.Header().Set("Content-Type", "text/tab-separated-values")
					fmt.Fprintln(w, "?p\t?o")
				default:
					w.Header().Set("Content-Type", "application/sparql-results+json")
					fmt.Fprint(w, `{"head":{},"boolean":false}`)
				}
			}))
			defer sink.Close()
			for i := 0; b.Loop(); i++ {
				e := sparql.Endpoint{Name: "sink", Query: sink.URL + "/query", Update: sink.URL + "/update", GraphStore: sink.URL + "/data"}
				ox := os.Getenv("RSBRIDGE_TEST_OXIGRAPH")
				if ox != "" {
					e = sparql.Endpoint{Name: "oxigraph", Query: ox + "/query", Update: ox + "/update", GraphStore: ox + "/store"}
				}
				c, err := sparql.New(e)
				if err != nil {
					b.Fatal(err)
				}
				store, err := pebblekv.Open(b.Context(), b.TempDir(), pebblekv.Options{})
				if err != nil {
					b.Fatal(err)
				}
				cfg := keep.Config{Name: "speed", Source: src.srv.URL + "/s/capabilitylist.xml", GraphIRI: fmt.Sprintf("http://speed.example/%s/%d/%d", way, time.Now().UnixNano(), i), TempDir: b.TempDir()}
				d, err := Open(context.Background(), store, sparqlsink.Of(c), cfg, keep.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if ox == "" {
					storeMirror(d).Caps = sparql.Capabilities{Transactional: true}
					storeMirror(d).SetLimit()
				}
				if err := d.prober.ready(context.Background(), true); err != nil {
					b.Fatal(err)
				}
				var plain float64
				if ox != "" { // what the store itself needs for the same triples
					var all []byte
					for p, body := range src.docs {
						if strings.HasPrefix(p, "/r/") {
							all = append(all, rdfresSkolem(body)...)
						}
					}
					start := time.Now()
					err := c.PostGraph(context.Background(), cfg.GraphIRI+"/plain", rdfres.NTriples, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all)), nil })
					if err != nil {
						b.Fatal(err)
					}
					plain = time.Since(start).Seconds()
				}
				start := time.Now()
				rep, err := d.Sync(context.Background(), SyncOptions{})
				if err != nil || rep.Created != int64(n) {
					b.Fatalf("%+v %v", rep, err)
				}
				took := time.Since(start).Seconds()
				b.ReportMetric(float64(n)/took, "resources/s")
				b.ReportMetric(float64(src.triple)/took, "triples/s")
				if ox != "" {
					b.ReportMetric(took/plain, "x-of-upload")
					start = time.Now()
					a, err := d.Audit(context.Background(), AuditOptions{})
					if err != nil || !a.Equal {
						b.Fatalf("%+v %v", a, err)
					}
					b.ReportMetric(time.Since(start).Seconds(), "audit-s")
				}
				var ms runtime.MemStats
				runtime.ReadMemStats(&ms)
				b.ReportMetric(float64(ms.Sys>>20), "MB-sys")
				store.Close()
				c.Close()
			}
		})
	}
}

// rdfresSkolem names the blank nodes of a body as a mirror would.
func rdfresSkolem(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte("_:rsb"), []byte("_:b"))
}
