package dumpfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/rdfres"
)

// bzip2Hello is "<http://e.example/s> <http://e.example/p> "hello" .\n", packed.
const bzip2Hello = "BZh91AY&SY&\xe2*1\x00\x00\x09Y\x80\x00\x10P\x01\x80\x15\x22F\xcc@ \x00P\xa6\x99\x18\x98\x98\x82U<\xa6\x9e\x9a\x0d4\xd4\xf6\xf6H\xf8\xc8\xe3\x8ap\xb6\x16hbI\x8289\xa6\x91(\xc5\x08\xa6F?\x17rE8P\x90&\xe2*1"

func put(t testing.TB, name string, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBzip2(t *testing.T) {
	in, err := Open(put(t, "x.nt.bz2", []byte(bzip2Hello)), "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n := 0
	err = in.Each(func(_, _, o, _ []byte) error {
		if n++; string(o) != `"hello"` {
			t.Errorf("object %s", o)
		}
		return nil
	})
	if err != nil || n != 1 || in.packing != "bzip2" || in.format != rdfres.NTriples {
		t.Errorf("%d %v %s %s", n, err, in.packing, in.format)
	}
}

func TestCompareNames(t *testing.T) {
	for _, tc := range [][2]string{
		{"a-9.nt", "a-10.nt.gz"}, {"full.nt.gz", "full-2.nt"}, {"2024-01-31.nq", "2024-02-01.nq.zst"}, {"b/1", "b/01x"}, {"a/zz", "b/1"}, {"/İİİİİİ/1.NT.GZ", "/İİİİİİ/2.nt"},
	} {
		if compareNames(dumpName(tc[0]), dumpName(tc[1])) >= 0 || compareNames(dumpName(tc[1]), dumpName(tc[0])) <= 0 {
			t.Errorf("%s is not before %s", tc[0], tc[1])
		}
	}
}

func TestCheckProof(t *testing.T) {
	for proof, ok := range map[string]bool{"": true, "checksum": true, "count": true, "# end": true, "end": false, "#a\nb": false} {
		if (CheckProof(proof) == nil) != ok {
			t.Errorf("CheckProof(%q) = %v", proof, CheckProof(proof))
		}
	}
}

// FuzzReader: no file does harm.
func FuzzReader(f *testing.F) {
	const two = "<http://e.example/s> <http://e.example/p> \"1\" .\n<http://e.example/t> <http://e.example/p> \"2\" .\n"
	var gz, zst bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, err := io.WriteString(z, two)
	zz, _ := zstd.NewWriter(&zst)
	_, err2 := io.WriteString(zz, two)
	if err := errors.Join(err, z.Close(), err2, zz.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(two), uint8(0))
	f.Add([]byte(bzip2Hello), uint8(1))
	f.Add(zst.Bytes(), uint8(2))
	f.Add(gz.Bytes(), uint8(2))
	names := []string{"a.nt", "a.nq", "a.ttl", "a"}
	f.Fuzz(func(t *testing.T, data []byte, name uint8) {
		in, err := Open(put(t, names[int(name)%len(names)], data), "")
		if err != nil {
			return
		}
		defer in.Close()
		n := 0
		_ = in.Each(func(s, p, o, g []byte) error {
			if n++; n > 10000 {
				return io.EOF
			}
			if len(s) == 0 || len(p) == 0 || len(o) == 0 {
				t.Errorf("an empty term in %q", data)
			}
			return nil
		})
	})
}
