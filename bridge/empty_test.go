package bridge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// TestEmptyDocuments: a source that has nothing to tell yet, then a set that holds
// nothing, entities that all go, and changes of nothing but files. At every step the
// source is valid; a document without entries, which the Sitemap schema refuses, stands
// only where nothing else says the same (teststores.Documents).
func TestEmptyDocuments(t *testing.T) {
	length := 1
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		fmt.Fprint(w, strings.Repeat("x", length))
	}))
	defer files.Close()
	p := publish(t, func(cfg *bridge.Config, graph string) {
		set := bridge.NewSet()
		set.Store, set.Graphs, set.Schedule, set.MaxDeleteRatio = "source", []string{graph}, "", 1
		set.Publish = []string{"resourcelist", "changelist", "resourcedump", "changedump"}
		set.ResourceList.PartEntries, set.ChangeList.Entries, set.Archives.Schedule = 3, 3, "@daily"
		set.Content.Properties = []string{"http://schema.org/contentUrl"}
		set.Content.Allow = []string{strings.TrimPrefix(files.URL, "http://")}
		set.Content.Every, set.Content.Rate = bridge.Duration(time.Second), 100000
		cfg.Sets["data"] = set
	})
	defer p.close()
	// The files answer over a connection, everything else in this process.
	fetch := func(ctx context.Context, url string) (*check.Fetched, error) {
		if !strings.HasPrefix(url, files.URL) {
			return p.fetch(ctx, url)
		}
		res, err := http.Get(url)
		if err != nil {
			return nil, err
		}
		return &check.Fetched{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), ContentLength: res.ContentLength, Body: io.NopCloser(res.Body)}, nil
	}
	scan := func(step string, entities int) {
		t.Helper()
		p.wait(25 * time.Hour)
		var data strings.Builder
		for i := range entities {
			fmt.Fprintf(&data, "<http://e.example/%d> <http://schema.org/contentUrl> <%s/%d.pdf> .\n", i, files.URL, i)
		}
		p.store.put(t, p.b, "application/n-triples", []byte(data.String()))
		for _, job := range []string{"scan:data", "dump:data", "archive:data"} {
			p.job(job)
		}
		p.check(step, fetch)
	}
	p.check("before the first scan", fetch)
	scan("empty", 0)
	scan("without a change", 0)
	scan("first", 8)
	for range 3 { // files alone
		length++
		scan("files", 8)
	}
	scan("almost gone", 1)
	scan("gone", 0)
	scan("again", 8)
	p.read("changelist-index changedump changedump-manifest resourcelist-index resourcelist-archive resourcedump-manifest")
}
