package fetch

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A packed document gives its bytes on every pass, also after one that was left, and the
// errors of unpacking where they stand.
func TestPasses(t *testing.T) {
	raw := make([]byte, 300<<10)
	rand.Read(raw)
	text := []byte(hex.EncodeToString(raw))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	open := func(body []byte, most int64) *Body {
		f, err := os.Create(filepath.Join(t.TempDir(), "list"))
		if err == nil {
			_, err = f.Write(body)
		}
		if err != nil {
			t.Fatal(err)
		}
		return &Body{URL: "http://ex.org/list", file: f, Size: int64(len(body)), max: most}
	}
	pass := func(d *Body, n int64) (got []byte, err error) {
		r, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		return io.ReadAll(io.LimitReader(r, n))
	}
	d := open(packed.Bytes(), 1<<30)
	for _, n := range []int64{0, 10, 200_000, int64(len(text)), 1 << 30, 70_000, 1 << 30} {
		if got, err := pass(d, n); err != nil || !bytes.Equal(got, text[:min(n, int64(len(text)))]) {
			t.Fatalf("%d bytes of %d, %v", len(got), n, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	cut := open(packed.Bytes()[:100<<10], 1<<30)
	if got, err := pass(cut, 1<<30); !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(text, got) || len(got) < 100<<10 {
		t.Errorf("cut: %d bytes, %v", len(got), err)
	}
	long := open(packed.Bytes(), 500<<10)
	if got, err := pass(long, 1<<30); !errors.Is(err, ErrTooLarge) || len(got) > 600<<10 {
		t.Errorf("too long: %d bytes, %v", len(got), err)
	}
	for _, d := range []*Body{cut, long} {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
