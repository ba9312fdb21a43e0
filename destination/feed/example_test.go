package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
)

// A feed is woken from outside: a hub calls back, and Wait ends long before the next poll.
func ExampleNotified() {
	var log strings.Builder // of the source
	second := 0
	changed := func(name string) {
		second++
		fmt.Fprintf(&log, `<url><loc>http://HOST/%s</loc><rs:md change="updated" datetime="2026-01-02T03:04:%02dZ"/></url>`, name, second)
	}
	mux := http.NewServeMux()
	source := httptest.NewServer(mux)
	defer source.Close()
	mux.HandleFunc("/changelist.xml", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
			<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>%s</urlset>`, strings.ReplaceAll(log.String(), "HOST", r.Host))
	})

	client, err := fetch.NewClient(source.URL, fetch.Options{})
	if err != nil {
		panic(err)
	}
	polls := feed.New(feed.Options{Source: source.URL + "/changelist.xml", Client: client, Pause: 24 * time.Hour})

	wake := make(chan struct{}, 1) // keeps one wake
	hub := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case wake <- struct{}{}:
		default:
		}
	}))
	defer hub.Close()

	var f feed.Feed = feed.Notified(polls, wake)
	ctx := context.Background()
	var at feed.Position
	for _, name := range []string{"a", "b"} {
		changed(name)
		if _, err := http.Post(hub.URL, "text/plain", nil); err != nil {
			panic(err)
		}
		if err := f.Wait(ctx, at); err != nil {
			panic(err)
		}
		for c, err := range f.Changes(ctx, at) {
			if err != nil {
				panic(err)
			}
			if at = c.At; c.Item != nil {
				fmt.Println(c.Item.Change, strings.TrimPrefix(c.Item.Loc, source.URL))
			}
		}
	}
	// Output:
	// updated /a
	// updated /b
}
