package packing

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/changetrack"
)

// TestSend: a packed body goes out as it was written. One with another length or sum
// than recorded is never sent to its end.
func TestSend(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("0123456789", 20_000)} {
		p := New(true)
		p.Write([]byte(text))
		packed, err := p.Close()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Send(&out, packed); err != nil || out.String() != text {
			t.Errorf("%d bytes were sent of %d: %v", out.Len(), len(text), err)
		}
		for name, damage := range map[string]func(*changetrack.Blob){
			"shorter":   func(b *changetrack.Blob) { b.Length-- },
			"longer":    func(b *changetrack.Blob) { b.Length++ },
			"other sum": func(b *changetrack.Blob) { b.CRC32++ },
		} {
			b := packed
			damage(&b)
			out.Reset()
			if err := Send(&out, b); err == nil || len(text) > 0 && out.Len() >= len(text) {
				t.Errorf("%s than recorded: %d bytes were sent of %d: %v", name, out.Len(), len(text), err)
			}
		}
	}
}
