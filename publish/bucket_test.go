package publish

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/s3blob"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestBucket: all published files are in a bucket, and nothing else is.
func TestBucket(t *testing.T) {
	for name, server := range map[string]func(testing.TB) string{"moto": teststores.Moto, "versitygw": teststores.Versitygw} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, SetConfig{Format: rdfres.NTriples, PackageBytes: 4000, RotateEntries: 5, Archives: true, ScheduledList: true,
				Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
			bucket, err := s3blob.Open(t.Context(), server(t), true)
			w.must(err)
			w.o.Files = bucket
			w.reopen()
			w.rounds(2, 8)
			w.checkDump()
			if w.checkChangeDump() == 0 {
				t.Error("no Change Dump")
			}
			there := func() (names []string) {
				for info, err := range bucket.List(t.Context(), "", "") {
					w.must(err)
					names = append(names, info.Name)
				}
				return names
			}
			before := there()
			if n, faults, err := w.pub.Verify(t.Context(), "data"); err != nil || len(faults) > 0 || n != len(before) {
				t.Errorf("Verify = %d of %d objects, %v, %v", n, len(before), faults, err)
			}
			w.reopen() // all is found again
			if after := there(); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("after an opening there are %q, before %q", after, before)
			}
			w.checkDump()
			first := w.pub.lookup("data").dump.Load().Packages[0]
			if info, err := blob.Stat(t.Context(), bucket, "data/"+first.File); err != nil || info.Meta.ContentType != zipType || info.Meta.CacheControl != cacheForever {
				t.Errorf("the package in the bucket: %+v, %v", info, err)
			}
			get := func(header ...string) *http.Response {
				rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/data/"+first.File, nil)
				if len(header) > 0 {
					req.Header.Set("Range", header[0])
				}
				w.pub.Handler().ServeHTTP(rec, req)
				return rec.Result()
			}
			if res := get("bytes=10-19"); res.StatusCode != http.StatusPartialContent || res.ContentLength != 10 || res.Header.Get("Content-Range") != fmt.Sprintf("bytes 10-19/%d", first.Length) {
				t.Errorf("a range: %d %v", res.StatusCode, res.Header)
			}
			w.must(bucket.Delete(t.Context(), "data/"+first.File))
			if res := get(); res.StatusCode != http.StatusNotFound || w.pub.Missing("data") != first.File {
				t.Errorf("a missing package: %d, told %q", res.StatusCode, w.pub.Missing("data"))
			}
			if _, faults, err := w.pub.Verify(t.Context(), "data"); err != nil || len(faults) == 0 {
				t.Errorf("Verify = %+v, %v", faults, err)
			}
			w.checkDump()
			w.o.FilesURL = "https://cdn.example/files"
			w.reopen()
			first = w.pub.lookup("data").dump.Load().Packages[0]
			if res := get(); res.StatusCode != http.StatusTemporaryRedirect || res.Header.Get("Location") != "https://cdn.example/files/data/"+first.File {
				t.Errorf("with a public address: %d %v", res.StatusCode, res.Header)
			}
		})
	}
}
