package feed

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// What the numbers of a list say is applied is looked at briefly. It makes no
// difference to what is found: lists of numbers that ascend, repeat or end half way,
// with cursors of every kind.
func TestBriefScan(t *testing.T) {
	var list string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list) }))
	defer srv.Close()
	src := sourceAt(t, srv.URL)
	r := rand.New(rand.NewPCG(1, 2))
	brief, again := 0, 0
	for range 300 {
		var doc strings.Builder
		doc.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/" xmlns:b="` + rs.NamespaceBridge + `"><rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>` + "\n")
		n, at, seq := r.IntN(12), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), uint64(r.IntN(4))
		numbered := r.IntN(4) > 0
		var items []*item.Item
		for i := range n {
			at, seq = at.Add(time.Duration(r.IntN(3))*time.Second), seq+uint64(r.IntN(2))
			it := &item.Item{Loc: fmt.Sprintf("%s/%d", srv.URL, r.IntN(4)), Change: "updated", Time: at, Sequence: seq, Entity: "http://example.org/a"}
			ext := ""
			if numbered || i < n/2 {
				ext = fmt.Sprintf(` b:%s="%d"`, rs.ExtSequence, seq)
			} else {
				it.Sequence = 0
			}
			fmt.Fprintf(&doc, `<url><loc>%s</loc><rs:md change="updated" datetime="%s"%s/><rs:ln rel="describes" href="http://example.org/a"/></url>`+"\n", it.Loc, Stamp(at), ext)
			items = append(items, it)
		}
		doc.WriteString("</urlset>")
		list = doc.String()
		from := &cursor{Time: at, List: srv.URL + "/changelist.xml"}
		if s := uint64(r.IntN(8)); r.IntN(4) > 0 {
			from.Sequence = &s
		}
		if len(items) > 0 && r.IntN(3) > 0 {
			it := items[r.IntN(len(items))]
			from.Newest, from.Identity = newestOf(it), it.Identity()
			if it.Sequence > 0 {
				reached := it.Sequence + uint64(r.IntN(2)*r.IntN(4)) // a list may reach beyond its last entry
				from.Sequence = &reached
			}
		}
		dl, _, err := src.Docs.document(t.Context(), fetch.Request{URL: from.List}, rs.ChangeList)
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := src.scanChanges(dl, from)
		all, err2 := src.scanChangesBy(dl, from, false)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if from.Sequence != nil && one.numbered {
			brief++
			one.seen, all.seen = looker{}, looker{} // of a list without numbers
			one.found, all.found = false, false     // as well
		} else if all.count > 0 && !all.numbered && from.Sequence != nil {
			again++
		}
		if !reflect.DeepEqual(one, all) {
			t.Fatalf("cursor %+v, list\n%s\n%+v\nis not\n%+v", from, list, one, all)
		}
		dl.Close()
	}
	if brief < 30 || again < 30 {
		t.Fatalf("%d were scanned briefly, %d once more", brief, again)
	}
}

// sourceAt reads an address.
func sourceAt(t *testing.T, address string) *Source {
	t.Helper()
	now := time.Now()
	log, limits := slog.New(slog.DiscardHandler), DefaultLimits()
	limits.KeptItems = 4 // lists of the test are shorter and longer
	client, err := fetch.NewClient(address, fetch.Options{Concurrency: 1, Limits: &limits.Limits, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Source: address, Client: client, Limits: &limits, TempDir: t.TempDir(), MemoryBytes: 1 << 20, Now: func() time.Time { return now }, Log: log})
}
