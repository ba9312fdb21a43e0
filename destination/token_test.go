package destination

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// A secret in the address of a mirror, which some stores want there, is no part of which
// mirror it is: with another one the mirror goes on.
func TestSecretInAddress(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	sync := func(token string, created int64) {
		t.Helper()
		e := b.mir.client().Endpoint()
		e.Update += "?keyspace=a&access-token=" + token
		client, err := sparql.New(e)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		b.remember(client.Endpoint())
		d, err := Open(t.Context(), b.store, sparqlsink.Of(client), b.cfg, keep.Options{Transport: b.fetch, Now: func() time.Time { return b.clock }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync || rep.Created != created || rep.Updated+rep.Deleted != 0 {
			t.Fatalf("%+v %v", rep, err)
		}
		for pair, err := range b.store.Scan(t.Context(), []byte{0}, []byte{0xff}) {
			if err != nil || strings.Contains(string(pair.Key)+string(pair.Value), "hush") {
				t.Fatalf("%q %v", pair.Key, err)
			}
		}
	}
	sync("hush1", 3)
	sync("hush2", 0)
}

// The user and the password in the address of a source go with every request to its own
// host, with none to another, and are neither recorded, written beside the data nor told.
func TestPasswordOfSource(t *testing.T) {
	b := newQuietBench(t)
	b.cfg.Provenance = true
	b.cfg.Source = strings.Replace(b.cfg.Source, "://", "://reader:hush%20now@", 1)
	fill(b.src, 3)
	password := "hush now"
	b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
		user, pw, _ := r.BasicAuth()
		if user == "reader" && pw == password {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	b.sync()
	b.equal()
	b.src.put("a.nt", nt("a", "new"))
	b.sync()
	b.equal()
	records, graphs := b.state()
	if all := fmt.Sprintf("%s %v", records, graphs); strings.Contains(all, "hush") || strings.Contains(all, "reader") {
		t.Error("the password is kept")
	}
	password = "another"
	d := b.open()
	defer d.Close()
	_, err := d.Sync(t.Context(), SyncOptions{})
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a wrong password: %v", err)
	}
}
