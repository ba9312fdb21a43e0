package resourcesync

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sharedDir finds the folder with the official examples; the test is passed over
// where it is absent.
func sharedDir(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("RSBRIDGE_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			if filepath.Dir(dir) == dir {
				t.Skip("no go.mod above the package: the official examples cannot be found")
			}
			dir = filepath.Dir(dir)
		}
		root = filepath.Join(dir, "..", "shared")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here (set RSBRIDGE_SHARED to the folder that holds it)", filepath.Join(parts...))
	}
	return path
}

func bigList(n int) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{Meta: Meta{Capability: ResourceList, At: time.Unix(1e9, 0)}})
	if err != nil {
		panic(err)
	}
	for i := range n {
		w.Write(sampleEntry(i))
	}
	w.Close()
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	doc := bigList(10000)
	for _, reuse := range []bool{false, true} {
		name := "Next"
		if reuse {
			name = "NextInto"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(doc), ReaderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				var e Entry
				for {
					if reuse {
						err = r.NextInto(&e)
					} else {
						_, err = r.Next()
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*10000/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func TestExamplesAreRead(t *testing.T) {
	for _, dir := range []string{"spec-1.1", "spec-0.9"} {
		files, _ := filepath.Glob(filepath.Join(sharedDir(t, "fixtures", dir), "*.xml"))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			r, err := NewReader(bytes.NewReader(b), ReaderOptions{})
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			n := 0
			for {
				_, err = r.Next()
				if err != nil {
					break
				}
				n++
			}
			t.Log(filepath.Base(f), r.Head().Meta.Capability, r.Head().Dialect, n, err, r.Head().Warnings)
		}
	}
}
