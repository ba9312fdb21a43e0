package destination

import (
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// A secret in the address of a mirror, which some stores want there, is no part of which
// mirror it is: with another one the mirror goes on, also where it was recorded with it.
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
		d, err := Open(t.Context(), b.store, client, b.cfg, Options{Transport: b.fetch, Now: func() time.Time { return b.clock }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync || rep.Created != created || rep.Updated+rep.Deleted != 0 {
			t.Fatalf("%+v %v", rep, err)
		}
		for pair, err := range b.store.Scan([]byte{0}, []byte{0xff}) {
			if err != nil || strings.Contains(string(pair.Key)+string(pair.Value), "hush") {
				t.Fatalf("%q %v", pair.Key, err)
			}
		}
	}
	sync("hush1", 3)
	sync("hush2", 0)
	batch := b.store.Batch()
	for pair := range b.store.Scan([]byte{kindSpaceName}, []byte{kindSpaceName + 1}) {
		batch.Set([]byte(strings.Replace(string(pair.Key), "xxxxx", "hush2", 1)), pair.Value)
		batch.Delete(pair.Key)
	}
	if err := batch.Commit(true); err != nil {
		t.Fatal(err)
	}
	batch.Close()
	sync("hush2", 0)
}
