package ledger

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestRecord: a record comes back as it was, whichever hashes were promised, and no part of one is
// a record.
func TestRecord(t *testing.T) {
	sha := strings.Repeat("0123456789abcdef", 4)
	for _, hashes := range []string{"", "sha-256:" + sha, "md5:" + sha[:32], "md5:" + sha[:32] + " sha-256:" + sha, "sha-512:ab", "sha-256:" + sha + " sha-512:ab"} {
		h, err := resourcesync.ParseHashes(hashes)
		if err != nil {
			t.Fatal(err)
		}
		r := &Record{Flags: FlagMapped | FlagVia, Loc: "http://a/", Entity: "http://b/", Hashes: h, Length: 12, LastMod: time.Unix(7, 8).UTC(),
			Graph: rdfres.Digest{1}, Normal: rdfres.Digest{2}, Triples: 3, Made: rdfres.Digest{4}, Via: "http://c/"}
		b := r.Encode()
		if got, err := DecodeRecord(b); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%q: %+v, %v, want %+v", hashes, got, err, r)
		}
		for n := range b {
			if _, err := DecodeRecord(b[:n]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%q: %d of %d bytes: %v", hashes, n, len(b), err)
			}
		}
	}
}
