package ledger

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
		packed := Pack([]byte(body))
		if got, err := Unpack(packed); err != nil || string(got) != body {
			t.Fatalf("%d bytes: %d back, %v", len(body), len(got), err)
		}
		for i := range min(len(packed), 200) {
			for bit := range 8 {
				b := bytes.Clone(packed)
				b[i] ^= 1 << bit
				if got, err := Unpack(b); !errors.Is(err, ErrDamaged) {
					t.Fatalf("byte %d, bit %d of %d: %d bytes, %v", i, bit, len(packed), len(got), err)
				}
			}
		}
		if len(packed) > 0 {
			if _, err := Unpack(packed[:3]); !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
	}
	huge := append(Pack([]byte("a"))[:packedHead], binary.AppendUvarint(nil, maxKept+1)...)
	if _, err := Unpack(huge); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}
