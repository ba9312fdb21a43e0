package check

import (
	"bytes"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

const benchEntries = 10_000

func benchList() []byte {
	var b bytes.Buffer
	w, err := resourcesync.NewWriter(&b, resourcesync.Head{Meta: resourcesync.Meta{Capability: resourcesync.ResourceList, At: time.Unix(1e9, 0)}})
	for i := 0; i < benchEntries && err == nil; i++ {
		err = w.Write(sampleEntry(i))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

func perEntry(b *testing.B, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkValidate(b *testing.B) {
	doc := benchList()
	for b.Loop() {
		if _, _, err := Validate(bytes.NewReader(doc), ValidateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, len(doc))
}
