package destination

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// Bodies come back as they were; one bit of a packed one that changed is found.
func TestPack(t *testing.T) {
	long := strings.Repeat("<http://ex.org/s> <http://ex.org/p> \"v\" .\n", 5000)
	for _, body := range []string{"", "a", long[:43], long} {
		packed := pack([]byte(body))
		if got, err := unpack(packed); err != nil || string(got) != body {
			t.Fatalf("%d bytes: %d back, %v", len(body), len(got), err)
		}
		for i := range min(len(packed), 200) {
			for bit := range 8 {
				b := bytes.Clone(packed)
				b[i] ^= 1 << bit
				if got, err := unpack(b); !errors.Is(err, errRecord) {
					t.Fatalf("byte %d, bit %d of %d: %d bytes, %v", i, bit, len(packed), len(got), err)
				}
			}
		}
		if len(packed) > 0 {
			if _, err := unpack(packed[:3]); !errors.Is(err, errRecord) {
				t.Fatal(err)
			}
		}
	}
	huge := append(pack([]byte("a"))[:packedHead], binary.AppendUvarint(nil, maxKept+1)...)
	if _, err := unpack(huge); !errors.Is(err, errRecord) {
		t.Fatal(err)
	}
}

func TestIsZIP(t *testing.T) {
	for _, c := range []struct {
		url, typ string
		want     bool
	}{
		{"http://s.example/a.zip", "", true},
		{"http://s.example/a.ZIP?x=.warc", "application/octet-stream", true},
		{"http://s.example/package/7", "application/octet-stream", true},
		{"http://s.example/package/7", "", true},
		{"http://s.example/a.warc", "application/zip", true},
		{"http://s.example/a.warc", "application/octet-stream", false},
		{"http://s.example/a.tar.gz", "", false},
		{"http://s.example/a.zip", "application/warc", false},
	} {
		if p := (pkg{url: c.url, promise: promise{Type: c.typ}}); p.isZIP() != c.want {
			t.Errorf("%s %q: %t", c.url, c.typ, !c.want)
		}
	}
}
