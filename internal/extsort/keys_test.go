package extsort

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A hash that is in the list is never passed over.
func TestKeys(t *testing.T) {
	l, err := NewKeys(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rng := rand.New(rand.NewPCG(3, 3))
	random := func() []byte {
		h := make([]byte, 16)
		for i := range h {
			h[i] = byte(rng.IntN(256))
		}
		return h
	}
	if l.Maybe(random()) {
		t.Error("an empty list may have it")
	}
	var want []string
	for range 5000 {
		h := random()
		if err := l.Add(h); err != nil {
			t.Fatal(err)
		}
		want = append(want, string(h))
	}
	others := 0
	for range 5000 {
		if l.Maybe(random()) {
			others++
		}
	}
	if others > 50 {
		t.Errorf("%d of 5000 others may be in it", others)
	}
	slices.Sort(want)
	var got []string
	for rec, err := range l.Sorted().Sort() {
		if err != nil {
			t.Fatal(err)
		}
		if !l.Maybe(rec.Key) {
			t.Fatalf("%x is passed over", rec.Key)
		}
		got = append(got, string(rec.Key))
	}
	if !slices.Equal(got, want) || l.Len() != 5000 {
		t.Errorf("%d came back of %d", len(got), len(want))
	}
}
